/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads, byte by byte to the end of each line, then line by line: the result does not
 * depend on how the bytes were split. One owner, any thread. */
#include "src/net/server/http1_parser.h"

#include "src/base/slice.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <string.h>

enum { METHOD_SIZE_MAX = 32, VERSION_SIZE = 8 };

_Static_assert(HTTP_HEADER_BLOCK_BYTES_MAX <= UINT16_MAX, "spans are 16 bit");

static bool refuse(struct http1_parser *parser, unsigned status, const char *reason)
{
    assert(status >= 400);
    parser->status = status;
    parser->reason = reason;
    return false;
}

static struct http1_span span_of(const uint8_t *data, struct slice part)
{
    assert(part.data >= data);
    return (struct http1_span){.at = (uint16_t)(part.data - data), .size = (uint16_t)part.size};
}

/* Cuts text at the first separator; false: there is none. */
static bool cut(struct slice *text, uint8_t separator, struct slice *ret_before)
{
    const uint8_t *found = text->size == 0 ? NULL : memchr(text->data, separator, text->size);
    if (found == NULL)
        return false;
    size_t before = (size_t)(found - text->data);
    *ret_before = slice_of(text->data, before);
    *text = slice_of(found + 1, text->size - before - 1);
    return true;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "http://host/path" leaves "/path"; its host replaces the header's (RFC 9112 §3.2.2).
 * False: the target has another form. */
static bool take_authority(struct http1_parser *parser, const uint8_t *data, struct slice *target)
{
    static const char *const schemes[] = {"http", "https"};
    struct slice rest = *target;
    struct slice scheme;
    if (!cut(&rest, ':', &scheme) ||
        !(slice_equal_nocase(scheme, schemes[0]) || slice_equal_nocase(scheme, schemes[1])) ||
        rest.size < 2 || memcmp(rest.data, "//", 2) != 0)
        return false;
    rest = slice_of(rest.data + 2, rest.size - 2);
    size_t size = 0;
    while (size < rest.size && rest.data[size] != '/' && rest.data[size] != '?')
        size++;
    /* A host, or an address in brackets, and an optional port (RFC 9110 §4.2). No user name. */
    struct slice authority = slice_of(rest.data, size);
    if (size == 0 || !http1_is_all(authority, HTTP1_HOST) || memchr(rest.data, '@', size) != NULL)
        return false;
    const uint8_t *bracket = memchr(rest.data, ']', size);
    if ((rest.data[0] == '[') != (bracket != NULL))
        return false;
    struct slice port = authority;
    struct slice host;
    if (bracket != NULL)
        port = slice_of(bracket + 1, size - (size_t)(bracket + 1 - rest.data));
    if (cut(&port, ':', &host)) {
        /* After a bracket, the port follows at once. */
        if ((bracket != NULL) != (host.size == 0))
            return false;
        for (size_t i = 0; i < port.size; i++)
            if (!is_digit(port.data[i]))
                return false;
    } else if (bracket != NULL && port.size > 0) {
        return false;
    }
    parser->has_authority = true;
    parser->host = span_of(data, authority);
    *target = slice_of(rest.data + size, rest.size - size);
    return true;
}

static bool parse_request_line(struct http1_parser *parser, const uint8_t *data, struct slice line)
{
    assert(parser->has_request_line);
    struct slice method;
    struct slice target;
    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &target))
        return refuse(parser, 400, "malformed request line");
    if (method.size > METHOD_SIZE_MAX || !http1_is_token(method))
        return refuse(parser, 400, "invalid method");
    parser->method = span_of(data, method);
    /* Origin-form, absolute-form, and "*" for OPTIONS (RFC 9112 §3.2); other forms are for proxies.
     */
    assert(parser->method.size > 0);
    if (target.size == 0 || !http1_is_all(target, HTTP1_TARGET))
        return refuse(parser, 400, "invalid request target");
    bool is_options = parser->method.size == 7 && memcmp(data, "OPTIONS", 7) == 0;
    bool is_star = target.size == 1 && target.data[0] == '*';
    if (target.data[0] != '/' && !(is_star && is_options) && !take_authority(parser, data, &target))
        return refuse(parser, 400, "request target is neither a path nor an http URI");
    struct slice path = target;
    struct slice query = target;
    if (cut(&query, '?', &path))
        parser->query = span_of(data, query);
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '%' && (path.size - i < 3 || http1_hex_digit(path.data[i + 1]) < 0 ||
                                    http1_hex_digit(path.data[i + 2]) < 0))
            return refuse(parser, 400, "invalid escape in request target");
    parser->path = span_of(data, path);
    const uint8_t *text = line.data;
    if (line.size != VERSION_SIZE || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) ||
        text[6] != '.' || !is_digit(text[7]))
        return refuse(parser, 400, "malformed HTTP version");
    if (text[5] != '1' || text[7] > '1')
        return refuse(parser, 505, "unsupported HTTP version");
    parser->version_minor = (unsigned)(text[7] - '0');
    return true;
}

/* White space before the colon and folded lines are refused: they are not tokens. */
static bool parse_header(struct http1_parser *parser, const uint8_t *data, struct slice line)
{
    assert(parser->header_count <= HTTP_HEADERS_MAX);
    struct slice name;
    struct slice value = line;
    if (!cut(&value, ':', &name))
        return refuse(parser, 400, "header line without colon");
    if (!http1_is_token(name))
        return refuse(parser, 400, "invalid header name");
    value = http1_trim(value);
    assert(http1_is_all(value, HTTP1_VALUE));
    if (parser->header_count == HTTP_HEADERS_MAX)
        return refuse(parser, 431, "too many header lines");
    parser->headers[parser->header_count++] = (struct http1_header){
        .name = span_of(data, name),
        .value = value.size == 0 ? (struct http1_span){.at = 0} : span_of(data, value),
    };
    /* The headers of the protocol; all others are the handler's. */
    if (slice_equal_nocase(name, "content-length")) {
        /* 1*DIGIT up to 2^63-1 (RFC 9110 §8.6); one header, one value. */
        if (parser->has_content_length)
            return refuse(parser, 400, "more than one Content-Length");
        if (value.size == 0 || value.size > 19)
            return refuse(parser, 400, "invalid Content-Length");
        uint64_t length = 0;
        for (size_t i = 0; i < value.size; i++) {
            if (!is_digit(value.data[i]))
                return refuse(parser, 400, "invalid Content-Length");
            length = length * 10 + (uint64_t)(value.data[i] - '0');
        }
        if (length > INT64_MAX)
            return refuse(parser, 400, "invalid Content-Length");
        parser->has_content_length = true;
        parser->content_length = length;
        return true;
    }
    if (slice_equal_nocase(name, "transfer-encoding")) {
        if (parser->is_chunked)
            return refuse(parser, 400, "more than one Transfer-Encoding");
        if (value.size == 0)
            return refuse(parser, 400, "invalid Transfer-Encoding");
        if (!slice_equal_nocase(value, "chunked"))
            return refuse(parser, 501, "unsupported transfer encoding");
        parser->is_chunked = true;
        return true;
    }
    if (slice_equal_nocase(name, "host")) {
        if (parser->has_host)
            return refuse(parser, 400, "more than one Host");
        if (!http1_is_all(value, HTTP1_HOST))
            return refuse(parser, 400, "invalid Host");
        parser->has_host = true;
        if (!parser->has_authority)
            parser->host = span_of(data, value);
        return true;
    }
    if (slice_equal_nocase(name, "connection")) {
        bool is_last = false;
        while (!is_last) {
            struct slice option = value;
            is_last = !cut(&value, ',', &option);
            option = http1_trim(option);
            parser->wants_close |= slice_equal_nocase(option, "close");
            parser->wants_keep_alive |= slice_equal_nocase(option, "keep-alive");
        }
        return true;
    }
    if (slice_equal_nocase(name, "expect")) {
        if (!slice_equal_nocase(value, "100-continue"))
            return refuse(parser, 417, "unknown expectation");
        parser->expects_continue = true;
        return true;
    }
    return true;
}

void http1_parser_init(struct http1_parser *parser)
{
    /* The header table is written before it is read. */
    memset(parser, 0, offsetof(struct http1_parser, headers));
}

enum http1_result http1_parser_feed(struct http1_parser *parser, const uint8_t *data, size_t size)
{
    assert(data != NULL || size == 0);
    assert(parser->status == 0);
    assert(size >= parser->position);
    while (parser->position < size) {
        uint8_t byte = data[parser->position];
        bool is_sound = true;
        if (parser->position == HTTP_HEADER_BLOCK_BYTES_MAX ||
            parser->position - parser->line_at == HTTP_HEADER_BYTES_MAX) {
            refuse(parser, 431, "request head too large");
            return HTTP1_REFUSED;
        }
        parser->position++;
        /* Refuses a CR without LF, and other control characters. */
        if (parser->has_cr != (byte == '\n'))
            is_sound = refuse(parser, 400, "line does not end in CR LF");
        else if (byte == '\r')
            parser->has_cr = true;
        else if (byte != '\n' && !http1_is(byte, HTTP1_VALUE))
            is_sound = refuse(parser, 400, "control character in request head");
        if (!is_sound)
            return HTTP1_REFUSED;
        if (byte != '\n')
            continue;
        /* A line is complete; its CR and LF are not part of it. */
        assert(parser->position >= parser->line_at + 2);
        struct slice line =
            slice_of(data + parser->line_at, parser->position - parser->line_at - 2);
        parser->line_at = parser->position;
        parser->has_cr = false;
        if (!parser->has_request_line) {
            parser->has_request_line = true;
            is_sound = parse_request_line(parser, data, line);
        } else if (line.size > 0) {
            is_sound = parse_header(parser, data, line);
        } else {
            /* The checks of the whole head (RFC 9112 §3.2, §6.1). */
            bool is_1_0 = parser->version_minor == 0;
            if (!parser->has_host && !is_1_0)
                is_sound = refuse(parser, 400, "missing Host");
            else if (parser->is_chunked && parser->has_content_length)
                is_sound = refuse(parser, 400, "both Content-Length and Transfer-Encoding");
            else if (parser->is_chunked && is_1_0)
                is_sound = refuse(parser, 400, "Transfer-Encoding in HTTP/1.0");
            if (is_1_0)
                parser->expects_continue = false;
            return is_sound ? HTTP1_COMPLETE : HTTP1_REFUSED;
        }
        if (!is_sound)
            return HTTP1_REFUSED;
    }
    return HTTP1_MORE;
}
