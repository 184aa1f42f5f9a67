/* SPDX-License-Identifier: Apache-2.0 */
/* The part sample_type_config of a form: {"TYPE": {"display-name": "…", "units": …}, …}. Pure
 * function; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct error;

/* Sets *ret_name to the display name of type, in json, or to type itself when it has none; escapes
 * in it are not undone. False: that is no such JSON. */
bool sample_type_config_display_name(struct slice json, struct slice type, struct slice *ret_name,
                                     struct error *error);
