/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that the dictionary of a profiles request gets at the end of its tables, so that no index
 * changes; entries that exist are used. One owner, one thread at a time. */
#pragma once

#include <stdint.h>

#include "src/join/join_limits.h"
#include "src/join/profiles/profile_links.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_set.h"

/* Keys: attributes by their number in the configuration, and this one of Profiles. */
enum { ADDED_TRACE_URL = JOIN_ATTRIBUTES_MAX, ADDED_KEYS };

struct profile_additions {
    const struct profile_links *links;
    struct profile_bytes bytes; /* fields of the dictionary */
    struct profile_set values;  /* number of the key, then the string */
    uint32_t *value_index;      /* by entry of values: in the attribute table */
    uint32_t value_index_capacity;
    bool is_full;     /* there is no memory to index the request: nothing may be added */
    bool has_ids;     /* values has the request's link table */
    bool has_strings; /* values has all of the request's strings */
    unsigned scans;   /* linear searches of the request's strings so far */
    uint32_t counts[PROFILE_TABLES]; /* of the dictionary with the additions */
    uint32_t key_index[ADDED_KEYS];  /* in the string table; 0: not there */
};

/* links must outlive it. */
void profile_additions_init(struct profile_additions *additions, const struct profile_links *links,
                            struct budget *budget);
void profile_additions_fini(struct profile_additions *additions);
/* Starts over for the request that links have opened. */
void profile_additions_begin(struct profile_additions *additions);
/* Whether the budget has room for so many entries more, with strings of so many bytes in all: here,
 * in what is inserted into the request, and in the batch. */
bool profile_additions_have_room(const struct profile_additions *additions, uint64_t entries,
                                 uint64_t string_bytes);
/* Each returns the index of an entry, which is added if the table has none like it. There must be
 * room. */
uint32_t profile_additions_attribute(struct profile_additions *additions, size_t key,
                                     struct slice value);
/* string is not empty. */
uint32_t profile_additions_string(struct profile_additions *additions, struct slice string);
uint32_t profile_additions_link(struct profile_additions *additions, const uint64_t trace[2],
                                uint64_t span);
