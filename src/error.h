/* SPDX-License-Identifier: Apache-2.0 */
/* An error that a human reads: start-up, configuration, tools. Filled by the callee, on failure
 * only. Any thread. */
#pragma once

#include <stdbool.h>

enum { ERROR_TEXT_MAX = 1024 };

struct error {
    char text[ERROR_TEXT_MAX];
};

/* Sets the text (cut at ERROR_TEXT_MAX) and returns false, so that "return error_set(…)" reads
 * well. */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "prefix: " before the text that is there. Returns false. */
bool error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
