/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns made of texts that records have. A few are kept until the batch ends: equal texts are
 * compiled once as long as no more than that take turns. One thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct pattern;

/* A compiled text. Zero: none. */
struct ottl_made_pattern {
    struct pattern *pattern;
    uint8_t *text;
    size_t size;
    bool is_glob;
};

/* Zero-initialized. */
struct ottl_patterns {
    struct ottl_made_pattern kept[16]; /* those used last */
    unsigned next;                     /* which one makes room */
};

/* Takes the pattern of a text out. False: there is none. */
bool ottl_patterns_take(struct ottl_patterns *patterns, struct slice text, bool is_glob,
                        struct ottl_made_pattern *ret);
/* Puts a pattern in, in place of another one. */
void ottl_patterns_put(struct ottl_patterns *patterns, struct ottl_made_pattern made);
void ottl_patterns_clear(struct ottl_patterns *patterns);
