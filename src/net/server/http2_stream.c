/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 stream as a request: its headers, its body into the exchange, its answer into nghttp2.
 * On the connection's lane. */
#include "src/net/server/http2_session.h"

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    PSEUDO_METHOD,
    PSEUDO_PATH,
    PSEUDO_AUTHORITY,
    PSEUDO_SCHEME,
    /* RFC 9113 §6.5.2: what a field weighs in the header list beside its text. */
    HEADER_OVERHEAD_BYTES = 32,
    /* :status, Date, Content-Length, then the handler's headers, the common ones and, without a
     * body, trailers. */
    REPLY_FIELDS_MAX = 3 + HTTP_RESPONSE_HEADERS_MAX + HTTP_COMMON_HEADERS_MAX + 4,
};

static const char *const pseudo_names[] = {
    [PSEUDO_METHOD] = ":method",
    [PSEUDO_PATH] = ":path",
    [PSEUDO_AUTHORITY] = ":authority",
    [PSEUDO_SCHEME] = ":scheme",
};

/* What is sent as an answer, while it is put together. */
struct reply_fields {
    nghttp2_nv rows[REPLY_FIELDS_MAX];
    size_t count;
    char status[4];
    char length[21];
};

static struct http2_stream *stream_of(const struct http_request *request)
{
    return (struct http2_stream *)(uintptr_t)request;
}

static struct slice text_at(const struct http2_stream *stream, uint16_t at, uint16_t size)
{
    assert((size_t)at + size <= stream->text_size);
    return slice_of(stream->text + at, size);
}

bool http2_charge(const struct http_connection *connection, struct budget *budget, uint64_t bytes)
{
    if (budget != NULL && http_connection_settings(connection)->must_answer)
        budget_take(budget, bytes);
    else if (budget != NULL)
        return budget_try_take_margin(budget, bytes);
    return true;
}

static bool charge(struct http2_stream *stream, size_t bytes)
{
    struct http2_session *session = stream->session;
    if (!http2_charge(session->connection, session->budget, bytes))
        return false;
    stream->charged_bytes += bytes;
    return true;
}

/* Room for so much more text. False: there is none in the budget. */
static bool make_room(struct http2_stream *stream, size_t more)
{
    size_t wanted = stream->text_size + more;
    if (wanted <= stream->text_capacity)
        return true;
    /* A power of two is what the allocator gives. */
    size_t capacity = HTTP2_HEADER_TEXT_FIRST;
    while (capacity < wanted)
        capacity *= 2;
    bool is_inline = stream->text == stream->text_inline;
    if (!charge(stream, capacity - (is_inline ? 0 : stream->text_capacity)))
        return false;
    stream->text = is_inline ? memcpy(mem_alloc(capacity), stream->text, stream->text_size)
                             : mem_resize(stream->text, capacity);
    stream->text_capacity = capacity;
    return true;
}

static uint16_t append_text(struct http2_stream *stream, struct slice text)
{
    assert(stream->text_size + text.size <= HTTP_HEADER_BLOCK_BYTES_MAX);
    assert(stream->text_size + text.size <= stream->text_capacity);
    uint16_t at = (uint16_t)stream->text_size;
    if (text.size > 0)
        memcpy(stream->text + at, text.data, text.size);
    stream->text_size += text.size;
    return at;
}

/* NULL: there is no room in the budget. */
static struct http2_header *append_header(struct http2_stream *stream)
{
    assert(stream->headers_count < HTTP_HEADERS_MAX);
    if (stream->headers_count == stream->headers_capacity) {
        size_t size = HTTP_HEADERS_MAX * sizeof(struct http2_header);
        if (!charge(stream, size))
            return NULL;
        struct http2_header *larger = mem_alloc(size);
        memcpy(larger, stream->headers, stream->headers_count * sizeof(*larger));
        stream->headers = larger;
        stream->headers_capacity = HTTP_HEADERS_MAX;
    }
    return &stream->headers[stream->headers_count++];
}

static struct http2_header *pseudo_of(struct http2_stream *stream, struct slice name)
{
    if (name.size == 0 || name.data[0] != ':')
        return NULL;
    for (size_t i = 0; i < sizeof(pseudo_names) / sizeof(pseudo_names[0]); i++)
        if (slice_equal_text(name, pseudo_names[i]))
            return &stream->pseudo[i];
    return NULL;
}

static struct slice pseudo_value(const struct http2_stream *stream, unsigned which)
{
    assert(which <= PSEUDO_SCHEME);
    const struct http2_header *header = &stream->pseudo[which];
    return text_at(stream, header->value_at, header->value_size);
}

/* nghttp2 has checked that it is a number, and compares it with what comes. */
static uint64_t size_declared(const struct http_request *request)
{
    struct slice length = http_request_header(request, "content-length");
    uint64_t size = 0;
    if (length.data == NULL)
        return HTTP_SIZE_UNKNOWN;
    for (size_t i = 0; i < length.size; i++) {
        unsigned digit = (unsigned)(length.data[i] - '0');
        if (digit > 9 || size > (HTTP_SIZE_UNKNOWN - 10) / 10)
            return HTTP_SIZE_UNKNOWN;
        size = size * 10 + digit;
    }
    return size;
}

static bool header_at(const struct http_request *request, size_t index, struct slice *ret_name,
                      struct slice *ret_value)
{
    assert(ret_name != NULL && ret_value != NULL);
    const struct http2_stream *stream = stream_of(request);
    if (index >= stream->headers_count)
        return false;
    const struct http2_header *header = &stream->headers[index];
    *ret_name = text_at(stream, header->name_at, header->name_size);
    *ret_value = text_at(stream, header->value_at, header->value_size);
    return true;
}

static void read_body(struct http_request *request)
{
    struct http2_stream *stream = stream_of(request);
    assert(stream->has_begun);
    stream->reading_ns = clock_now_ns();
    if (stream->has_ended_input)
        http_exchange_finish_body(request);
}

static nghttp2_nv field_of(const char *name, const char *value)
{
    assert(name != NULL && value != NULL);
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = strlen(value),
        .flags = NGHTTP2_NV_FLAG_NONE,
    };
}

static void add_field(struct reply_fields *fields, const char *name, const char *value)
{
    assert(fields->count < REPLY_FIELDS_MAX);
    fields->rows[fields->count++] = field_of(name, value);
}

static size_t count_rows(const struct http_header *rows, size_t max)
{
    size_t count = 0;
    while (count < max && rows[count].name != NULL)
        count++;
    return count;
}

/* Three digits. Every answer has them, and snprintf takes 700 instructions for it. */
static void print_status(unsigned status, char text[static 4])
{
    text[0] = (char)('0' + status / 100 % 10);
    text[1] = (char)('0' + status / 10 % 10);
    text[2] = (char)('0' + status % 10);
    text[3] = '\0';
}

/* Trailers mean gRPC, which sends neither length nor date. */
static void fill_fields(struct reply_fields *fields, struct http2_stream *stream,
                        const struct http_response *response)
{
    assert(response->status >= 200);
    size_t headers = count_rows(response->headers, HTTP_RESPONSE_HEADERS_MAX);
    size_t trailers = count_rows(response->trailers, 4);
    fields->count = 0;
    print_status(response->status, fields->status);
    add_field(fields, ":status", fields->status);
    if (trailers == 0) {
        add_field(fields, "date", http_server_date(stream->base.connection->server));
        snprintf(fields->length, sizeof(fields->length), "%zu", response->body.size);
        if (response->status != 204 && response->status != 304)
            add_field(fields, "content-length", fields->length);
    }
    for (size_t i = 0; i < headers; i++)
        add_field(fields, response->headers[i].name, response->headers[i].value);
    for (size_t i = 0; i < response->common.count; i++)
        if (http_response_sends_common(response, i))
            add_field(fields, response->common.rows[i].name, response->common.rows[i].value);
    if (response->body.size > 0)
        return;
    for (size_t i = 0; i < trailers; i++)
        add_field(fields, response->trailers[i].name, response->trailers[i].value);
}

/* Copies one trailer behind what the reply holds. */
static uint8_t *keep_trailer(struct http2_stream *stream, uint8_t *end,
                             const struct http_header *row)
{
    assert(stream->trailers_count < sizeof(stream->trailers) / sizeof(stream->trailers[0]));
    nghttp2_nv *kept = &stream->trailers[stream->trailers_count++];
    *kept = field_of(row->name, row->value);
    memcpy(end, row->name, kept->namelen);
    kept->name = end;
    memcpy(end + kept->namelen, row->value, kept->valuelen);
    kept->value = end + kept->namelen;
    return end + kept->namelen + kept->valuelen;
}

/* Body and trailers stay until the peer has taken them. */
static void keep_reply(struct http2_stream *stream, const struct http_response *response)
{
    size_t trailers = count_rows(response->trailers, 4);
    size_t size = response->body.size;
    assert(size > 0);
    for (size_t i = 0; i < trailers; i++)
        size += strlen(response->trailers[i].name) + strlen(response->trailers[i].value);
    /* It finishes what was taken. */
    if (stream->session->budget != NULL)
        budget_take(stream->session->budget, size);
    stream->charged_bytes += size;
    stream->reply = mem_alloc(size);
    stream->reply_size = response->body.size;
    memcpy(stream->reply, response->body.data, response->body.size);
    uint8_t *end = stream->reply + response->body.size;
    for (size_t i = 0; i < trailers; i++)
        end = keep_trailer(stream, end, &response->trailers[i]);
}

static ssize_t on_reply_data(nghttp2_session *nghttp2, int32_t id, uint8_t *room, size_t size,
                             uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct http2_stream *stream = source->ptr;
    assert(stream->reply_sent <= stream->reply_size);
    size_t left = stream->reply_size - stream->reply_sent;
    size_t taken = left < size ? left : size;
    (void)arg;
    memcpy(room, stream->reply + stream->reply_sent, taken);
    stream->reply_sent += taken;
    if (taken < left)
        return (ssize_t)taken;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailers_count > 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(nghttp2, id, stream->trailers, stream->trailers_count) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)taken;
}

static void respond(struct http_request *request, const struct http_response *response)
{
    struct http2_stream *stream = stream_of(request);
    struct http2_session *session = stream->session;
    assert(response != NULL);
    struct reply_fields fields;
    assert(stream->id > 0);
    assert(session->nghttp2 != NULL);
    fill_fields(&fields, stream, response);
    bool has_body = response->body.size > 0 && !slice_equal_text(request->method, "HEAD");
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_reply_data};
    if (has_body)
        keep_reply(stream, response);
    session->replies++;
    stream->has_reply = true;
    http2_guard_progress(&session->guard);
    if (nghttp2_submit_response(session->nghttp2, stream->id, fields.rows, fields.count,
                                has_body ? &provider : NULL) != 0)
        nghttp2_submit_rst_stream(session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_INTERNAL_ERROR);
    http2_session_flush_later(session);
}

static void destroy(struct http_request *request)
{
    struct http2_stream *stream = stream_of(request);
    assert(stream->id == 0);
    assert(stream->session->requests > 0);
    stream->session->requests--;
    if (stream->headers != stream->headers_inline)
        mem_free(stream->headers);
    if (stream->text != stream->text_inline)
        mem_free(stream->text);
    mem_free(stream->reply);
    if (stream->session->budget != NULL)
        budget_return(stream->session->budget, stream->charged_bytes);
    mem_free(stream);
}

static const struct http_request_ops http2_request_ops = {
    .is_http2 = true,
    .header_at = header_at,
    .read_body = read_body,
    .respond = respond,
    .destroy = destroy,
};

struct http2_stream *http2_stream_create(struct http2_session *session, int32_t id)
{
    assert(id > 0);
    uint64_t limit = http_connection_settings(session->connection)->streams_max;
    if (session->requests >= (limit == 0 ? HTTP2_STREAMS_MAX : limit))
        return NULL;
    const uint64_t bytes = sizeof(struct http2_stream) + HTTP2_STREAM_OTHER_BYTES;
    if (!http2_charge(session->connection, session->budget, bytes))
        return NULL;
    struct http2_stream *stream = mem_try_alloc(sizeof(*stream));
    if (stream == NULL) {
        if (session->budget != NULL)
            budget_return(session->budget, bytes);
        return NULL;
    }
    memset(stream, 0, offsetof(struct http2_stream, headers_inline));
    http_exchange_init(&stream->base, &http2_request_ops, session->connection);
    stream->session = session;
    stream->id = id;
    stream->charged_bytes = bytes;
    stream->headers = stream->headers_inline;
    stream->headers_capacity = HTTP2_HEADERS_INLINE;
    stream->text = stream->text_inline;
    stream->text_capacity = HTTP2_HEADER_TEXT_BYTES;
    stream->next = session->open;
    if (stream->next != NULL)
        stream->next->prev = stream;
    session->open = stream;
    session->requests++;
    return stream;
}

uint32_t http2_stream_add_header(struct http2_stream *stream, struct slice name, struct slice value)
{
    assert(!stream->has_begun);
    assert(!stream->is_refused);
    size_t weight = stream->text_size + stream->headers_count * HEADER_OVERHEAD_BYTES;
    if (name.size + value.size > HTTP_HEADER_BYTES_MAX ||
        weight + name.size + value.size + HEADER_OVERHEAD_BYTES > HTTP_HEADER_BLOCK_BYTES_MAX)
        return NGHTTP2_ENHANCE_YOUR_CALM;
    struct http2_header *header = pseudo_of(stream, name);
    if (header == NULL && stream->headers_count == HTTP_HEADERS_MAX)
        return NGHTTP2_ENHANCE_YOUR_CALM;
    if (!make_room(stream, name.size + value.size))
        return NGHTTP2_REFUSED_STREAM;
    if (header == NULL)
        header = append_header(stream);
    if (header == NULL)
        return NGHTTP2_REFUSED_STREAM;
    header->name_at = append_text(stream, name);
    header->name_size = (uint16_t)name.size;
    header->value_at = append_text(stream, value);
    header->value_size = (uint16_t)value.size;
    return NGHTTP2_NO_ERROR;
}

void http2_stream_begin(struct http2_stream *stream, bool has_body)
{
    assert(!stream->has_begun);
    struct http_request *request = &stream->base;
    struct slice path = pseudo_value(stream, PSEUDO_PATH);
    const uint8_t *mark = path.size == 0 ? NULL : memchr(path.data, '?', path.size);
    request->method = pseudo_value(stream, PSEUDO_METHOD);
    request->path = path;
    if (mark != NULL) {
        request->path.size = (size_t)(mark - path.data);
        request->query = slice_of(mark + 1, path.size - request->path.size - 1);
    }
    request->host = pseudo_value(stream, PSEUDO_AUTHORITY);
    if (request->host.size == 0)
        request->host = http_request_header(request, "host");
    request->size_declared = has_body ? size_declared(request) : 0;
    stream->has_begun = true;
    stream->has_ended_input = !has_body;
    http_exchange_begin(request);
}

/* The rest of the body is not wanted (RFC 9113 §8.1). */
static void end_discard(struct http2_stream *stream)
{
    assert(stream->is_sent);
    assert(!stream->has_ended_input);
    stream->discard_ns = 0;
    stream->is_refused = true;
    nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_NO_ERROR);
    http2_session_flush_later(stream->session);
}

/* A short rest may come, unless the connection drains: some clients that are reset while they send
 * lose the answer, and nghttp2 goes on to check that the request is well-formed. */
void http2_stream_answer_sent(struct http2_stream *stream)
{
    assert(stream->base.is_answered);
    assert(!stream->is_sent);
    assert(stream->session->replies > 0);
    uint64_t declared = stream->base.size_declared;
    stream->session->replies--;
    stream->is_sent = true;
    if (stream->has_ended_input)
        return;
    http_body_clear(&stream->base.body);
    stream->discard_ns = stream->session->now_ns;
    bool is_long = declared != HTTP_SIZE_UNKNOWN && declared > HTTP_DISCARD_BYTES_MAX;
    if (is_long || stream->session->is_draining)
        end_discard(stream);
}

void http2_stream_receive(struct http2_stream *stream, const uint8_t *data, size_t size)
{
    assert(!stream->is_refused);
    struct http_request *request = &stream->base;
    if (request->is_reading) {
        /* False: it was answered, and what else comes falls below. */
        if (!http_exchange_receive(request, data, size))
            return;
    } else if (stream->discard_ns > 0) {
        stream->discarded += size;
        if (stream->discarded > HTTP_DISCARD_BYTES_MAX)
            end_discard(stream);
    } else if (request->is_with_handler) {
        /* There is no charged place for it yet; the client may try again elsewhere or later. */
        stream->is_refused = true;
        nghttp2_submit_rst_stream(stream->session->nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_REFUSED_STREAM);
        http2_session_flush_later(stream->session);
    }
}

void http2_stream_end_input(struct http2_stream *stream)
{
    assert(!stream->has_ended_input);
    stream->has_ended_input = true;
    if (stream->base.is_reading)
        http_exchange_finish_body(&stream->base);
}

void http2_stream_end(struct http2_stream *stream)
{
    struct http2_session *session = stream->session;
    assert(stream->id > 0);
    stream->id = 0;
    if (session->recent == stream)
        session->recent = NULL;
    if (stream->prev != NULL)
        stream->prev->next = stream->next;
    else
        session->open = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    /* One that was answered while the connection was closing has none. */
    if (stream->has_reply && !stream->is_sent) {
        assert(session->replies > 0);
        session->replies--;
    }
    if (stream->has_begun) {
        http_exchange_end(&stream->base);
        return;
    }
    /* The handler has never heard of it and must not hear of its end. */
    destroy(&stream->base);
    http_connection_unref(session->connection);
}

static bool is_slow(const struct http2_stream *stream, uint64_t now_ns)
{
    assert(now_ns >= stream->reading_ns);
    if (!stream->base.is_reading)
        return false;
    uint64_t deadline_ns = http_connection_settings(stream->base.connection)->read_deadline_ns;
    uint64_t waited_ns = now_ns - stream->reading_ns;
    uint64_t until_ns = stream->session->read_until_ns;
    if (until_ns > 0 && now_ns >= until_ns)
        return true;
    if (deadline_ns > 0 && waited_ns >= deadline_ns)
        return true;
    if (waited_ns < BODY_GRACE_NS)
        return false;
    uint64_t seconds = (waited_ns - BODY_GRACE_NS) / NS_PER_S;
    return http_body_size(&stream->base.body) < seconds * BODY_RATE_MIN_BYTES_PER_S;
}

void http2_stream_expire(struct http2_stream *stream, uint64_t now_ns)
{
    if (is_slow(stream, now_ns))
        http_exchange_fail_body(&stream->base, HTTP_BODY_TOO_SLOW);
    else if (stream->discard_ns > 0 && now_ns >= stream->discard_ns + HTTP2_DISCARD_NS)
        end_discard(stream);
}
