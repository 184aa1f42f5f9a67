/* SPDX-License-Identifier: Apache-2.0 */
/* Spans to series: what is one series and what are two, and labels that are too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "connectors/span_metrics/span_aggregation.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/key_value.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum { ROOM = 1 << 20 };

static struct dimension_config dimension_configs[] = {{.name = "key", .glob = ""},
                                                      {.name = "", .glob = "app.*"}};

struct fixture {
    struct budget budget;
    struct dimensions *dimensions;
    double *bounds;
    struct series_settings series;
    struct aggregation_settings settings;
    struct series_store store;
    struct span_aggregation aggregation;
};

static const struct config_texts none;

static void setup(struct fixture *f, const struct span_metrics_config *config)
{
    size_t bounds_count;
    budget_init(&f->budget, UINT64_MAX);
    f->dimensions = dimensions_create(config);
    f->bounds = span_metrics_bounds(config, &bounds_count);
    f->series = (struct series_settings){.histogram = HISTOGRAM_EXPLICIT,
                                         .has_common_labels = true,
                                         .bounds = f->bounds,
                                         .bounds_count = bounds_count,
                                         .resources_max = 10,
                                         .bytes_max = UINT64_MAX,
                                         .budget = &f->budget};
    f->settings = (struct aggregation_settings){.dimensions = f->dimensions,
                                                .key_attributes = &none,
                                                .scopes = &none,
                                                .has_service = true,
                                                .has_name = true,
                                                .has_kind = true,
                                                .has_status = true,
                                                .has_histogram = true,
                                                .has_common_labels = true,
                                                .unit_ns = 1e6};
    span_series_store_init(&f->store, &f->series);
    span_aggregation_init(&f->aggregation, &f->settings, &f->store, &f->budget);
}

static void teardown(struct fixture *f)
{
    span_aggregation_fini(&f->aggregation);
    span_series_store_fini(&f->store);
    dimensions_destroy(f->dimensions);
    mem_free(f->bounds);
    assert_int_equal(budget_used(&f->budget), 0);
    budget_fini(&f->budget);
}

static void write_pair(struct wire_writer *out, uint32_t number, const char *key,
                       struct slice value)
{
    wire_write_header(out, number,
                      wire_field_size(1, strlen(key)) + wire_field_size(2, value.size));
    wire_write_bytes(out, 1, slice_of_text(key));
    wire_write_bytes(out, 2, value);
}

static struct slice text_value(uint8_t *room, struct slice text)
{
    struct wire_writer value = wire_writer_of(room, ROOM);
    wire_write_bytes(&value, 1, text);
    return wire_written(&value);
}

/* Adds one span; without a key the attribute is left out. */
static void add_span(struct fixture *f, struct slice service, const char *name, const char *key,
                     struct slice value)
{
    static uint8_t rooms[6][ROOM];
    struct wire_writer resource = wire_writer_of(rooms[0], ROOM);
    struct wire_writer span = wire_writer_of(rooms[1], ROOM);
    struct wire_writer scope = wire_writer_of(rooms[2], ROOM);
    struct wire_writer whole = wire_writer_of(rooms[3], ROOM);
    struct wire_writer request = wire_writer_of(rooms[4], ROOM);
    write_pair(&resource, 1, "service.name", text_value(rooms[5], service));
    wire_write_bytes(&span, 5, slice_of_text(name));
    if (key != NULL)
        write_pair(&span, 9, key, value);
    wire_write_bytes(&scope, 2, wire_written(&span));
    wire_write_bytes(&whole, 1, wire_written(&resource));
    wire_write_bytes(&whole, 2, wire_written(&scope));
    wire_write_bytes(&request, 1, wire_written(&whole));
    span_aggregation_begin(&f->aggregation, wire_written(&request), (struct series_time){5, 5});
    while (span_aggregation_go_on(&f->aggregation))
        continue;
}

static void labels_make_series(void **state)
{
    const struct config_sections dimensions = {.count = 2, .items = dimension_configs};
    const struct span_metrics_config config = {.dimensions = dimensions};
    const uint8_t five[] = {3 << 3, 5}; /* an integer */
    const uint8_t text[] = {1 << 3 | 2, 1, '5'};
    const uint8_t list[] = {5 << 3 | 2, 0};
    struct slice shop = slice_of_text("shop");
    struct slice as_integer = slice_of(five, sizeof(five));
    struct slice as_text = slice_of(text, sizeof(text));
    struct fixture f;
    (void)state;
    setup(&f, &config);
    add_span(&f, shop, "a", NULL, shop);
    assert_int_equal(f.store.series, 1);
    add_span(&f, shop, "b", NULL, shop);
    assert_int_equal(f.store.series, 2);
    add_span(&f, shop, "a", "other", as_text);
    assert_int_equal(f.store.series, 2);
    add_span(&f, shop, "a", "key", as_text);
    assert_int_equal(f.store.series, 3);
    /* Of equal text, so the same. */
    add_span(&f, shop, "a", "key", as_integer);
    assert_int_equal(f.store.series, 3);
    add_span(&f, shop, "a", "key", slice_of(list, sizeof(list)));
    assert_int_equal(f.store.series, 4);
    /* Under another name, so another one. */
    add_span(&f, shop, "a", "app.key", as_text);
    assert_int_equal(f.store.series, 5);
    add_span(&f, shop, "a", "app.key.more", as_text);
    assert_int_equal(f.store.series, 5);
    add_span(&f, slice_of_text("cart"), "a", NULL, shop);
    assert_int_equal(f.store.series, 6);
    assert_int_equal(f.store.kept, 2);
    assert_int_equal(f.aggregation.lost, 0);
    teardown(&f);
}

/* Texts of every length up to where they are hashed alone, and then fill a key. */
static void every_byte_of_a_label_counts(void **state)
{
    enum { SIZE_MAX_TRIED = 300 };
    static uint8_t room[ROOM];
    const struct config_sections dimensions = {.count = 1, .items = dimension_configs};
    const struct span_metrics_config config = {.dimensions = dimensions};
    char text[SIZE_MAX_TRIED];
    struct fixture f;
    uint64_t series = 0;
    (void)state;
    setup(&f, &config);
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        memset(text, 'x', sizeof(text));
        add_span(&f, slice_of_text("shop"), "a", "key", text_value(room, slice_of(text, size)));
        series++;
        for (size_t i = 0; i < size; i += 1 + size / 40) {
            text[i] = 'y';
            add_span(&f, slice_of_text("shop"), "a", "key", text_value(room, slice_of(text, size)));
            add_span(&f, slice_of_text("shop"), "a", "key", text_value(room, slice_of(text, size)));
            text[i] = 'x';
            series++;
        }
        assert_int_equal(f.store.series, series);
    }
    teardown(&f);
}

static void numbers_are_equal_to_their_texts(void **state)
{
    static const struct {
        int64_t number;
        const char *text;
    } rows[] = {
        {0, "0"},         {127, "127"},     {128, "128"}, {500, "500"},
        {16383, "16383"}, {16384, "16384"}, {-1, "-1"},   {INT64_MIN, "-9223372036854775808"},
    };
    static uint8_t room[ROOM];
    const struct config_sections dimensions = {.count = 1, .items = dimension_configs};
    const struct span_metrics_config config = {.dimensions = dimensions};
    struct fixture f;
    (void)state;
    setup(&f, &config);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_writer value = wire_writer_of(room, sizeof(room));
        wire_write_number(&value, 3, (uint64_t)rows[i].number);
        add_span(&f, slice_of_text("shop"), "a", "key", wire_written(&value));
        assert_int_equal(f.store.series, i + 1);
        add_span(&f, slice_of_text("shop"), "a", "key",
                 text_value(room, slice_of_text(rows[i].text)));
        assert_int_equal(f.store.series, i + 1);
    }
    teardown(&f);
}

/* One that is kept for the next request, one that is too long for that, and another. */
static void resources_are_known_again(void **state)
{
    static char text[KNOWN_RESOURCE_BYTES_MAX + 1];
    const struct span_metrics_config config = {.naming = 0};
    struct fixture f;
    (void)state;
    setup(&f, &config);
    memset(text, 'x', sizeof(text));
    const struct slice services[] = {slice_of_text("shop"), slice_of_text("cart"),
                                     slice_of(text, sizeof(text))};
    static const unsigned order[] = {0, 0, 1, 0, 2, 2, 1, 1, 2, 0, 0};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        add_span(&f, services[order[i]], "a", NULL, services[0]);
    assert_int_equal(f.store.kept, 3);
    assert_int_equal(f.store.series, 3);
    static const uint64_t counts[] = {5, 3, 3};
    const struct series_resource *resource = f.store.first;
    for (size_t i = 0; i < 3; i++, resource = resource->next)
        assert_int_equal(resource->sets[SERIES_CALLS].first->count, counts[i]);
    teardown(&f);
}

static void known_series_allocate_nothing(void **state)
{
    const struct config_sections dimensions = {.count = 2, .items = dimension_configs};
    const struct span_metrics_config config = {.dimensions = dimensions};
    const uint8_t five[] = {3 << 3, 5};
    struct fixture f;
    (void)state;
    setup(&f, &config);
    add_span(&f, slice_of_text("shop"), "a", "key", slice_of(five, sizeof(five)));
    uint64_t tries = mem_tries();
    for (unsigned i = 0; i < 100; i++)
        add_span(&f, slice_of_text("shop"), "a", "key", slice_of(five, sizeof(five)));
    assert_int_equal(mem_tries(), tries);
    assert_int_equal(f.store.first->sets[SERIES_CALLS].first->count, 101);
    teardown(&f);
}

static void long_labels_count_as_overflow(void **state)
{
    static char text[SERIES_LABELS_BYTES_MAX + 1];
    static uint8_t room[ROOM];
    const struct config_sections dimensions = {.count = 1, .items = dimension_configs};
    const struct span_metrics_config config = {.dimensions = dimensions};
    struct fixture f;
    (void)state;
    setup(&f, &config);
    memset(text, 'x', sizeof(text));
    struct slice value = text_value(room, slice_of(text, sizeof(text)));
    add_span(&f, slice_of_text("shop"), "a", "key", value);
    add_span(&f, slice_of_text("shop"), "b", "key", value);
    assert_int_equal(f.store.series, 1);
    assert_int_equal(f.store.first->sets[SERIES_CALLS].overflow->count, 2);
    add_span(&f, slice_of_text("shop"), "a", NULL, value);
    assert_int_equal(f.store.series, 2);
    add_span(&f, slice_of(text, sizeof(text)), "a", NULL, value);
    assert_int_equal(f.store.last->sets[SERIES_CALLS].overflow->count, 1);
    teardown(&f);
}

static void spans_without_memory_for_their_resource_are_lost(void **state)
{
    const struct span_metrics_config config = {.naming = 0};
    struct fixture f;
    (void)state;
    setup(&f, &config);
    f.series.bytes_max = 100;
    add_span(&f, slice_of_text("shop"), "a", NULL, slice_of_text(""));
    assert_int_equal(f.aggregation.lost, 1);
    assert_int_equal(f.store.series, 0);
    f.series.bytes_max = UINT64_MAX;
    add_span(&f, slice_of_text("shop"), "a", NULL, slice_of_text(""));
    assert_int_equal(f.aggregation.lost, 1);
    assert_int_equal(f.store.series, 1);
    teardown(&f);
}

/* The other labels of a series of events as "key=text" with blanks between. */
static void write_labels(const struct fixture *f, const struct series *series, char *text)
{
    const uint8_t *labels = span_series_labels_of(&f->series, SERIES_EVENTS, series);
    struct wire_reader reader = wire_reader_of(
        slice_of(labels + series->service_bytes + series->name_bytes, series->others_bytes));
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        const struct key_value pair = key_value_of(field.bytes);
        const struct slice value = value_read(pair.value).bytes;
        text += sprintf(text, "%.*s=%.*s ", (int)pair.key.size, (const char *)pair.key.data,
                        (int)value.size, (const char *)value.data);
    }
}

/* By key: the span's, then the event's and the resource's that the span does not have. */
static void globs_match_what_events_and_resources_have(void **state)
{
    static const struct {
        const char *resource;
        const char *span;
        const char *event;
        const char *labels;
    } rows[] = {
        {"ace", "c", "ecb", "app.c=s app.a=r app.b=e app.e=e "},
        {"ca", "", "", "app.a=r app.c=r "},
        {"bd", "", "eca", "app.a=e app.b=r app.c=e app.d=r app.e=e "},
        {"abc", "abc", "abc", "app.a=s app.b=s app.c=s "},
        {"abc", "", "abc", "app.a=e app.b=e app.c=e "},
        {"", "b", "a", "app.b=s app.a=e "},
    };
    static uint8_t rooms[6][ROOM];
    const struct config_sections dimensions = {.count = 2, .items = dimension_configs};
    const struct span_metrics_config config = {
        .dimensions = dimensions, .events = {.enabled = true, .dimensions = dimensions}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const letters[] = {rows[i].resource, rows[i].span, rows[i].event};
        static const char *const values[] = {"r", "s", "e"};
        static const uint32_t numbers[] = {1, 9, 3};
        struct wire_writer writers[6];
        struct fixture f;
        char labels[256] = "";
        for (unsigned k = 0; k < 5; k++)
            writers[k] = wire_writer_of(rooms[k], ROOM);
        write_pair(&writers[0], 1, "service.name", text_value(rooms[5], slice_of_text("shop")));
        for (unsigned k = 0; k < 3; k++)
            for (const char *letter = letters[k]; *letter != '\0'; letter++) {
                const char key[] = {'a', 'p', 'p', '.', *letter, '\0'};
                write_pair(&writers[k], numbers[k], key,
                           text_value(rooms[5], slice_of_text(values[k])));
            }
        wire_write_bytes(&writers[1], 11, wire_written(&writers[2]));
        wire_write_bytes(&writers[3], 2, wire_written(&writers[1]));
        wire_write_bytes(&writers[4], 1, wire_written(&writers[0]));
        wire_write_bytes(&writers[4], 2, wire_written(&writers[3]));
        writers[5] = wire_writer_of(rooms[5], ROOM);
        wire_write_bytes(&writers[5], 1, wire_written(&writers[4]));
        setup(&f, &config);
        f.settings.has_events = true;
        span_aggregation_begin(&f.aggregation, wire_written(&writers[5]),
                               (struct series_time){5, 5});
        while (span_aggregation_go_on(&f.aggregation))
            continue;
        write_labels(&f, f.store.first->sets[SERIES_EVENTS].first, labels);
        assert_string_equal(labels, rows[i].labels);
        teardown(&f);
    }
}

/* A piece of work copies only so much, whatever the labels repeat: each of many spans is a series
 * with a long name of its service. */
static void long_labels_are_copied_in_pieces(void **state)
{
    enum { SPANS = 1000, SERVICE_BYTES = 60000, PIECE_MAX = 8 << 20 };
    static uint8_t rooms[4][ROOM];
    static char service[SERVICE_BYTES];
    const struct span_metrics_config config = {.naming = 0};
    struct wire_writer resource = wire_writer_of(rooms[0], ROOM);
    struct wire_writer scope = wire_writer_of(rooms[1], ROOM);
    struct wire_writer whole = wire_writer_of(rooms[2], ROOM);
    struct wire_writer request = wire_writer_of(rooms[3], ROOM);
    struct fixture f;
    (void)state;
    memset(service, 's', sizeof(service));
    write_pair(&resource, 1, "service.name",
               text_value(rooms[3], slice_of(service, sizeof(service))));
    for (unsigned i = 0; i < SPANS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        wire_write_header(&scope, 2, wire_field_size(5, strlen(name)));
        wire_write_bytes(&scope, 5, slice_of_text(name));
    }
    wire_write_bytes(&whole, 1, wire_written(&resource));
    wire_write_bytes(&whole, 2, wire_written(&scope));
    wire_write_bytes(&request, 1, wire_written(&whole));
    setup(&f, &config);
    span_aggregation_begin(&f.aggregation, wire_written(&request), (struct series_time){5, 5});
    uint64_t before = budget_used(&f.budget);
    for (bool has_more = true; has_more;) {
        has_more = span_aggregation_go_on(&f.aggregation);
        assert_true(budget_used(&f.budget) - before < PIECE_MAX);
        before = budget_used(&f.budget);
    }
    assert_int_equal(f.store.series, SPANS);
    assert_true(before > (uint64_t)SPANS * SERVICE_BYTES);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_make_series),
        cmocka_unit_test(every_byte_of_a_label_counts),
        cmocka_unit_test(numbers_are_equal_to_their_texts),
        cmocka_unit_test(resources_are_known_again),
        cmocka_unit_test(known_series_allocate_nothing),
        cmocka_unit_test(long_labels_count_as_overflow),
        cmocka_unit_test(globs_match_what_events_and_resources_have),
        cmocka_unit_test(long_labels_are_copied_in_pieces),
        cmocka_unit_test(spans_without_memory_for_their_resource_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
