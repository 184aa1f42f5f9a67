/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over a Content-Type value. Pure function, any thread. */
#include "src/net/syntax/media_type.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { PARAMETERS_MAX = 16 };

static void skip_blanks(struct slice *rest)
{
    while (rest->size > 0 && (rest->data[0] == ' ' || rest->data[0] == '\t'))
        *rest = slice_of(rest->data + 1, rest->size - 1);
}

static bool skip_char(struct slice *rest, char c)
{
    if (rest->size == 0 || rest->data[0] != (uint8_t)c)
        return false;
    *rest = slice_of(rest->data + 1, rest->size - 1);
    return true;
}

static struct slice take_token(struct slice *rest)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] > ' ' && rest->data[size] < 0x7f &&
           strchr("()<>@,;:\\\"/[]?=", rest->data[size]) == NULL)
        size++;
    struct slice token = slice_of(rest->data, size);
    *rest = slice_of(rest->data + size, rest->size - size);
    return token;
}

/* A token, or text in quotes. */
static bool skip_value(struct slice *rest)
{
    if (!skip_char(rest, '"'))
        return take_token(rest).size > 0;
    while (rest->size > 0) {
        if (skip_char(rest, '"'))
            return true;
        if (skip_char(rest, '\\') && rest->size == 0)
            return false;
        *rest = slice_of(rest->data + 1, rest->size - 1);
    }
    return false;
}

struct parameter {
    struct slice name;
    struct slice value; /* as written */
};

bool media_type_is(struct slice value, const char *type)
{
    size_t size = strlen(type);
    assert(size > 0);
    skip_blanks(&value);
    if (value.size < size || strncasecmp((const char *)value.data, type, size) != 0)
        return false;
    /* "; name=value" until the end; a semicolon at the end is fine. */
    struct slice rest = slice_of(value.data + size, value.size - size);
    struct parameter parameters[PARAMETERS_MAX];
    for (size_t count = 0; count < PARAMETERS_MAX; count++) {
        skip_blanks(&rest);
        if (rest.size == 0)
            return true;
        if (!skip_char(&rest, ';'))
            return false;
        skip_blanks(&rest);
        if (rest.size == 0)
            return true;
        struct parameter *new = &parameters[count];
        new->name = take_token(&rest);
        skip_blanks(&rest);
        if (new->name.size == 0 || !skip_char(&rest, '='))
            return false;
        skip_blanks(&rest);
        new->value = rest;
        if (!skip_value(&rest))
            return false;
        new->value.size -= rest.size;
        /* A repeated name must not contradict. */
        for (size_t i = 0; i < count; i++)
            if (parameters[i].name.size == new->name.size &&
                strncasecmp((const char *)parameters[i].name.data, (const char *)new->name.data,
                            new->name.size) == 0 &&
                !slice_equal(parameters[i].value, new->value))
                return false;
    }
    return false;
}
