/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with the standard alphabet (RFC 4648 §4). Pure functions, any thread. */
#pragma once

#include <stddef.h>

#include "src/slice.h"

/* Bytes that base64_encode writes for so many, padding included. */
static inline size_t base64_size(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Padded, without terminator. room holds base64_size(bytes.size). */
void base64_encode(struct slice bytes, char *room);
