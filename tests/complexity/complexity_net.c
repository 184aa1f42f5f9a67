/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP: heads and chunked bodies, whole and a byte at a time, paths, locations of redirects; blocks
 * of headers of HTTP/2 through a server on loopback. HTTP's limits keep these inputs, and so
 * n, small. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http1_parser.h"
#include "src/net/server/http_server.h"
#include "src/net/syntax/http_path.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/media_type.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"

#define HEAD "GET / HTTP/1.1\r\nHost: h\r\n"

enum { HEADERS_N = 45, CHUNKS_N = 3000, PATH_N = 100, LOCATION_N = 600 };

static struct slice headers(size_t n)
{
    return numbered(HEAD, "x", n, ": v\r\n", "\r\n");
}

static struct slice empty_headers(size_t n)
{
    return repeat(HEAD, "x:\r\n", n, "\r\n");
}

static struct slice long_header(size_t n)
{
    return repeat(HEAD "x: ", "0123456789abcdef0123456789abcdef", n, "\r\n\r\n");
}

static struct slice blank_header(size_t n)
{
    return repeat(HEAD "x:", "                                ", n, "\r\n\r\n");
}

static struct slice long_target(size_t n)
{
    return repeat("GET /", "a?b%41c/d;e=f&a?b%41c/d;e=f&aaaa", n, " HTTP/1.1\r\nHost: h\r\n\r\n");
}

static const struct work_shape heads[] = {
    {"headers", headers},           {"empty headers", empty_headers},
    {"a long header", long_header}, {"a blank header", blank_header},
    {"a long target", long_target},
};

static void run_head(struct slice head)
{
    struct http1_parser parser;
    http1_parser_init(&parser);
    work_begin();
    enum http1_result result = http1_parser_feed(&parser, head.data, head.size);
    work_end();
    assert(result == HTTP1_COMPLETE);
}

static void run_head_in_pieces(struct slice head)
{
    struct http1_parser parser;
    enum http1_result result = HTTP1_MORE;
    http1_parser_init(&parser);
    work_begin();
    for (size_t size = 1; size <= head.size && result == HTTP1_MORE; size++)
        result = http1_parser_feed(&parser, head.data, size);
    work_end();
    assert(result == HTTP1_COMPLETE);
}

static const struct work_stage head_stages[] = {
    {.name = "head", .run = run_head, .n = HEADERS_N, .per_byte_max = 21},
    {.name = "head, a byte at a time",
     .run = run_head_in_pieces,
     .n = HEADERS_N,
     .per_byte_max = 27},
};

static struct slice short_chunks(size_t n)
{
    return repeat("", "1\r\nx\r\n", n, "0\r\n\r\n");
}

static struct slice padded_chunks(size_t n)
{
    return repeat("", "0000000000000001\r\nx\r\n", n, "0\r\n\r\n");
}

static struct slice chunks(size_t n)
{
    return repeat("", "20\r\n0123456789abcdef0123456789abcdef\r\n", n, "0\r\n\r\n");
}

static const struct work_shape chunk_shapes[] = {
    {"chunks of a byte", short_chunks},
    {"chunks with padded sizes", padded_chunks},
    {"chunks", chunks},
};

/* pieces: how much is there at a time. */
static void read_chunks(struct slice body, size_t piece)
{
    struct http1_chunks reader;
    enum http1_result result = HTTP1_MORE;
    size_t at = 0;
    http1_chunks_init(&reader);
    work_begin();
    while (result == HTTP1_MORE && at < body.size) {
        struct slice payload;
        size_t used;
        size_t left = body.size - at;
        result = http1_chunks_feed(&reader, body.data + at, left < piece ? left : piece, &used,
                                   &payload);
        at += used;
    }
    work_end();
    assert(result == HTTP1_COMPLETE);
}

static void run_chunks(struct slice body)
{
    read_chunks(body, SIZE_MAX);
}

static void run_chunks_in_pieces(struct slice body)
{
    read_chunks(body, 1);
}

static const struct work_stage chunk_stages[] = {
    {.name = "chunks", .run = run_chunks, .n = CHUNKS_N, .per_byte_max = 12},
    {.name = "chunks, a byte at a time",
     .run = run_chunks_in_pieces,
     .n = CHUNKS_N,
     .per_byte_max = 20},
};

static struct slice escapes(size_t n)
{
    return repeat("/", "%41", n, "");
}

static struct slice dots(size_t n)
{
    return repeat("/", "./", n, "");
}

static struct slice double_dots(size_t n)
{
    return repeat("/a", "/..", n, "");
}

static struct slice slashes(size_t n)
{
    return repeat("/", "/", n, "");
}

static struct slice steps_up(size_t n)
{
    return repeat("/", "a/../", n, "");
}

static const struct work_shape paths[] = {
    {"escapes", escapes}, {"dots", dots},         {"double dots", double_dots},
    {"slashes", slashes}, {"steps up", steps_up},
};

static void run_path(struct slice path)
{
    char decoded[HTTP_PATH_MAX];
    char cleaned[HTTP_PATH_MAX];
    char escaped[HTTP_PATH_ESCAPED_MAX];
    work_begin();
    bool is_fine = http_path_decode(path, decoded);
    http_path_clean(decoded, cleaned);
    http_path_escape(cleaned, slice_of(NULL, 0), escaped);
    work_end();
    assert(is_fine);
}

static const struct work_stage path_stages[] = {
    {.name = "path", .run = run_path, .n = PATH_N, .per_byte_max = 10}};

static void run_location(struct slice location)
{
    struct http_url base;
    struct http_url url;
    struct error error;
    bool is_parsed = http_url_parse("http://user:secret@host/a/b/c?d", &base, &error);
    assert(is_parsed);
    char *text = mem_alloc(location.size + 1);
    memcpy(text, location.data, location.size);
    text[location.size] = '\0';
    work_begin();
    char *resolved = http_url_resolve(&base, base.target, text);
    if (http_url_parse(resolved, &url, &error))
        http_url_clear(&url);
    work_end();
    mem_free(resolved);
    mem_free(text);
    http_url_clear(&base);
}

static const struct work_stage location_stages[] = {
    {.name = "location", .run = run_location, .n = LOCATION_N, .per_byte_max = 14}};

static struct slice type_parameters(size_t n)
{
    return repeat("application/json", "; a=b", n, "");
}

static struct slice type_blanks(size_t n)
{
    return repeat("application/json", " ", n, ";");
}

static struct slice type_quotes(size_t n)
{
    return repeat("application/json; a=\"", "\\\"", n, "\"");
}

static const struct work_shape types[] = {
    {"parameters", type_parameters}, {"blanks", type_blanks}, {"quotes", type_quotes}};

static void run_type(struct slice type)
{
    work_begin();
    media_type_is(type, "application/json");
    work_end();
}

static const struct work_stage type_stages[] = {
    {.name = "content type", .run = run_type, .per_byte_max = 7}};

/* HTTP/2, RFC 9113 and 7541. What the server reads is there before it is counted, so that the
 * kernel has no say in it. */
enum {
    H2_HEADERS = 1,
    H2_SETTINGS = 4,
    H2_CONTINUATION = 9,
    H2_END_STREAM = 1,
    H2_END_HEADERS = 4
};
enum { H2_N = 45, H2_STREAMS = 50, H2_BLOCK_MAX = 16000, H2_TURNS = 64, H2_NOISE_TURNS = 8 };

static void put_frame(struct profile_bytes *out, uint8_t type, uint8_t flags, size_t stream,
                      struct slice payload)
{
    const uint8_t head[] = {(uint8_t)(payload.size >> 16),
                            (uint8_t)(payload.size >> 8),
                            (uint8_t)payload.size,
                            type,
                            flags,
                            (uint8_t)(stream >> 24),
                            (uint8_t)(stream >> 16),
                            (uint8_t)(stream >> 8),
                            (uint8_t)stream};
    profile_bytes_add(out, slice_of(head, sizeof(head)));
    profile_bytes_add(out, payload);
}

/* A string of HPACK as it stands; its length has a prefix of seven bits. */
static void put_h2_text(struct profile_bytes *out, struct slice text)
{
    uint8_t size[8];
    size_t count = 1;
    size[0] = text.size < 127 ? (uint8_t)text.size : 127;
    if (text.size >= 127) {
        size_t left = text.size - 127;
        for (; left >= 128; left >>= 7)
            size[count++] = (uint8_t)(left | 128);
        size[count++] = (uint8_t)left;
    }
    profile_bytes_add(out, slice_of(size, count));
    profile_bytes_add(out, text);
}

/* `kind`: 0x00 is not remembered, 0x40 goes into the table. */
static void put_h2_field(struct profile_bytes *out, uint8_t kind, const char *name,
                         struct slice value)
{
    profile_bytes_add(out, slice_of(&kind, 1));
    put_h2_text(out, slice_of_text(name));
    put_h2_text(out, value);
}

/* Streams with the same block: `head` before the fields of the request, `tail` behind them, cut
 * into so many frames. */
static struct slice h2_streams(size_t streams, struct profile_bytes *head,
                               struct profile_bytes *tail, size_t frames)
{
    struct profile_bytes out = {0};
    struct profile_bytes block = {0};
    profile_bytes_add(&out, slice_of_text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    put_frame(&out, H2_SETTINGS, 0, 0, slice_of(NULL, 0));
    profile_bytes_add(&block, slice_of(head->data, head->size));
    profile_bytes_add(&block, slice_of_text("\x82\x86\x84\x01\x01h")); /* GET http / h */
    profile_bytes_add(&block, slice_of(tail->data, tail->size));
    assert(block.size <= H2_BLOCK_MAX);
    for (size_t i = 0; i < streams; i++)
        for (size_t k = 0; k < frames; k++) {
            size_t from = block.size * k / frames;
            size_t until = block.size * (k + 1) / frames;
            uint8_t flags =
                (uint8_t)((k == 0 ? H2_END_STREAM : 0) | (k + 1 == frames ? H2_END_HEADERS : 0));
            put_frame(&out, k == 0 ? H2_HEADERS : H2_CONTINUATION, flags, 2 * i + 1,
                      slice_of(block.data + from, until - from));
        }
    profile_bytes_fini(&block);
    profile_bytes_fini(head);
    profile_bytes_fini(tail);
    return message_done(&out);
}

static struct slice h2_fields(size_t n, uint8_t kind, bool is_numbered, const char *name,
                              const char *value)
{
    struct profile_bytes none = {0};
    struct profile_bytes tail = {0};
    char text[32];
    for (size_t i = 0; i < n; i++)
        put_h2_field(&tail, kind, is_numbered ? name_of(text, i) : name, slice_of_text(value));
    return h2_streams(H2_STREAMS, &none, &tail, 1);
}

static struct slice h2_headers(size_t n)
{
    return h2_fields(n, 0x00, true, NULL, "value");
}

static struct slice h2_remembered_headers(size_t n)
{
    return h2_fields(n, 0x40, true, NULL, "value");
}

static struct slice h2_empty_headers(size_t n)
{
    return h2_fields(n, 0x00, false, "x", "");
}

static struct slice h2_cookies(size_t n)
{
    return h2_fields(n, 0x00, false, "cookie", "a=b");
}

/* Of the table: twenty bytes of text each, by one byte. */
static struct slice h2_indexed_headers(size_t n)
{
    struct profile_bytes none = {0};
    struct profile_bytes tail = {0};
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&tail, slice_of_text("\x90")); /* accept-encoding: gzip, deflate */
    return h2_streams(H2_STREAMS, &none, &tail, 1);
}

static struct slice h2_long_header(size_t n)
{
    struct profile_bytes none = {0};
    struct profile_bytes tail = {0};
    struct slice value = repeat("", "0123456789abcdef0123456789abcdef", n, "");
    put_h2_field(&tail, 0x00, "x", value);
    mem_free((void *)(uintptr_t)value.data);
    return h2_streams(H2_STREAMS, &none, &tail, 1);
}

static struct slice h2_table_sizes(size_t n)
{
    struct profile_bytes head = {0};
    struct profile_bytes none = {0};
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&head, slice_of_text("\x3f\xe1\x1f")); /* 4096 */
    return h2_streams(H2_STREAMS, &head, &none, 1);
}

static struct slice h2_many_streams(size_t n)
{
    struct profile_bytes none = {0};
    struct profile_bytes nothing = {0};
    return h2_streams(n, &none, &nothing, 1);
}

static struct slice h2_continuations(size_t n)
{
    struct profile_bytes none = {0};
    struct profile_bytes tail = {0};
    for (size_t i = 0; i < 10; i++)
        put_h2_field(&tail, 0x00, "x", slice_of_text("value"));
    return h2_streams(n, &none, &tail, 5);
}

static const struct work_shape h2_blocks[] = {
    {"headers", h2_headers},
    {"remembered headers", h2_remembered_headers},
    {"indexed headers", h2_indexed_headers},
    {"empty headers", h2_empty_headers},
    {"cookies", h2_cookies},
    {"a long header", h2_long_header},
    {"table sizes", h2_table_sizes},
    {"many streams", h2_many_streams},
    {"CONTINUATION frames", h2_continuations},
};

static unsigned h2_requests;

static void on_h2_request(struct http_request *request, void *arg)
{
    (void)arg;
    h2_requests++;
    http_respond(request, &(struct http_response){.status = 200});
}

static void on_h2_end(struct http_request *request, void *arg)
{
    (void)request;
    (void)arg;
}

static void on_h2_stopped(void *arg)
{
    *(bool *)arg = true;
}

static size_t streams_of(struct slice bytes)
{
    size_t count = 0;
    for (size_t at = 24; at + 9 <= bytes.size;) {
        const uint8_t *head = bytes.data + at;
        count += head[3] == H2_HEADERS;
        at += 9 + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]);
    }
    return count;
}

static void run_h2(struct slice bytes)
{
    static const struct http_handler handler = {.on_request = on_h2_request, .on_end = on_h2_end};
    struct lane *lane = lane_create(0);
    struct budget budget;
    struct error error;
    bool has_stopped = false;
    clock_fake_start((uint64_t)1000 * NS_PER_S, (uint64_t)1790000000 * NS_PER_S);
    budget_init(&budget, 64 << 20);
    struct http_server *server = http_server_create(&(struct http_server_settings){
        .lane = lane,
        .budget = &budget,
        .has_http2 = true,
        .streams_max = 100,
        .handler = &handler,
    });
    bool is_open = http_server_listen(&server, 1, "tcp", "127.0.0.1:0", &error);
    assert(is_open);
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *port = strrchr(http_server_address(server), ':') + 1;
    address.sin_port = htons((uint16_t)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    /* What is sent fits into the buffers of the sockets. */
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){4 << 20}, sizeof(int));
    int failed = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    assert(failed == 0);
    for (unsigned i = 0; i < H2_NOISE_TURNS; i++)
        lane_turn(lane);
    h2_requests = 0;
    ssize_t sent = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
    assert(sent == (ssize_t)bytes.size);
    work_begin();
    for (unsigned i = 0; i < H2_TURNS; i++)
        lane_turn(lane);
    work_end();
    assert(h2_requests == streams_of(bytes));
    close(fd);
    http_server_stop(server, on_h2_stopped, &has_stopped);
    http_server_abort(server);
    while (!has_stopped)
        lane_turn(lane);
    http_server_destroy(server);
    lane_destroy(lane);
    budget_fini(&budget);
    clock_fake_stop();
}

static const struct work_stage h2_stages[] = {
    {.name = "HTTP/2", .run = run_h2, .n = H2_N, .per_byte_max = 45}};

#define CHECK(stages, shapes)                                                                      \
    work_check(stages, sizeof(stages) / sizeof((stages)[0]), shapes,                               \
               sizeof(shapes) / sizeof((shapes)[0]), argc, argv)

int main(int argc, char **argv)
{
    int failed = CHECK(head_stages, heads);
    failed += CHECK(chunk_stages, chunk_shapes);
    failed += CHECK(path_stages, paths);
    failed += CHECK(location_stages, paths);
    failed += CHECK(type_stages, types);
    failed += CHECK(h2_stages, h2_blocks);
    return failed > 0;
}
