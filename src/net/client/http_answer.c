/* SPDX-License-Identifier: Apache-2.0 */
/* A line-and-body state machine over the bytes of an answer. Lines end in LF with an optional CR
 * (RFC 9112 §2.2); folded lines, bad names, contradicting lengths and unknown codings are failures.
 * One owner, one thread at a time. */
#include "src/net/client/http_answer.h"

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <string.h>

/* Line buffers above this are given back between answers. */
enum { LINE_KEEP_BYTES = 1024, BODY_KEEP_BYTES = 4096 };

static void fail(struct http_answer *answer, const char *failure)
{
    assert(answer->state != ANSWER_DONE);
    answer->state = ANSWER_FAILED;
    answer->failure = failure;
    answer->is_cut = true;
    answer->keeps_alive = false;
}

static void done(struct http_answer *answer, bool keeps_alive)
{
    assert(answer->status != 0);
    answer->state = ANSWER_DONE;
    answer->keeps_alive = keeps_alive && !answer->is_closing;
}

/* The next element of a comma-separated list, taken off *rest. */
static struct slice next_element(struct slice *rest)
{
    assert(rest != NULL);
    const uint8_t *comma = rest->size == 0 ? NULL : memchr(rest->data, ',', rest->size);
    size_t size = comma == NULL ? rest->size : (size_t)(comma - rest->data);
    struct slice element = slice_of(rest->data, size);
    size_t taken = comma == NULL ? size : size + 1;
    if (taken > 0)
        *rest = slice_of(rest->data + taken, rest->size - taken);
    return http1_trim(element);
}

/* "HTTP/1.1 200 OK"; the reason may be missing, its blank too. */
static void status_line(struct http_answer *answer, struct slice line)
{
    assert(answer->state == ANSWER_STATUS_LINE);
    static const char version[] = "HTTP/1.";
    const size_t digits_at = sizeof("HTTP/1.1 ") - 1;
    const uint8_t *text = line.data;
    if (line.size < digits_at + 3 || memcmp(text, version, sizeof(version) - 1) != 0 ||
        (text[7] != '0' && text[7] != '1') || text[8] != ' ') {
        fail(answer, "the answer does not begin with HTTP/1.0 or HTTP/1.1 and a status");
        return;
    }
    unsigned status = 0;
    for (size_t i = digits_at; i < digits_at + 3; i++) {
        if (text[i] < '0' || text[i] > '9')
            return fail(answer, "the answer's status is not a number of three digits");
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    if (status < 100 || (line.size > digits_at + 3 && text[digits_at + 3] != ' '))
        return fail(answer, "the answer's status is not a number of three digits");
    if (status == 101)
        return fail(answer, "the answer switches protocols, which nobody asked for");
    answer->line_status = status;
    answer->is_http11 = text[7] == '1';
    answer->is_closing = !answer->is_http11;
    answer->state = ANSWER_HEADERS;
}

static void content_length_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    uint64_t length = 0;
    if (value.size == 0 || value.size > 18)
        return fail(answer, "Content-Length is not a number");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return fail(answer, "Content-Length is not a number");
        length = length * 10 + (uint64_t)(value.data[i] - '0');
    }
    if (answer->has_length && answer->left != length)
        return fail(answer, "two Content-Length headers contradict each other");
    answer->has_length = true;
    answer->left = length;
}

static void transfer_encoding_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    if (!answer->is_http11 || answer->is_chunked || !http1_is_text(value, "chunked"))
        return fail(answer, "Transfer-Encoding is not one \"chunked\" in an HTTP/1.1 answer");
    answer->is_chunked = true;
}

static void connection_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    while (value.size > 0) {
        struct slice option = next_element(&value);
        if (http1_is_text(option, "close"))
            answer->is_closing = true;
        else if (!answer->is_http11 && http1_is_text(option, "keep-alive"))
            answer->is_closing = false;
    }
}

static void retry_after_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    if (answer->has_retry_after)
        return;
    answer->has_retry_after = true;
    if (value.size < sizeof(answer->retry_after) && value.size > 0)
        memcpy(answer->retry_after, value.data, value.size);
}

static void content_type_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    if (answer->content_type[0] != '\0' || value.size == 0)
        return;
    size_t size =
        value.size < sizeof(answer->content_type) ? value.size : sizeof(answer->content_type) - 1;
    memcpy(answer->content_type, value.data, size);
}

static void location_header(struct http_answer *answer, struct slice value)
{
    assert(answer->state == ANSWER_HEADERS);
    if (answer->location != NULL || value.size == 0 || answer->line_status / 100 != 3)
        return;
    answer->location = mem_alloc(value.size + 1);
    memcpy(answer->location, value.data, value.size);
    answer->location[value.size] = '\0';
}

static const struct {
    const char *name;
    void (*fn)(struct http_answer *answer, struct slice value);
} headers[] = {
    {"content-length", content_length_header}, {"transfer-encoding", transfer_encoding_header},
    {"connection", connection_header},         {"retry-after", retry_after_header},
    {"content-type", content_type_header},     {"location", location_header},
};

/* Splits a header or trailer at its colon; false, and failed, when it is none. */
static bool header_split(struct http_answer *answer, struct slice line, struct slice *ret_name,
                         struct slice *ret_value)
{
    assert(line.size > 0);
    assert(ret_name != NULL && ret_value != NULL);
    const uint8_t *colon = memchr(line.data, ':', line.size);
    size_t size = colon == NULL ? 0 : (size_t)(colon - line.data);
    if (!http1_is_token(slice_of(line.data, size))) {
        fail(answer, "a header line has no proper name before its colon");
        return false;
    }
    *ret_name = slice_of(line.data, size);
    *ret_value = http1_trim(slice_of(colon + 1, line.size - size - 1));
    if (!http1_is_all(*ret_value, HTTP1_VALUE)) {
        fail(answer, "a header holds control characters");
        return false;
    }
    return true;
}

/* An interim answer (1xx) is passed over: the final one follows it. */
static void interim_end(struct http_answer *answer)
{
    assert(answer->line_status >= 100);
    assert(answer->line_status < 200);
    if (answer->has_length || answer->is_chunked)
        return fail(answer, "an interim answer (1xx) announces a body");
    answer->has_retry_after = false;
    answer->retry_after[0] = '\0';
    memset(answer->content_type, 0, sizeof(answer->content_type));
    answer->state = ANSWER_STATUS_LINE;
}

/* Which body follows, RFC 9112 §6.3. */
static void headers_end(struct http_answer *answer)
{
    assert(answer->status == 0);
    if (answer->line_status < 200)
        return interim_end(answer);
    answer->status = answer->line_status;
    if (answer->status == 204 || answer->status == 304)
        return done(answer, true);
    if (answer->is_chunked) {
        /* Both lengths given: somebody on the way may have read the other one. */
        answer->is_closing |= answer->has_length;
        answer->state = ANSWER_CHUNK_SIZE;
    } else if (!answer->has_length) {
        answer->state = ANSWER_CLOSE_BODY;
    } else if (answer->left > 0) {
        answer->state = ANSWER_LENGTH_BODY;
    } else {
        done(answer, true);
    }
}

static void header_line(struct http_answer *answer, struct slice line)
{
    assert(answer->state == ANSWER_HEADERS);
    struct slice name;
    struct slice value;
    if (line.size == 0)
        return headers_end(answer);
    if (!header_split(answer, line, &name, &value))
        return;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (http1_is_text(name, headers[i].name))
            return headers[i].fn(answer, value);
}

static void chunk_size_line(struct http_answer *answer, struct slice line)
{
    assert(answer->is_chunked);
    uint64_t size = 0;
    size_t digits = 0;
    while (digits < line.size && http1_hex_digit(line.data[digits]) >= 0) {
        size = size << 4 | (uint64_t)http1_hex_digit(line.data[digits]);
        digits++;
    }
    struct slice rest = http1_trim(slice_of(line.data + digits, line.size - digits));
    if (digits == 0 || digits > 15 || (rest.size > 0 && rest.data[0] != ';'))
        return fail(answer, "a chunk's size is not a hexadecimal number");
    answer->left = size;
    answer->state = size == 0 ? ANSWER_TRAILERS : ANSWER_CHUNK_DATA;
}

static void trailer_line(struct http_answer *answer, struct slice line)
{
    assert(answer->state == ANSWER_TRAILERS);
    struct slice name;
    struct slice value;
    if (line.size == 0)
        done(answer, true);
    else
        (void)header_split(answer, line, &name, &value);
}

static void chunk_end_line(struct http_answer *answer, struct slice line)
{
    assert(answer->is_chunked);
    if (line.size > 0)
        return fail(answer, "a chunk is longer than its size");
    answer->state = ANSWER_CHUNK_SIZE;
}

static void take_line(struct http_answer *answer)
{
    assert(answer->line_size > 0);
    size_t size = answer->line_size - 1;
    if (size > 0 && answer->line[size - 1] == '\r')
        size--;
    struct slice line = slice_of(answer->line, size);
    answer->line_size = 0;
    if (answer->state == ANSWER_STATUS_LINE)
        status_line(answer, line);
    else if (answer->state == ANSWER_HEADERS)
        header_line(answer, line);
    else if (answer->state == ANSWER_CHUNK_SIZE)
        chunk_size_line(answer, line);
    else if (answer->state == ANSWER_CHUNK_END)
        chunk_end_line(answer, line);
    else
        trailer_line(answer, line);
}

static void line_append(struct http_answer *answer, const uint8_t *data, size_t size)
{
    assert(size > 0);
    if (answer->line_size + size > answer->line_capacity) {
        size_t capacity = answer->line_capacity == 0 ? 256 : answer->line_capacity;
        while (capacity < answer->line_size + size)
            capacity *= 2;
        answer->line = mem_resize(answer->line, capacity);
        answer->line_capacity = capacity;
    }
    memcpy(answer->line + answer->line_size, data, size);
    answer->line_size += size;
}

/* What lines may cost: the head and the trailers together, and each chunk's size alone. */
static bool line_charge(struct http_answer *answer, size_t size)
{
    assert(answer->line_size <= answer->line_capacity);
    if (answer->state == ANSWER_CHUNK_SIZE || answer->state == ANSWER_CHUNK_END) {
        answer->body_seen += size;
        if (answer->line_size + size <= HTTP_CHUNK_EXTENSION_BYTES_MAX)
            return true;
        fail(answer, "a chunk's size line is too long");
        return false;
    }
    answer->head_bytes += size;
    if (answer->head_bytes <= RESPONSE_HEADER_BYTES_MAX)
        return true;
    fail(answer, "the answer's headers are larger than 64 KiB");
    return false;
}

static size_t feed_line(struct http_answer *answer, const uint8_t *data, size_t size)
{
    assert(size > 0);
    const uint8_t *end = memchr(data, '\n', size);
    size_t taken = end == NULL ? size : (size_t)(end - data) + 1;
    if (!line_charge(answer, taken))
        return 0;
    line_append(answer, data, taken);
    if (end != NULL)
        take_line(answer);
    return taken;
}

static bool body_reserve(struct http_answer *answer, size_t size)
{
    assert(answer->body_size <= answer->body_capacity);
    if (answer->body_size + size <= answer->body_capacity)
        return true;
    size_t capacity = answer->body_capacity == 0 ? 512 : answer->body_capacity;
    while (capacity < answer->body_size + size)
        capacity *= 2;
    uint8_t *body = mem_try_alloc(capacity);
    if (body == NULL)
        return false;
    if (answer->body_size > 0)
        memcpy(body, answer->body, answer->body_size);
    mem_free(answer->body);
    answer->body = body;
    answer->body_capacity = capacity;
    return true;
}

/* Keeps what fits. False when so much came that the connection is not worth reading it. */
static bool body_keep(struct http_answer *answer, const uint8_t *data, size_t size)
{
    assert(answer->body_size <= RESPONSE_BYTES_MAX);
    size_t room = RESPONSE_BYTES_MAX - answer->body_size;
    size_t kept = size < room ? size : room;
    if (answer->is_cut || !body_reserve(answer, kept))
        kept = 0;
    if (kept > 0)
        memcpy(answer->body + answer->body_size, data, kept);
    answer->body_size += kept;
    answer->is_cut |= kept < size;
    answer->body_seen += size;
    return answer->body_seen <= RESPONSE_DRAIN_BYTES_MAX;
}

static size_t feed_body(struct http_answer *answer, const uint8_t *data, size_t size)
{
    assert(size > 0);
    assert(answer->status != 0);
    size_t taken = size;
    if (answer->state != ANSWER_CLOSE_BODY && answer->left < taken)
        taken = (size_t)answer->left;
    if (!body_keep(answer, data, taken)) {
        done(answer, false);
        return taken;
    }
    if (answer->state == ANSWER_CLOSE_BODY)
        return taken;
    answer->left -= taken;
    if (answer->left > 0)
        return taken;
    if (answer->state == ANSWER_CHUNK_DATA)
        answer->state = ANSWER_CHUNK_END;
    else
        done(answer, true);
    return taken;
}

static bool is_in_body(const struct http_answer *answer)
{
    return answer->state == ANSWER_LENGTH_BODY || answer->state == ANSWER_CLOSE_BODY ||
           answer->state == ANSWER_CHUNK_DATA;
}

static bool is_over(const struct http_answer *answer)
{
    return answer->state == ANSWER_DONE || answer->state == ANSWER_FAILED;
}

void http_answer_init(struct http_answer *answer)
{
    assert(answer != NULL);
    *answer = (struct http_answer){0};
}

void http_answer_reset(struct http_answer *answer)
{
    assert(answer != NULL);
    struct http_answer old = *answer;
    mem_free(old.location);
    answer->location = NULL;
    if (old.line_capacity > LINE_KEEP_BYTES || old.body_capacity > BODY_KEEP_BYTES) {
        http_answer_fini(answer);
        return;
    }
    *answer = (struct http_answer){.line = old.line,
                                   .line_capacity = old.line_capacity,
                                   .body = old.body,
                                   .body_capacity = old.body_capacity};
}

void http_answer_fini(struct http_answer *answer)
{
    assert(answer != NULL);
    mem_free(answer->line);
    mem_free(answer->body);
    mem_free(answer->location);
    *answer = (struct http_answer){0};
}

size_t http_answer_feed(struct http_answer *answer, const uint8_t *data, size_t size)
{
    assert(answer != NULL);
    assert(data != NULL || size == 0);
    size_t taken = 0;
    while (taken < size && !is_over(answer)) {
        if (is_in_body(answer))
            taken += feed_body(answer, data + taken, size - taken);
        else
            taken += feed_line(answer, data + taken, size - taken);
    }
    return taken;
}

void http_answer_end(struct http_answer *answer)
{
    assert(answer != NULL);
    if (is_over(answer))
        return;
    if (answer->state == ANSWER_CLOSE_BODY)
        done(answer, false);
    else
        fail(answer, "the connection was closed in the middle of the answer");
}

struct slice http_answer_body(const struct http_answer *answer)
{
    assert(answer != NULL);
    return slice_of(answer->body, answer->body_size);
}
