/* SPDX-License-Identifier: Apache-2.0 */
/* A mistake in a statement: where and what. Plain value. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/ottl/ottl_limits.h"

struct error;

struct ottl_problem {
    uint32_t at; /* byte of the statement's text */
    char text[OTTL_ERROR_BYTES_MAX];
};

/* Return false. */
bool ottl_problem_set(struct ottl_problem *problem, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `line 2, column 5: …` of the text, a line only if it has several. */
bool ottl_problem_to_error(const struct ottl_problem *problem, struct slice text,
                           struct error *error);
