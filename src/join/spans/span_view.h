/* SPDX-License-Identifier: Apache-2.0 */
/* The part of an encoded span that the join needs. The bytes have passed otlp_check. Plain values;
 * any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

/* Wanted attributes by their use: the configured ones in their order, then these. */
enum span_value {
    SPAN_THREAD_NAME = JOIN_ATTRIBUTES_MAX,
    SPAN_THREAD_ID,
    SPAN_MARK_ID,
    SPAN_MARK_URL,
    SPAN_VALUES,
    SPAN_KEYS_MAX = 2 * SPAN_VALUES, /* some have two names */
};

struct span_key {
    struct slice name;
    unsigned value;
};

/* The wanted attributes. Borrows their names. */
struct span_keys {
    struct span_key items[SPAN_KEYS_MAX];
    unsigned count;
    uint64_t lengths; /* a bit for each length of a name, modulo 64 */
};

struct span_view {
    struct slice name;
    struct span_facts facts; /* without those that depend on its resource */
    uint32_t flags;          /* OTLP's */
    uint32_t kind;
    uint32_t has_values;              /* bits of those that it has */
    struct slice values[SPAN_VALUES]; /* encoded AnyValue; a key's last one wins */
};

void span_keys_add(struct span_keys *keys, struct slice name, unsigned value);
/* False: it has no id. */
bool span_view_read(const struct span_keys *keys, struct slice content, struct span_view *ret_view);

/* No data: the span has none. */
static inline struct slice span_view_value(const struct span_view *view, unsigned value)
{
    return (view->has_values >> value & 1) != 0 ? view->values[value] : (struct slice){0};
}
