/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: zeroed, aligned for huge pages, whole to their last byte. What small sizes take. */
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#define HUGE_PAGE_BYTES ((size_t)2 * 1024 * 1024)

static void a_table_is_zeroed_and_may_be_written_to_its_end(void **state)
{
    static const size_t sizes[] = {1,
                                   4096,
                                   HUGE_PAGE_BYTES - 1,
                                   HUGE_PAGE_BYTES,
                                   HUGE_PAGE_BYTES + 1,
                                   3 * HUGE_PAGE_BYTES + 4097};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *table = mem_try_map(sizes[i]);
        assert_non_null(table);
        assert_int_equal(table[0] | table[sizes[i] - 1], 0);
        table[0] = 1;
        table[sizes[i] - 1] = 1;
        mem_unmap(table, sizes[i]);
    }
}

static void a_large_table_begins_with_a_huge_page(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        size_t size = HUGE_PAGE_BYTES + i * 4096;
        void *table = mem_try_map(size);
        assert_non_null(table);
        assert_int_equal((uintptr_t)table % HUGE_PAGE_BYTES, 0);
        mem_unmap(table, size);
    }
}

static void what_is_large_may_be_written_to_its_end(void **state)
{
    static const size_t sizes[] = {0, 1, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES,
                                   3 * HUGE_PAGE_BYTES + 1};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *memory = mem_try_alloc_large(sizes[i]);
        assert_non_null(memory);
        assert_true(sizes[i] < HUGE_PAGE_BYTES || (uintptr_t)memory % HUGE_PAGE_BYTES == 0);
        if (sizes[i] > 0)
            memory[0] = memory[sizes[i] - 1] = 1;
        mem_free_large(memory, sizes[i]);
    }
    mem_free_large(NULL, 0);
    mem_free_large(NULL, HUGE_PAGE_BYTES);
}

/* Of this process, so far. */
static size_t resident_max(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss * 1024;
}

static void what_is_large_grows_without_being_there_twice(void **state)
{
    enum { PARTS = 32, SIZES = 6 };
    static const size_t sizes[SIZES] = {0,
                                        100,
                                        HUGE_PAGE_BYTES - 1,
                                        HUGE_PAGE_BYTES,
                                        PARTS * HUGE_PAGE_BYTES,
                                        PARTS * HUGE_PAGE_BYTES + PARTS * HUGE_PAGE_BYTES / 8};
    uint8_t *memory = NULL;
    size_t before = 0;
    (void)state;
    for (size_t i = 1; i < SIZES; i++) {
        memory = mem_try_resize_large(memory, sizes[i - 1], sizes[i]);
        assert_non_null(memory);
        for (size_t at = 0; at < sizes[i - 1]; at += 1 + HUGE_PAGE_BYTES / 100)
            assert_int_equal(memory[at], (uint8_t)(at / 100));
        assert_true(before == 0 || resident_max() < before + 2 * HUGE_PAGE_BYTES);
        for (size_t at = 0; at < sizes[i]; at++)
            memory[at] = (uint8_t)(at / 100);
        before = sizes[i] > HUGE_PAGE_BYTES ? resident_max() : 0;
    }
    memory = mem_try_resize_large(memory, sizes[SIZES - 1], 200);
    assert_non_null(memory);
    assert_int_equal(memory[199], 1);
    mem_refuse_nth(1);
    assert_null(mem_try_resize_large(memory, 200, HUGE_PAGE_BYTES));
    mem_refuse_nth(0);
    assert_int_equal(memory[199], 1);
    mem_free_large(memory, 200);
}

static void a_refused_try_gives_nothing(void **state)
{
    (void)state;
    mem_refuse_nth(1);
    assert_null(mem_try_map(4096));
    mem_refuse_nth(1);
    assert_null(mem_try_alloc_large(HUGE_PAGE_BYTES));
    mem_refuse_nth(1);
    assert_null(mem_try_alloc_large(1));
    mem_refuse_nth(0);
    mem_unmap(NULL, 4096);
}

static void small_allocations_take_whole_places(void **state)
{
    static const size_t sizes[][2] = {{0, 0},     {1, 16},    {16, 16},   {17, 32},
                                      {128, 128}, {129, 160}, {256, 256}, {257, 320},
                                      {432, 448}, {512, 512}, {513, 640}, {1064, 1280}};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(mem_taken(sizes[i][0]), sizes[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_zeroed_and_may_be_written_to_its_end),
        cmocka_unit_test(a_large_table_begins_with_a_huge_page),
        cmocka_unit_test(what_is_large_may_be_written_to_its_end),
        cmocka_unit_test(what_is_large_grows_without_being_there_twice),
        cmocka_unit_test(a_refused_try_gives_nothing),
        cmocka_unit_test(small_allocations_take_whole_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
