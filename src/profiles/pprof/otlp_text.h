/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of OTLP profiles as other formats want them: valid UTF-8, references into the dictionary
 * resolved, values as text. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct profile_dictionary;

/* How many bytes at the begin of text are valid UTF-8 (RFC 3629). */
size_t otlp_text_valid(struct slice text);
/* Every byte that is no valid UTF-8 becomes '?'. room holds text.size bytes. */
struct slice otlp_text_repaired(struct slice text, uint8_t *room);
/* No more than bytes_max, cut between characters. */
struct slice otlp_text_cut(struct slice text, size_t bytes_max);

/* A value as a label says it: text as it is, numbers in digits, a list of one as what is in it,
 * everything else as JSON; repaired and cut. False when there is nothing to say, or the arena's cap
 * does not allow it. */
bool otlp_text_of_value(struct arena *arena, const struct profile_dictionary *dictionary,
                        struct slice encoded, size_t bytes_max, struct slice *ret_text);

/* A KeyValue, references resolved. */
struct otlp_pair {
    struct slice key;
    struct slice value; /* encoded AnyValue; no data: not set */
};
struct otlp_pair otlp_text_pair(const struct profile_dictionary *dictionary,
                                struct slice key_value);
