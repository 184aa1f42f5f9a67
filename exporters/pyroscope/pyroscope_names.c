/* SPDX-License-Identifier: Apache-2.0 */
/* Names of profiles at a Pyroscope server's OTLP endpoint. Pure functions; any thread. */
#include "exporters/pyroscope/pyroscope_names.h"

#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_view.h"

bool pyroscope_has_no_otlp_name(const struct profile *profile)
{
    /* String 0 is "". */
    return profile_is_opaque(profile) || profile->period == 0 ||
           profile->period_type.type.number == 0;
}
