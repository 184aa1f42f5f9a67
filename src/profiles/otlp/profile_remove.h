/* SPDX-License-Identifier: Apache-2.0 */
/* Removes chosen profiles from requests: opaque profiles (opaque_profile.h), which OTLP back-ends
 * do not know, and what an exporter sends otherwise. Requests are normalized. Pure functions; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;
struct profile;

typedef bool (*profile_choice)(const struct profile *profile);

/* Whether any profile is chosen; how many items the chosen ones have. */
bool profile_choice_has(struct slice request, profile_choice choice);
uint64_t profile_choice_items(struct slice request, profile_choice choice);
/* The rest of a request that has chosen profiles, without bytes when nothing is left; NULL: no
 * memory for its index, or no room in the budget for the rest. */
struct buffer *profile_remove(struct slice request, profile_choice choice, struct budget *budget)
    __attribute__((warn_unused_result));
/* The same for opaque profiles, each of which is one item. */
uint64_t opaque_profiles_count(struct slice request);
struct buffer *opaque_profiles_remove(struct slice request, struct budget *budget)
    __attribute__((warn_unused_result));
