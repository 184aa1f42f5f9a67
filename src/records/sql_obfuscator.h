/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the values in SQL statements, as the Go collector's redaction does it: numbers, strings,
 * booleans, NULL, numbered parameters, and the digits of identifiers become "?". Comments and
 * layout stay. Pure function, any thread; linear in the text. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct arena;

/* is_mysql: strings may stand in double quotes, identifiers in back quotes, and # begins a comment.
 * Returns a part of text, or bytes of the arena; "****" if it is full. */
struct slice sql_obfuscate(struct arena *arena, struct slice text, bool is_mysql);
