/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1 request: the head is parsed where it lies when one read brings it whole, and copied
 * once. On the connection's lane. */
#include "src/net/server/http1_exchange.h"

#include "src/base/buffer.h"
#include "src/base/mem.h"

#include <assert.h>
#include <string.h>

/* So much may come from the budget's margin: the handler, not we, shall refuse an ordinary request.
 */
enum { KEEP_MARGIN_BYTES = 4096, HEAD_FIRST_BYTES = 1024 };

static enum http1_result refuse_busy(struct http1_exchange *exchange)
{
    exchange->parser.status = 503;
    exchange->parser.reason = "out of memory budget";
    return HTTP1_REFUSED;
}

struct buffer *http1_keep(struct budget *budget, const uint8_t *data, size_t size)
{
    assert(data != NULL || size == 0);
    struct buffer *kept = buffer_try_create(budget, size);
    if (kept == NULL && size <= KEEP_MARGIN_BYTES)
        kept = buffer_try_create_margin(budget, size);
    if (kept == NULL)
        return NULL;
    memcpy(kept->data, data, size);
    kept->size = size;
    return kept;
}

struct http1_exchange *http1_exchange_try_create(void *protocol)
{
    assert(protocol != NULL);
    struct http1_exchange *exchange = mem_try_alloc(sizeof(*exchange));
    if (exchange == NULL)
        return NULL;
    exchange->protocol = protocol;
    exchange->head = NULL;
    exchange->has_begun = false;
    http1_parser_init(&exchange->parser);
    return exchange;
}

void http1_exchange_destroy(struct http1_exchange *exchange)
{
    assert(exchange != NULL);
    buffer_unref(exchange->head);
    mem_free(exchange);
}

/* The head begins in this read. */
static enum http1_result feed_first(struct http1_exchange *exchange, struct budget *budget,
                                    const uint8_t *data, size_t size, size_t *ret_used)
{
    assert(exchange->head == NULL);
    enum http1_result result = http1_parser_feed(&exchange->parser, data, size);
    *ret_used = exchange->parser.position;
    if (result == HTTP1_REFUSED)
        return result;
    exchange->head = http1_keep(budget, data, *ret_used);
    return exchange->head == NULL ? refuse_busy(exchange) : result;
}

/* False: refused. */
static bool make_room(struct http1_exchange *exchange, struct budget *budget, size_t size)
{
    assert(exchange->head != NULL);
    struct buffer *head = exchange->head;
    if (size <= head->capacity)
        return true;
    size_t capacity = head->capacity * 2 > HEAD_FIRST_BYTES ? head->capacity * 2 : HEAD_FIRST_BYTES;
    if (capacity < size)
        capacity = size;
    struct buffer *larger = buffer_try_create(budget, capacity);
    if (larger == NULL && capacity <= KEEP_MARGIN_BYTES)
        larger = buffer_try_create_margin(budget, capacity);
    if (larger == NULL)
        return false;
    memcpy(larger->data, head->data, head->size);
    larger->size = head->size;
    buffer_unref(head);
    exchange->head = larger;
    return true;
}

static enum http1_result feed_more(struct http1_exchange *exchange, struct budget *budget,
                                   const uint8_t *data, size_t size, size_t *ret_used)
{
    size_t old = exchange->head->size;
    assert(old <= HTTP_HEADER_BLOCK_BYTES_MAX);
    /* One byte over the limit lets the parser say so. */
    size_t most = HTTP_HEADER_BLOCK_BYTES_MAX + 1 - old;
    size_t taken = size < most ? size : most;
    *ret_used = taken;
    if (!make_room(exchange, budget, old + taken))
        return refuse_busy(exchange);
    struct buffer *head = exchange->head;
    memcpy(head->data + old, data, taken);
    head->size = old + taken;
    enum http1_result result = http1_parser_feed(&exchange->parser, head->data, head->size);
    if (result != HTTP1_COMPLETE)
        return result;
    head->size = exchange->parser.position;
    *ret_used = head->size - old;
    return result;
}

enum http1_result http1_exchange_feed(struct http1_exchange *exchange, struct budget *budget,
                                      const uint8_t *data, size_t size, size_t *ret_used)
{
    assert(size > 0);
    assert(!exchange->has_begun);
    return exchange->head == NULL ? feed_first(exchange, budget, data, size, ret_used)
                                  : feed_more(exchange, budget, data, size, ret_used);
}

static struct slice slice_of_span(const struct http1_exchange *exchange, struct http1_span span)
{
    assert(span.at + span.size <= exchange->head->size);
    return slice_of(exchange->head->data + span.at, span.size);
}

static void lower_names(struct http1_exchange *exchange)
{
    assert(exchange->parser.header_count <= HTTP_HEADERS_MAX);
    for (size_t i = 0; i < exchange->parser.header_count; i++) {
        struct http1_span name = exchange->parser.headers[i].name;
        uint8_t *text = exchange->head->data + name.at;
        for (size_t j = 0; j < name.size; j++)
            if (text[j] >= 'A' && text[j] <= 'Z')
                text[j] |= 0x20;
    }
}

void http1_exchange_begin(struct http1_exchange *exchange, const struct http_request_ops *ops,
                          struct http_connection *connection)
{
    assert(exchange->head != NULL);
    assert(!exchange->has_begun);
    const struct http1_parser *parser = &exchange->parser;
    struct http_request *request = &exchange->request;
    http_exchange_init(request, ops, connection);
    exchange->has_begun = true;
    lower_names(exchange);
    request->method = slice_of_span(exchange, parser->method);
    request->path = slice_of_span(exchange, parser->path);
    request->query = slice_of_span(exchange, parser->query);
    request->host = slice_of_span(exchange, parser->host);
    request->size_declared = parser->is_chunked ? HTTP_SIZE_UNKNOWN : parser->content_length;
}

struct http1_exchange *http1_exchange_of(const struct http_request *request)
{
    assert(!request->ops->is_http2);
    return (struct http1_exchange *)(uintptr_t)request;
}

bool http1_exchange_header_at(const struct http_request *request, size_t index,
                              struct slice *ret_name, struct slice *ret_value)
{
    assert(ret_name != NULL && ret_value != NULL);
    const struct http1_exchange *exchange = http1_exchange_of(request);
    if (index >= exchange->parser.header_count)
        return false;
    *ret_name = slice_of_span(exchange, exchange->parser.headers[index].name);
    *ret_value = slice_of_span(exchange, exchange->parser.headers[index].value);
    return true;
}
