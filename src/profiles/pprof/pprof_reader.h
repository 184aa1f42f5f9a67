/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof bytes and checks every length, index and id. Memory comes from the caller's arena,
 * whose cap bounds it. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/pprof/pprof.h"

struct arena;
struct budget;
struct buffer;
struct error;
struct gzip;

/* Strings point into bytes, everything else is in the arena. False: bytes are not a valid profile,
 * or the arena is full. */
bool pprof_read(struct arena *arena, struct slice bytes, struct pprof *ret_pprof,
                struct error *error);

/* Inflates bytes if they are gzip, into *ret_inflated, which the caller owns; else that is NULL.
 * False: the gzip is broken, or there are more than bytes_max. */
bool pprof_unpack(struct gzip *gzip, struct budget *budget, struct slice bytes, uint64_t bytes_max,
                  struct buffer **ret_inflated, struct error *error);
