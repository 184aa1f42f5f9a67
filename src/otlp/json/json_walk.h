/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON value by value, without a tree, to a bounded depth:
 *     if (json_walk_object(&walk))
 *         while (json_walk_key(&walk, &key))
 *             read one value, or json_walk_skip it
 * After a failure every call returns false. Plain value; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/otlp/json/json_scan.h"

enum { JSON_WALK_DEPTH_MAX = 32 };

struct json_walk {
    struct json_scan scan;
    size_t depth;
    bool is_first;            /* no comma before the next key or item */
    const char *failure;      /* NULL, or what was expected at failed_at: "an object" */
    const uint8_t *failed_at; /* json_scan_found says what is there */
};

struct json_walk json_walk_of(struct slice text);
/* Opens an object, or a list. False: a failure, or null. */
bool json_walk_object(struct json_walk *walk);
bool json_walk_list(struct json_walk *walk);
/* The next key of an object. False: it is closed. */
bool json_walk_key(struct json_walk *walk, struct json_string *ret_key);
/* Whether a list has one more element, which comes next. False: it is closed. */
bool json_walk_item(struct json_walk *walk);
/* Reads a string, a number, or true or false. False: a failure, or null. */
bool json_walk_string(struct json_walk *walk, struct json_string *ret_string);
bool json_walk_number(struct json_walk *walk, struct json_number *ret_number);
bool json_walk_bool(struct json_walk *walk, bool *ret_bool);
/* The first byte of the next value; 0 at the end, and after a failure. */
uint8_t json_walk_peek(struct json_walk *walk);
/* Skips any value. False: failure. */
bool json_walk_skip(struct json_walk *walk);
/* Checks that nothing but white space is left. */
bool json_walk_end(struct json_walk *walk);
/* Fails because of the value at that place: it is not what was expected. Returns false. */
bool json_walk_fail(struct json_walk *walk, const uint8_t *at, const char *expected);
/* Whether the string is text, and has no escapes. */
bool json_walk_is(const struct json_string *string, const char *text);
