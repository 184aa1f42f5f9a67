/* SPDX-License-Identifier: Apache-2.0 */
/* Reading spans: the result is the same in whatever order and encoding the fields are. */
#include "src/join/spans/span_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/otlp/wire.h"

enum { ROOM = 16384, SPANS = 3000, FIELDS_MAX = 24, LONG_BYTES = 400 };

static uint64_t state = 1;
static const uint8_t content[LONG_BYTES];

static uint64_t below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

static const char *const keys[] = {"http.route", "http.status_code", "db.system.", "", "k"};
enum { WANTED = 2, KEYS = sizeof(keys) / sizeof(keys[0]) };

static struct span_keys make_keys(unsigned count)
{
    struct span_keys made = {.count = 0};
    for (unsigned i = 0; i < count; i++)
        span_keys_add(&made, slice_of_text(keys[i]), i);
    return made;
}

/* The encoded span, and what reading it must give. */
struct sketch {
    uint8_t bytes[ROOM];
    struct wire_writer writer;
    struct span_view expected;
};

static void write_id(struct sketch *sketch, uint32_t number, uint64_t *ids, size_t bytes)
{
    uint64_t made[2] = {below(UINT64_MAX) | 1, below(UINT64_MAX)};
    memcpy(ids, made, bytes);
    wire_write_bytes(&sketch->writer, number, slice_of(made, bytes));
}

/* Key and value in either order, or one of them alone. */
static void write_attribute(struct sketch *sketch)
{
    uint8_t room[2 * LONG_BYTES];
    struct wire_writer pair = wire_writer_of(room, sizeof(room));
    unsigned key = (unsigned)below(KEYS);
    unsigned order = (unsigned)below(8);
    size_t bytes = below(4) == 0 ? below(LONG_BYTES) : below(20);
    if (order == 0)
        wire_write_bytes(&pair, 2, slice_of(content, bytes));
    if (order != 1)
        wire_write_bytes(&pair, 1, slice_of_text(keys[key]));
    if (order > 0)
        wire_write_bytes(&pair, 2, slice_of(content, bytes));
    if (order == 2) /* the last one wins */
        wire_write_bytes(&pair, 1, slice_of_text(keys[key = (unsigned)below(KEYS)]));
    wire_write_bytes(&sketch->writer, 9, wire_written(&pair));
    if (order == 1 || key >= WANTED)
        return;
    sketch->expected.has_values |= 1u << key;
    sketch->expected.values[key].size = bytes;
}

static void write_status(struct sketch *sketch)
{
    uint8_t room[16];
    struct wire_writer status = wire_writer_of(room, sizeof(room));
    static const uint16_t flags[] = {0, SPAN_IS_OK, SPAN_IS_ERROR};
    uint64_t code = 1 + below(2);
    wire_write_number(&status, 3, code);
    wire_write_bytes(&sketch->writer, 15, wire_written(&status));
    sketch->expected.facts.flags = flags[code];
}

static void write_flags(struct sketch *sketch)
{
    uint32_t flags = (uint32_t)below(1024);
    uint8_t raw[] = {0x85, 0x01, (uint8_t)flags, (uint8_t)(flags >> 8), 0, 0};
    wire_write_raw(&sketch->writer, slice_of(raw, sizeof(raw)));
    sketch->expected.flags = flags;
}

static void write_field(struct sketch *sketch, uint64_t which)
{
    struct span_facts *facts = &sketch->expected.facts;
    uint64_t number = below(UINT32_MAX) << 20;
    switch (which) {
    case 1:
        write_id(sketch, 1, facts->trace, sizeof(facts->trace));
        break;
    case 2:
        write_id(sketch, 2, &facts->span, sizeof(facts->span));
        break;
    case 4:
        write_id(sketch, 4, &facts->parent, sizeof(facts->parent));
        break;
    case 5:
        sketch->expected.name.size = below(200);
        wire_write_bytes(&sketch->writer, 5, slice_of(content, sketch->expected.name.size));
        break;
    case 6:
        sketch->expected.kind = 1 + (uint32_t)below(5);
        wire_write_number(&sketch->writer, 6, sketch->expected.kind);
        break;
    case 7:
        facts->start_ns = number;
        wire_write_fixed64(&sketch->writer, 7, number);
        break;
    case 8:
        facts->end_ns = number;
        wire_write_fixed64(&sketch->writer, 8, number);
        break;
    case 15:
        write_status(sketch);
        break;
    case 16:
        write_flags(sketch);
        break;
    case 3:
    case 11:
    case 13: /* not wanted */
        wire_write_bytes(&sketch->writer, (uint32_t)which, slice_of(content, below(300)));
        break;
    default:
        write_attribute(sketch);
        break;
    }
}

static void check_read(const struct sketch *sketch, unsigned wanted)
{
    struct span_keys made = make_keys(wanted);
    struct span_view view;
    memset(&view, 0xff, sizeof(view)); /* nothing of another span may be left */
    bool has_id = span_view_read(&made, wire_written(&sketch->writer), &view);
    const struct span_view *expected = &sketch->expected;
    assert_int_equal(has_id, expected->facts.span != 0);
    assert_memory_equal(&view.facts, &expected->facts, sizeof(view.facts));
    assert_int_equal(view.name.size, expected->name.size);
    assert_int_equal(view.flags, expected->flags);
    assert_int_equal(view.kind, expected->kind);
    assert_int_equal(view.has_values, wanted > 0 ? expected->has_values : 0);
    for (unsigned i = 0; i < wanted; i++)
        if ((view.has_values >> i & 1) != 0)
            assert_int_equal(span_view_value(&view, i).size, expected->values[i].size);
}

static void a_span_says_the_same_in_any_order(void **test)
{
    static struct sketch sketch;
    (void)test;
    for (unsigned i = 0; i < SPANS; i++) {
        memset(&sketch, 0, sizeof(sketch));
        sketch.writer = wire_writer_of(sketch.bytes, sizeof(sketch.bytes));
        uint64_t fields = below(FIELDS_MAX);
        for (uint64_t k = 0; k < fields; k++)
            write_field(&sketch, 1 + below(20));
        check_read(&sketch, WANTED);
        check_read(&sketch, 0);
    }
}

static void a_span_says_the_same_in_the_usual_order(void **test)
{
    static struct sketch sketch;
    (void)test;
    for (unsigned i = 0; i < SPANS; i++) {
        memset(&sketch, 0, sizeof(sketch));
        sketch.writer = wire_writer_of(sketch.bytes, sizeof(sketch.bytes));
        for (uint64_t field = 1; field <= 16; field++)
            for (uint64_t k = field == 9 ? below(12) : below(5) > 0; k > 0; k--)
                write_field(&sketch, field);
        check_read(&sketch, WANTED);
        check_read(&sketch, 0);
    }
}

static void an_id_of_another_size_is_none(void **test)
{
    static const uint8_t span[] = {0x0a, 2, 7, 7, 0x12, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct span_keys none = make_keys(0);
    struct span_view view;
    (void)test;
    assert_false(span_view_read(&none, slice_of(span, sizeof(span)), &view));
    assert_int_equal(view.facts.trace[0], 0);
    assert_false(span_view_read(&none, slice_of(span, 0), &view));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_says_the_same_in_any_order),
        cmocka_unit_test(a_span_says_the_same_in_the_usual_order),
        cmocka_unit_test(an_id_of_another_size_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
