/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP: heads and chunked bodies, whole and a byte at a time, paths, locations of redirects. Limits
 * of HTTP keep these inputs small, so that n is. */
#include <assert.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http1_parser.h"
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
    return failed > 0;
}
