/* SPDX-License-Identifier: Apache-2.0 */
/* Three bytes in, four digits out, and back. Pure functions, any thread. */
#include "src/base/base64.h"

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

enum { NO_DIGIT = 64, PADDING = 65 };

/* Of the bytes from '+' to 'z'. */
static const uint8_t digits_of['z' - '+' + 1] = {
    62,       NO_DIGIT, NO_DIGIT, NO_DIGIT, 63, 52,       53,       54,       55,       56,
    57,       58,       59,       60,       61, NO_DIGIT, NO_DIGIT, NO_DIGIT, PADDING,  NO_DIGIT,
    NO_DIGIT, NO_DIGIT, 0,        1,        2,  3,        4,        5,        6,        7,
    8,        9,        10,       11,       12, 13,       14,       15,       16,       17,
    18,       19,       20,       21,       22, 23,       24,       25,       NO_DIGIT, NO_DIGIT,
    NO_DIGIT, NO_DIGIT, NO_DIGIT, NO_DIGIT, 26, 27,       28,       29,       30,       31,
    32,       33,       34,       35,       36, 37,       38,       39,       40,       41,
    42,       43,       44,       45,       46, 47,       48,       49,       50,       51};

bool base64_decode(struct slice text, uint8_t *room, size_t *ret_size)
{
    uint32_t group = 0;
    size_t digits = 0;
    size_t padding = 0;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '\r' || byte == '\n')
            continue;
        unsigned index = (unsigned)byte - '+';
        unsigned digit = index < sizeof(digits_of) ? digits_of[index] : NO_DIGIT;
        padding += digit == PADDING;
        if (digit == NO_DIGIT || (padding > 0 && digit != PADDING))
            return false;
        group = group << 6 | (digit == PADDING ? 0 : digit);
        if (++digits % 4 != 0)
            continue;
        if (padding > 2)
            return false;
        for (size_t k = 0; k < 3 - padding; k++)
            room[used++] = (uint8_t)(group >> (16 - 8 * k));
    }
    *ret_size = used;
    return digits % 4 == 0 && padding <= 2;
}
