/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the values in queries that are JSON, as the Go collector's redaction does it. Pure
 * function, any thread; linear in the text. */
#pragma once

#include "src/base/slice.h"

struct arena;

/* Deeper texts stay as they are, as those that are no JSON. */
enum { JSON_QUERY_DEPTH_MAX = 10000 };
/* What may come for each byte: "1" becomes "\"?\"", with at least one byte to the next value. */
enum { JSON_QUERY_GROWTH_MAX = 3 };

/* Strings, numbers and words become "?" as strings; keys stay, and white space goes but for what is
 * behind the text. Returns text itself, or bytes of the arena; "****" if it is full. */
struct slice json_obfuscate(struct arena *arena, struct slice text);
