/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pprof bytes that nobody has checked: every length, index and id is. Memory comes from the
 * caller's arena, whose cap bounds it. Pure functions; any thread. */
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

/* Strings stay where they are in bytes, everything else is in the arena. False when bytes are no
 * sound profile, or the arena's cap does not allow it. */
bool pprof_read(struct arena *arena, struct slice bytes, struct pprof *ret_pprof,
                struct error *error);

/* pprof travels bare or as gzip. The bytes without gzip, in *ret_inflated when that was needed,
 * which the caller gives back, or NULL. False: the gzip is broken, or more than bytes_max. */
bool pprof_unpack(struct gzip *gzip, struct budget *budget, struct slice bytes, uint64_t bytes_max,
                  struct buffer **ret_inflated, struct error *error);
