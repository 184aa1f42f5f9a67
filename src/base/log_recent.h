/* SPDX-License-Identifier: Apache-2.0 */
/* The latest warnings and errors of the log, for a page that shows them: a ring of a few lines, cut
 * at their bound. The log writes it; any thread. */
#pragma once

#include <stddef.h>

enum { LOG_RECENT_LINES = 32, LOG_RECENT_LINE_BYTES_MAX = 512 };

/* Takes a copy of a line, without its newline; the oldest goes. */
void log_recent_note(const char *line, size_t size);
/* Calls print with every line, the newest first. print must not log. */
void log_recent_visit(void (*print)(const char *line, void *arg), void *arg);
