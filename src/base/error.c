/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for humans. Any thread. */
#include "src/base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->steps_count = 0;
    error->is_unsupported = false;
    return false;
}

bool error_prefix(struct error *error, const char *format, ...)
{
    char old[ERROR_TEXT_MAX];
    va_list arguments;
    memcpy(old, error->text, sizeof(old));
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    if (length >= 0 && length < ERROR_TEXT_MAX)
        snprintf(error->text + length, sizeof(error->text) - (size_t)length, ": %.*s",
                 ERROR_TEXT_MAX - 3 - length > 0 ? ERROR_TEXT_MAX - 3 - length : 0, old);
    return false;
}

static bool add_step(struct error *error, struct error_step step)
{
    assert(error->steps_count < ERROR_STEPS_MAX);
    error->steps[error->steps_count++] = step;
    return false;
}

bool error_at(struct error *error, const char *key)
{
    return add_step(error, (struct error_step){.key = key});
}

bool error_at_index(struct error *error, size_t index)
{
    return add_step(error, (struct error_step){.index = index});
}

bool error_unsupported(struct error *error)
{
    error->is_unsupported = true;
    return false;
}
