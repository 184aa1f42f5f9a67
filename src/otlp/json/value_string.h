/* SPDX-License-Identifier: Apache-2.0 */
/* Values to strings and strings to numbers, exactly as in the Go collector: strconv's grammar and
 * pcommon.Value.AsString. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;

enum { DOUBLE_STRING_BYTES_MAX = 400 };

/* strconv.ParseInt(text, 10, 64): optional sign, digits, nothing else; in range. */
bool string_to_int(struct slice text, int64_t *ret_number);
/* strconv.ParseFloat(text, 64): decimal or hexadecimal with exponent, underscores between digits,
 * inf, infinity, nan in any case; in range. */
bool string_to_double(struct slice text, double *ret_real);
/* As encoding/json writes numbers, and NaN, Infinity, -Infinity. Returns the length. */
size_t double_to_string(double real, char text[DOUBLE_STRING_BYTES_MAX]);
/* strconv.FormatFloat(real, 'f', -1, 64): never with an exponent; NaN, +Inf, -Inf. Returns the
 * length. */
size_t double_to_decimal(double real, char text[DOUBLE_STRING_BYTES_MAX]);
/* Lists and maps become JSON with sorted keys, bytes base64. False when the arena is full. */
bool value_to_string(struct arena *arena, struct slice encoded, struct slice *ret_text);
/* The attributes of a message, which are its fields of that number, as encoding/json marshals a
 * map: a JSON object with sorted keys; of equal keys the last one counts. Escapes <, > and &, too.
 * NaN and infinities, at which Go fails, are strings. False when the arena is full. */
bool attributes_to_json(struct arena *arena, struct slice message, uint32_t number,
                        struct slice *ret_text);
