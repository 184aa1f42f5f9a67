/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves out of a profiles request what the rules do not want: samples, profiles that have none
 * left, and what nothing else refers to. One owner, one thread at a time. */
#pragma once

#include "src/join/keep_rules.h"

struct batch;
struct budget;
struct join_store;
struct profile_links;
struct span_facts;

/* Whether all is known of a span that its samples are kept, left out or copied for: with rules, or
 * with copies, that of its local root, too, which ends later. */
bool profile_keep_is_settled(const struct join_store *store, const struct span_facts *facts);
/* Says of each of the resolved links whether it is found, but not settled; returns how many are. */
uint32_t profile_keep_unsettled(struct profile_links *links);

/* The batch, which is the request of links (opened and resolved) in one part, or a smaller one, in
 * one part too; a new reference. Without items nothing is left of it. New bytes are charged to
 * budget beyond its limit if need be. */
struct batch *profile_keep(struct profile_links *links, struct batch *batch,
                           const struct keep_rules *rules, struct budget *budget);
