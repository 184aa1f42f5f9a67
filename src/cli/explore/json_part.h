/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a JSON document by their name: slices of its text. What is missing, or of another kind,
 * is empty, 0 or false. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/slice.h"
#include "src/otlp/json/json_walk.h"

/* Whether the text is one whole JSON value. */
bool json_part_is_whole(struct slice text);
/* The member of an object. */
struct slice json_part(struct slice object, const char *key);
/* A number, or a string of digits. */
int64_t json_part_integer(struct slice value);
double json_part_real(struct slice value);
bool json_part_is_true(struct slice value);
/* Prints a string, safe for a terminal. */
void json_part_print(FILE *out, struct slice value);

/* The elements of a list, one after the other. */
struct json_items {
    struct json_walk walk;
    bool is_open;
};
struct json_items json_items_of(struct slice list);
/* False: there are no more. */
bool json_items_next(struct json_items *items, struct slice *ret_item);
/* An array's elements by their place, up to `most`; returns how many. */
size_t json_items_take(struct slice list, struct slice *taken, size_t most);
