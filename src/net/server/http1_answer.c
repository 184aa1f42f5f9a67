/* SPDX-License-Identifier: Apache-2.0 */
/* How an HTTP/1 exchange ends: the answer, and what becomes of the connection behind it. On the
 * connection's lane. */
#include "src/net/server/http1_state.h"

#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/net/server/http1_exchange.h"
#include "src/net/server/http1_response.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>
#include <stdio.h>

bool http1_has_rest(const struct http1 *http1)
{
    return http1->is_chunked ? http1->chunks.state != CHUNK_END : http1->body_left > 0;
}

void http1_drop_stash(struct http1 *http1)
{
    assert(http1 != NULL);
    buffer_unref(http1->stash);
    http1->stash = NULL;
    http1->stash_at = 0;
}

void http1_settle(struct http1 *http1)
{
    assert(http1->stash == NULL || http1->stash_at <= http1->stash->size);
    if (http_connection_is_closing(http1->connection))
        return;
    bool waits = http1->state == HTTP1_HELD || http1->state == HTTP1_ANSWERING;
    if (http1->stash != NULL && !waits)
        lane_defer(http1->lane, &http1->stash_job);
    if (http1->stash != NULL)
        http_connection_pause(http1->connection);
    else if (!http1->has_ended)
        http_connection_resume(http1->connection);
    else if (!waits)
        http_connection_close(http1->connection);
}

void http1_go_idle(struct http1 *http1)
{
    assert(http1->exchange == NULL);
    assert(!http1_has_rest(http1));
    http1->state = HTTP1_HEAD;
    http1->has_served = true;
    if (http1->is_stopping && http1->stash == NULL)
        http_connection_close(http1->connection);
    else
        http_connection_set_deadline(http1->connection,
                                     http_connection_settings(http1->connection)->idle_ns);
}

/* Closing with unread input would reset the connection, and the answer might be lost on the way
 * (RFC 9112 §9.6). */
static void go_linger(struct http1 *http1, bool has_unread)
{
    assert(http1->exchange == NULL);
    uint64_t linger_ns = has_unread ? HTTP1_LINGER_BODY_NS : HTTP1_LINGER_NS;
    http1->state = HTTP1_LINGER;
    http1->dropped_bytes = 0;
    http1_drop_stash(http1);
    http_connection_shutdown(http1->connection);
    http_connection_set_deadline(http1->connection, linger_ns);
}

static void go_discard(struct http1 *http1)
{
    assert(!http1->is_chunked);
    assert(http1->body_left <= HTTP_DISCARD_BYTES_MAX);
    http1->state = HTTP1_DISCARD;
    http_connection_set_deadline(http1->connection, BODY_GRACE_NS);
}

void http1_end_exchange(struct http1_exchange *exchange)
{
    assert(exchange != NULL);
    if (exchange->has_begun)
        http_exchange_end(&exchange->request);
    else
        http1_exchange_destroy(exchange);
}

void http1_finish_answer(struct http1 *http1)
{
    struct http1_exchange *exchange = http1->exchange;
    assert(exchange != NULL);
    assert(http1->state == HTTP1_ANSWERING);
    http1->exchange = NULL;
    http1->is_writing = false;
    if (http1->closes)
        go_linger(http1, http1_has_rest(http1) || !exchange->has_begun);
    else if (http1_has_rest(http1))
        go_discard(http1);
    else
        http1_go_idle(http1);
    http1_end_exchange(exchange);
    http1_settle(http1);
}

/* What is left of a body is dropped when it is small and sure to come; else the connection ends. */
static bool must_close(const struct http1 *http1, const struct http_response *response)
{
    assert(response != NULL);
    if (response->closes || http1->is_stopping)
        return true;
    if (http1->has_ended && http1->stash == NULL)
        return true;
    return http1_has_rest(http1) && (http1->is_chunked || !http1->has_continued ||
                                     http1->body_left > HTTP_DISCARD_BYTES_MAX);
}

void http1_answer(struct http1 *http1, const struct http_response *response)
{
    const struct http1_exchange *exchange = http1->exchange;
    struct http_connection *connection = http1->connection;
    assert(exchange != NULL);
    assert(!http1->is_writing);
    http1->closes = http1->closes || must_close(http1, response);
    http1->state = HTTP1_ANSWERING;
    bool is_1_0 = exchange->parser.version_minor == 0;
    struct http1_response head;
    http1_response_init(&head, response,
                        &(struct http1_response_facts){
                            .date = http_server_date(connection->server),
                            .connection = http1->closes ? "close"
                                          : is_1_0      ? "keep-alive"
                                                        : NULL,
                            .body_size = response->body.size,
                        });
    bool has_body = response->body.size > 0 && !http1_response_is_bodiless(response->status) &&
                    !(exchange->has_begun && slice_equal_text(exchange->request.method, "HEAD"));
    uv_buf_t parts[2] = {
        uv_buf_init(head.text, (unsigned)head.size),
        uv_buf_init((char *)(uintptr_t)response->body.data, (unsigned)response->body.size),
    };
    http_connection_set_deadline(connection, UINT64_MAX);
    bool is_written = http_connection_write(connection, parts, has_body ? 2 : 1);
    http1_response_fini(&head);
    if (is_written)
        http1_finish_answer(http1);
    else
        http1->is_writing = true;
}

void http1_answer_plain(struct http1 *http1, unsigned status, const char *reason)
{
    assert(status >= 400);
    assert(reason != NULL);
    char text[128];
    int size =
        snprintf(text, sizeof(text), "%u %s: %s", status, http1_response_reason(status), reason);
    assert(size > 0 && (size_t)size < sizeof(text));
    http1->closes = true;
    http_server_count_abort(http1->connection->server);
    http1_answer(http1, &(struct http_response){
                            .status = status,
                            .headers = {{"content-type", "text/plain; charset=utf-8"}},
                            .body = slice_of(text, (size_t)size),
                        });
}
