/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes as hexadecimal digits. Any thread. */
#include "src/base/hex.h"

#include <assert.h>

struct slice hex_write(const void *bytes, size_t size, void *room)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    uint8_t *at = room;
    assert(from != NULL || size == 0);
    for (size_t i = 0; i < size; i++) {
        at[2 * i] = (uint8_t)digits[from[i] >> 4];
        at[2 * i + 1] = (uint8_t)digits[from[i] & 15];
    }
    return slice_of(room, 2 * size);
}
