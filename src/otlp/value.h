/* SPDX-License-Identifier: Apache-2.0 */
/* AnyValue: attribute values, encoded and decoded. An encoded value is the content of an AnyValue
 * message; without bytes it is the empty value. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct config_value;

enum value_type {
    VALUE_EMPTY,
    VALUE_STRING,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_DOUBLE,
    VALUE_LIST,
    VALUE_MAP,
    VALUE_BYTES,
};

struct value {
    enum value_type type;
    bool boolean;
    int64_t integer;
    double real;
    /* TEXT, BYTES: the content; LIST, MAP: the encoded ArrayValue or KeyValueList. */
    struct slice bytes;
};

/* The last field wins, as in every decoder. */
struct value value_read(struct slice encoded);
/* The part of encoded that says the same: its last field. */
struct slice value_last_field(struct slice encoded);
/* The same as value_read, but a list of one becomes its element: some translators make lists of
 * labels. */
struct value value_read_single(struct slice encoded);
/* Encodes value into arena; false when it is full. The bytes of LIST and MAP are used as they are.
 */
bool value_write(struct arena *arena, const struct value *value, struct slice *ret_encoded);
bool value_write_string(struct arena *arena, struct slice text, struct slice *ret_encoded);
/* Encodes a value of the configuration with its YAML type. The caller frees the data. */
struct slice value_from_config(const struct config_value *config);
