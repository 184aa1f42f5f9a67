/* SPDX-License-Identifier: Apache-2.0 */
/* Converts requests of older layouts to that of OTLP 1.10, and from there to 1.9. Accepts any
 * bytes: what is malformed comes out malformed or left out, and otlp_check comes afterwards. Pure
 * functions; any thread. */
#pragma once

#include "src/base/slice.h"
#include "src/profiles/otlp/profile_layout.h"

struct budget;
struct buffer;

/* From LAYOUT_1_9, LAYOUT_1_8 or LAYOUT_1_7. A new buffer; NULL when budget or allocator refuse. */
struct buffer *profile_transcode(enum profile_layout from, struct slice request,
                                 struct budget *budget) __attribute__((warn_unused_result));
/* From 1.10 to 1.9. The request is normalized, so that it has no references, which 1.9 does not
 * know. NULL when budget or allocator refuse. */
struct buffer *profile_transcode_back(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
