/* SPDX-License-Identifier: Apache-2.0 */
/* Requests made of numbered items, and the numbers read back from whatever came out of a pipeline:
 * what was lost, doubled or invented shows. Pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct batch;
struct budget;

/* A request of items first, first + 1, … in one Resource and one scope; traces and logs only. NULL
 * when the budget or the allocator refuses. */
struct batch *numbered_request(struct budget *budget, enum signal_kind signal, uint64_t first,
                               uint64_t count);
/* A request of these bytes, in one part. */
struct batch *plain_request(struct budget *budget, enum signal_kind signal, struct slice bytes,
                            uint64_t items);
/* Calls fn for each item of the batch, in order. */
void numbered_read(const struct batch *batch, void (*fn)(uint64_t number, void *arg), void *arg);
