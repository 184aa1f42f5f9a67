/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of spans, and that the cuts of a batch make no difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connectors/service_graph/graph_reader.h"
#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "tests/support/random_otlp.h"
#include "tests/support/telemetry_bytes.h"

struct fixture {
    struct budget budget;
    struct graph_store store;
    struct graph_keys keys;
    struct graph_reader reader;
    uint64_t halves;
    uint64_t runs;
    size_t longest; /* name or value */
    size_t size;
    char text[256 * 1024]; /* all that was read, a line for each half */
};

static void print_word(struct fixture *f, const char *name, struct graph_word word)
{
    if (word.bytes.size > f->longest)
        f->longest = word.bytes.size;
    if (word.bytes.size > 0)
        assert_int_equal(word.hash, graph_hash(&f->store, word.bytes));
    if (f->size + 2 * word.bytes.size + 64 > sizeof(f->text))
        return;
    f->size += (size_t)sprintf(f->text + f->size, " %s=", name);
    for (size_t i = 0; i < word.bytes.size; i++) {
        bool is_plain = word.bytes.data[i] > ' ' && word.bytes.data[i] < 0x7f;
        f->size += (size_t)sprintf(f->text + f->size, is_plain ? "%c" : "%02x", word.bytes.data[i]);
    }
}

static void take(void *arg, const struct graph_half *halves, size_t count)
{
    struct fixture *f = arg;
    assert_in_range(count, 1, GRAPH_RUN_MAX);
    f->runs++;
    for (size_t i = 0; i < count; i++) {
        const struct graph_half *half = &halves[i];
        f->halves++;
        if (f->size + 256 > sizeof(f->text))
            continue;
        f->size += (size_t)sprintf(
            f->text + f->size, "%s%s%s %llx.%llx.%llx %llu", half->is_client ? "client" : "server",
            half->is_messaging ? " message" : "", half->is_failed ? " failed" : "",
            (unsigned long long)half->trace[0], (unsigned long long)half->trace[1],
            (unsigned long long)half->span, (unsigned long long)half->latency_ns);
        print_word(f, "service", half->service);
        print_word(f, "dimensions", half->dimensions);
        if (half->has_database)
            print_word(f, "database", half->database);
        if (half->peer_rank != GRAPH_NO_PEER)
            print_word(f, half->peer_rank == 0 ? "peer0" : "peer1", half->peer);
        f->size += (size_t)sprintf(f->text + f->size, "\n");
    }
}

static struct fixture *fixture_create(void)
{
    static struct fixture fixture;
    static const double bound = 1;
    const struct graph_settings settings = {.bounds = &bound, .bounds_count = 1};
    struct fixture *f = &fixture;
    f->halves = f->runs = 0;
    f->longest = f->size = 0;
    budget_init(&f->budget, UINT64_MAX);
    graph_store_init(&f->store, &settings, &f->budget);
    f->store.seed = 1; /* texts of two fixtures are compared */
    graph_keys_init(&f->keys);
    assert_true(graph_keys_add(&f->keys, &f->keys.dimensions, "dim.one"));
    assert_true(graph_keys_add(&f->keys, &f->keys.dimensions, "dim.two"));
    assert_true(graph_keys_add(&f->keys, &f->keys.dimensions, "dim.one")); /* once */
    assert_true(graph_keys_add(&f->keys, &f->keys.peers, "peer.service"));
    assert_true(graph_keys_add(&f->keys, &f->keys.peers, "db.name"));
    assert_true(graph_keys_add(&f->keys, &f->keys.databases, "db.name"));
    assert_int_equal(f->keys.dimensions.count, 2);
    graph_reader_init(&f->reader, &f->keys, &f->store, &f->budget);
    f->reader.take = take;
    f->reader.arg = f;
    return f;
}

static void fixture_destroy(struct fixture *f)
{
    graph_store_clear(&f->store);
    assert_int_equal(budget_used(&f->budget), 0);
    budget_fini(&f->budget);
}

/* Attributes, written one after the other. */
struct attributes {
    uint8_t bytes[16 * 1024];
    size_t size;
};

/* value: an encoded AnyValue. */
static void put(struct attributes *to, uint32_t field, const char *key, struct slice value)
{
    struct slice name = slice_of_text(key);
    size_t size = wire_field_size(1, name.size) + wire_field_size(2, value.size);
    struct wire_writer out = wire_writer_of(to->bytes + to->size, sizeof(to->bytes) - to->size);
    wire_write_header(&out, field, size);
    wire_write_bytes(&out, 1, name);
    wire_write_bytes(&out, 2, value);
    assert_false(out.has_failed);
    to->size += wire_written(&out).size;
}

static void put_text(struct attributes *to, uint32_t field, const char *key, const char *text)
{
    uint8_t room[9 * 1024];
    struct wire_writer out = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&out, 1, slice_of_text(text));
    assert_false(out.has_failed);
    put(to, field, key, wire_written(&out));
}

enum { SERVER = 2, CLIENT = 3, PRODUCER = 4, CONSUMER = 5 };

/* Protobuf leaves the order of fields to the writer. */
static bool kind_comes_last;

static struct batch *one_span(unsigned kind, uint64_t end_ns, unsigned status,
                              const struct attributes *resource, const struct attributes *span)
{
    static const uint8_t trace[16] = {1};
    static const uint8_t id[8] = {2};
    static const uint8_t parent[8] = {3};
    uint8_t room[32 * 1024];
    uint8_t outer[64 * 1024];
    struct wire_writer out = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&out, 1, slice_of(trace, sizeof(trace)));
    wire_write_bytes(&out, 2, slice_of(id, sizeof(id)));
    wire_write_bytes(&out, 4, slice_of(parent, sizeof(parent)));
    if (!kind_comes_last)
        wire_write_number(&out, 6, kind);
    wire_write_fixed64(&out, 7, 1000);
    wire_write_fixed64(&out, 8, end_ns);
    wire_write_raw(&out, slice_of(span->bytes, span->size));
    if (kind_comes_last)
        wire_write_number(&out, 6, kind);
    wire_write_header(&out, 15, 2);
    wire_write_number(&out, 3, status);
    struct slice encoded = wire_written(&out);
    size_t scope = wire_field_size(2, encoded.size);
    size_t whole = wire_field_size(1, resource->size) + wire_field_size(2, scope);
    struct wire_writer wrapped = wire_writer_of(outer, sizeof(outer));
    wire_write_header(&wrapped, 1, whole);
    /* The resource comes last, which protobuf allows. */
    wire_write_header(&wrapped, 2, scope);
    wire_write_bytes(&wrapped, 2, encoded);
    wire_write_bytes(&wrapped, 1, slice_of(resource->bytes, resource->size));
    assert_false(wrapped.has_failed);
    return plain_request(NULL, TRACES, wire_written(&wrapped), 1);
}

static void check(struct batch *batch, const char *wanted)
{
    struct fixture *f = fixture_create();
    assert_int_equal(graph_reader_read(&f->reader, batch), 0);
    f->text[f->size] = '\0';
    assert_string_equal(f->text, wanted);
    batch_unref(batch);
    fixture_destroy(f);
}

static void each_kind_gives_its_half(void **state)
{
    (void)state;
    struct attributes resource = {.size = 0};
    struct attributes span = {.size = 0};
    put_text(&resource, 1, "service.name", "shop");
    check(one_span(CLIENT, 1500, 0, &resource, &span),
          "client 1.0.2 500 service=shop dimensions=\n");
    check(one_span(SERVER, 1500, 2, &resource, &span),
          "server failed 1.0.3 500 service=shop dimensions=\n");
    check(one_span(PRODUCER, 900, 1, &resource, &span), /* it ends before it begins */
          "client message 1.0.2 0 service=shop dimensions=\n");
    check(one_span(CONSUMER, 1000, 0, &resource, &span),
          "server message 1.0.3 0 service=shop dimensions=\n");
    check(one_span(0, 1500, 0, &resource, &span), "");
    check(one_span(1, 1500, 0, &resource, &span), "");
    check(one_span(6, 1500, 0, &resource, &span), "");
    resource.size = 0;
    put_text(&resource, 1, "service", "shop");
    check(one_span(CLIENT, 1500, 0, &resource, &span), "");
}

static void attributes_of_the_resource_win_and_the_first_of_equal_ones(void **state)
{
    (void)state;
    struct attributes resource = {.size = 0};
    struct attributes span = {.size = 0};
    put_text(&resource, 1, "dim.two", "resource");
    put_text(&resource, 1, "service.name", "shop");
    put_text(&resource, 1, "service.name", "other");
    put_text(&span, 9, "dim.two", "span");
    put_text(&span, 9, "db.name", "orders");
    put_text(&span, 9, "db.name", "x");
    check(one_span(CLIENT, 1000, 0, &resource, &span),
          "client 1.0.2 0 service=shop dimensions=0009resource database=orders peer1=orders\n");
    put_text(&span, 9, "peer.service", "peer");
    put_text(&span, 9, "dim.one", "");
    check(one_span(CLIENT, 1000, 0, &resource, &span),
          "client 1.0.2 0 service=shop dimensions=0109resource database=orders peer0=peer\n");
    check(one_span(SERVER, 1000, 0, &resource, &span),
          "server 1.0.3 0 service=shop dimensions=0109resource\n");
    kind_comes_last = true;
    check(one_span(CLIENT, 1000, 0, &resource, &span),
          "client 1.0.2 0 service=shop dimensions=0109resource database=orders peer0=peer\n");
    check(one_span(SERVER, 1000, 0, &resource, &span),
          "server 1.0.3 0 service=shop dimensions=0109resource\n");
    kind_comes_last = false;
    /* The peer is an attribute of the span alone, the database also of the resource. */
    put_text(&resource, 1, "db.name", "theirs");
    span.size = 0;
    check(one_span(CLIENT, 1000, 0, &resource, &span),
          "client 1.0.2 0 service=shop dimensions=0009resource database=theirs\n");
}

static void values_become_strings(void **state)
{
    (void)state;
    static const uint8_t number[] = {3 << 3, 42};
    static const uint8_t list[] = {5 << 3 | 2, 4, 1 << 3 | 2, 2, 2 << 3, 1};
    struct attributes resource = {.size = 0};
    struct attributes span = {.size = 0};
    put(&resource, 1, "service.name", slice_of(number, sizeof(number)));
    put(&span, 9, "dim.one", slice_of(list, sizeof(list)));
    put(&span, 9, "dim.two", slice_of(NULL, 0)); /* empty, but present */
    check(one_span(SERVER, 1000, 0, &resource, &span),
          "server 1.0.3 0 service=42 dimensions=07[true]01\n");
}

static void long_values_are_cut_between_characters(void **state)
{
    (void)state;
    char text[GRAPH_TEXT_BYTES_MAX + 10];
    struct attributes resource = {.size = 0};
    struct attributes span = {.size = 0};
    memset(text, 'a', sizeof(text));
    memcpy(text + GRAPH_TEXT_BYTES_MAX - 2, "\xe2\x82\xac", 3); /* a euro sign across the end */
    text[sizeof(text) - 1] = '\0';
    put_text(&resource, 1, "service.name", text);
    struct batch *batch = one_span(SERVER, 1000, 0, &resource, &span);
    struct fixture *f = fixture_create();
    assert_int_equal(graph_reader_read(&f->reader, batch), 0);
    assert_int_equal(f->longest, GRAPH_TEXT_BYTES_MAX - 2);
    fixture_destroy(f);
    batch_unref(batch);
}

static void put_some(struct random_source *random, struct attributes *to, uint32_t field)
{
    static const char *const names[] = {"dim.one", "dim.two", "db.name", "peer.service", "other"};
    static const char *const texts[] = {"", "a", "somewhat longer than the others"};
    static const uint8_t bytes[] = {7 << 3 | 2, 3, 1, 2, 3};
    for (uint64_t left = random_below(random, 4); left > 0; left--) {
        const char *name = names[random_below(random, 5)];
        if (random_below(random, 4) == 0)
            put(to, field, name, slice_of(bytes, sizeof(bytes)));
        else
            put_text(to, field, name, texts[random_below(random, 3)]);
    }
}

/* Resources with scopes with spans, the resource among its scopes. Freed by mem_free. */
static struct slice random_edges(struct random_source *random)
{
    enum { ROOM = 512 * 1024, PART = ROOM / 8 };
    uint8_t *room = mem_alloc(ROOM + 3 * PART);
    uint8_t *message_room = room + ROOM;
    uint8_t *scope_room = message_room + PART;
    uint8_t *span_room = scope_room + PART;
    struct wire_writer out = wire_writer_of(room, ROOM);
    struct attributes some;
    for (uint64_t resources = 1 + random_below(random, 3); resources > 0; resources--) {
        struct wire_writer message = wire_writer_of(message_room, PART);
        uint64_t scopes = 1 + random_below(random, 3);
        uint64_t resource_at = random_below(random, scopes);
        for (uint64_t i = 0; i < scopes; i++) {
            struct wire_writer scope = wire_writer_of(scope_room, PART);
            some.size = 0;
            put_some(random, &some, 1);
            if (random_below(random, 8) > 0)
                put_text(&some, 1, "service.name", random_below(random, 2) > 0 ? "a" : "b");
            if (i == resource_at || random_below(random, 8) == 0)
                wire_write_bytes(&message, 1, slice_of(some.bytes, some.size));
            for (uint64_t spans = random_below(random, 8); spans > 0; spans--) {
                uint64_t ids[4] = {1, random_below(random, 4), random_below(random, 9), 7};
                struct wire_writer span = wire_writer_of(span_room, PART);
                some.size = 0;
                put_some(random, &some, 9);
                wire_write_bytes(&span, 1, slice_of(ids, 16));
                wire_write_bytes(&span, 2, slice_of(&ids[2], 8));
                wire_write_raw(&span, slice_of(some.bytes, some.size));
                wire_write_number(&span, 6, random_below(random, 6));
                if (random_below(random, 2) > 0)
                    wire_write_bytes(&span, 4, slice_of(&ids[3], 8));
                wire_write_bytes(&span, 300, slice_of("unknown", 7));
                wire_write_fixed64(&span, 8, random_below(random, 1 << 30));
                put_some(random, &some, 9);
                wire_write_raw(&span, slice_of(some.bytes, some.size));
                assert_false(span.has_failed);
                wire_write_bytes(&scope, 2, wire_written(&span));
            }
            assert_false(scope.has_failed);
            wire_write_bytes(&message, 2, wire_written(&scope));
        }
        assert_false(message.has_failed);
        wire_write_bytes(&out, 1, wire_written(&message));
    }
    return wire_written(&out);
}

/* Reads the batch in a fixture of its own. Returns the number of spans without memory. */
static uint64_t read_with(struct fixture **ret_fixture, const struct batch *batch, uint64_t refused)
{
    struct fixture *f = fixture_create();
    mem_refuse_nth(refused);
    uint64_t unread = graph_reader_read(&f->reader, batch);
    mem_refuse_nth(0);
    *ret_fixture = f;
    fixture_destroy(f);
    return unread;
}

static void parts_make_no_difference(void **state)
{
    (void)state;
    enum { REQUESTS = 400 };
    struct random_source random = {.state = 11};
    struct fixture *f;
    uint64_t halves = 0;
    uint64_t unread = 0;
    static char whole[sizeof(f->text)];
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct slice bytes = random_edges(&random);
        struct batch *batch = plain_request(NULL, TRACES, bytes, 1);
        struct batch *cut = random_parts(&random, TRACES, bytes);
        assert_int_equal(read_with(&f, batch, 0), 0);
        size_t size = f->size;
        halves += f->halves;
        memcpy(whole, f->text, size);
        uint64_t tries = mem_tries();
        assert_int_equal(read_with(&f, cut, 0), 0);
        tries = mem_tries() - tries;
        assert_int_equal(f->size, size);
        assert_memory_equal(f->text, whole, size);
        /* Without memory, spans are left out. */
        for (uint64_t n = 1; n <= tries && i % 20 == 0; n++) {
            unread += read_with(&f, cut, n);
            assert_true(f->size <= size);
        }
        batch_unref(cut);
        batch_unref(batch);
        mem_free((void *)(uintptr_t)bytes.data);
    }
    assert_true(halves > REQUESTS);
    assert_true(unread > 0);
}

/* Of every field and any shape, most of it of no use here. */
static void any_request_is_read(void **state)
{
    (void)state;
    struct random_source random = {.state = 12};
    struct fixture *f;
    for (unsigned i = 0; i < 300; i++) {
        struct slice bytes = random_request(&random, TRACES);
        if (bytes.size > 0) {
            struct batch *cut = random_parts(&random, TRACES, bytes);
            assert_int_equal(read_with(&f, cut, 0), 0);
            batch_unref(cut);
        }
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

static void too_many_names_are_refused(void **state)
{
    (void)state;
    static char names[WANTED_NAMES_MAX][16];
    struct graph_keys keys;
    graph_keys_init(&keys);
    for (unsigned i = 0; i < WANTED_NAMES_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "name %u", i);
        assert_int_equal(graph_keys_add(&keys, &keys.dimensions, names[i]),
                         i < WANTED_NAMES_MAX - 1);
    }
    assert_true(graph_keys_add(&keys, &keys.peers, names[3]));
    assert_true(graph_keys_add(&keys, &keys.databases, "service.name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_gives_its_half),
        cmocka_unit_test(attributes_of_the_resource_win_and_the_first_of_equal_ones),
        cmocka_unit_test(values_become_strings),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(parts_make_no_difference),
        cmocka_unit_test(any_request_is_read),
        cmocka_unit_test(too_many_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
