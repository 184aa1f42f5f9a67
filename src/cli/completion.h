/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for shells, written from the tables of commands and flags. Main thread. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;

/* shell: "bash", "zsh" or "fish". False: the error says that it is another one, or NULL. */
bool completion_print(const char *shell, FILE *out, struct error *error);
