/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises in one pass the profiles requests that nothing needs to be done about, which are
 * nearly all of them: layout 1.10, well-formed, written in the order of field numbers, every index
 * inside its table, nothing to be written anew. Allocates nothing. Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct profile_fast_figures {
    uint64_t profiles;
    uint64_t samples;
};

/* True: the request would pass profile_layout_of, otlp_check and profile_check, and stay as it is.
 * False says nothing: those three decide. Nothing is assumed of the bytes. */
bool profile_fast_check(struct slice request, struct profile_fast_figures *ret_figures);
