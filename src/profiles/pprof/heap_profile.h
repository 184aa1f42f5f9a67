/* SPDX-License-Identifier: Apache-2.0 */
/* Converts jemalloc's heap profile (its text form, "heap_v2") to pprof: objects and bytes in use by
 * stack, scaled up from the sampled ones as jeprof does. Addresses are not symbolized: `go tool
 * pprof` finds their names in the binary. Any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"

struct buffer;
struct error;

/* Stacks and addresses beyond these limits are an error. */
enum { HEAP_PROFILE_ADDRESSES_MAX = 1 << 20, HEAP_PROFILE_DEPTH_MAX = 256 };

/* Makes an uncompressed profile, which the caller owns. NULL: the error says why. */
struct buffer *heap_profile_to_pprof(struct slice text, uint64_t wall_ns, struct error *error);
