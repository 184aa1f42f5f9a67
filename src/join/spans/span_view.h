/* SPDX-License-Identifier: Apache-2.0 */
/* What one encoded span says, as far as the join wants to know it. The bytes have passed
 * otlp_check. Plain values; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

/* Attributes by what they are wanted for: the configured ones in their order, then these. */
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

/* Which attributes are wanted. The names are borrowed. */
struct span_keys {
    struct span_key items[SPAN_KEYS_MAX];
    unsigned count;
    uint64_t lengths; /* that the names have, bit by bit, modulo 64 */
};

struct span_view {
    struct slice name;
    struct span_facts facts; /* what the span says itself */
    uint32_t flags;          /* as OTLP has them */
    uint32_t kind;
    uint32_t has_values;              /* bit by bit, which of them are there */
    struct slice values[SPAN_VALUES]; /* encoded AnyValue: the last one of its key */
};

void span_keys_add(struct span_keys *keys, struct slice name, unsigned value);
/* False: it has no id to be found by. */
bool span_view_read(const struct span_keys *keys, struct slice content, struct span_view *ret_view);

/* No data: it is not there. */
static inline struct slice span_view_value(const struct span_view *view, unsigned value)
{
    return (view->has_values >> value & 1) != 0 ? view->values[value] : (struct slice){0};
}
