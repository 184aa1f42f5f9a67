/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a response: what is kept of it, up to a limit and without memory. */
#include "src/net/client/response_body.h"

#include "src/base/limits.h"
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void bytes_are_kept_in_pieces_of_any_size(void **state)
{
    (void)state;
    struct response_body body = {0};
    uint8_t bytes[2000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    size_t at = 0;
    for (size_t step = 0; at < sizeof(bytes); step++) {
        size_t size = step < sizeof(bytes) - at ? step : sizeof(bytes) - at;
        assert_true(response_body_add(&body, slice_of(bytes + at, size), sizeof(bytes)));
        at += size;
    }
    assert_false(body.is_cut);
    assert_int_equal(body.size, sizeof(bytes));
    assert_memory_equal(body.data, bytes, sizeof(bytes));
    assert_int_equal(body.capacity, sizeof(bytes));
    response_body_fini(&body);
    assert_null(body.data);
}

static void bytes_beyond_the_limit_are_counted_but_not_kept(void **state)
{
    (void)state;
    struct response_body body = {0};
    assert_true(response_body_add(&body, slice_of_text("0123456789"), 12));
    assert_false(body.is_cut);
    assert_true(response_body_add(&body, slice_of_text("abcd"), 12));
    assert_true(body.is_cut);
    assert_int_equal(body.size, 12);
    assert_memory_equal(body.data, "0123456789ab", 12);
    assert_int_equal(body.seen, 14);
    assert_int_equal(body.capacity, 12);
    static const uint8_t piece[64 * 1024];
    while (body.seen + sizeof(piece) <= RESPONSE_DRAIN_BYTES_MAX)
        assert_true(response_body_add(&body, slice_of(piece, sizeof(piece)), 12));
    assert_false(response_body_add(&body, slice_of(piece, sizeof(piece)), 12));
    assert_int_equal(body.size, 12);
    response_body_fini(&body);
}

/* What follows bytes that could not be kept would join onto the wrong ones. */
static void nothing_is_kept_after_a_gap(void **state)
{
    (void)state;
    static const uint8_t large[4096];
    struct response_body body = {0};
    assert_true(response_body_add(&body, slice_of_text("begin"), RESPONSE_BYTES_MAX));
    mem_refuse_nth(1);
    assert_true(response_body_add(&body, slice_of(large, sizeof(large)), RESPONSE_BYTES_MAX));
    mem_refuse_nth(0);
    assert_true(body.is_cut);
    assert_true(response_body_add(&body, slice_of_text("end"), RESPONSE_BYTES_MAX));
    assert_int_equal(body.size, 5);
    assert_memory_equal(body.data, "begin", 5);
    assert_int_equal(body.seen, 5 + sizeof(large) + 3);
    response_body_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_kept_in_pieces_of_any_size),
        cmocka_unit_test(bytes_beyond_the_limit_are_counted_but_not_kept),
        cmocka_unit_test(nothing_is_kept_after_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
