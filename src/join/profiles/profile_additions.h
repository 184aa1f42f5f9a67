/* SPDX-License-Identifier: Apache-2.0 */
/* What the dictionary of a profiles request gets in addition, at the end of its tables, so that no
 * index changes; what it has already is used. One owner, one thread at a time. */
#pragma once

#include <stdint.h>

#include "src/join/join_limits.h"
#include "src/join/profiles/profile_links.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_set.h"

/* Attributes: by their number in the configuration, and this one of profiles. */
enum { ADDED_TRACE_URL = JOIN_ATTRIBUTES_MAX, ADDED_KEYS };

struct profile_additions {
    const struct profile_links *links;
    struct profile_bytes bytes; /* fields of the dictionary */
    struct profile_set values;  /* attributes: number of the key, then the text */
    uint32_t *value_index;      /* by entry of values: in the attribute table */
    uint32_t value_index_capacity;
    bool has_ids;                    /* values has those of the request's link table */
    bool has_strings;                /* values has all of the request's strings */
    unsigned scans;                  /* searches of the request's strings without that */
    uint32_t counts[PROFILE_TABLES]; /* of the dictionary as it will be */
    uint32_t key_index[ADDED_KEYS];  /* in the string table; 0: not there */
};

/* links outlives it. */
void profile_additions_init(struct profile_additions *additions, const struct profile_links *links,
                            struct budget *budget);
void profile_additions_fini(struct profile_additions *additions);
/* For the request that links have opened: nothing is added yet. */
void profile_additions_begin(struct profile_additions *additions);
/* The entry of the attribute table that says it, added if there is none. */
uint32_t profile_additions_attribute(struct profile_additions *additions, size_t key,
                                     struct slice text);
/* The entry of the string table. */
uint32_t profile_additions_string(struct profile_additions *additions, struct slice text);
/* The entry of the link table with these ids. */
uint32_t profile_additions_link(struct profile_additions *additions, const uint64_t trace[2],
                                uint64_t span);
