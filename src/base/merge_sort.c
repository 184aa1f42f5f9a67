/* SPDX-License-Identifier: Apache-2.0 */
/* From the bottom up: runs of one item, of two, of four. Runs that follow each other in order are
 * copied as a whole. */
#include "src/base/merge_sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void merge_sort(void *items, void *room, size_t count, size_t size,
                int (*compare)(const void *a, const void *b))
{
    uint8_t *from = items;
    uint8_t *to = room;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * run) {
            const size_t middle = count - begin > run ? begin + run : count;
            const size_t end = count - middle > run ? middle + run : count;
            size_t left = begin;
            size_t right = middle;
            size_t at = begin;
            const uint8_t *second = from + middle * size;
            if (middle < end && compare(second - size, second) > 0)
                while (left < middle && right < end) {
                    const uint8_t *a = from + left * size;
                    const uint8_t *b = from + right * size;
                    const bool is_right = compare(a, b) > 0;
                    memcpy(to + at++ * size, is_right ? b : a, size);
                    left += !is_right;
                    right += is_right;
                }
            memcpy(to + at * size, from + left * size, (middle - left) * size);
            at += middle - left;
            memcpy(to + at * size, from + right * size, (end - right) * size);
        }
        uint8_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, count * size);
}
