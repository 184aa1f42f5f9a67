/* SPDX-License-Identifier: Apache-2.0 */
/* Three bytes in, four digits out. Pure functions, any thread. */
#include "src/base64.h"

#include <assert.h>

void base64_encode(struct slice bytes, char *room)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert(bytes.data != NULL || bytes.size == 0);
    assert(room != NULL || bytes.size == 0);
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t group = (uint32_t)bytes.data[i] << 16;
        group |= left > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0;
        group |= left > 2 ? bytes.data[i + 2] : 0;
        *room++ = digits[group >> 18];
        *room++ = digits[group >> 12 & 63];
        *room++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *room++ = left > 2 ? digits[group & 63] : '=';
    }
}
