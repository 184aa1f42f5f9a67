/* SPDX-License-Identifier: Apache-2.0 */
/* Delimiters are looked for at line starts only; line ends are CRLF, and LF is taken too, as Go
 * does. Pure functions; any thread. */
#include "src/profiles/pyroscope/multipart.h"

#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static const char form_type[] = "multipart/form-data";

static struct slice skip(struct slice text, size_t bytes)
{
    assert(bytes <= text.size);
    return slice_of(text.data + bytes, text.size - bytes);
}

static bool begins_with(struct slice text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && strncasecmp((const char *)text.data, prefix, size) == 0;
}

static struct slice trim(struct slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = skip(text, 1);
    while (text.size > 0 && strchr(" \t\r", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

/* The next parameter behind a ';', its value without quotes. False: there is none. */
static bool next_parameter(struct slice *rest, struct slice *ret_name, struct slice *ret_value)
{
    const uint8_t *semicolon = rest->size > 0 ? memchr(rest->data, ';', rest->size) : NULL;
    if (semicolon == NULL)
        return false;
    struct slice text = trim(skip(*rest, (size_t)(semicolon - rest->data) + 1));
    const uint8_t *equals = text.size > 0 ? memchr(text.data, '=', text.size) : NULL;
    if (equals == NULL)
        return false;
    *ret_name = trim(slice_of(text.data, (size_t)(equals - text.data)));
    struct slice value = trim(skip(text, (size_t)(equals - text.data) + 1));
    bool is_quoted = value.size > 0 && value.data[0] == '"';
    if (is_quoted)
        value = skip(value, 1);
    size_t size = 0;
    while (size < value.size && value.data[size] != (is_quoted ? '"' : ';'))
        size++;
    *rest = skip(value, size);
    *ret_value = is_quoted ? slice_of(value.data, size) : trim(slice_of(value.data, size));
    return true;
}

static bool find_parameter(struct slice header, const char *name, struct slice *ret_value)
{
    struct slice found;
    struct slice value;
    assert(name != NULL);
    while (next_parameter(&header, &found, &value))
        if (found.size == strlen(name) && begins_with(found, name)) {
            *ret_value = value;
            return true;
        }
    return false;
}

/* Printable characters only: the boundary is kept as text. */
static bool is_boundary(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return text.size > 0 && text.size <= MULTIPART_BOUNDARY_MAX;
}

bool multipart_is_form(struct slice content_type)
{
    size_t size = sizeof(form_type) - 1;
    return begins_with(content_type, form_type) &&
           (content_type.size == size || strchr("; \t", content_type.data[size]) != NULL);
}

struct multipart multipart_of(struct slice content_type, struct slice body)
{
    struct multipart form = {.rest = body, .delimiter = "\n--"};
    struct slice boundary = {.size = 0};
    if (!find_parameter(content_type, "boundary", &boundary) || !is_boundary(boundary))
        form.failure = "malformed multipart content type header: expected a boundary of 1 to 70 "
                       "characters";
    else
        memcpy(form.delimiter + 3, boundary.data, boundary.size);
    return form;
}

/* Where the next delimiter begins at the start of a line; rest.size: nowhere. *ret_content is how
 * much lies before it, without the line end that belongs to it. */
static size_t find_delimiter(const struct multipart *form, size_t *ret_content)
{
    struct slice rest = form->rest;
    size_t size = strlen(form->delimiter);
    assert(size > 3);
    *ret_content = 0;
    if (rest.size >= size - 1 && memcmp(rest.data, form->delimiter + 1, size - 1) == 0)
        return 0;
    /* With the line end before it: a body of hyphens is full of boundaries such as "-". */
    const uint8_t *hit = memmem(rest.data, rest.size, form->delimiter, size);
    if (hit == NULL)
        return rest.size;
    size_t content = (size_t)(hit - rest.data);
    *ret_content = content > 0 && rest.data[content - 1] == '\r' ? content - 1 : content;
    return (size_t)(hit - rest.data) + 1;
}

static bool fail(struct multipart *form, const char *what)
{
    assert(what != NULL);
    form->failure = what;
    return false;
}

/* Past a delimiter and the end of its line. False: it was the closing one, or broken. */
static bool pass_delimiter(struct multipart *form)
{
    struct slice rest = skip(form->rest, strlen(form->delimiter) - 1);
    form->has_ended = rest.size >= 2 && rest.data[0] == '-' && rest.data[1] == '-';
    if (form->has_ended)
        return false;
    while (rest.size > 0 && (rest.data[0] == ' ' || rest.data[0] == '\t'))
        rest = skip(rest, 1);
    if (rest.size > 0 && rest.data[0] == '\r')
        rest = skip(rest, 1);
    if (rest.size == 0 || rest.data[0] != '\n')
        return fail(form, "multipart: expected a line end behind the boundary");
    form->rest = skip(rest, 1);
    return true;
}

/* Headers up to an empty line; only the field's name matters. */
static bool read_headers(struct multipart *form, struct slice *ret_name)
{
    static const char disposition[] = "content-disposition:";
    struct slice rest = form->rest;
    *ret_name = slice_of(NULL, 0);
    for (;;) {
        size_t used = (size_t)(rest.data - form->rest.data);
        const uint8_t *end = rest.size > 0 ? memchr(rest.data, '\n', rest.size) : NULL;
        if (end == NULL || used + (size_t)(end - rest.data) > UPLOAD_PART_HEADER_MAX)
            return fail(form, "multipart: a part's headers are torn, or larger than 4096 bytes");
        struct slice line = trim(slice_of(rest.data, (size_t)(end - rest.data)));
        rest = skip(rest, (size_t)(end - rest.data) + 1);
        if (line.size == 0)
            break;
        if (begins_with(line, disposition))
            find_parameter(line, "name", ret_name);
    }
    form->rest = rest;
    return true;
}

bool multipart_next(struct multipart *form, struct multipart_part *ret_part)
{
    size_t content = 0;
    assert(ret_part != NULL);
    if (form->failure != NULL || form->has_ended)
        return false;
    if (!form->has_begun) {
        size_t at = find_delimiter(form, &content);
        if (at == form->rest.size)
            return fail(form, "multipart: NextPart: EOF: the boundary is nowhere in the body");
        form->rest = skip(form->rest, at);
        form->has_begun = true;
    }
    if (!pass_delimiter(form))
        return false;
    if (++form->parts > UPLOAD_PARTS_MAX)
        return fail(form, "multipart: more than 32 parts");
    if (!read_headers(form, &ret_part->name))
        return false;
    size_t at = find_delimiter(form, &content);
    if (at == form->rest.size)
        return fail(form, "multipart: unexpected EOF: the closing boundary is missing");
    ret_part->content = slice_of(form->rest.data, content);
    form->rest = skip(form->rest, at);
    return true;
}
