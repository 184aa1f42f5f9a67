/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame migrate`: what of a Go collector's configuration runs here, and a file that does. Main
 * thread. */
#pragma once

#include <stdio.h>

struct config_request;

/* The status of the process. */
enum migrate_result {
    MIGRATE_WHOLE = 0,  /* all of it runs */
    MIGRATE_PARTLY = 1, /* some of it is left out */
    MIGRATE_FAILED = 2  /* it is invalid, nothing of it runs, or it cannot be written */
};

/* file: the configuration's path; NULL: the locations of request, which are shown but not written.
 * request has the factories, settings and gates. Prints a table to out, and errors to problems.
 * output: where the changed file is written; "-": to out, instead of the table; NULL: nowhere. */
enum migrate_result migrate_command(const struct config_request *request, const char *file,
                                    const char *output, FILE *out, FILE *problems);
