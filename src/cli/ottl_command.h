/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame ottl`: runs statements or conditions of OTTL over a file of OTLP/JSON, to try them.
 * Main thread. */
#pragma once

#include <stdio.h>

/* The status of the process. */
enum ottl_command_result {
    OTTL_COMMAND_RAN = 0,
    OTTL_COMMAND_FAILED_SOME = 1, /* statements failed, which is printed to problems */
    OTTL_COMMAND_WRONG = 2        /* a mistake in the arguments, a statement or the file */
};

/* The arguments behind "ottl". Prints what the file has before and after to out. */
enum ottl_command_result ottl_command(const char *program, int count, char **arguments, FILE *out,
                                      FILE *problems);
