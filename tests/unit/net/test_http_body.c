/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer of a request body: what is charged while it grows, and what is given back once it is
 * whole. */
#include "src/net/server/http_body.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BUDGET_BYTES = 1 << 20, MAX_BYTES = 100000 };

static const struct {
    uint64_t declared;
    size_t size;
    size_t capacity_before;
    size_t capacity; /* of the whole body */
} rows[] = {
    {HTTP_SIZE_UNKNOWN, 0, 4096, 0},
    {HTTP_SIZE_UNKNOWN, 1, 4096, 1},
    {HTTP_SIZE_UNKNOWN, 1000, 4096, 1000},
    {HTTP_SIZE_UNKNOWN, 3276, 4096, 3276},
    {HTTP_SIZE_UNKNOWN, 3277, 4096, 4096}, /* less than a quarter of it is unused: it stays */
    {HTTP_SIZE_UNKNOWN, 4097, 8192, 4097},
    {HTTP_SIZE_UNKNOWN, 90000, 100000, 100000},
    {1000, 1000, 1000, 1000},
    {0, 0, 0, 0},
};

static void room_that_a_whole_body_does_not_need_is_given_back(void **state)
{
    static uint8_t bytes[MAX_BYTES];
    static const struct http_body_plan plan = {.max_bytes = MAX_BYTES};
    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct budget budget;
        struct http_body body = {.buffer = NULL};
        enum http_failure failure;
        budget_init(&budget, BUDGET_BYTES);
        assert_true(http_body_begin(&body, &budget, &plan, rows[i].declared, &failure));
        for (size_t at = 0; at < rows[i].size; at += 1000) {
            size_t left = rows[i].size - at;
            assert_true(http_body_append(&body, bytes, left < 1000 ? left : 1000, &failure));
        }
        assert_int_equal(body.buffer->capacity, rows[i].capacity_before);
        assert_int_equal(budget_used(&budget), sizeof(struct buffer) + rows[i].capacity_before);
        http_body_finish(&body);
        assert_int_equal(body.buffer->size, rows[i].size);
        assert_int_equal(body.buffer->capacity, rows[i].capacity);
        assert_memory_equal(body.buffer->data, bytes, rows[i].size);
        assert_int_equal(budget_used(&budget), sizeof(struct buffer) + rows[i].capacity);
        http_body_clear(&body);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_that_a_whole_body_does_not_need_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
