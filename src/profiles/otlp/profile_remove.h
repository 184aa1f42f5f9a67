/* SPDX-License-Identifier: Apache-2.0 */
/* Taking chosen profiles out of requests: files that are passed on as they came (opaque_profile.h),
 * which OTLP back-ends do not know, and what an exporter sends otherwise. Requests have layout 1.10
 * and are normalized (profile_normalize). Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;
struct profile;

typedef bool (*profile_choice)(const struct profile *profile);

/* Whether some profile is chosen, and how many items the chosen ones have. */
bool profile_choice_has(struct slice request, profile_choice choice);
uint64_t profile_choice_items(struct slice request, profile_choice choice);
/* The rest of a request that has some, without bytes when they are all there is; NULL: no memory to
 * read its index, or no room in the budget to write it. */
struct buffer *profile_remove(struct slice request, profile_choice choice, struct budget *budget)
    __attribute__((warn_unused_result));
/* The same for uploads, each of which is one item. */
uint64_t opaque_profiles_count(struct slice request);
struct buffer *opaque_profiles_remove(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
