/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts profile and profilesample. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

extern const struct ottl_context_type ottl_profile_type;
extern const struct ottl_context_type ottl_profile_sample_type;
