/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: alignment, the cap, chunks, reuse, and that an overrun is seen under AddressSanitizer. */
#include "src/base/arena.h"

#include "src/base/mem.h"
#include "tests/support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

static void every_size_is_aligned_and_apart(void **state)
{
    (void)state;
    struct arena arena;
    uint8_t *blocks[600];
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < 600; i++) {
        blocks[i] = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)i, i);
    }
    for (size_t i = 0; i < 600; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal(blocks[i][j], (uint8_t)i);
    assert_int_equal(arena.used_bytes, 600 * 599 / 2);
    arena_clear(&arena);
}

static void above_the_cap_it_refuses_and_below_it_goes_on(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 100);
    assert_null(arena_try_alloc(&arena, 101));
    assert_null(arena_try_alloc(&arena, SIZE_MAX));
    assert_non_null(arena_try_alloc(&arena, 60));
    assert_null(arena_try_alloc(&arena, 41));
    assert_non_null(arena_try_alloc(&arena, 40));
    assert_null(arena_try_alloc(&arena, 1));
    assert_non_null(arena_try_alloc(&arena, 0));
    arena_clear(&arena);
    assert_int_equal(arena.used_bytes, 0);
    assert_non_null(arena_try_alloc(&arena, 100));
    arena_clear(&arena);
}

static void large_blocks_get_chunks_of_their_own(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 10 << 20);
    char *small = arena_copy_text(&arena, "kept\0beyond", 11);
    uint8_t *large = arena_alloc(&arena, 3 << 20);
    memset(large, 7, 3 << 20);
    assert_memory_equal(small, "kept\0beyond", 12);
    assert_string_equal(arena_copy_text(&arena, NULL, 0), "");
    arena_clear(&arena);
}

static void only_a_try_may_be_refused_by_the_allocator(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    mem_refuse_nth(1);
    assert_null(arena_try_alloc(&arena, 10));
    assert_int_equal(arena.used_bytes, 0);
    mem_refuse_nth(1);
    assert_non_null(arena_alloc(&arena, 10));
    mem_refuse_nth(0);
    arena_clear(&arena);
}

static void a_gap_behind_each_block_is_poisoned(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    struct arena arena;
    arena_init(&arena, 1 << 20);
    uint8_t *block = arena_alloc(&arena, 20);
    arena_alloc(&arena, 20);
    assert_false(__asan_address_is_poisoned(block + 19));
    assert_true(__asan_address_is_poisoned(block + 20));
    arena_clear(&arena);
#else
    skip_because("poisoned gaps are seen by AddressSanitizer alone");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_aligned_and_apart),
        cmocka_unit_test(above_the_cap_it_refuses_and_below_it_goes_on),
        cmocka_unit_test(large_blocks_get_chunks_of_their_own),
        cmocka_unit_test(only_a_try_may_be_refused_by_the_allocator),
        cmocka_unit_test(a_gap_behind_each_block_is_poisoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
