/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of keep as they are in the configuration, and as JSON for the control of
 * trace_profile_join. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/join/keep_rules.h"

struct config_value;
struct error;

/* Reads a list of slow: <duration>, error, sampled; NULL: none. keeps_unlinked stays as it is.
 * False: *rules is unchanged. */
bool keep_rules_from_config(const struct config_value *list, struct keep_rules *rules,
                            struct error *error);

/* {"keep": [{"slow": "1s"}, "error"], "keep_unlinked": true} */
enum { KEEP_JSON_BYTES = 192 };
struct keep_json {
    char text[KEEP_JSON_BYTES];
};
struct keep_json keep_rules_to_json(const struct keep_rules *rules);
/* Reads the same form strictly. Rules that are not in it are off; without keep_unlinked,
 * keeps_unlinked stays as it is. False: *rules is unchanged. */
bool keep_rules_from_json(struct slice json, struct keep_rules *rules, struct error *error);
