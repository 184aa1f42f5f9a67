/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as JSON documents, for programs. Values are in the profile's units. Main thread of a
 * command. */
#pragma once

#include <stdio.h>

#include "src/cli/profile/profile_table.h"

void profile_json_show(FILE *out, const struct profile_file *file, const struct report *report,
                       struct report_scope scope);
void profile_json_diff(FILE *out, const struct report *before, const struct report *after,
                       struct report_scope scope);
