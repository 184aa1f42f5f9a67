/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of HTTP/1.0 and HTTP/1.1 on one connection (RFC 9112): keep-alive, bounded
 * pipelining, Content-Length and chunked bodies, 100-continue. http_connection.c calls it with what
 * was read; http1_parser.c parses heads, http1_chunks.c chunked bodies. In this order: the head of
 * a response, the request while its head is received, responding, and reading.
 *
 * Input goes through take_all, which offers it to the current state. What the state cannot use yet
 * waits in the stash, and reading pauses until the stash is empty. Handlers respond from inside
 * take_all or later; responding never reads on itself: the loop in take_all does, or a job at the
 * end of the turn. On the connection's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http1_parser.h"
#include "src/net/server/http_exchange.h"
#include "src/net/socket/socket_part.h"
#include "src/net/syntax/http1_chars.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    /* May come from the budget's margin, so that the handler refuses an ordinary request: of a
     * head, and of what was read behind it while the handler was asking. */
    KEEP_MARGIN_BYTES = 4096,
    STASH_MARGIN_BYTES = HTTP1_HEAD_READ_BYTES,
    HEAD_FIRST_BYTES = 1024,
    RESPONSE_HEAD_BYTES = 1024, /* longer heads are allocated */
};

enum http1_state {
    HTTP1_HEAD,       /* idle without an exchange, else receiving its head */
    HTTP1_HELD,       /* the handler has the request and has not asked for its body */
    HTTP1_BODY,       /* receiving the body */
    HTTP1_RESPONDING, /* the request is complete; the response is awaited or being written */
    HTTP1_DISCARD,    /* the response is sent; the rest of the body is dropped */
    HTTP1_LINGER,     /* the last response is sent; waits for the peer to close */
};

/* A request from its first byte: collects the head, then is the handler's struct http_request. */
struct http1_exchange {
    struct http_request request; /* first; set up once the head is whole */
    struct http1 *http1;
    struct buffer *head; /* as much as was received; names in lower case once it is complete */
    bool has_begun;      /* the request is set up: it ends by http_exchange_end */
    struct http1_parser parser;
};

struct http1 {
    struct http_connection *connection;
    struct lane *lane;
    struct http1_exchange *exchange; /* NULL: idle, discarding, lingering */
    enum http1_state state;
    bool is_writing;        /* the response waits for the socket */
    bool is_stopping;       /* the server stops */
    bool closes;            /* after this response */
    bool is_chunked;        /* the current body */
    bool has_continued;     /* 100 Continue was sent, or is not expected */
    bool has_ended;         /* the peer has half-closed */
    bool has_served;        /* this is not the first request */
    uint64_t body_left;     /* of a body without chunks */
    uint64_t dropped_bytes; /* while lingering */
    uint64_t read_until_ns; /* deadline of the whole request; UINT64_MAX: none */
    uint64_t body_due_ns;   /* moves away as bytes arrive */
    struct http1_chunks chunks;
    struct buffer *stash; /* input that the state cannot use yet; NULL: none */
    size_t stash_at;
    struct lane_job stash_job;
    struct slice rest; /* of a body that is not copied; with is_writing */
    struct lane_job rest_job;
};

/* The status line and headers of a response. */
struct response_head {
    char *data; /* inlined, or allocated */
    size_t size;
    size_t capacity;
    char inlined[RESPONSE_HEAD_BYTES];
};

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

static const char *reason_of(unsigned status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

static char *room(struct response_head *head, size_t size)
{
    assert(head->size <= head->capacity);
    if (head->capacity - head->size < size) {
        size_t capacity = head->capacity * 2 + size;
        char *larger = mem_alloc(capacity);
        memcpy(larger, head->data, head->size);
        if (head->data != head->inlined)
            mem_free(head->data);
        head->data = larger;
        head->capacity = capacity;
    }
    return head->data + head->size;
}

static void append(struct response_head *head, const char *piece)
{
    size_t size = strlen(piece);
    memcpy(room(head, size), piece, size);
    head->size += size;
}

static void append_header(struct response_head *head, const char *name, const char *value)
{
    /* Names are lower case in here; they are sent as Go does: Content-Type. */
    size_t size = strlen(name);
    assert(http1_is_token(slice_of(name, size)));
    char *target = room(head, size);
    bool is_start = true;
    for (size_t i = 0; i < size; i++) {
        bool is_lower = name[i] >= 'a' && name[i] <= 'z';
        target[i] = is_start && is_lower ? (char)(name[i] - 'a' + 'A') : name[i];
        is_start = name[i] == '-';
    }
    head->size += size;
    append(head, ": ");
    /* Bytes that could end the line become spaces. */
    size = strlen(value);
    target = room(head, size);
    for (size_t i = 0; i < size; i++)
        target[i] = http1_is((uint8_t)value[i], HTTP1_VALUE) ? value[i] : ' ';
    head->size += size;
    append(head, "\r\n");
}

static enum http1_result refuse_busy(struct http1_exchange *exchange)
{
    exchange->parser.status = 503;
    exchange->parser.reason = "out of memory budget";
    return HTTP1_REFUSED;
}

/* A charged copy of bytes that wait, up to margin_max of them from the margin. NULL: the budget has
 * no room. */
static struct buffer *keep(struct budget *budget, const uint8_t *data, size_t size,
                           size_t margin_max)
{
    assert(data != NULL || size == 0);
    struct buffer *kept = buffer_try_create(budget, size);
    if (kept == NULL && size <= margin_max)
        kept = buffer_try_create_margin(budget, size);
    if (kept == NULL)
        return NULL;
    memcpy(kept->data, data, size);
    kept->size = size;
    return kept;
}

static void exchange_destroy(struct http1_exchange *exchange)
{
    buffer_unref(exchange->head);
    mem_free(exchange);
}

static enum http1_result feed_more(struct http1_exchange *exchange, struct budget *budget,
                                   const uint8_t *data, size_t size, size_t *ret_used)
{
    struct buffer *head = exchange->head;
    size_t old = head->size;
    assert(old <= HTTP_HEADER_BLOCK_BYTES_MAX);
    /* With one byte over the limit the parser refuses it. */
    size_t most = HTTP_HEADER_BLOCK_BYTES_MAX + 1 - old;
    size_t taken = size < most ? size : most;
    *ret_used = taken;
    if (old + taken > head->capacity) {
        size_t capacity =
            2 * head->capacity > HEAD_FIRST_BYTES ? 2 * head->capacity : HEAD_FIRST_BYTES;
        if (capacity < old + taken)
            capacity = old + taken;
        head = buffer_try_create(budget, capacity);
        if (head == NULL && capacity <= KEEP_MARGIN_BYTES)
            head = buffer_try_create_margin(budget, capacity);
        if (head == NULL)
            return refuse_busy(exchange);
        memcpy(head->data, exchange->head->data, old);
        buffer_unref(exchange->head);
        exchange->head = head;
    }
    memcpy(head->data + old, data, taken);
    head->size = old + taken;
    enum http1_result result = http1_parser_feed(&exchange->parser, head->data, head->size);
    if (result != HTTP1_COMPLETE)
        return result;
    head->size = exchange->parser.position;
    *ret_used = head->size - old;
    return result;
}

static struct slice slice_of_span(const struct http1_exchange *exchange, struct http1_span span)
{
    assert(span.at + span.size <= exchange->head->size);
    return slice_of(exchange->head->data + span.at, span.size);
}

static struct http1_exchange *exchange_of(const struct http_request *request)
{
    assert(!request->ops->is_http2);
    return (struct http1_exchange *)(uintptr_t)request;
}

static bool header_at(const struct http_request *request, size_t index, struct slice *ret_name,
                      struct slice *ret_value)
{
    const struct http1_exchange *exchange = exchange_of(request);
    if (index >= exchange->parser.header_count)
        return false;
    *ret_name = slice_of_span(exchange, exchange->parser.headers[index].name);
    *ret_value = slice_of_span(exchange, exchange->parser.headers[index].value);
    return true;
}

/* Whether the rest of the current body is still to be received. */
static bool has_rest(const struct http1 *http1)
{
    return http1->is_chunked ? http1->chunks.state != CHUNK_END : http1->body_left > 0;
}

static void drop_stash(struct http1 *http1)
{
    buffer_unref(http1->stash);
    http1->stash = NULL;
    http1->stash_at = 0;
}

/* After the state has changed: takes the stash at the end of the turn, reads on once the stash is
 * empty, and closes when more input is needed than the peer will send. */
static void settle(struct http1 *http1)
{
    assert(http1->stash == NULL || http1->stash_at <= http1->stash->size);
    if (http_connection_is_closing(http1->connection))
        return;
    bool waits = http1->state == HTTP1_HELD || http1->state == HTTP1_RESPONDING;
    if (http1->stash != NULL && !waits)
        lane_defer(http1->lane, &http1->stash_job);
    if (http1->stash != NULL)
        http_connection_pause(http1->connection);
    else if (!http1->has_ended)
        http_connection_resume(http1->connection);
    else if (!waits)
        http_connection_close(http1->connection);
}

/* After the response, with the body received or discarded. */
static void go_idle(struct http1 *http1)
{
    assert(http1->exchange == NULL);
    assert(!has_rest(http1));
    http1->state = HTTP1_HEAD;
    http1->has_served = true;
    if (http1->is_stopping && http1->stash == NULL)
        http_connection_close(http1->connection);
    else
        http_connection_set_deadline(http1->connection,
                                     http_connection_settings(http1->connection)->idle_ns);
}

/* Frees the exchange, through its handler if that has the request. */
static void end_exchange(struct http1_exchange *exchange)
{
    if (exchange->has_begun)
        http_exchange_end(&exchange->request);
    else
        exchange_destroy(exchange);
}

/* The response is written. */
static void finish_response(struct http1 *http1)
{
    struct http1_exchange *exchange = http1->exchange;
    assert(http1->state == HTTP1_RESPONDING);
    http1->exchange = NULL;
    http1->is_writing = false;
    http1->connection->write_until_ns = UINT64_MAX;
    if (http1->closes) {
        /* Closing with unread input would reset the connection, and the response could be lost (RFC
         * 9112 §9.6). */
        bool has_unread = has_rest(http1) || !exchange->has_begun;
        uint64_t linger_ns = has_unread ? HTTP1_LINGER_BODY_NS : HTTP1_LINGER_NS;
        http1->state = HTTP1_LINGER;
        http1->dropped_bytes = 0;
        drop_stash(http1);
        http_connection_shutdown(http1->connection);
        http_connection_set_deadline(http1->connection, linger_ns);
    } else if (has_rest(http1)) {
        assert(!http1->is_chunked);
        assert(http1->body_left <= HTTP_DISCARD_BYTES_MAX);
        http1->state = HTTP1_DISCARD;
        http_connection_set_deadline(http1->connection, BODY_GRACE_NS);
    } else {
        go_idle(http1);
    }
    end_exchange(exchange);
    settle(http1);
}

/* Writes what is left of the body, as much as the socket takes in a turn. */
static void send_rest(void *arg)
{
    struct http1 *http1 = arg;
    size_t written = 0;
    assert(http1->is_writing && http1->rest.size > 0);
    if (http_connection_is_closing(http1->connection))
        return;
    if (clock_now_ns() > http1->connection->write_until_ns) {
        http_connection_abort(http1->connection);
        return;
    }
    while (written < HTTP_TURN_BYTES && http1->rest.size > 0) {
        const size_t size =
            http1->rest.size < HTTP_PIECE_BYTES ? http1->rest.size : HTTP_PIECE_BYTES;
        uv_buf_t part = socket_part(http1->rest.data, size);
        http1->rest = slice_of(http1->rest.data + size, http1->rest.size - size);
        written += size;
        /* If it waits, http1_written goes on. */
        if (!http_connection_write(http1->connection, &part, 1))
            return;
    }
    if (http1->rest.size > 0)
        lane_defer(http1->lane, &http1->rest_job);
    else
        finish_response(http1);
}

static void send_response(struct http1 *http1, const struct http_response *response)
{
    const struct http1_exchange *exchange = http1->exchange;
    struct http_connection *connection = http1->connection;
    assert(!http1->is_writing);
    /* The rest of a body is dropped if it is short and sure to be sent; else the connection
     * closes. */
    http1->closes |=
        response->closes || http1->is_stopping || (http1->has_ended && http1->stash == NULL) ||
        (has_rest(http1) &&
         (http1->is_chunked || !http1->has_continued || http1->body_left > HTTP_DISCARD_BYTES_MAX));
    http1->state = HTTP1_RESPONDING;
    /* Clients of HTTP/1.0 know no chunks: the end of the connection ends the stream. */
    bool is_chunked = response->is_stream && exchange->parser.version_minor > 0;
    http1->closes |= response->is_stream && !is_chunked;
    struct response_head head;
    head.data = head.inlined;
    head.size = 0;
    head.capacity = sizeof(head.inlined);
    char line[64];
    snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", response->status,
             reason_of(response->status));
    append(&head, line);
    size_t headers_max = sizeof(response->headers) / sizeof(response->headers[0]);
    for (size_t i = 0; i < headers_max && response->headers[i].name != NULL; i++)
        append_header(&head, response->headers[i].name, response->headers[i].value);
    for (size_t i = 0; i < response->common.count; i++)
        if (http_response_sends_common(response, i))
            append_header(&head, response->common.rows[i].name, response->common.rows[i].value);
    append_header(&head, "date", http_server_date(connection->server));
    bool is_bodiless = response->status == 204 || response->status == 304;
    if (is_chunked) {
        append_header(&head, "transfer-encoding", "chunked");
    } else if (!is_bodiless && !response->is_stream) {
        snprintf(line, sizeof(line), "%zu", response->body.size);
        append_header(&head, "content-length", line);
    }
    if (http1->closes)
        append_header(&head, "connection", "close");
    else if (exchange->parser.version_minor == 0)
        append_header(&head, "connection", "keep-alive");
    append(&head, "\r\n");
    bool has_body = response->body.size > 0 && !is_bodiless &&
                    !(exchange->has_begun && slice_equal_text(exchange->request.method, "HEAD"));
    /* What its handler keeps follows in pieces. */
    const bool is_kept = has_body && response->release != NULL;
    const size_t first_bytes =
        is_kept && response->body.size > HTTP_PIECE_BYTES ? HTTP_PIECE_BYTES : response->body.size;
    uv_buf_t parts[2] = {
        socket_part(head.data, head.size),
        socket_part(response->body.data, first_bytes),
    };
    if (first_bytes < response->body.size && has_body) {
        const uint64_t deadline_ns = http_connection_settings(connection)->write_deadline_ns;
        http1->rest =
            slice_of(response->body.data + first_bytes, response->body.size - first_bytes);
        if (deadline_ns > 0)
            connection->write_until_ns = clock_now_ns() + deadline_ns;
    }
    http_connection_set_deadline(connection, UINT64_MAX);
    bool is_written = http_connection_write(connection, parts, has_body ? 2 : 1);
    if (head.data != head.inlined)
        mem_free(head.data);
    if (response->is_stream)
        return;
    if (is_written && http1->rest.size == 0) {
        finish_response(http1);
        return;
    }
    http1->is_writing = true;
    if (is_written)
        lane_defer(http1->lane, &http1->rest_job);
}

/* Responds without the handler, to a broken or late head, and closes. */
static void respond_plain(struct http1 *http1, unsigned status, const char *reason)
{
    assert(status >= 400);
    char text[128];
    int size = snprintf(text, sizeof(text), "%u %s: %s", status, reason_of(status), reason);
    assert(size > 0 && (size_t)size < sizeof(text));
    http1->closes = true;
    http_server_count_abort(http1->connection->server);
    send_response(http1, &(struct http_response){
                             .status = status,
                             .headers = {{"content-type", "text/plain; charset=utf-8"}},
                             .body = slice_of(text, (size_t)size),
                         });
}

static struct http1 *http1_of(const struct http_request *request)
{
    return exchange_of(request)->http1;
}

static void set_no_deadline(struct http1 *http1)
{
    http_connection_set_deadline(http1->connection, UINT64_MAX);
}

/* Each byte extends the deadline at the minimum rate, to at most BODY_GRACE_NS from now. */
static void extend_body_deadline(struct http1 *http1, size_t size)
{
    assert(http1->state == HTTP1_BODY);
    uint64_t now_ns = clock_now_ns();
    uint64_t due_ns = http1->body_due_ns + size * (NS_PER_S / BODY_RATE_MIN_BYTES_PER_S);
    if (due_ns > now_ns + BODY_GRACE_NS)
        due_ns = now_ns + BODY_GRACE_NS;
    http1->body_due_ns = due_ns;
    if (due_ns > http1->read_until_ns)
        due_ns = http1->read_until_ns;
    http_connection_set_deadline(http1->connection, due_ns > now_ns ? due_ns - now_ns : 0);
}

static void respond(struct http_request *request, const struct http_response *response)
{
    struct http1 *http1 = http1_of(request);
    assert(&http1->exchange->request == request);
    send_response(http1, response);
}

static bool stream_send(struct http_request *request, struct slice piece)
{
    struct http1 *http1 = http1_of(request);
    struct http_connection *connection = http1->connection;
    char size[24];
    if (http_connection_is_blocked(connection))
        return false;
    snprintf(size, sizeof(size), "%zx\r\n", piece.size);
    uv_buf_t parts[3] = {
        socket_part(size, strlen(size)),
        socket_part(piece.data, piece.size),
        socket_part("\r\n", 2),
    };
    bool is_chunked = http1->exchange->parser.version_minor > 0;
    /* What the socket does not take now waits in a copy. */
    (void)http_connection_write(connection, is_chunked ? parts : &parts[1], is_chunked ? 3 : 1);
    return !http_connection_is_closing(connection);
}

static void stream_end(struct http_request *request, bool is_whole)
{
    struct http1 *http1 = http1_of(request);
    uv_buf_t last = socket_part("0\r\n\r\n", 5);
    if (!is_whole || http_connection_is_blocked(http1->connection))
        http_connection_abort(http1->connection);
    else if (http1->exchange->parser.version_minor == 0 ||
             http_connection_write(http1->connection, &last, 1))
        finish_response(http1);
    else
        http1->is_writing = true;
}

static void finish_body(struct http1 *http1)
{
    assert(http1->state == HTTP1_HELD || http1->state == HTTP1_BODY);
    assert(!has_rest(http1));
    http1->state = HTTP1_RESPONDING;
    set_no_deadline(http1);
    http_exchange_finish_body(&http1->exchange->request);
}

static void read_body(struct http_request *request)
{
    struct http1 *http1 = http1_of(request);
    assert(http1->state == HTTP1_HELD);
    if (!has_rest(http1)) {
        finish_body(http1);
        return;
    }
    http1->state = HTTP1_BODY;
    http1->body_due_ns = UINT64_MAX / 2;
    extend_body_deadline(http1, 0);
    if (!http1->has_continued) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        http1->has_continued = true;
        uv_buf_t part = socket_part(text, sizeof(text) - 1);
        http_connection_write(http1->connection, &part, 1);
    }
    settle(http1);
}

static void destroy_request(struct http_request *request)
{
    exchange_destroy(exchange_of(request));
}

static const struct http_request_ops http1_request_ops = {
    .is_http2 = false,
    .header_at = header_at,
    .read_body = read_body,
    .respond = respond,
    .stream_send = stream_send,
    .stream_end = stream_end,
    .destroy = destroy_request,
};

static void begin_request(struct http1 *http1)
{
    struct http1_exchange *exchange = http1->exchange;
    const struct http1_parser *parser = &exchange->parser;
    assert(http1->state == HTTP1_HEAD);
    assert(!exchange->has_begun);
    bool keeps_alive = parser->version_minor == 1 || parser->wants_keep_alive;
    http1->closes = parser->wants_close || !keeps_alive ||
                    !http_connection_settings(http1->connection)->has_keep_alive;
    http1->is_chunked = parser->is_chunked;
    http1->body_left = parser->content_length;
    http1->has_continued = !parser->expects_continue;
    http1_chunks_init(&http1->chunks);
    http1->state = HTTP1_HELD;
    set_no_deadline(http1);
    if (exchange->head->data[parser->path.at] == '*') {
        send_response(http1, &(struct http_response){.status = 200});
        return;
    }
    struct http_request *request = &exchange->request;
    http_exchange_init(request, &http1_request_ops, http1->connection);
    exchange->has_begun = true;
    /* Names of headers in lower case. */
    for (size_t i = 0; i < parser->header_count; i++) {
        struct http1_span name = parser->headers[i].name;
        uint8_t *text = exchange->head->data + name.at;
        for (size_t j = 0; j < name.size; j++)
            if (text[j] >= 'A' && text[j] <= 'Z')
                text[j] |= 0x20;
    }
    request->method = slice_of_span(exchange, parser->method);
    request->path = slice_of_span(exchange, parser->path);
    request->query = slice_of_span(exchange, parser->query);
    request->host = slice_of_span(exchange, parser->host);
    request->size_declared = parser->is_chunked ? HTTP_SIZE_UNKNOWN : parser->content_length;
    http_exchange_begin(request);
}

static size_t take_head(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(http1->state == HTTP1_HEAD);
    const struct http_server_settings *settings = http_connection_settings(http1->connection);
    struct http1_exchange *exchange = http1->exchange;
    if (exchange == NULL) {
        exchange = mem_try_alloc(sizeof(*exchange));
        if (exchange == NULL) {
            http_connection_abort(http1->connection);
            return size;
        }
        exchange->http1 = http1;
        exchange->head = NULL;
        exchange->has_begun = false;
        http1_parser_init(&exchange->parser);
        http1->exchange = exchange;
        uint64_t read_ns = settings->read_deadline_ns;
        uint64_t delay_ns = settings->header_deadline_ns;
        http1->read_until_ns = read_ns == 0 ? UINT64_MAX : clock_now_ns() + read_ns;
        if (read_ns != 0 && read_ns < delay_ns)
            delay_ns = read_ns;
        /* The deadline of the first head began when the connection was opened. */
        if (http1->has_served || http1->read_until_ns < http1->connection->deadline_ns)
            http_connection_set_deadline(http1->connection, delay_ns);
    }
    assert(!exchange->has_begun);
    const struct http1_parser *parser = &exchange->parser;
    enum http1_result result;
    size_t used;
    if (exchange->head == NULL) {
        /* Parses the head where it lies, and copies it once. */
        result = http1_parser_feed(&exchange->parser, data, size);
        used = parser->position;
        if (result != HTTP1_REFUSED) {
            exchange->head = keep(settings->budget, data, used, KEEP_MARGIN_BYTES);
            if (exchange->head == NULL)
                result = refuse_busy(exchange);
        }
    } else {
        result = feed_more(exchange, settings->budget, data, size, &used);
    }
    if (result == HTTP1_REFUSED)
        respond_plain(http1, parser->status, parser->reason);
    else if (result == HTTP1_COMPLETE)
        begin_request(http1);
    return used;
}

/* False: the body failed, or the handler has responded. */
static bool deliver(struct http1 *http1, const uint8_t *data, size_t size)
{
    struct http_request *request = &http1->exchange->request;
    size_t room_size;
    bool is_in_place = http_body_room(&request->body, &room_size) == data;
    extend_body_deadline(http1, size);
    bool goes_on = is_in_place ? http_exchange_received(request, size)
                               : http_exchange_receive(request, data, size);
    if (!goes_on && http1->state == HTTP1_BODY) {
        http1->state = HTTP1_HELD;
        set_no_deadline(http1);
    }
    return goes_on;
}

static void fail_body(struct http1 *http1, enum http_failure failure)
{
    assert(http1->state == HTTP1_BODY);
    http1->closes = true;
    http_server_count_abort(http1->connection->server);
    http1->state = HTTP1_HELD;
    set_no_deadline(http1);
    http_exchange_fail_body(&http1->exchange->request, failure);
}

static size_t take_body(struct http1 *http1, const uint8_t *data, size_t size)
{
    if (!http1->is_chunked) {
        size_t taken = size < http1->body_left ? size : (size_t)http1->body_left;
        http1->body_left -= taken;
        if (deliver(http1, data, taken) && http1->body_left == 0)
            finish_body(http1);
        return taken;
    }
    size_t used;
    struct slice payload;
    enum http1_result result = http1_chunks_feed(&http1->chunks, data, size, &used, &payload);
    if (result == HTTP1_REFUSED)
        fail_body(http1, HTTP_BODY_MALFORMED);
    else if (payload.size > 0)
        (void)deliver(http1, payload.data, payload.size);
    else if (result == HTTP1_COMPLETE)
        finish_body(http1);
    return used;
}

/* Whether this turn has time for another request. *until_ns is 0 before the first. */
static bool may_begin(struct http1 *http1, uint64_t *until_ns)
{
    if (http1->state != HTTP1_HEAD)
        return true;
    if (*until_ns == 0) {
        *until_ns = clock_now_ns() + HTTP_TURN_NS;
        return true;
    }
    if (clock_now_ns() <= *until_ns)
        return true;
    lane_rest(http1->lane);
    return false;
}

/* Offers input to one state after the other. Returns how much they have used; the rest must wait,
 * also where the requests in it have taken their time: other connections come first. */
static size_t take_all(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(size > 0);
    size_t used = 0;
    uint64_t until_ns = 0;
    while (used < size && !http_connection_is_closing(http1->connection) &&
           may_begin(http1, &until_ns)) {
        size_t left = size - used;
        size_t taken = 0;
        switch (http1->state) {
        case HTTP1_HEAD:
            taken = take_head(http1, data + used, left);
            break;
        case HTTP1_BODY:
            taken = take_body(http1, data + used, left);
            break;
        case HTTP1_DISCARD:
            taken = left < http1->body_left ? left : (size_t)http1->body_left;
            http1->body_left -= taken;
            if (http1->body_left == 0)
                go_idle(http1);
            break;
        case HTTP1_LINGER:
            taken = left;
            http1->dropped_bytes += left;
            if (http1->dropped_bytes > HTTP1_LINGER_BYTES_MAX)
                http_connection_abort(http1->connection);
            break;
        case HTTP1_HELD:
        case HTTP1_RESPONDING:
            break;
        }
        assert(taken <= left);
        if (taken == 0)
            break;
        used += taken;
    }
    return used;
}

static void on_stash_job(void *arg)
{
    struct http1 *http1 = arg;
    assert(lane_is_current(http1->lane));
    if (http1->stash == NULL || http_connection_is_closing(http1->connection))
        return;
    /* Lingering drops http1->stash inside take_all. */
    struct buffer *stash = buffer_ref(http1->stash);
    size_t at = http1->stash_at;
    size_t used = take_all(http1, stash->data + at, stash->size - at);
    buffer_unref(stash);
    if (http1->stash != NULL) {
        http1->stash_at = at + used;
        if (http1->stash_at == http1->stash->size)
            drop_stash(http1);
    }
    settle(http1);
}

static void *http1_create(struct http_connection *connection)
{
    struct http1 *http1 = mem_try_alloc(sizeof(*http1));
    if (http1 == NULL)
        return NULL;
    *http1 = (struct http1){
        .connection = connection,
        .lane = http_connection_settings(connection)->lane,
        .state = HTTP1_HEAD,
        .stash_job = {.fn = on_stash_job, .arg = http1},
        .rest_job = {.fn = send_rest, .arg = http1},
    };
    return http1;
}

static void http1_room(void *state, uint8_t **ret_data, size_t *ret_size)
{
    struct http1 *http1 = state;
    *ret_size = 0;
    if (http1->state != HTTP1_BODY || http1->is_chunked)
        return;
    *ret_data = http_body_room(&http1->exchange->request.body, ret_size);
    if (*ret_size > http1->body_left)
        *ret_size = (size_t)http1->body_left;
}

static void http1_receive(void *state, const uint8_t *data, size_t size)
{
    struct http1 *http1 = state;
    assert(http1->stash == NULL);
    size_t used = take_all(http1, data, size);
    if (http_connection_is_closing(http1->connection))
        return;
    if (used < size) {
        struct budget *budget = http_connection_settings(http1->connection)->budget;
        http1->stash = keep(budget, data + used, size - used, STASH_MARGIN_BYTES);
        if (http1->stash == NULL)
            http_connection_abort(http1->connection);
    }
    settle(http1);
}

static void http1_end_of_input(void *state)
{
    struct http1 *http1 = state;
    assert(!http1->has_ended);
    http1->has_ended = true;
    /* It would never end: nobody reads on. */
    const struct http1_exchange *exchange = http1->exchange;
    if (exchange != NULL && exchange->has_begun && exchange->request.is_streaming)
        http_connection_close(http1->connection);
    else
        settle(http1);
}

static void http1_written(void *state)
{
    struct http1 *http1 = state;
    assert(!http1->is_writing || http1->exchange != NULL);
    if (http1->is_writing && http1->rest.size > 0)
        send_rest(http1);
    else if (http1->is_writing)
        finish_response(http1);
}

static void http1_expire(void *state)
{
    struct http1 *http1 = state;
    assert(lane_is_current(http1->lane));
    if (http1->state == HTTP1_HEAD && http1->exchange != NULL)
        respond_plain(http1, 408, "the request head took too long");
    else if (http1->state == HTTP1_BODY)
        fail_body(http1, HTTP_BODY_TOO_SLOW);
    else
        http_connection_close(http1->connection);
}

static void http1_stop(void *state)
{
    struct http1 *http1 = state;
    assert(lane_is_current(http1->lane));
    http1->is_stopping = true;
    /* A client that sends just fast enough must not delay the stop. */
    uint64_t until_ns = clock_now_ns() + HTTP_STOP_READ_NS;
    if (http1->read_until_ns > until_ns)
        http1->read_until_ns = until_ns;
    if (http1->state == HTTP1_BODY)
        extend_body_deadline(http1, 0);
    bool is_idle = http1->state == HTTP1_HEAD && http1->exchange == NULL && http1->stash == NULL;
    if (is_idle || http1->state == HTTP1_DISCARD)
        http_connection_close(http1->connection);
}

static void http1_closed(void *state)
{
    struct http1 *http1 = state;
    assert(lane_is_current(http1->lane));
    lane_defer_cancel(http1->lane, &http1->stash_job);
    lane_defer_cancel(http1->lane, &http1->rest_job);
    http1->rest = slice_of(NULL, 0);
    drop_stash(http1);
    struct http1_exchange *exchange = http1->exchange;
    http1->exchange = NULL;
    if (exchange != NULL)
        end_exchange(exchange);
}

static void http1_destroy(void *state)
{
    mem_free(state);
}

const struct http_protocol http1_protocol = {
    .create = http1_create,
    .room = http1_room,
    .receive = http1_receive,
    .end_of_input = http1_end_of_input,
    .written = http1_written,
    .expire = http1_expire,
    .stop = http1_stop,
    .closed = http1_closed,
    .destroy = http1_destroy,
};
