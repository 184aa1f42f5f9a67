/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: what each operation charges and gives back, and that a refusal changes nothing. */
#include "src/base/buffer.h"

#include "src/base/budget.h"
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { HEAD = sizeof(struct buffer) };

static void it_is_charged_from_creation_to_the_last_unref(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 1000);
    struct buffer *buffer = buffer_try_create(&budget, 100);
    assert_non_null(buffer);
    assert_int_equal(budget_used(&budget), HEAD + 100);
    assert_int_equal(buffer_slice(buffer).size, 0);
    buffer_ref(buffer);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), HEAD + 100);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
    buffer_unref(NULL);
    budget_fini(&budget);
}

static void without_a_budget_nothing_is_charged(void **state)
{
    (void)state;
    struct buffer *buffer = buffer_try_create(NULL, 10);
    assert_non_null(buffer);
    buffer = buffer_try_grow(buffer, 20);
    assert_non_null(buffer);
    buffer->size = 5;
    buffer = buffer_shrink(buffer);
    assert_int_equal(buffer->capacity, 5);
    buffer_unref(buffer);
    buffer_unref(buffer_create(NULL, 0));
}

static void the_budget_refuses_what_is_too_much(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, HEAD + 100);
    assert_null(buffer_try_create(&budget, 101));
    assert_int_equal(budget_used(&budget), 0);
    struct buffer *buffer = buffer_try_create(&budget, 100);
    assert_non_null(buffer);
    assert_null(buffer_try_create(&budget, 0));
    struct buffer *beyond = buffer_create(&budget, 50);
    assert_int_equal(budget_used(&budget), 2 * HEAD + 150);
    buffer_unref(beyond);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void growing_keeps_the_bytes_and_charges_the_difference(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, HEAD + 100);
    struct buffer *buffer = buffer_try_create(&budget, 10);
    memcpy(buffer->data, "0123456789", 10);
    buffer->size = 10;
    buffer = buffer_try_grow(buffer, 100);
    assert_non_null(buffer);
    assert_int_equal(buffer->capacity, 100);
    assert_memory_equal(buffer->data, "0123456789", 10);
    assert_int_equal(budget_used(&budget), HEAD + 100);
    assert_null(buffer_try_grow(buffer, 101));
    assert_int_equal(buffer->capacity, 100);
    assert_int_equal(budget_used(&budget), HEAD + 100);
    buffer = buffer_shrink(buffer);
    assert_int_equal(buffer->capacity, 10);
    assert_memory_equal(buffer->data, "0123456789", 10);
    assert_int_equal(budget_used(&budget), HEAD + 10);
    buffer_unref(buffer);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void an_allocator_that_refuses_leaves_the_budget_whole(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 10000);
    mem_refuse_nth(1);
    assert_null(buffer_try_create(&budget, 10));
    assert_int_equal(budget_used(&budget), 0);
    struct buffer *buffer = buffer_try_create(&budget, 10);
    buffer->size = 3;
    memcpy(buffer->data, "abc", 3);
    mem_refuse_nth(1);
    assert_null(buffer_try_grow(buffer, 5000));
    assert_int_equal(budget_used(&budget), HEAD + 10);
    assert_memory_equal(buffer->data, "abc", 3);
    mem_refuse_nth(0);
    buffer_unref(buffer);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_charged_from_creation_to_the_last_unref),
        cmocka_unit_test(without_a_budget_nothing_is_charged),
        cmocka_unit_test(the_budget_refuses_what_is_too_much),
        cmocka_unit_test(growing_keeps_the_bytes_and_charges_the_difference),
        cmocka_unit_test(an_allocator_that_refuses_leaves_the_budget_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
