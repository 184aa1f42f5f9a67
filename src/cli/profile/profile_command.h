/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame profile show|convert|merge|diff`: inspects and converts profile files. Main thread. */
#pragma once

/* arguments are those after "profile". Returns the exit code: 0, or 1 after a line on stderr. */
int profile_command(const char *program, int count, char **arguments);
