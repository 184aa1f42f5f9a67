/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for humans. Any thread. */
#include "src/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *error, const char *format, ...)
{
    va_list arguments;
    assert(error != NULL);
    assert(format != NULL);
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return false;
}

bool error_prefix(struct error *error, const char *format, ...)
{
    char old[ERROR_TEXT_MAX];
    va_list arguments;
    assert(error != NULL);
    memcpy(old, error->text, sizeof(old));
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    if (length >= 0 && length < ERROR_TEXT_MAX)
        snprintf(error->text + length, sizeof(error->text) - (size_t)length, ": %.*s",
                 ERROR_TEXT_MAX - 3 - length > 0 ? ERROR_TEXT_MAX - 3 - length : 0, old);
    return false;
}
