/* SPDX-License-Identifier: Apache-2.0 */
/* Columns count characters, from 1. Pure functions. */
#include "src/ottl/ottl_problem.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/error.h"

bool ottl_problem_set(struct ottl_problem *problem, uint32_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, sizeof(problem->text), format, args);
    va_end(args);
    problem->at = at;
    return false;
}

bool ottl_problem_to_error(const struct ottl_problem *problem, struct slice text,
                           struct error *error)
{
    unsigned line = 1;
    unsigned column = 1;
    assert(problem->at <= text.size);
    for (uint32_t i = 0; i < problem->at; i++) {
        if (text.data[i] == '\n') {
            line++;
            column = 1;
        } else if ((text.data[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    if (text.size > 0 && memchr(text.data, '\n', text.size - 1) != NULL)
        return error_set(error, "line %u, column %u of the text: %s", line, column, problem->text);
    return error_set(error, "column %u: %s", column, problem->text);
}
