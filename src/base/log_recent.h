/* SPDX-License-Identifier: Apache-2.0 */
/* The latest warnings and errors of the log, for the status page: a ring of a few lines, each cut
 * at its limit. Written by the log; any thread. */
#pragma once

#include <stddef.h>

enum { LOG_RECENT_LINES = 32, LOG_RECENT_LINE_BYTES_MAX = 512 };

/* Copies a line, without its newline; the oldest is dropped. */
void log_recent_note(const char *line, size_t size);
/* Calls print for every line, the newest first. print must not log. */
void log_recent_visit(void (*print)(const char *line, void *arg), void *arg);
