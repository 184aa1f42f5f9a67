/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts profile and profilesample. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

struct ottl_record;

extern const struct ottl_context_type ottl_profile_type;
extern const struct ottl_context_type ottl_profile_sample_type;

/* The attribute of a profile that is open, by a key that the configuration has: of equal keys the
 * last, in the run's memory. What is read for it is not counted. False: no memory; the run's error
 * is set. */
bool ottl_profile_attribute(struct ottl_run *run, const struct ottl_record *profile,
                            struct slice key, bool *ret_exists, struct ottl_value *ret);
