/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of decisions beside a list of keys in order of use: small ones forget exactly the least
 * recently used, large ones what was used long ago. */
#include "processors/tail_sampling/decision_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "tests/support/random_otlp.h"

enum { LIST_MAX = 4096 };

struct list {
    size_t count;
    struct {
        uint64_t key;
        uint16_t value;
    } items[LIST_MAX + 1]; /* the most recently used last */
};

/* SIZE_MAX: it is not there. */
static size_t list_find(const struct list *list, uint64_t key)
{
    for (size_t i = list->count; i > 0; i--)
        if (list->items[i - 1].key == key)
            return i - 1;
    return SIZE_MAX;
}

static void list_use(struct list *list, size_t place)
{
    uint64_t key = list->items[place].key;
    uint16_t value = list->items[place].value;
    memmove(&list->items[place], &list->items[place + 1],
            (list->count - place - 1) * sizeof(list->items[0]));
    list->items[list->count - 1].key = key;
    list->items[list->count - 1].value = value;
}

static void list_put(struct list *list, size_t size, uint64_t key, uint16_t value)
{
    size_t place = list_find(list, key);
    if (place == SIZE_MAX) {
        if (list->count == size) {
            list_use(list, 0);
            list->count--;
        }
        place = list->count++;
        list->items[place].key = key;
    }
    list->items[place].value = value;
    list_use(list, place);
}

static void small_caches_forget_the_least_recently_used(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 7, 16, 100, 1000};
    static struct list list;
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct budget budget;
        struct random_source random = {.state = 77 + s};
        budget_init(&budget, UINT64_MAX);
        struct decision_cache *cache = decision_cache_create(sizes[s], true, &budget);
        list.count = 0;
        for (int i = 0; i < 40000; i++) {
            uint64_t key = random_below(&random, 2 * sizes[s] + 1);
            uint16_t value = (uint16_t)i;
            uint16_t found = 0;
            if (random_below(&random, 2) == 0) {
                decision_cache_put(cache, key, value);
                list_put(&list, sizes[s], key, value);
                continue;
            }
            size_t place = list_find(&list, key);
            assert_int_equal(decision_cache_get(cache, key, &found), place != SIZE_MAX);
            if (place == SIZE_MAX)
                continue;
            assert_int_equal(found, list.items[place].value);
            list_use(&list, place);
        }
        decision_cache_destroy(cache);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
}

/* The latest are there as long as the cache is large; keys in use stay although many come. */
static void large_caches_keep_what_is_recent_or_used(void **state)
{
    enum { SIZE = 200000, USED = 1000 };
    struct budget budget;
    uint16_t value;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    struct decision_cache *cache = decision_cache_create(SIZE, false, &budget);
    for (uint64_t i = 0; i < 3 * SIZE; i++) {
        decision_cache_put(cache, i * UINT64_C(0x9e3779b97f4a7c15), 0);
        if (i >= USED && i % (SIZE / USED / 4) == 0) {
            uint64_t used = i / (SIZE / USED / 4) % USED;
            assert_true(decision_cache_get(cache, used * UINT64_C(0x9e3779b97f4a7c15), &value));
        }
    }
    size_t recent = 0;
    for (uint64_t i = 3 * SIZE - SIZE + 2 * USED; i < 3 * SIZE; i++)
        recent += decision_cache_get(cache, i * UINT64_C(0x9e3779b97f4a7c15), &value);
    assert_true(recent >= SIZE - 2 * USED - SIZE / 100);
    size_t old = 0;
    for (uint64_t i = USED; i < SIZE; i++)
        old += decision_cache_get(cache, i * UINT64_C(0x9e3779b97f4a7c15), &value);
    assert_int_equal(old, 0);
    decision_cache_destroy(cache);
    budget_fini(&budget);
}

/* The inverse of an odd factor, modulo 2^64. */
static uint64_t inverse(uint64_t factor)
{
    uint64_t found = factor;
    for (int i = 0; i < 5; i++) /* each step doubles the bits that are right */
        found *= 2 - factor * found;
    return found;
}

/* The key that the cache's mixing, were it without a seed, would make this of. */
static uint64_t unmixed(uint64_t x)
{
    x ^= x >> 31 ^ x >> 62;
    x *= inverse(UINT64_C(0x94d049bb133111eb));
    x ^= x >> 27 ^ x >> 54;
    x *= inverse(UINT64_C(0xbf58476d1ce4e5b9));
    return x ^ x >> 30 ^ x >> 60;
}

/* A sender that computes hashes cannot have its traces taken for another's, nor crowd it out. */
static void keys_cannot_be_chosen_to_collide(void **state)
{
    enum { KEPT_BITS = 53, KEYS = 1000 };
    struct budget budget;
    uint16_t value;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    struct decision_cache *cache = decision_cache_create(2 * KEYS, false, &budget);
    decision_cache_put(cache, unmixed(1), 0);
    for (uint64_t i = 1; i < KEYS; i++) {
        assert_false(decision_cache_get(cache, unmixed(1 | i << KEPT_BITS), &value));
        decision_cache_put(cache, unmixed(1 | i << KEPT_BITS), 0);
    }
    for (uint64_t i = 0; i < KEYS; i++)
        assert_true(decision_cache_get(cache, unmixed(1 | i << KEPT_BITS), &value));
    decision_cache_destroy(cache);
    budget_fini(&budget);
}

static void ten_million_decisions_take_a_hundred_megabytes(void **state)
{
    (void)state;
    assert_true(decision_cache_bytes(10000000, false) <= 100000000);
}

static void a_budget_without_room_refuses(void **state)
{
    struct budget budget;
    (void)state;
    budget_init(&budget, 1000);
    assert_null(decision_cache_create(1000, false, &budget));
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    budget_init(&budget, UINT64_MAX);
    for (uint64_t n = 1; n <= 3; n++) {
        mem_refuse_nth(n);
        assert_null(decision_cache_create(1000, true, &budget));
        mem_refuse_nth(0);
        assert_int_equal(budget_used(&budget), 0);
    }
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_caches_forget_the_least_recently_used),
        cmocka_unit_test(large_caches_keep_what_is_recent_or_used),
        cmocka_unit_test(keys_cannot_be_chosen_to_collide),
        cmocka_unit_test(ten_million_decisions_take_a_hundred_megabytes),
        cmocka_unit_test(a_budget_without_room_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
