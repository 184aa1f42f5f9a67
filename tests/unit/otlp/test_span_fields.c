/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a span in one walk gives what reading field after field gives, whatever their order and
 * layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/otlp/span_fields.h"

enum { SPANS = 20000, FIELDS_MAX = 24, ATTRIBUTES_MAX = 32, ROOM = 1 << 16 };

struct attributes {
    size_t count;
    struct slice keys[ATTRIBUTES_MAX];
    struct slice values[ATTRIBUTES_MAX];
};

static void note(void *arg, const struct span_fields *fields, struct slice key, struct slice value)
{
    struct attributes *attributes = arg;
    assert_non_null(fields);
    assert_true(attributes->count < ATTRIBUTES_MAX);
    attributes->keys[attributes->count] = key;
    attributes->values[attributes->count++] = value;
}

/* The same, by the generic reader alone. */
static void read_plainly(struct slice content, struct span_fields *ret,
                         struct attributes *attributes)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    *ret = (struct span_fields){.kind = 0};
    while (wire_read_field(&reader, &field)) {
        struct slice *const slices[] = {
            [SPAN_TRACE_ID] = &ret->trace_id,
            [SPAN_ID] = &ret->span_id,
            [SPAN_TRACE_STATE] = &ret->trace_state,
            [SPAN_PARENT_ID] = &ret->parent_id,
            [SPAN_NAME] = &ret->name,
        };
        uint64_t *const numbers[SPAN_FLAGS + 1] = {[SPAN_KIND] = &ret->kind,
                                                   [SPAN_START] = &ret->start_ns,
                                                   [SPAN_END] = &ret->end_ns,
                                                   [SPAN_FLAGS] = &ret->flags};
        if (field.number <= SPAN_NAME) {
            *slices[field.number] = field.bytes;
        } else if (field.number == SPAN_ATTRIBUTES) {
            struct key_value pair = key_value_of(field.bytes);
            note(attributes, ret, pair.key, pair.value);
        } else if (field.number == SPAN_EVENTS) {
            if (ret->events.data == NULL)
                ret->events.data = field.whole.data;
            ret->events.size = (size_t)(field.whole.data + field.whole.size - ret->events.data);
        } else if (field.number == SPAN_STATUS) {
            struct wire_reader status = wire_reader_of(field.bytes);
            ret->has_status = true;
            while (wire_read_field(&status, &field))
                if (field.number == SPAN_STATUS_CODE)
                    ret->status = field.number_value;
        } else if (field.number <= SPAN_FLAGS && numbers[field.number] != NULL) {
            *numbers[field.number] = field.number_value;
        }
    }
    assert_null(reader.failure);
}

static unsigned below(unsigned most)
{
    return (unsigned)rand() % most;
}

/* Sometimes a byte longer than it must be. */
static void put_length(struct wire_writer *out, size_t length)
{
    if (below(8) > 0 || length >= 0x80) {
        wire_write_varint(out, length);
        return;
    }
    const uint8_t padded[] = {(uint8_t)(length | 0x80), 0};
    wire_write_raw(out, slice_of(padded, sizeof(padded)));
}

static void put_bytes(struct wire_writer *out, unsigned number, struct slice bytes)
{
    wire_write_varint(out, wire_tag(number, WIRE_BYTES));
    put_length(out, bytes.size);
    wire_write_raw(out, bytes);
}

static struct slice random_bytes(size_t most)
{
    static uint8_t bytes[512];
    size_t size = below((unsigned)most + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)rand();
    return slice_of(bytes, size);
}

static void put_attribute(struct wire_writer *out)
{
    static uint8_t room[2048];
    struct wire_writer pair = wire_writer_of(room, sizeof(room));
    unsigned form = below(8);
    if (form == 0)
        put_bytes(&pair, KEY_VALUE_VALUE, random_bytes(40));
    if (form != 1)
        put_bytes(&pair, KEY_VALUE_KEY, random_bytes(form == 2 ? 300 : 30));
    if (form == 3)
        put_bytes(&pair, KEY_VALUE_KEY, random_bytes(30));
    if (form > 0 && form != 4)
        put_bytes(&pair, KEY_VALUE_VALUE, random_bytes(form == 5 ? 300 : 90));
    put_bytes(out, SPAN_ATTRIBUTES, wire_written(&pair));
}

static void put_status(struct wire_writer *out)
{
    static uint8_t room[1024];
    struct wire_writer status = wire_writer_of(room, sizeof(room));
    if (below(2) == 0)
        put_bytes(&status, 2, random_bytes(200));
    if (below(4) > 0)
        wire_write_number(&status, SPAN_STATUS_CODE, below(3) == 0 ? 300 : below(4));
    put_bytes(out, SPAN_STATUS, wire_written(&status));
}

static void put_field(struct wire_writer *out, unsigned number)
{
    switch (number) {
    case SPAN_TRACE_ID:
    case SPAN_ID:
    case SPAN_PARENT_ID:
        put_bytes(out, number,
                  below(8) == 0 ? random_bytes(20)
                                : slice_of("0123456789abcdef", number == SPAN_TRACE_ID ? 16 : 8));
        break;
    case SPAN_KIND:
        wire_write_number(out, number, below(4) == 0 ? UINT64_MAX : below(6));
        break;
    case SPAN_START:
    case SPAN_END:
        wire_write_fixed64(out, number, (uint64_t)rand() << 32 | (unsigned)rand());
        break;
    case SPAN_ATTRIBUTES:
        put_attribute(out);
        break;
    case SPAN_STATUS:
        put_status(out);
        break;
    case SPAN_FLAGS:
        wire_write_varint(out, wire_tag(number, WIRE_FIXED32));
        wire_write_raw(out, slice_of("abcd", 4));
        break;
    case 10: /* dropped attributes */
    case 12:
    case 14:
        wire_write_number(out, number, (unsigned)rand());
        break;
    default:
        put_bytes(out, number, random_bytes(200));
        break;
    }
}

/* In their usual order or in any; some twice. */
static struct slice write_span(uint8_t *room)
{
    struct wire_writer out = wire_writer_of(room, ROOM);
    unsigned count = below(FIELDS_MAX);
    bool is_ordered = below(2) == 0;
    for (unsigned i = 0; i < count; i++)
        put_field(&out, is_ordered ? 1 + i * SPAN_FLAGS / FIELDS_MAX : 1 + below(SPAN_FLAGS));
    return wire_written(&out);
}

static void assert_same(struct slice left, struct slice right)
{
    assert_ptr_equal(left.data, right.data);
    assert_int_equal(left.size, right.size);
}

static void one_walk_finds_every_field(void **state)
{
    (void)state;
    srand(1);
    for (unsigned i = 0; i < SPANS; i++) {
        static uint8_t room[ROOM];
        struct attributes wanted = {.count = 0};
        struct attributes found = {.count = 0};
        struct span_fields expected;
        struct span_fields fields;
        struct slice written = write_span(room);
        /* Of its own size, so that reading past its end is seen. */
        uint8_t *span = malloc(written.size > 0 ? written.size : 1);
        assert_non_null(span);
        memcpy(span, written.data, written.size);
        struct slice content = slice_of(span, written.size);
        read_plainly(content, &expected, &wanted);
        span_fields_read(content, &fields, note, &found);
        assert_same(fields.trace_id, expected.trace_id);
        assert_same(fields.span_id, expected.span_id);
        assert_same(fields.parent_id, expected.parent_id);
        assert_same(fields.trace_state, expected.trace_state);
        assert_same(fields.name, expected.name);
        assert_same(fields.events, expected.events);
        assert_int_equal(fields.kind, expected.kind);
        assert_int_equal(fields.start_ns, expected.start_ns);
        assert_int_equal(fields.end_ns, expected.end_ns);
        assert_int_equal(fields.status, expected.status);
        assert_int_equal(fields.has_status, expected.has_status);
        assert_int_equal(fields.flags, expected.flags);
        assert_int_equal(found.count, wanted.count);
        for (size_t j = 0; j < found.count; j++) {
            assert_same(found.keys[j], wanted.keys[j]);
            assert_same(found.values[j], wanted.values[j]);
        }
        struct span_fields without;
        span_fields_read(content, &without, NULL, NULL);
        assert_same(without.name, expected.name);
        assert_int_equal(without.end_ns, expected.end_ns);
        free(span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_walk_finds_every_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
