/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over a Content-Type value. Pure function, any thread. */
#include "src/net/media_type.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { PARAMETERS_MAX = 16 };

static void skip_blanks(struct slice *rest)
{
    assert(rest != NULL);
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
    assert(rest != NULL);
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
    assert(rest != NULL);
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

static bool is_known(const struct slice *names, size_t count, struct slice name)
{
    assert(count <= PARAMETERS_MAX);
    for (size_t i = 0; i < count; i++)
        if (names[i].size == name.size &&
            strncasecmp((const char *)names[i].data, (const char *)name.data, name.size) == 0)
            return true;
    return false;
}

/* "; name=value" until the end; a lone semicolon at the end is fine. */
static bool are_parameters(struct slice rest)
{
    struct slice names[PARAMETERS_MAX];
    for (size_t count = 0; count < PARAMETERS_MAX; count++) {
        skip_blanks(&rest);
        if (rest.size == 0)
            return true;
        if (!skip_char(&rest, ';'))
            return false;
        skip_blanks(&rest);
        if (rest.size == 0)
            return true;
        names[count] = take_token(&rest);
        if (names[count].size == 0 || is_known(names, count, names[count]) ||
            !skip_char(&rest, '=') || !skip_value(&rest))
            return false;
    }
    return false;
}

bool media_type_is(struct slice value, const char *type)
{
    assert(type != NULL);
    size_t size = strlen(type);
    assert(size > 0);
    skip_blanks(&value);
    if (value.size < size || strncasecmp((const char *)value.data, type, size) != 0)
        return false;
    return are_parameters(slice_of(value.data + size, value.size - size));
}
