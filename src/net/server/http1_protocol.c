/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 on one connection. What is read goes through take_all, which asks the state what it can
 * use; what it cannot use yet waits in the stash, and reading rests until that is gone. Handlers
 * answer from inside take_all or later; neither way does an answer read on: the loop in take_all
 * does, or a job at the end of the turn. On the server's lane. */
#include "src/net/server/http_connection.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http1_exchange.h"
#include "src/net/server/http1_state.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>

static struct http1 *http1_of(const struct http_request *request)
{
    return http1_exchange_of(request)->protocol;
}

static void set_no_deadline(struct http1 *http1)
{
    assert(http1 != NULL);
    http_connection_set_deadline(http1->connection, UINT64_MAX);
}

/* Each byte buys time at the minimum rate, at most BODY_GRACE_NS ahead. */
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

static void http1_respond(struct http_request *request, const struct http_response *response)
{
    assert(response != NULL);
    struct http1 *http1 = http1_of(request);
    assert(&http1->exchange->request == request);
    http1_answer(http1, response);
}

static void finish_body(struct http1 *http1)
{
    assert(http1->state == HTTP1_HELD || http1->state == HTTP1_BODY);
    assert(!http1_has_rest(http1));
    http1->state = HTTP1_ANSWERING;
    set_no_deadline(http1);
    http_exchange_finish_body(&http1->exchange->request);
}

static void send_continue(struct http1 *http1)
{
    assert(!http1->has_continued);
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    http1->has_continued = true;
    uv_buf_t part = uv_buf_init((char *)(uintptr_t)text, sizeof(text) - 1);
    http_connection_write(http1->connection, &part, 1);
}

static void http1_read_body(struct http_request *request)
{
    struct http1 *http1 = http1_of(request);
    assert(http1->state == HTTP1_HELD);
    if (!http1_has_rest(http1)) {
        finish_body(http1);
        return;
    }
    http1->state = HTTP1_BODY;
    http1->body_due_ns = UINT64_MAX / 2;
    extend_body_deadline(http1, 0);
    if (!http1->has_continued)
        send_continue(http1);
    http1_settle(http1);
}

static void http1_destroy_request(struct http_request *request)
{
    http1_exchange_destroy(http1_exchange_of(request));
}

static const struct http_request_ops http1_request_ops = {
    .is_http2 = false,
    .header_at = http1_exchange_header_at,
    .read_body = http1_read_body,
    .respond = http1_respond,
    .destroy = http1_destroy_request,
};

static bool begin_head(struct http1 *http1)
{
    assert(http1->state == HTTP1_HEAD);
    const struct http_server_settings *settings = http_connection_settings(http1->connection);
    http1->exchange = http1_exchange_try_create(http1);
    if (http1->exchange == NULL) {
        http_connection_abort(http1->connection);
        return false;
    }
    http1->read_until_ns =
        settings->read_deadline_ns == 0 ? UINT64_MAX : clock_now_ns() + settings->read_deadline_ns;
    uint64_t delay_ns = settings->header_deadline_ns;
    if (settings->read_deadline_ns != 0 && settings->read_deadline_ns < delay_ns)
        delay_ns = settings->read_deadline_ns;
    /* The first head has the time since the connection was opened. */
    if (http1->has_served)
        http_connection_set_deadline(http1->connection, delay_ns);
    return true;
}

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
        http1_answer(http1, &(struct http_response){.status = 200});
        return;
    }
    http1_exchange_begin(exchange, &http1_request_ops, http1->connection);
    http_exchange_begin(&exchange->request);
}

static size_t take_head(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(http1->state == HTTP1_HEAD);
    if (http1->exchange == NULL && !begin_head(http1))
        return size;
    size_t used;
    struct budget *budget = http_connection_settings(http1->connection)->budget;
    enum http1_result result = http1_exchange_feed(http1->exchange, budget, data, size, &used);
    const struct http1_parser *parser = &http1->exchange->parser;
    if (result == HTTP1_REFUSED)
        http1_answer_plain(http1, parser->status, parser->reason);
    else if (result == HTTP1_COMPLETE)
        begin_request(http1);
    return used;
}

/* False when the body is read no further: failed, or answered already. */
static bool deliver(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(http1->exchange != NULL);
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

static size_t take_sized(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(http1->body_left > 0);
    size_t taken = size < http1->body_left ? size : (size_t)http1->body_left;
    http1->body_left -= taken;
    if (deliver(http1, data, taken) && http1->body_left == 0)
        finish_body(http1);
    return taken;
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

static size_t take_chunk(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(http1->is_chunked);
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

static size_t take_discard(struct http1 *http1, size_t size)
{
    assert(http1->exchange == NULL);
    size_t taken = size < http1->body_left ? size : (size_t)http1->body_left;
    http1->body_left -= taken;
    if (http1->body_left == 0)
        http1_go_idle(http1);
    return taken;
}

static size_t take_linger(struct http1 *http1, size_t size)
{
    assert(http1->state == HTTP1_LINGER);
    http1->dropped_bytes += size;
    if (http1->dropped_bytes > HTTP1_LINGER_BYTES_MAX)
        http_connection_abort(http1->connection);
    return size;
}

/* How many of the bytes the present state can use; 0: none for now. */
static size_t take_some(struct http1 *http1, const uint8_t *data, size_t size)
{
    switch (http1->state) {
    case HTTP1_HEAD:
        return take_head(http1, data, size);
    case HTTP1_BODY:
        return http1->is_chunked ? take_chunk(http1, data, size) : take_sized(http1, data, size);
    case HTTP1_DISCARD:
        return take_discard(http1, size);
    case HTTP1_LINGER:
        return take_linger(http1, size);
    case HTTP1_HELD:
    case HTTP1_ANSWERING:
        break;
    }
    return 0;
}

static size_t take_all(struct http1 *http1, const uint8_t *data, size_t size)
{
    assert(size > 0);
    size_t used = 0;
    while (used < size && !http_connection_is_closing(http1->connection)) {
        size_t taken = take_some(http1, data + used, size - used);
        assert(taken <= size - used);
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
    /* Lingering drops the stash under our hands. */
    struct buffer *stash = buffer_ref(http1->stash);
    size_t at = http1->stash_at;
    size_t used = take_all(http1, stash->data + at, stash->size - at);
    buffer_unref(stash);
    if (http1->stash != NULL) {
        http1->stash_at = at + used;
        if (http1->stash_at == http1->stash->size)
            http1_drop_stash(http1);
    }
    http1_settle(http1);
}

static void *http1_create(struct http_connection *connection)
{
    assert(connection != NULL);
    struct http1 *http1 = mem_try_alloc(sizeof(*http1));
    if (http1 == NULL)
        return NULL;
    *http1 = (struct http1){
        .connection = connection,
        .lane = http_connection_settings(connection)->lane,
        .state = HTTP1_HEAD,
        .stash_job = {.fn = on_stash_job, .arg = http1},
    };
    return http1;
}

static void http1_room(void *state, uint8_t **ret_data, size_t *ret_size)
{
    assert(ret_data != NULL && ret_size != NULL);
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
        http1->stash = http1_keep(budget, data + used, size - used);
        if (http1->stash == NULL)
            http_connection_abort(http1->connection);
    }
    http1_settle(http1);
}

static void http1_end_of_input(void *state)
{
    struct http1 *http1 = state;
    assert(!http1->has_ended);
    http1->has_ended = true;
    http1_settle(http1);
}

static void http1_written(void *state)
{
    struct http1 *http1 = state;
    assert(!http1->is_writing || http1->exchange != NULL);
    if (http1->is_writing)
        http1_finish_answer(http1);
}

static void http1_expire(void *state)
{
    struct http1 *http1 = state;
    assert(lane_is_current(http1->lane));
    if (http1->state == HTTP1_HEAD && http1->exchange != NULL)
        http1_answer_plain(http1, 408, "the request head took too long");
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
    /* Whoever sends just fast enough must not hold up what others have sent and been promised. */
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
    http1_drop_stash(http1);
    struct http1_exchange *exchange = http1->exchange;
    http1->exchange = NULL;
    if (exchange != NULL)
        http1_end_exchange(exchange);
}

static void http1_destroy(void *state)
{
    assert(state != NULL);
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
