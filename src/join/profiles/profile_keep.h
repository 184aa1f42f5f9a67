/* SPDX-License-Identifier: Apache-2.0 */
/* Removes from a profiles request what the rules do not keep: samples, Profiles that have none
 * left, and the entries of the dictionary that only these referred to. One owner, one thread at a
 * time. */
#pragma once

#include "src/join/keep_rules.h"

struct batch;
struct budget;
struct join_store;
struct profile_links;
struct span_facts;

/* Whether enough is known of a span to keep, drop or copy its samples. Rules and copies also need
 * its local root, which ends later. */
bool profile_keep_is_settled(const struct join_store *store, const struct span_facts *facts);
/* Sets is_unsettled of the resolved links; returns how many are found but not settled. */
uint32_t profile_keep_unsettled(struct profile_links *links);

/* The batch is the request of links (opened and resolved) in one part. Returns a new reference: to
 * it, or to a smaller one in one part, of which nothing but items is left when no sample is kept.
 * Where the budget has no room for the smaller one, all samples stay. */
struct batch *profile_keep(struct profile_links *links, struct batch *batch,
                           const struct keep_rules *rules, struct budget *budget);
