/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 validation and decoding. Pure functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

/* Bytes of the character at the start of text, which is not empty; 0: it is not valid UTF-8 (RFC
 * 3629). */
size_t utf8_size(struct slice text);
/* The character in that many bytes, of which utf8_size has told. */
uint32_t utf8_decode(const uint8_t *bytes, size_t size);
/* Whether all of text, which may be empty, is valid UTF-8. */
bool utf8_is_valid(struct slice text);
