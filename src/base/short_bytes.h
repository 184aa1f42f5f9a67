/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and compares bytes that are nearly always few, as keys and names are: in two overlapping
 * pieces and without a call. Never touches bytes beyond `size`. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHORT_BYTES_MAX = 32 }; /* more are left to the library */

/* The two do not overlap. Without bytes they may be NULL. */
static inline void short_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size > SHORT_BYTES_MAX) {
        memcpy(to, from, size);
    } else if (size >= 16) {
        memcpy(to, from, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else if (size > 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
}

/* Without bytes they may be NULL. */
static inline bool short_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint64_t words[4];
    if (size > 16)
        return memcmp(a, b, size) == 0;
    if (size >= 8) {
        memcpy(&words[0], a, 8);
        memcpy(&words[1], b, 8);
        memcpy(&words[2], a + size - 8, 8);
        memcpy(&words[3], b + size - 8, 8);
        return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
    }
    if (size >= 4) {
        uint32_t halves[4];
        memcpy(&halves[0], a, 4);
        memcpy(&halves[1], b, 4);
        memcpy(&halves[2], a + size - 4, 4);
        memcpy(&halves[3], b + size - 4, 4);
        return ((halves[0] ^ halves[1]) | (halves[2] ^ halves[3])) == 0;
    }
    return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}
