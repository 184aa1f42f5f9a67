/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves unquoted YAML scalars in the dialect of Go's yaml.v3: YAML 1.2's core schema plus octal
 * "0777", "0b11", "0o17" and underscores; yes, no, on and off are strings. Pure functions. */
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
