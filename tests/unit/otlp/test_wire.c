/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: what is written is read back, and neither leaves its buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/otlp/wire.h"

static void varints_of_every_size_are_read_back(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        uint8_t room[WIRE_VARINT_BYTES_MAX];
        uint64_t number = (uint64_t)1 << bits;
        struct wire_writer writer = wire_writer_of(room, sizeof(room));
        wire_write_varint(&writer, number);
        struct slice written = wire_written(&writer);
        assert_int_equal(written.size, wire_varint_size(number));
        struct wire_reader reader = wire_reader_of(written);
        assert_true(wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX) == number);
        assert_null(reader.failure);
        for (size_t cut = 0; cut < written.size; cut++) {
            reader = wire_reader_of(slice_of(room, cut));
            assert_int_equal(wire_read_varint(&reader, WIRE_VARINT_BYTES_MAX), 0);
            assert_string_equal(reader.failure, "a varint is cut off");
        }
    }
}

static void fields_of_every_kind_are_read_back(void **state)
{
    uint8_t room[64];
    struct wire_field field;
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    (void)state;
    wire_write_number(&writer, 1, 300);
    wire_write_fixed64(&writer, 16, 0x0102030405060708);
    wire_write_bytes(&writer, 1000, slice_of_text("text"));
    struct wire_reader reader = wire_reader_of(wire_written(&writer));
    assert_true(wire_read_field(&reader, &field));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.number_value, 300);
    assert_int_equal(field.whole.size, 3);
    assert_true(wire_read_field(&reader, &field));
    assert_int_equal(field.number, 16);
    assert_true(field.number_value == 0x0102030405060708);
    assert_true(wire_read_field(&reader, &field));
    assert_int_equal(field.number, 1000);
    assert_true(slice_equal_text(field.bytes, "text"));
    assert_int_equal(field.whole.size, wire_field_size(1000, 4));
    assert_false(wire_read_field(&reader, &field));
    assert_null(reader.failure);
}

static void a_failed_reader_reads_nothing_more(void **state)
{
    struct wire_field field;
    struct wire_reader reader = wire_reader_of(slice_of("\x0b\x08\x01", 3));
    (void)state;
    assert_false(wire_read_field(&reader, &field));
    assert_non_null(reader.failure);
    assert_false(wire_read_field(&reader, &field));
}

static void a_writer_without_room_writes_nothing_more(void **state)
{
    uint8_t room[4] = {0};
    struct wire_writer writer = wire_writer_of(room, 3);
    (void)state;
    wire_write_bytes(&writer, 1, slice_of_text("ab"));
    assert_true(writer.has_failed);
    wire_write_varint(&writer, 1);
    assert_true(writer.at <= writer.end);
    assert_int_equal(room[3], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_of_every_size_are_read_back),
        cmocka_unit_test(fields_of_every_kind_are_read_back),
        cmocka_unit_test(a_failed_reader_reads_nothing_more),
        cmocka_unit_test(a_writer_without_room_writes_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
