/* SPDX-License-Identifier: Apache-2.0 */
/* Brings requests of older layouts into that of OTLP 1.10, and from there into 1.9. What is
 * malformed stays malformed: the walker comes afterwards. Pure functions; any thread. */
#pragma once

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct budget;
struct buffer;

/* LAYOUT_1_9, LAYOUT_1_8 or LAYOUT_1_7. A new buffer, or NULL when budget or allocator refuse. */
struct buffer *profile_transcode(enum profile_layout from, struct slice request,
                                 struct budget *budget) __attribute__((warn_unused_result));
/* From 1.10 to 1.9. The request is normalized (profile_normalize): it has no references, which 1.9
 * does not know. NULL when budget or allocator refuse. */
struct buffer *profile_transcode_back(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
