/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame traces` and `spanflame flame`: what the explore page of a running daemon shows, as
 * tables or as the JSON of its HTTP API. Main thread. */
#pragma once

#include <stdio.h>

/* arguments are those after the command. Return the exit code: 0, or 1 after a line to problems. */
int traces_command(const char *program, int count, char **arguments, FILE *out, FILE *problems);
int flame_command(const char *program, int count, char **arguments, FILE *out, FILE *problems);
