/* SPDX-License-Identifier: Apache-2.0 */
/* Random OTLP requests, drawn from the walker's own tables: every field, in any order, with unknown
 * fields between. The same seed gives the same bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct batch;
struct random_source {
    uint64_t state;
};

uint64_t random_below(struct random_source *random, uint64_t bound);
/* A valid request; the caller frees its data with mem_free. */
struct slice random_request(struct random_source *random, enum signal_kind signal);
/* The bytes as a batch of one part, or cut into parts at random places. */
struct batch *random_parts(struct random_source *random, enum signal_kind signal,
                           struct slice bytes);
/* A batch of two parts, the first of `first` bytes; items are for the caller to set. */
struct batch *two_parts(enum signal_kind signal, struct slice bytes, size_t first);
/* All parts in one piece; the caller frees its data with mem_free. */
struct slice joined_parts(const struct batch *batch);
