/* SPDX-License-Identifier: Apache-2.0 */
/* An error that a human reads: start-up, configuration, tools. Filled by the callee, on failure
 * only. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { ERROR_TEXT_MAX = 1024, ERROR_STEPS_MAX = 8 };

/* One step down the configuration, towards the value that is wrong. */
struct error_step {
    const char *key; /* NULL: an element of a list, or the entry of a map, at index */
    size_t index;
};

struct error {
    char text[ERROR_TEXT_MAX];
    struct error_step steps[ERROR_STEPS_MAX]; /* the innermost first */
    size_t steps_count;
};

/* Sets the text (cut at ERROR_TEXT_MAX), forgets the steps, and returns false, so that "return
 * error_set(…)" reads well. */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "prefix: " before the text that is there. Returns false. */
bool error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Rules of configuration sections: the error is about the value of that key, or about the element
 * (entry) at that index, of the section that is checked; callers put the steps to their own section
 * on top: "return check(…) || error_at(error, "tls")". The problem is reported where that value
 * stands. The key lives as long as the error. Return false. */
bool error_at(struct error *error, const char *key);
bool error_at_index(struct error *error, size_t index);
