/* SPDX-License-Identifier: Apache-2.0 */
/* Copies entries from the dictionary of a request into one that is being built, where they get new
 * indices. Entries are copied one by one when samples refer to them, with all that they refer to;
 * or all tables at once, which is several times as fast: straight loops without recursion. The
 * latter also copies entries that no sample uses, which profile_merge_finish removes. One owner,
 * one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_tables.h"

/* From one request, whose indices have been checked, to the tables. */
struct dictionary_copy {
    struct arena arena;
    uint64_t charged_bytes; /* for the arena, to the budget of `to` */
    struct profile_dictionary from;
    struct profile_tables *to;
    uint32_t *known[PROFILE_TABLES]; /* base + new index; less than base: not copied yet */
    uint32_t base;
    uint32_t top;                /* above all values in known */
    uint64_t dropped_attributes; /* whose value is a reference outside of the string table */
};

/* False when there is no memory for the index of the dictionary. */
bool dictionary_copy_open(struct dictionary_copy *copy, struct slice request,
                          struct profile_tables *to);
void dictionary_copy_close(struct dictionary_copy *copy);
/* The tables have been cleared: no entry is copied yet. */
void dictionary_copy_forget(struct dictionary_copy *copy);

/* The new index of an entry, which is copied if it was not yet. */
uint32_t dictionary_copy_string(struct dictionary_copy *copy, struct profile_index index);
uint32_t dictionary_copy_link(struct dictionary_copy *copy, struct profile_index index);
uint32_t dictionary_copy_stack(struct dictionary_copy *copy, struct profile_index index);

/* Upper bound of what _put_attributes writes. */
size_t dictionary_copy_attributes_bytes(const struct dictionary_copy *copy,
                                        const struct profile_indices *attributes);
/* Writes the attributes as packed field `number` to at, which has room. Returns the end. */
uint8_t *dictionary_copy_put_attributes(struct dictionary_copy *copy,
                                        const struct profile_indices *attributes, uint32_t number,
                                        uint8_t *at);

/* Upper bound of a message with new indices: _GROWTH times its bytes, plus _SLACK. */
enum { DICTIONARY_COPY_GROWTH = 5, DICTIONARY_COPY_SLACK = 64 };

/* Copies all tables at once. False, with nothing changed, when an entry is not encoded in the order
 * of field numbers, holds references or refers outside of a table: then entries are copied one by
 * one. Call it before anything else is copied. */
bool dictionary_copy_all(struct dictionary_copy *copy);
/* After _all: writes a sample, as field 2 of a Profile, to at, which has room. Returns the end;
 * NULL when the fields are not in order. */
uint8_t *dictionary_copy_sample(const struct dictionary_copy *copy, struct slice sample,
                                uint8_t *at);
