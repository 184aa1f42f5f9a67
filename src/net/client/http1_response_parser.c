/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over the lines and the body of a response. Lines end in LF with an optional CR
 * (RFC 9112 §2.2); folded lines, bad names, contradicting lengths and unknown codings are failures.
 * One owner, one thread at a time. */
#include "src/net/client/http1_response_parser.h"

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <string.h>

/* Larger buffers are freed between responses. */
enum { LINE_KEEP_BYTES = 1024, BODY_KEEP_BYTES = 4096 };
_Static_assert((int)BODY_KEEP_BYTES <= (int)RESPONSE_FREE_BYTES, "what is kept is not charged");

static void fail(struct http1_response *response, const char *failure)
{
    assert(response->state != RESPONSE_DONE);
    response->state = RESPONSE_FAILED;
    response->failure = failure;
    response->is_cut = true;
    response->keeps_alive = false;
}

static void done(struct http1_response *response, bool keeps_alive)
{
    assert(response->status != 0);
    response->state = RESPONSE_DONE;
    response->keeps_alive = keeps_alive && !response->is_closing;
}

/* "HTTP/1.1 200 OK"; the reason and the blank before it are optional. */
static void status_line(struct http1_response *response, struct slice line)
{
    assert(response->state == RESPONSE_STATUS_LINE);
    static const char version[] = "HTTP/1.";
    const size_t digits_at = sizeof("HTTP/1.1 ") - 1;
    const uint8_t *text = line.data;
    if (line.size < digits_at + 3 || memcmp(text, version, sizeof(version) - 1) != 0 ||
        (text[7] != '0' && text[7] != '1') || text[8] != ' ') {
        fail(response, "the response does not begin with HTTP/1.0 or HTTP/1.1 and a status");
        return;
    }
    unsigned status = 0;
    for (size_t i = digits_at; i < digits_at + 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return fail(response, "the response's status is not a number of three digits");
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    if (status < 100 || (line.size > digits_at + 3 && text[digits_at + 3] != ' '))
        return fail(response, "the response's status is not a number of three digits");
    if (status == 101)
        return fail(response, "the response switches protocols, which was not requested");
    response->line_status = status;
    response->is_http11 = text[7] == '1';
    response->is_closing = !response->is_http11;
    response->state = RESPONSE_HEADERS;
}

/* Splits a header or trailer at its colon. False: it is malformed, and the parser has failed. */
static bool header_split(struct http1_response *response, struct slice line, struct slice *ret_name,
                         struct slice *ret_value)
{
    assert(line.size > 0);
    const uint8_t *colon = memchr(line.data, ':', line.size);
    size_t size = colon == NULL ? 0 : (size_t)(colon - line.data);
    if (!http1_is_token(slice_of(line.data, size))) {
        fail(response, "a header line has no valid name before its colon");
        return false;
    }
    *ret_name = slice_of(line.data, size);
    *ret_value = http1_trim(slice_of(colon + 1, line.size - size - 1));
    if (!http1_is_all(*ret_value, HTTP1_VALUE)) {
        fail(response, "a header contains control characters");
        return false;
    }
    return true;
}

/* The headers of the protocol, and those that results have; all others are ignored. */
static void take_header(struct http1_response *response, struct slice name, struct slice value)
{
    assert(response->state == RESPONSE_HEADERS);
    if (slice_equal_nocase(name, "content-length")) {
        uint64_t length = 0;
        if (value.size == 0 || value.size > 18)
            return fail(response, "Content-Length is not a number");
        for (size_t i = 0; i < value.size; i++) {
            if (value.data[i] < '0' || value.data[i] > '9')
                return fail(response, "Content-Length is not a number");
            length = length * 10 + (uint64_t)(value.data[i] - '0');
        }
        if (response->has_length && response->left != length)
            return fail(response, "two Content-Length headers contradict each other");
        response->has_length = true;
        response->left = length;
    } else if (slice_equal_nocase(name, "transfer-encoding")) {
        if (!response->is_http11 || response->is_chunked || !slice_equal_nocase(value, "chunked"))
            return fail(
                response,
                "found a Transfer-Encoding other than one \"chunked\" in an HTTP/1.1 response");
        response->is_chunked = true;
    } else if (slice_equal_nocase(name, "connection")) {
        while (value.size > 0) {
            const uint8_t *comma = memchr(value.data, ',', value.size);
            size_t size = comma == NULL ? value.size : (size_t)(comma - value.data);
            size_t taken = comma == NULL ? size : size + 1;
            struct slice option = http1_trim(slice_of(value.data, size));
            value = slice_of(value.data + taken, value.size - taken);
            if (slice_equal_nocase(option, "close"))
                response->is_closing = true;
            else if (!response->is_http11 && slice_equal_nocase(option, "keep-alive"))
                response->is_closing = false;
        }
    } else if (slice_equal_nocase(name, "retry-after")) {
        if (!response->has_retry_after && value.size > 0 &&
            value.size < sizeof(response->retry_after))
            memcpy(response->retry_after, value.data, value.size);
        response->has_retry_after = true;
    } else if (slice_equal_nocase(name, "content-type")) {
        size_t max = sizeof(response->content_type) - 1;
        if (response->content_type[0] == '\0' && value.size > 0)
            memcpy(response->content_type, value.data, value.size < max ? value.size : max);
    } else if (slice_equal_nocase(name, "content-encoding")) {
        size_t max = sizeof(response->content_encoding) - 1;
        if (response->content_encoding[0] == '\0' && value.size > 0)
            memcpy(response->content_encoding, value.data, value.size < max ? value.size : max);
    } else if (slice_equal_nocase(name, "location")) {
        if (response->location != NULL || value.size == 0 || response->line_status / 100 != 3)
            return;
        if (!response_charge_growth(&response->body.charge, 0, value.size + 1))
            return fail(response, "there is no memory for the response's headers");
        response->location = mem_alloc(value.size + 1);
        memcpy(response->location, value.data, value.size);
        response->location[value.size] = '\0';
    } else {
        response_notes_take(&response->notes, name, value);
    }
}

static void header_line(struct http1_response *response, struct slice line)
{
    assert(response->state == RESPONSE_HEADERS);
    struct slice name;
    struct slice value;
    if (line.size == 0) {
        assert(response->status == 0);
        if (response->line_status < 200) {
            /* An interim response (1xx) is ignored: the final one follows. */
            if (response->has_length || response->is_chunked)
                return fail(response, "an interim response (1xx) announces a body");
            response->has_retry_after = false;
            memset(response->retry_after, 0, sizeof(response->retry_after));
            memset(response->content_type, 0, sizeof(response->content_type));
            memset(response->content_encoding, 0, sizeof(response->content_encoding));
            response_notes_begin(&response->notes, response->notes.names);
            response->state = RESPONSE_STATUS_LINE;
            return;
        }
        /* The framing of the body (RFC 9112 §6.3). */
        response->status = response->line_status;
        if (response->status / 100 == 2)
            response->body.sink = response->sink;
        if (response->status == 204 || response->status == 304)
            return done(response, true);
        if (response->is_chunked) {
            /* With both lengths, a proxy may have used the other: do not reuse the connection. */
            response->is_closing |= response->has_length;
            response->state = RESPONSE_CHUNK_SIZE;
        } else if (!response->has_length) {
            response->state = RESPONSE_CLOSE_BODY;
        } else if (response->left > 0) {
            response->state = RESPONSE_LENGTH_BODY;
        } else {
            done(response, true);
        }
        return;
    }
    if (header_split(response, line, &name, &value))
        take_header(response, name, value);
}

/* Takes the line that was gathered, without its end. */
static void take_line(struct http1_response *response)
{
    assert(response->line_size > 0);
    size_t size = response->line_size - 1;
    if (size > 0 && response->line[size - 1] == '\r')
        size--;
    struct slice line = slice_of(response->line, size);
    response->line_size = 0;
    if (response->state == RESPONSE_STATUS_LINE) {
        status_line(response, line);
    } else if (response->state == RESPONSE_HEADERS) {
        header_line(response, line);
    } else if (response->state == RESPONSE_CHUNK_SIZE) {
        assert(response->is_chunked);
        uint64_t length = 0;
        size_t digits = 0;
        for (; digits < line.size && http1_hex_digit(line.data[digits]) >= 0; digits++)
            length = length << 4 | (uint64_t)http1_hex_digit(line.data[digits]);
        struct slice rest = http1_trim(slice_of(line.data + digits, line.size - digits));
        if (digits == 0 || digits > 15 || (rest.size > 0 && rest.data[0] != ';'))
            return fail(response, "a chunk's size is not a hexadecimal number");
        response->left = length;
        response->state = length == 0 ? RESPONSE_TRAILERS : RESPONSE_CHUNK_DATA;
    } else if (response->state == RESPONSE_CHUNK_END) {
        if (line.size > 0)
            fail(response, "a chunk is longer than its size");
        else
            response->state = RESPONSE_CHUNK_SIZE;
    } else {
        assert(response->state == RESPONSE_TRAILERS);
        struct slice name;
        struct slice value;
        if (line.size == 0)
            done(response, true);
        else
            (void)header_split(response, line, &name, &value);
    }
}

/* Returns how many bytes belong to the body or chunk. */
static size_t take_body(struct http1_response *response, const uint8_t *data, size_t size)
{
    assert(size > 0);
    assert(response->status != 0);
    bool has_end = response->state != RESPONSE_CLOSE_BODY;
    size_t taken = has_end && response->left < size ? (size_t)response->left : size;
    bool goes_on = response_body_add(&response->body, slice_of(data, taken), RESPONSE_BYTES_MAX);
    response->is_cut |= response->body.is_cut;
    if (has_end)
        response->left -= taken;
    if (!goes_on)
        done(response, false);
    else if (has_end && response->left == 0 && response->is_chunked)
        response->state = RESPONSE_CHUNK_END;
    else if (has_end && response->left == 0)
        done(response, true);
    return taken;
}

static bool is_over(const struct http1_response *response)
{
    return response->state == RESPONSE_DONE || response->state == RESPONSE_FAILED;
}

void http1_response_init(struct http1_response *response, struct budget *budget)
{
    *response = (struct http1_response){.body.charge.budget = budget};
}

void http1_response_reset(struct http1_response *response)
{
    struct http1_response old = *response;
    mem_free(old.location);
    response->location = NULL;
    response_charge_return(&response->body.charge);
    if (old.line_capacity > LINE_KEEP_BYTES || old.body.capacity > BODY_KEEP_BYTES) {
        http1_response_fini(response);
        return;
    }
    *response = (struct http1_response){.line = old.line,
                                        .line_capacity = old.line_capacity,
                                        .body.data = old.body.data,
                                        .body.capacity = old.body.capacity,
                                        .body.charge.budget = old.body.charge.budget};
}

void http1_response_fini(struct http1_response *response)
{
    mem_free(response->line);
    response_body_fini(&response->body);
    mem_free(response->location);
    http1_response_init(response, response->body.charge.budget);
}

size_t http1_response_feed(struct http1_response *response, const uint8_t *data, size_t size)
{
    assert(data != NULL || size == 0);
    size_t taken = 0;
    while (taken < size && !is_over(response)) {
        if (response->state == RESPONSE_LENGTH_BODY || response->state == RESPONSE_CLOSE_BODY ||
            response->state == RESPONSE_CHUNK_DATA) {
            taken += take_body(response, data + taken, size - taken);
            continue;
        }
        const uint8_t *end = memchr(data + taken, '\n', size - taken);
        size_t step = end == NULL ? size - taken : (size_t)(end + 1 - (data + taken));
        /* Limits lines: head and trailers together, and each line of a chunk's size. */
        assert(response->line_size <= response->line_capacity);
        if (response->state == RESPONSE_CHUNK_SIZE || response->state == RESPONSE_CHUNK_END) {
            response->body.seen += step;
            if (response->line_size + step > HTTP_CHUNK_EXTENSION_BYTES_MAX)
                fail(response, "a chunk's size line is too long");
        } else {
            response->head_bytes += step;
            if (response->head_bytes > RESPONSE_HEADER_BYTES_MAX)
                fail(response, "the response's headers are larger than 64 KiB");
        }
        if (is_over(response))
            break;
        if (response->line_size + step > response->line_capacity) {
            size_t capacity = response->line_capacity == 0 ? 256 : response->line_capacity;
            while (capacity < response->line_size + step)
                capacity *= 2;
            if (!response_charge_growth(&response->body.charge, response->line_capacity,
                                        capacity)) {
                fail(response, "there is no memory for the response's headers");
                break;
            }
            response->line = mem_resize(response->line, capacity);
            response->line_capacity = capacity;
        }
        memcpy(response->line + response->line_size, data + taken, step);
        response->line_size += step;
        taken += step;
        if (end != NULL)
            take_line(response);
    }
    return taken;
}

void http1_response_end(struct http1_response *response)
{
    if (is_over(response))
        return;
    if (response->state == RESPONSE_CLOSE_BODY)
        done(response, false);
    else
        fail(response, "the connection was closed in the middle of the response");
}

struct slice http1_response_body(const struct http1_response *response)
{
    return slice_of(response->body.data, response->body.size);
}
