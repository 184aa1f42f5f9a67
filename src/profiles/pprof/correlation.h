/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels of a pprof sample name the trace and the span that it was taken in, in the spellings
 * of the profilers that there are. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct profile_dictionary;
struct profile_index;

struct correlation {
    bool has_trace;
    bool has_span;
    unsigned span_rank; /* of the name that the span id came under: larger ones win */
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

/* Whether labels of that name are ids. */
bool correlation_is_key(struct slice key);
/* Whether a label is one of them and its text a valid id; takes it then. */
bool correlation_take(struct correlation *correlation, struct slice key, struct slice text);
/* The same for numbers, as Datadog's libraries write span ids: 64 bits, whatever their sign. */
bool correlation_take_number(struct correlation *correlation, struct slice key, int64_t number);
/* The same for the bytes of an id. */
bool correlation_take_bytes(struct correlation *correlation, struct slice key, struct slice bytes);
/* The same for an entry of a dictionary's attribute table, of any of these types, or a list of one.
 */
bool correlation_take_attribute(struct correlation *correlation,
                                const struct profile_dictionary *dictionary,
                                struct profile_index index);
/* What an entry of its link table says, as far as its ids are valid. */
void correlation_take_link(struct correlation *correlation,
                           const struct profile_dictionary *dictionary, struct profile_index index);
