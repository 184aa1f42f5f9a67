/* SPDX-License-Identifier: Apache-2.0 */
/* Lower and upper case, character by character (the simple mappings of Unicode 15.0), as Go's
 * strings.ToLower and ToUpper. Pure functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { UTF8_CASE_GROWTH_MAX = 3 }; /* a byte that is not UTF-8 becomes U+FFFD */

/* True when text is ASCII without capitals: its lower case is itself. */
bool utf8_is_plain_lower(struct slice text);
/* Write to room for UTF8_CASE_GROWTH_MAX times the text's bytes; return what they wrote. */
size_t utf8_to_lower(struct slice text, uint8_t *room);
size_t utf8_to_upper(struct slice text, uint8_t *room);
