/* SPDX-License-Identifier: Apache-2.0 */
/* Items of every number, in every order of few keys, stay in their order where keys are equal. */
#include "src/base/merge_sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ITEMS_MAX = 70, ROUNDS = 20 };

struct item {
    uint32_t key;
    uint32_t place; /* before */
    uint8_t more[4];
};

static int compare(const void *a, const void *b)
{
    const struct item *left = a;
    const struct item *right = b;
    return (left->key > right->key) - (left->key < right->key);
}

static void items_are_in_order(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (uint32_t count = 0; count <= ITEMS_MAX; count++)
        for (uint32_t round = 0; round < ROUNDS; round++) {
            /* Of that size, so that what lies beyond is noticed. */
            struct item *items = calloc(count + 1, sizeof(*items));
            struct item *room = calloc(count + 1, sizeof(*items));
            uint64_t sum = 0;
            assert_true(items != NULL && room != NULL);
            for (uint32_t i = 0; i < count; i++) {
                seed = seed * 1664525u + 1013904223u;
                const uint32_t key = round == 0 ? i : round == 1 ? count - i : seed >> 8;
                items[i] = (struct item){.key = key % (3 * round + 4), .place = i};
                sum += items[i].place;
            }
            merge_sort(items, room, count, sizeof(items[0]), compare);
            for (uint32_t i = 0; i < count; i++) {
                sum -= items[i].place;
                assert_true(
                    i == 0 || items[i - 1].key < items[i].key ||
                    (items[i - 1].key == items[i].key && items[i - 1].place < items[i].place));
            }
            assert_int_equal(sum, 0);
            free(items);
            free(room);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(items_are_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
