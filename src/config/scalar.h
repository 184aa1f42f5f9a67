/* SPDX-License-Identifier: Apache-2.0 */
/* What an unquoted YAML scalar is: the dialect of Go's yaml.v3, which is YAML 1.2's core schema
 * plus octal "0777", "0b11", "0o17" and underscores, and in which yes, no, on and off are texts.
 * Pure functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/node.h"

struct scalar {
    enum node_kind kind; /* NULL, BOOL, INT, DOUBLE or TEXT */
    bool boolean;
    int64_t integer;
    double real;
};

struct scalar text_to_scalar(const char *text);
