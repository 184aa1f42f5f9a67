/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits. Pure functions; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Writes two digits per byte, in lower case, to room and returns them. */
struct slice hex_write(const void *bytes, size_t size, void *room);

/* The value of a digit in either case; 16: not a digit. */
static inline unsigned hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    unsigned letter = (byte | 0x20u) - 'a';
    return letter < 6 ? letter + 10 : 16;
}
