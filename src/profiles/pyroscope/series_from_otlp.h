/* SPDX-License-Identifier: Apache-2.0 */
/* What series_to_otlp kept of a series beside the resource: its labels that begin with "__". Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pyroscope/series.h"

struct profile_dictionary;

/* reader is over the Profile's attributes. False: there are no more. */
bool series_next_private(const struct profile_dictionary *dictionary,
                         struct profile_indices_reader *reader, struct series_label *ret_label);
/* The value of the label __name__; no data: the Profile did not come as a series. */
struct slice series_private_name(const struct profile_dictionary *dictionary,
                                 const struct profile *profile);
