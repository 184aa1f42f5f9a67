/* SPDX-License-Identifier: Apache-2.0 */
/* Reads forms. Delimiters count at the start of a line only; line ends are CRLF, or LF as Go
 * accepts it. Pure functions; any thread. */
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

/* The value of a parameter, "; name=value", without its quotes. False: there is none. */
static bool find_parameter(struct slice header, const char *name, struct slice *ret_value)
{
    for (;;) {
        const uint8_t *semicolon = header.size > 0 ? memchr(header.data, ';', header.size) : NULL;
        if (semicolon == NULL)
            return false;
        struct slice text = trim(skip(header, (size_t)(semicolon - header.data) + 1));
        const uint8_t *equals = text.size > 0 ? memchr(text.data, '=', text.size) : NULL;
        if (equals == NULL)
            return false;
        struct slice found = trim(slice_of(text.data, (size_t)(equals - text.data)));
        struct slice value = trim(skip(text, (size_t)(equals - text.data) + 1));
        bool is_quoted = value.size > 0 && value.data[0] == '"';
        if (is_quoted)
            value = skip(value, 1);
        size_t size = 0;
        while (size < value.size && value.data[size] != (is_quoted ? '"' : ';'))
            size++;
        header = skip(value, size);
        value.size = size;
        if (found.size == strlen(name) && begins_with(found, name)) {
            *ret_value = is_quoted ? value : trim(value);
            return true;
        }
    }
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
    bool is_valid = find_parameter(content_type, "boundary", &boundary) && boundary.size > 0 &&
                    boundary.size <= MULTIPART_BOUNDARY_MAX;
    for (size_t i = 0; is_valid && i < boundary.size; i++) /* it is kept as a C string */
        is_valid = boundary.data[i] >= ' ' && boundary.data[i] <= '~';
    if (!is_valid)
        form.failure = "malformed multipart content type header: expected a boundary of 1 to 70 "
                       "characters";
    else
        memcpy(form.delimiter + 3, boundary.data, boundary.size);
    return form;
}

/* The offset of the next delimiter at the start of a line; rest.size: there is none. *ret_content
 * is the size of what precedes it, without the line end that belongs to the delimiter. */
static size_t find_delimiter(const struct multipart *form, size_t *ret_content)
{
    struct slice rest = form->rest;
    size_t size = strlen(form->delimiter);
    assert(size > 3);
    *ret_content = 0;
    if (rest.size >= size - 1 && memcmp(rest.data, form->delimiter + 1, size - 1) == 0)
        return 0;
    /* Searched with the line end: a body of hyphens is full of boundaries such as "-". */
    const uint8_t *hit = memmem(rest.data, rest.size, form->delimiter, size);
    if (hit == NULL)
        return rest.size;
    size_t content = (size_t)(hit - rest.data);
    *ret_content = content > 0 && rest.data[content - 1] == '\r' ? content - 1 : content;
    return (size_t)(hit - rest.data) + 1;
}

static bool fail(struct multipart *form, const char *what)
{
    form->failure = what;
    return false;
}

bool multipart_next(struct multipart *form, struct multipart_part *ret_part)
{
    size_t content = 0;
    if (form->failure != NULL || form->has_ended)
        return false;
    if (!form->has_begun) {
        size_t at = find_delimiter(form, &content);
        if (at == form->rest.size)
            return fail(form, "multipart: NextPart: EOF: the body does not contain the boundary");
        form->rest = skip(form->rest, at);
        form->has_begun = true;
    }

    struct slice rest = skip(form->rest, strlen(form->delimiter) - 1);
    form->has_ended = rest.size >= 2 && rest.data[0] == '-' && rest.data[1] == '-';
    if (form->has_ended)
        return false;
    while (rest.size > 0 && (rest.data[0] == ' ' || rest.data[0] == '\t'))
        rest = skip(rest, 1);
    if (rest.size > 0 && rest.data[0] == '\r')
        rest = skip(rest, 1);
    if (rest.size == 0 || rest.data[0] != '\n')
        return fail(form, "multipart: expected a line end after the boundary");
    rest = skip(rest, 1);
    if (++form->parts > UPLOAD_PARTS_MAX)
        return fail(form, "multipart: more than 32 parts");

    /* Headers up to an empty line; only the name of the field matters. */
    const uint8_t *headers = rest.data;
    ret_part->name = slice_of(NULL, 0);
    for (;;) {
        const uint8_t *end = rest.size > 0 ? memchr(rest.data, '\n', rest.size) : NULL;
        if (end == NULL || end - headers > UPLOAD_PART_HEADER_MAX)
            return fail(form,
                        "multipart: a part's headers are truncated, or larger than 4096 bytes");
        struct slice line = trim(slice_of(rest.data, (size_t)(end - rest.data)));
        rest = skip(rest, (size_t)(end - rest.data) + 1);
        if (line.size == 0)
            break;
        if (begins_with(line, "content-disposition:"))
            find_parameter(line, "name", &ret_part->name);
    }

    form->rest = rest;
    size_t at = find_delimiter(form, &content);
    if (at == form->rest.size)
        return fail(form, "multipart: unexpected EOF: the closing boundary is missing");
    ret_part->content = slice_of(form->rest.data, content);
    form->rest = skip(form->rest, at);
    return true;
}
