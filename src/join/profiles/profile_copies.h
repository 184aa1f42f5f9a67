/* SPDX-License-Identifier: Apache-2.0 */
/* Counts samples for more spans than the one that they were taken in: for its local root, for its
 * ancestors. Copies would double what a query by service adds up, so they are of types of their
 * own: beside a Profile of type cpu stand one of type cpu_root and one of type cpu_ancestors. What
 * came stays as it is. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct budget;
struct join_settings;
struct profile_links;

struct copies_figures {
    uint64_t made;
    uint64_t left_out; /* beyond JOIN_COPIES_MAX or JOIN_COPIES_BYTES_MAX */
};

/* Whether any are wanted. */
bool profile_copies_are_on(const struct join_settings *settings);
/* The batch, which is the request of links (opened and resolved) in one part, or a larger one; a
 * new reference. Copies have Links but nothing of what their span says yet; links know other spans
 * afterwards and are to be opened anew. New bytes are charged to budget beyond its limit if need
 * be. */
struct batch *profile_copies_add(struct profile_links *links, struct batch *batch,
                                 struct budget *budget, struct copies_figures *ret_figures);
