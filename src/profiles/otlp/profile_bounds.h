/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of profiles. Sizes in bytes, times in nanoseconds. */
#pragma once

#include "src/base/limits.h"

/* Memory of dictionary indexes; the largest merged request, as much as OTLP servers accept. */
#define PROFILE_INDEX_BYTES_MAX   (512 * MIB)
#define PROFILE_MERGED_BYTES_MAX  (64 * MIB)
#define PROFILE_REQUEST_BYTES_MAX (1024 * MIB) /* twice that still fits 32-bit offsets */
/* Samples that are larger than a limit by themselves, as what they refer to is: those of a request,
 * each with its copy of that, take at most PROFILE_OVERSIZE_GROWTH_MAX times its bytes and
 * PROFILE_OVERSIZE_BYTES_MORE. What is left of the request then stays together. */
#define PROFILE_OVERSIZE_GROWTH_MAX 8
#define PROFILE_OVERSIZE_BYTES_MORE (1 * MIB)
/* Layout 1.7: all stacks of a request, expanded, take at most SPELT_GROWTH_MAX times its bytes and
 * PROFILE_SPELT_BYTES_MORE, so that small requests may share as much as they want. */
#define PROFILE_SPELT_BYTES_MORE  (1 * MIB)
#define PROFILE_SPELT_BYTES_MAX   (256 * MIB)
#define PROFILE_INLINED_BYTES_MAX (64 * MIB)  /* layout 1.10: all strings in place of references */
#define PROFILE_FILE_BYTES_MAX    (512 * MIB) /* of the profile command, and of heap profiles */

/* profile_limits: a name after its replacements; growth of all names of a request. */
enum { PROFILE_NAME_BYTES_MAX = 4096 };
#define PROFILE_NAMES_GROWTH_MAX (64 * MIB)
