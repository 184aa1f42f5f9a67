/* SPDX-License-Identifier: Apache-2.0 */
/* A walk through a JSON text, value by value, without a tree, with a bound on its depth. Use:
 *     if (json_walk_object(&walk))
 *         while (json_walk_key(&walk, &key))
 *             read or json_walk_skip one value
 * Everything is false once failure is set. Plain value; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/otlp/json/json_scan.h"

struct json_walk {
    struct json_scan scan;
    size_t depth;
    bool is_first; /* no comma before the next key or item */
    const char *failure;
};

struct json_walk json_walk_of(struct slice text);
/* Opens an object, or an array; false without failure: it was null. */
bool json_walk_object(struct json_walk *walk);
bool json_walk_array(struct json_walk *walk);
/* The next key of the object, or whether there is another item; false: it is closed. */
bool json_walk_key(struct json_walk *walk, struct json_string *ret_key);
bool json_walk_item(struct json_walk *walk);
/* A text; false without failure: it was null. */
bool json_walk_text(struct json_walk *walk, struct json_string *ret_text);
/* Any value. False: failure. */
bool json_walk_skip(struct json_walk *walk);
/* Nothing but white space is left. */
bool json_walk_end(struct json_walk *walk);
/* Whether a string without escapes says that. */
bool json_walk_is(const struct json_string *string, const char *text);
