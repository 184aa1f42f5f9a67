/* SPDX-License-Identifier: Apache-2.0 */
/* Answer heads as text. Any thread. */
#include "src/net/server/http1_response.h"

#include "src/base/mem.h"
#include "src/net/server/http_exchange.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Request Entity Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Entity"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *http1_response_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

bool http1_response_is_bodiless(unsigned status)
{
    return status == 204 || status == 304;
}

static char *room(struct http1_response *text, size_t size)
{
    assert(text->size <= text->capacity);
    if (text->capacity - text->size < size) {
        size_t capacity = text->capacity * 2 + size;
        char *larger = mem_alloc(capacity);
        memcpy(larger, text->text, text->size);
        if (text->text != text->first)
            mem_free(text->text);
        text->text = larger;
        text->capacity = capacity;
    }
    return text->text + text->size;
}

static void append(struct http1_response *text, const char *piece)
{
    assert(piece != NULL);
    size_t size = strlen(piece);
    memcpy(room(text, size), piece, size);
    text->size += size;
}

/* Names are lower case inside; on the wire they look as Go's do: Content-Type. */
static void append_name(struct http1_response *text, const char *name)
{
    size_t size = strlen(name);
    assert(http1_is_token(slice_of(name, size)));
    char *target = room(text, size);
    bool is_start = true;
    for (size_t i = 0; i < size; i++) {
        bool is_lower = name[i] >= 'a' && name[i] <= 'z';
        target[i] = is_start && is_lower ? (char)(name[i] - 'a' + 'A') : name[i];
        is_start = name[i] == '-';
    }
    text->size += size;
}

static void append_value(struct http1_response *text, const char *value)
{
    assert(value != NULL);
    size_t size = strlen(value);
    char *target = room(text, size);
    for (size_t i = 0; i < size; i++)
        target[i] = http1_is((uint8_t)value[i], HTTP1_VALUE) ? value[i] : ' ';
    text->size += size;
}

static void append_header(struct http1_response *text, const char *name, const char *value)
{
    assert(name != NULL);
    append_name(text, name);
    append(text, ": ");
    append_value(text, value);
    append(text, "\r\n");
}

void http1_response_init(struct http1_response *text, const struct http_response *response,
                         const struct http1_response_facts *facts)
{
    assert(facts->date != NULL);
    text->text = text->first;
    text->size = 0;
    text->capacity = sizeof(text->first);
    char line[64];
    snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", response->status,
             http1_response_reason(response->status));
    append(text, line);
    size_t headers_max = sizeof(response->headers) / sizeof(response->headers[0]);
    for (size_t i = 0; i < headers_max && response->headers[i].name != NULL; i++)
        append_header(text, response->headers[i].name, response->headers[i].value);
    for (size_t i = 0; i < response->common.count; i++)
        if (http_response_sends_common(response, i))
            append_header(text, response->common.rows[i].name, response->common.rows[i].value);
    append_header(text, "date", facts->date);
    if (!http1_response_is_bodiless(response->status)) {
        snprintf(line, sizeof(line), "%zu", facts->body_size);
        append_header(text, "content-length", line);
    }
    if (facts->connection != NULL)
        append_header(text, "connection", facts->connection);
    append(text, "\r\n");
}

void http1_response_fini(struct http1_response *text)
{
    assert(text->text != NULL);
    if (text->text != text->first)
        mem_free(text->text);
    text->text = NULL;
}
