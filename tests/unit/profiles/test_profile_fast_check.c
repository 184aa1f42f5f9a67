/* SPDX-License-Identifier: Apache-2.0 */
/* profile_fast_check accepts what libraries write and nothing else: whatever byte is changed, the
 * careful check finds nothing in requests that it still accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_numbers.h"
#include "tests/support/profile_oracle.h"

enum { LOCATIONS = 300, DEPTH = 20, ROOM = 64 };

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, ROOM);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static void put_raw(struct profile_bytes *out, uint32_t number, const char *bytes, size_t size)
{
    size_t begin = out->size;
    profile_bytes_add(out, slice_of(bytes, size));
    profile_bytes_wrap(out, begin, number);
}

#define PUT(out, number, bytes) put_raw(out, number, bytes, sizeof(bytes) - 1)

static void put_tables(struct profile_bytes *out)
{
    size_t begin = out->size;
    PUT(out, 1, "");
    PUT(out, 1, "\x08\x01\x10\x02\x20\x01\x2a\x01\x01");
    PUT(out, 2, "");
    PUT(out, 2, "\x08\x01\x10\x05\x1a\x04\x08\x01\x10\x07\x1a\x02\x08\x01\x22\x01\x01");
    for (uint64_t i = 2; i < LOCATIONS; i++) {
        size_t location = out->size;
        profile_bytes_number(out, 2, i);
        profile_bytes_wrap(out, location, 2);
    }
    PUT(out, 3, "");
    PUT(out, 3, "\x08\x02\x10\x01\x18\x02\x20\x05");
    PUT(out, 4, "");
    PUT(out, 4, "\x0a\x10qwertyuiopasdfgh\x12\x08zxcvbnmq");
    PUT(out, 5, "");
    PUT(out, 5, "abc");
    PUT(out, 5, "de");
    PUT(out, 6, "");
    PUT(out, 6, "\x08\x01\x12\x03\x0a\x01x\x18\x02");
    PUT(out, 6, "\x08\x02\x12\x02\x18\x07");
    PUT(out, 7, "");
    size_t stack = out->size;
    for (uint64_t i = 0; i < DEPTH; i++)
        put_varint(out, i % 3 == 0 ? i : LOCATIONS - 1 - i);
    profile_bytes_wrap(out, stack, 1);
    profile_bytes_wrap(out, stack, 7);
    profile_bytes_wrap(out, begin, 2);
}

static struct profile_bytes plain_request(void)
{
    struct profile_bytes out = {0};
    PUT(&out, 1, "\x08\x01\x10\x02"); /* sample_type, and so on in Profile */
    PUT(&out, 2, "\x08\x01\x12\x02\x01\x02\x18\x01\x22\x01\x09");
    PUT(&out, 2, "\x08\x01\x22\x02\x01\x02\x2a\x10qwertyuiqwertyui");
    profile_bytes_add(&out, slice_of("\x19qwertyui\x20\x05", 11));
    PUT(&out, 5, "");
    profile_bytes_number(&out, 6, 9);
    PUT(&out, 7, "0123456789abcdef");
    PUT(&out, 11, "\x01");
    profile_bytes_wrap(&out, 0, 2);
    profile_bytes_wrap(&out, 0, 2); /* in ScopeProfiles, which has no scope */
    PUT(&out, 3, "url");
    profile_bytes_wrap(&out, 0, 1);
    put_tables(&out);
    return out;
}

static void what_libraries_write_is_checked_fast(void **state)
{
    struct profile_bytes request = plain_request();
    (void)state;
    assert_true(profile_oracle_fast_check(slice_of(request.data, request.size)));
    profile_bytes_fini(&request);
}

static void no_changed_byte_passes_unseen(void **state)
{
    struct profile_bytes request = plain_request();
    size_t refused = 0;
    (void)state;
    for (size_t at = 0; at < request.size; at++) {
        uint8_t before = request.data[at];
        for (unsigned value = 0; value < 256; value++) {
            request.data[at] = (uint8_t)value;
            refused += !profile_oracle_fast_check(slice_of(request.data, request.size));
        }
        request.data[at] = before;
    }
    assert_true(refused > request.size * 100);
    profile_bytes_fini(&request);
}

static void no_shortened_request_passes_unseen(void **state)
{
    struct profile_bytes request = plain_request();
    (void)state;
    for (size_t size = 0; size < request.size; size++)
        assert_false(profile_oracle_fast_check(slice_of(request.data, size)));
    profile_bytes_fini(&request);
}

/* Around each boundary of the comparison: 7 and 14 bits, a lane, the last lane. */
static void indices_are_below_the_count_or_not(void **state)
{
    static const uint32_t counts[] = {0,   1,   2,    100,  127,   128,   129,   255,   256,  257,
                                      300, 511, 5000, 8192, 16255, 16256, 16383, 16384, 70000};
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (uint32_t index = 0; index < 1 << 14; index++)
            for (unsigned fill = 7; fill < 16; fill += 4) {
                uint8_t bytes[2 * ROOM] = {0};
                uint8_t *at = profile_put_varint(bytes + index % fill, index);
                size_t size = (size_t)(at - bytes) + fill;
                assert_int_equal(profile_indices_are_below(slice_of(bytes, size), counts[i]),
                                 index < counts[i]);
            }
}

static void a_stack_without_locations_is_not_plain(void **state)
{
    struct profile_bytes request = {0};
    (void)state;
    PUT(&request, 7, "");
    PUT(&request, 7, "\x0a\x02\x01\x01");
    profile_bytes_wrap(&request, 0, 2);
    assert_false(profile_oracle_fast_check(slice_of(request.data, request.size)));
    profile_bytes_fini(&request);
}

static void longer_indices_are_left_to_others(void **state)
{
    (void)state;
    assert_false(profile_indices_are_below(slice_of("\1\1\1\x80\x80\1\1\1\1\1", 10), 70000));
    assert_false(profile_indices_are_below(slice_of("\1\1\1\1\1\1\1\1\x80", 9), 70000));
    assert_false(profile_indices_are_below(slice_of("\1\1\1\1\1\1\1\x80\x80\1", 10), 70000));
    assert_true(profile_indices_are_below(slice_of("\1\1\1\1\1\1\1\x80\1", 9), 70000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_libraries_write_is_checked_fast),
        cmocka_unit_test(no_changed_byte_passes_unseen),
        cmocka_unit_test(no_shortened_request_passes_unseen),
        cmocka_unit_test(indices_are_below_the_count_or_not),
        cmocka_unit_test(a_stack_without_locations_is_not_plain),
        cmocka_unit_test(longer_indices_are_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
