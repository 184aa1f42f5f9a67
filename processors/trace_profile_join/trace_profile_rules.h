/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of keep in words: as a configuration lists them, and as JSON, which the control of
 * trace_profile_join reads and writes. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/join/keep_rules.h"

struct config_value;
struct error;

/* A list of slow: <duration>, error, sampled; NULL: none. keeps_unlinked stays as it is. False:
 * *rules are as they were. */
bool keep_rules_from_config(const struct config_value *list, struct keep_rules *rules,
                            struct error *error);

/* {"keep": [{"slow": "1s"}, "error"], "keep_unlinked": true} */
enum { KEEP_JSON_BYTES = 192 };
struct keep_json {
    char text[KEEP_JSON_BYTES];
};
struct keep_json keep_rules_to_json(const struct keep_rules *rules);
/* The same form, read strictly; rules that it does not name are off, and without keep_unlinked that
 * stays as it is. False: *rules are as they were. */
bool keep_rules_from_json(struct slice json, struct keep_rules *rules, struct error *error);
