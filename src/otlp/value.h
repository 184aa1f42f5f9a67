/* SPDX-License-Identifier: Apache-2.0 */
/* AnyValue: attribute values as encoded bytes, and what they say. An encoded value is the content
 * of an AnyValue message; it is never empty memory but may have no bytes, which is the empty value.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct config_value;

enum value_type {
    VALUE_EMPTY,
    VALUE_TEXT,
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
    struct slice
        bytes; /* TEXT, BYTES: the content; LIST, MAP: the encoded ArrayValue or KeyValueList */
};

/* The last field wins, as in every decoder. */
struct value value_read(struct slice encoded);
/* The same, but a list of one is what its element is, as where translators make lists of labels. */
struct value value_read_single(struct slice encoded);
/* The encoded form, in arena; false when its cap does not allow it. Not for LIST and MAP made of
 * parts: their bytes are taken as they are. */
bool value_write(struct arena *arena, const struct value *value, struct slice *ret_encoded);
bool value_write_text(struct arena *arena, struct slice text, struct slice *ret_encoded);
/* A value from the configuration with its YAML type. Allocated; the caller frees ret_encoded's
 * data. */
struct slice value_from_config(const struct config_value *config);
