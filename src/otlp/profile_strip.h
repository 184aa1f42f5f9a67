/* SPDX-License-Identifier: Apache-2.0 */
/* Taking files that are passed on as they came (profile_upload.h) out of requests to back-ends that
 * know OTLP only. Requests have layout 1.10 and have passed profile_door. Pure functions; any
 * thread. */
#pragma once

#include <stdint.h>

#include "src/slice.h"

struct budget;
struct buffer;

uint64_t profile_uploads_count(struct slice request);
/* The rest of a request that has some, without bytes when they are all there is; NULL: no memory to
 * read its index. */
struct buffer *profile_strip_uploads(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
