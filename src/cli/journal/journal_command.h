/* SPDX-License-Identifier: Apache-2.0 */
/* `spanflame journal …`. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct journal_arguments;
struct journal_folders;

/* The exit status. */
enum journal_result { JOURNAL_FINE, JOURNAL_DAMAGED, JOURNAL_UNREADABLE };

/* arguments are those after "journal". Results go to out, problems to problems. */
int journal_command(const char *program, int count, char **arguments, FILE *out, FILE *problems);

/* The verbs. */
enum journal_result journal_list(const struct journal_arguments *arguments,
                                 const struct journal_folders *folders, FILE *out, FILE *problems);
enum journal_result journal_verify(const struct journal_arguments *arguments,
                                   const struct journal_folders *folders, FILE *out,
                                   FILE *problems);
enum journal_result journal_export(const struct journal_arguments *arguments,
                                   const struct journal_folders *folders, FILE *out,
                                   FILE *problems);

/* "Error: …". Returns JOURNAL_UNREADABLE. */
enum journal_result journal_problem(FILE *problems, const struct error *error);
