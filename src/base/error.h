/* SPDX-License-Identifier: Apache-2.0 */
/* An error for humans: start-up, configuration, tools. Filled by the callee, on failure only. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { ERROR_TEXT_MAX = 1024, ERROR_STEPS_MAX = 16 };

/* One step down the configuration, towards the value that is wrong. */
struct error_step {
    const char *key; /* NULL: an element of a list, or the entry of a map, at index */
    size_t index;
};

struct error {
    char text[ERROR_TEXT_MAX];
    struct error_step steps[ERROR_STEPS_MAX]; /* the innermost first */
    size_t steps_count;
    bool is_unsupported; /* error_unsupported */
};

/* Sets the text (cut at ERROR_TEXT_MAX), clears the steps, returns false: "return error_set(…)". */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prepends "prefix: " to the text. Returns false. */
bool error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* For rules of configuration sections: the error is about the value of that key, or about the
 * element (entry) at that index, of the checked section. Callers add the step to their own section:
 * "return check(…) || error_at(error, "tls")". The problem is reported at that value's position.
 * The key lives as long as the error. Return false. */
bool error_at(struct error *error, const char *key);
bool error_at_index(struct error *error, size_t index);
/* The Go collector accepts what was found, this build lacks it: with --skip-unsupported the
 * component is left out instead. Returns false: "return error_set(…) || error_unsupported(error)".
 */
bool error_unsupported(struct error *error);
