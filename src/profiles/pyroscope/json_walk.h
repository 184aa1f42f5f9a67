/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON value by value, without a tree, to a bounded depth:
 *     if (json_walk_object(&walk))
 *         while (json_walk_key(&walk, &key))
 *             read one value, or json_walk_skip it
 * After a failure every call returns false. Plain value; any thread. */
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
/* Opens an object. False: a failure, or null. */
bool json_walk_object(struct json_walk *walk);
/* The next key of an object. False: it is closed. */
bool json_walk_key(struct json_walk *walk, struct json_string *ret_key);
/* Reads a string. False: a failure, or null. */
bool json_walk_string(struct json_walk *walk, struct json_string *ret_string);
/* Skips any value. False: failure. */
bool json_walk_skip(struct json_walk *walk);
/* Checks that nothing but white space is left. */
bool json_walk_end(struct json_walk *walk);
/* Whether the string is text, and has no escapes. */
bool json_walk_is(const struct json_string *string, const char *text);
