/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a configuration without what is left out of it. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/error.h"
#include "src/base/slice.h"

struct config;

/* Writes text, from which config was loaded with skips_unsupported, without config->skips and with
 * the names of today for deprecated ones; all the rest, comments included, stays byte for byte.
 * False: the text does not hold a part that has to go, as when it comes from a ${file:…} or a merge
 * key. */
bool config_rewrite(struct slice text, const struct config *config, FILE *out, struct error *error);
