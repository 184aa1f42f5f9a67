/* SPDX-License-Identifier: Apache-2.0 */
/* count_for: copies of samples that count for more spans than the one they were taken in, its local
 * root or its ancestors. Copies have types of their own, since a query by service would add them up
 * twice: a Profile of type cpu is followed by one of type cpu_root and one of type cpu_ancestors.
 * What arrived is unchanged. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct budget;
struct join_settings;
struct profile_links;

struct copies_figures {
    uint64_t made;
    uint64_t left_out; /* would exceed JOIN_COPIES_MAX or JOIN_COPIES_BYTES_MAX */
};

/* Whether any copies are configured. */
bool profile_copies_are_on(const struct join_settings *settings);
/* The batch is the request of links (opened and resolved) in one part. Returns a new reference: to
 * it, or to a larger one. Copies have Links but no attributes of their spans yet; links also has
 * other spans afterwards and must be opened again. New bytes are charged to budget beyond its limit
 * if need be. */
struct batch *profile_copies_add(struct profile_links *links, struct batch *batch,
                                 struct budget *budget, struct copies_figures *ret_figures);
