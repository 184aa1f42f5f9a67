/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with the standard alphabet (RFC 4648 §4). Pure functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Bytes that base64_encode writes for this many, padding included. */
static inline size_t base64_size(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Padded, without terminator. room holds base64_size(bytes.size). */
void base64_encode(struct slice bytes, char *room);
/* Requires padding; skips line ends between digits. room holds text.size / 4 * 3 bytes and may be
 * text's own memory. False: text is not base64. */
bool base64_decode(struct slice text, uint8_t *room, size_t *ret_size);
