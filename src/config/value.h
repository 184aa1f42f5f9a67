/* SPDX-License-Identifier: Apache-2.0 */
/* What option tables fill in besides plain C types. Lives as long as the loaded configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_texts {
    size_t count;
    const char *const *texts; /* NULL: not given, neither by the user nor by default */
};

struct config_pair {
    const char *key;
    const char *value;
};

struct config_pairs {
    size_t count;
    const struct config_pair *pairs;
};

enum config_value_type {
    CONFIG_VALUE_NULL,
    CONFIG_VALUE_BOOL,
    CONFIG_VALUE_INT,
    CONFIG_VALUE_DOUBLE,
    CONFIG_VALUE_TEXT,
    CONFIG_VALUE_LIST,
    CONFIG_VALUE_MAP,
};

struct config_value {
    enum config_value_type type;
    bool boolean;
    int64_t integer;
    double real;
    const char *text;
    size_t count;                     /* LIST, MAP: elements */
    const struct config_value *items; /* LIST, MAP: values */
    const char *const *keys;          /* MAP: keys, beside items */
};

struct config_sections {
    size_t count;
    void *items; /* count structs of section_size bytes */
};
