/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ids of a sample's trace and span in its labels, in the spellings that profilers use.
 * Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct profile_dictionary;
struct profile_index;

struct correlation {
    bool has_trace;
    bool has_span;
    unsigned span_rank; /* of the label that had the span id: the larger rank wins */
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

/* Whether labels of that name are ids. */
bool correlation_is_key(struct slice key);
/* Takes the id of a label. False: the label is not an id, or its string is not a valid one. */
bool correlation_take(struct correlation *correlation, struct slice key, struct slice text);
/* The same for numbers, as Datadog's libraries write span ids: 64 bits, of either sign. */
bool correlation_take_number(struct correlation *correlation, struct slice key, int64_t number);
/* The same for the bytes of an id. */
bool correlation_take_bytes(struct correlation *correlation, struct slice key, struct slice bytes);
/* The same for an entry of a dictionary's attribute table, of any of these types or a list of one.
 * False for long ones, whatever they say: it takes bounded time. */
bool correlation_take_attribute(struct correlation *correlation,
                                const struct profile_dictionary *dictionary,
                                struct profile_index index);
/* Takes the valid ids of an entry of its link table. */
void correlation_take_link(struct correlation *correlation,
                           const struct profile_dictionary *dictionary, struct profile_index index);
