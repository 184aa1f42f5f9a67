/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of OTLP profiles for other formats: valid UTF-8, references into the dictionary resolved,
 * values as text. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct arena;
struct profile_dictionary;
struct profile_index;
struct profile_indices_reader;

/* The number of bytes at the start of text that are valid UTF-8 (RFC 3629). */
size_t otlp_text_valid(struct slice text);
/* Replaces every byte that is not valid UTF-8 with '?'. room holds text.size bytes. */
struct slice otlp_text_repaired(struct slice text, uint8_t *room);
/* Cuts text to bytes_max, between characters. */
struct slice otlp_text_cut(struct slice text, size_t bytes_max);

/* Work for an entry or a string that each of many profiles of a request may name: its bytes, and
 * many times those of one that is larger than any that is meant. */
enum { OTLP_TEXT_BULKY_BYTES = 65536, OTLP_TEXT_BULKY_FACTOR = 32 };
static inline uint64_t otlp_text_work(size_t bytes)
{
    return bytes > OTLP_TEXT_BULKY_BYTES ? (uint64_t)bytes * OTLP_TEXT_BULKY_FACTOR : bytes;
}

/* A value as a label has it: strings unchanged, numbers in digits, a list of one as its element,
 * everything else as JSON; repaired and cut. False: it is empty, or the arena is full. */
bool otlp_text_of_value(struct arena *arena, const struct profile_dictionary *dictionary,
                        struct slice encoded, size_t bytes_max, struct slice *ret_text);

/* A KeyValue, references resolved. */
struct otlp_pair {
    struct slice key;
    struct slice value; /* encoded AnyValue; no data: not set */
};
struct otlp_pair otlp_text_pair(const struct profile_dictionary *dictionary,
                                struct slice key_value);
/* Reads the next attribute of a list that has a key. False: there are no more. */
bool otlp_text_next_pair(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct profile_index *ret_index,
                         struct otlp_pair *ret_pair);
