/* SPDX-License-Identifier: Apache-2.0 */
/* Globs, as replace_match takes them (the Go package gobwas/glob without separators): * and ** are
 * any text, ? any character, [abc] [!abc] [a-c] [!a-c] one character, {a,b} alternatives, \ takes
 * the next character as it is. A glob matches the whole text, in linear time. */
#pragma once

#include "src/base/slice.h"

struct error;
struct pattern;

/* The glob as the text of a pattern, which the caller frees with mem_free. NULL: it is not valid;
 * error has the reason. */
char *glob_expression(struct slice text, struct error *error);
/* The glob as a pattern. NULL: it is not valid; error has the reason. */
struct pattern *glob_compile(struct slice text, struct error *error);
