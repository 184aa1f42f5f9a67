/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a response: what is kept of it, up to a limit and without memory. */
#include "src/net/client/response_body.h"

#include "src/base/budget.h"
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

/* A usual body is kept without room in the budget; a large one is cut, and what it says is counted
 * on. */
static void large_bodies_are_charged(void **state)
{
    enum { LIMIT = 20000 };
    static const uint8_t bytes[RESPONSE_BYTES_MAX];
    struct budget budget;
    (void)state;
    budget_init(&budget, LIMIT);
    struct response_body body = {.charge.budget = &budget};
    assert_true(budget_try_take(&budget, LIMIT));
    assert_true(response_body_add(&body, slice_of(bytes, RESPONSE_FREE_BYTES), sizeof(bytes)));
    assert_false(body.is_cut);
    assert_true(response_body_add(&body, slice_of(bytes, 1), sizeof(bytes)));
    assert_true(body.is_cut);
    assert_int_equal(body.size, RESPONSE_FREE_BYTES);
    response_body_fini(&body);
    budget_return(&budget, LIMIT);
    assert_int_equal(budget_used(&budget), 0);
    for (unsigned i = 0; i < 16; i++)
        assert_true(response_body_add(&body, slice_of(bytes, 1000), sizeof(bytes)));
    assert_int_equal(budget_used(&budget), body.capacity - RESPONSE_FREE_BYTES);
    assert_false(body.is_cut);
    assert_true(response_body_add(&body, slice_of(bytes, 8000), sizeof(bytes)));
    assert_true(body.is_cut);
    assert_int_equal(body.size, 16000);
    assert_int_equal(body.seen, 24000);
    response_body_fini(&body);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
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
        cmocka_unit_test(large_bodies_are_charged),
        cmocka_unit_test(nothing_is_kept_after_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
