/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of names. A '}' in place of a key ends it; a value that nothing ends is ignored, as
 * on the server. Pure functions; any thread. */
#include "src/profiles/pyroscope/ingest_name.h"

#include "src/base/error.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { SHOWN_BYTES_MAX = 128 };

static struct slice trim(struct slice text)
{
    while (text.size > 0 && isspace(text.data[0]))
        text = slice_of(text.data + 1, text.size - 1);
    while (text.size > 0 && isspace(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* more: what may stand besides letters, digits, '_' and '.'. */
static bool check_characters(struct slice text, const char *more, const char *what,
                             struct error *error)
{
    assert(more != NULL);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c < 0x80 && isalnum(c)) || c == '_' || c == '.' || (c != 0 && strchr(more, c) != NULL))
            continue;
        int size = (int)(text.size < SHOWN_BYTES_MAX ? text.size : SHOWN_BYTES_MAX);
        return error_set(error, "name: invalid %s: %.*s: character is not allowed: '%c'", what,
                         size, (const char *)text.data, c >= ' ' && c < 0x7f ? c : '?');
    }
    return true;
}

static bool check_app(struct slice app, struct error *error)
{
    if (app.size == 0)
        return error_set(error, "name: service name is required");
    return check_characters(app, "-/", "service name", error);
}

static bool put(struct ingest_name *name, struct slice key, struct slice value, struct error *error)
{
    assert(name != NULL);
    if (slice_equal_text(key, "__name__")) {
        name->app = value;
        return true;
    }
    if (key.size == 0)
        return error_set(error, "name: label name is required");
    if (!check_characters(key, "", "label name", error))
        return false;
    for (size_t i = 0; i < name->labels.count; i++)
        if (slice_equal(name->labels.labels[i].name, key)) {
            name->labels.labels[i].value = value;
            return true;
        }
    return series_add(&name->labels, key, value) ||
           error_set(error, "name: more than %d labels", SERIES_LABELS_MAX);
}

/* Up to any of stops, which is passed; false: none of them comes. */
static bool cut(struct slice *rest, const char *stops, struct slice *ret_text, char *ret_stop)
{
    for (size_t i = 0; i < rest->size; i++) {
        char c = (char)rest->data[i];
        if (c == '\0' || strchr(stops, c) == NULL)
            continue;
        *ret_text = trim(slice_of(rest->data, i));
        *ret_stop = c;
        *rest = slice_of(rest->data + i + 1, rest->size - i - 1);
        return true;
    }
    return false;
}

bool ingest_name_parse(struct slice text, struct ingest_name *ret_name, struct error *error)
{
    struct slice key;
    struct slice value;
    char stop;
    assert(error != NULL);
    ret_name->labels.count = 0;
    if (!cut(&text, "{", &ret_name->app, &stop)) {
        ret_name->app = trim(text);
        return check_app(ret_name->app, error);
    }
    if (!check_app(ret_name->app, error))
        return false;
    while (cut(&text, "=}", &key, &stop) && stop == '=' && cut(&text, ",}", &value, &stop))
        if (!put(ret_name, key, value, error))
            return false;
    return true;
}
