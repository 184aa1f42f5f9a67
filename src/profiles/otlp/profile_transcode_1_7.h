/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of layout 1.7 to 1.10. Only profile_transcode.c includes this. Nothing is assumed of the
 * bytes. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

struct budget;
struct buffer;

/* NULL when budget or allocator refuse. What is malformed comes out malformed or left out. */
struct buffer *profile_transcode_1_7(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
