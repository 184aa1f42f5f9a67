/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a request of profiles once its spans are looked up: less what nobody wants, more
 * what samples count for besides, with all that is known by now. Runs on the owner's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "processors/trace_profile_join/trace_profile_keep.h"

struct batch;
struct component;
struct join_store;
struct profile_enricher;

/* Opened and resolved, or false: there is no memory to index it. The batch has one part. */
bool trace_profile_look_up(struct profile_enricher *enricher, const struct batch *batch,
                           uint32_t *ret_missing);
/* Of a batch that is looked up. */
struct finished trace_profile_finish(const struct component *owner,
                                     struct profile_enricher *enricher, struct batch *batch);
/* Looks it up first; when there is no memory to index it, it stays as it came. */
struct finished trace_profile_finish_anew(const struct component *owner, struct join_store *store,
                                          struct batch *batch);
