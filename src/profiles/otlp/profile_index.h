/* SPDX-License-Identifier: Apache-2.0 */
/* An index into a table of a ProfilesDictionary, as it came. It is a type of its own, so that
 * nothing is subscripted with a number that a sender chose: profile_index_of is the one way from a
 * varint to an index, profile_place (profile_dictionary.h) the one way from there to a subscript.
 * The fields are int32, but a varint has 64 bits: all of them count, so that a negative number or
 * one above INT32_MAX is in no table. Plain value; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile_index {
    int64_t number; /* for messages; compare with profile_has */
};

static inline struct profile_index profile_index_of(uint64_t varint)
{
    return (struct profile_index){.number = (int64_t)varint};
}

/* 0 means "not set", whatever the entry 0 of the table is. */
static inline bool profile_index_is_set(struct profile_index index)
{
    return index.number != 0;
}
