/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP trace requests as an instrumented HTTP service would send them. Field numbers are those of
 * opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto. */
#include "tests/bench/payload.h"

#include "tests/bench/span_ids.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2 };
enum span_kind { SERVER = 2, CLIENT = 3 };
/* Each trace begins with a request that a server took. */
enum { SPANS_PER_TRACE = 8, SPAN_ID_BYTES = 8, TRACE_ID_BYTES = 16, PADDING_OVERHEAD = 32 };

/* A row with a format varies with the span, one with a limit is a number below it. */
struct attribute {
    const char *key;
    const char *format;
    unsigned limit;
};

static const struct attribute span_attributes[] = {
    {.key = "http.request.method", .format = "POST"},
    {.key = "http.response.status_code", .limit = 500},
    {.key = "http.route", .format = "/api/v2/orders/{order}/items"},
    {.key = "url.path", .format = "/api/v2/orders/%u/items"},
    {.key = "server.address", .format = "checkout.shop.svc.cluster.local"},
    {.key = "server.port", .limit = 9000},
    {.key = "client.address", .format = "10.42.7.%u"},
    {.key = "network.protocol.version", .format = "1.1"},
    {.key = "user_agent.original", .format = "okhttp/4.12.0"},
    {.key = "thread.id", .limit = 64},
    {.key = "thread.name", .format = "http-nio-8080-exec-%u"},
    {.key = "code.function.name", .format = "com.example.shop.OrderController.addItem"},
    {.key = "db.system.name", .format = "postgresql"},
    {.key = "db.query.text", .format = "INSERT INTO items (order_id, sku, count) VALUES (?, ?, ?)"},
    {.key = "enduser.id", .format = "user-%u"},
    {.key = "messaging.destination.name", .format = "orders.items.added"},
    {.key = "rpc.service", .format = "shop.inventory.v1.InventoryService"},
};

static const struct attribute resource_attributes[] = {
    {.key = "service.name", .format = "checkout"},
    {.key = "service.version", .format = "4.17.2"},
    {.key = "service.instance.id", .format = "checkout-7d9c5b6f4-x2x8q"},
    {.key = "deployment.environment.name", .format = "production"},
    {.key = "host.name", .format = "node-17"},
    {.key = "process.pid", .limit = 32768},
    {.key = "telemetry.sdk.language", .format = "java"},
    {.key = "telemetry.sdk.name", .format = "opentelemetry"},
};

static const char *const span_names[] = {"POST /api/v2/orders/{order}/items", "INSERT shop.items",
                                         "orders.items.added publish", "GET /api/v2/stock/{sku}"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A small generator of our own, so that a payload is the same on every machine. */
static uint64_t pseudo_random(uint64_t seed)
{
    return span_id_of(seed * 0x9e3779b97f4a7c15U + 1);
}

static void put_varint(struct byte_buffer *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    byte_buffer_append(out, bytes, size);
}

static void put_tag(struct byte_buffer *out, unsigned field, enum wire_type type)
{
    assert(field > 0);
    put_varint(out, (uint64_t)field << 3 | type);
}

static void put_number(struct byte_buffer *out, unsigned field, uint64_t value)
{
    put_tag(out, field, VARINT);
    put_varint(out, value);
}

static void put_fixed64(struct byte_buffer *out, unsigned field, uint64_t value)
{
    put_tag(out, field, FIXED64);
    byte_buffer_append(out, &value, sizeof value);
}

static void put_bytes(struct byte_buffer *out, unsigned field, const void *data, size_t size)
{
    assert(data != NULL || size == 0);
    put_tag(out, field, LENGTH_DELIMITED);
    put_varint(out, size);
    byte_buffer_append(out, data, size);
}

static void put_buffer(struct byte_buffer *out, unsigned field, struct byte_buffer *content)
{
    put_bytes(out, field, content->data, content->size);
    byte_buffer_free(content);
}

/* KeyValue{key, AnyValue}; the value is text unless text is NULL. */
static void put_attribute(struct byte_buffer *out, unsigned field, const char *key,
                          const char *text, uint64_t number)
{
    struct byte_buffer pair = {0};
    struct byte_buffer value = {0};

    assert(key != NULL);
    if (text != NULL)
        put_bytes(&value, 1, text, strlen(text));
    else
        put_number(&value, 3, number);
    put_bytes(&pair, 1, key, strlen(key));
    put_buffer(&pair, 2, &value);
    put_buffer(out, field, &pair);
}

static void put_row(struct byte_buffer *out, unsigned field, const struct attribute *row,
                    uint64_t seed)
{
    char text[128];

    assert(row->format != NULL || row->limit > 4);
    if (row->format == NULL) {
        put_attribute(out, field, row->key, NULL, row->limit - seed % 4);
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, row->format, (unsigned)(seed % 251));
#pragma GCC diagnostic pop
    put_attribute(out, field, row->key, text, 0);
}

/* Fills the span up to content_size with one attribute; the overhead of its tags and lengths is
 * found by trying. */
static void pad_span(struct byte_buffer *span, size_t content_size, uint64_t seed)
{
    static const char digits[] = "0123456789abcdef";
    char text[PAYLOAD_SPAN_BYTES_MAX];
    size_t size_before = span->size;

    assert(content_size >= size_before + PADDING_OVERHEAD);
    size_t length = content_size - size_before - PADDING_OVERHEAD / 2;
    for (size_t i = 0; i < length; i++)
        text[i] = i % 64 < 40 ? digits[pseudo_random(seed * 8191 + i) % 16]
                              : "cursor=page&limit=50&"[i % 21];
    for (; span->size != content_size; length--) {
        text[length] = '\0';
        span->size = size_before;
        put_attribute(span, 9, "url.query", text, 0);
        if (span->size < content_size)
            die("a span of %zu bytes cannot be made", content_size);
    }
}

static void put_span_head(struct byte_buffer *span, uint64_t number)
{
    uint64_t trace = pseudo_random(number / SPANS_PER_TRACE);
    uint64_t trace_id[] = {trace, pseudo_random(trace)};
    uint64_t span_id = span_id_of(number);
    uint64_t parent_id = pseudo_random(trace + number);
    uint64_t start_ns =
        1700000000U * BENCH_NS_PER_S + number * 137000 + pseudo_random(number) % 9999;
    const char *name = span_names[number % COUNT(span_names)];

    put_bytes(span, 1, trace_id, TRACE_ID_BYTES);
    put_bytes(span, 2, &span_id, SPAN_ID_BYTES);
    put_bytes(span, 4, &parent_id, SPAN_ID_BYTES);
    put_bytes(span, 5, name, strlen(name));
    put_number(span, 6, number % SPANS_PER_TRACE == 0 ? SERVER : CLIENT);
    put_fixed64(span, 7, start_ns);
    put_fixed64(span, 8, start_ns + pseudo_random(number + 7) % 50000000);
}

static size_t varint_size(uint64_t value)
{
    size_t size = 1;

    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

/* One Span as field 2 of ScopeSpans, span_bytes in all. */
static void put_span(struct byte_buffer *spans, uint32_t span_bytes, uint64_t number)
{
    struct byte_buffer span = {0};
    size_t content_size = span_bytes - 1 - varint_size(span_bytes);
    size_t row = 0;

    assert(span_bytes >= PAYLOAD_SPAN_BYTES_MIN);
    put_span_head(&span, number);
    for (; row < COUNT(span_attributes); row++) {
        size_t size_before = span.size;
        put_row(&span, 9, &span_attributes[row], pseudo_random(number + row));
        if (span.size + PADDING_OVERHEAD + 1 > content_size) {
            span.size = size_before;
            break;
        }
    }
    pad_span(&span, content_size, number);
    put_buffer(spans, 2, &span);
}

static struct byte_buffer make_resource(void)
{
    struct byte_buffer resource = {0};

    for (size_t i = 0; i < COUNT(resource_attributes); i++)
        put_row(&resource, 1, &resource_attributes[i], 1);
    return resource;
}

/* The id is the field after the trace id: tag, length, 16 bytes, tag, length. */
static void find_ids(struct payload *payload, uint32_t span_bytes)
{
    size_t first = payload->body.size - (size_t)payload->spans * span_bytes;
    size_t offset_in_span = 1 + varint_size(span_bytes) + 2 + TRACE_ID_BYTES + 2;

    assert(payload->body.size < UINT32_MAX);
    payload->id_offsets = allocate(payload->spans * sizeof *payload->id_offsets);
    for (uint32_t i = 0; i < payload->spans; i++)
        payload->id_offsets[i] = (uint32_t)(first + (size_t)i * span_bytes + offset_in_span);
}

struct payload payload_make(uint32_t spans, uint32_t span_bytes, uint64_t first)
{
    static const char scope_name[] = "io.opentelemetry.tomcat-10.0";
    struct payload payload = {.spans = spans};
    struct byte_buffer resource = make_resource();
    struct byte_buffer scope = {0};
    struct byte_buffer scope_spans = {0};
    struct byte_buffer resource_spans = {0};

    assert(first >= 1);
    assert(spans >= 1 && spans <= PAYLOAD_SPANS_MAX);
    assert(span_bytes >= PAYLOAD_SPAN_BYTES_MIN && span_bytes <= PAYLOAD_SPAN_BYTES_MAX);
    put_bytes(&scope, 1, scope_name, sizeof scope_name - 1);
    put_buffer(&scope_spans, 1, &scope);
    for (uint32_t i = 0; i < spans; i++)
        put_span(&scope_spans, span_bytes, first + i);
    put_buffer(&resource_spans, 1, &resource);
    put_buffer(&resource_spans, 2, &scope_spans);
    put_buffer(&payload.body, 1, &resource_spans);
    find_ids(&payload, span_bytes);
    return payload;
}

void payload_renumber(struct payload *payload, uint64_t first)
{
    assert(first >= 1);
    assert(payload->id_offsets != NULL);
    for (uint32_t i = 0; i < payload->spans; i++) {
        uint64_t id = span_id_of(first + i);
        memcpy(payload->body.data + payload->id_offsets[i], &id, sizeof id);
    }
}

uint64_t payload_weight(uint32_t spans, uint64_t first)
{
    uint64_t sum = 0;

    assert(first >= 1);
    for (uint32_t i = 0; i < spans; i++)
        sum += span_id_weight(span_id_of(first + i));
    return sum;
}

struct byte_buffer payload_gzip(const struct payload *payload)
{
    struct byte_buffer out = {0};
    z_stream stream = {0};

    assert(payload->body.size <= UINT32_MAX);
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib cannot start");
    byte_buffer_reserve(&out, deflateBound(&stream, payload->body.size));
    stream.next_in = payload->body.data;
    stream.avail_in = (uInt)payload->body.size;
    stream.next_out = out.data;
    stream.avail_out = (uInt)out.capacity;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        die("zlib cannot compress a payload");
    out.size = stream.total_out;
    deflateEnd(&stream);
    return out;
}

void payload_free(struct payload *payload)
{
    byte_buffer_free(&payload->body);
    free(payload->id_offsets);
    *payload = (struct payload){0};
}
