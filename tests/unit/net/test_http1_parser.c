/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads and chunked bodies: the corpus with its verdicts, whole and in every cut, and what
 * the parser says of heads that it accepts. */
#include "src/base/slice.h"
#include "src/net/server/http1_chunks.h"
#include "src/net/server/http1_parser.h"
#include "tests/unit/net/http1_requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static enum http1_result feed(struct http1_parser *parser, const char *text, size_t size)
{
    return http1_parser_feed(parser, (const uint8_t *)text, size);
}

static void check_verdict(const struct http1_case *one, enum http1_result result,
                          const struct http1_parser *parser, const char *how)
{
    enum http1_result wanted = one->status == 0 ? HTTP1_COMPLETE : HTTP1_REFUSED;
    if (result != wanted || parser->status != one->status)
        fail_msg("%s, %s: result %d status %u (%s), not status %u", one->name, how, (int)result,
                 parser->status, parser->reason == NULL ? "" : parser->reason, one->status);
    if (result == HTTP1_COMPLETE)
        assert_int_equal(parser->position, one->size);
}

/* The bytes are copied so that a read beyond what has come is seen by the sanitizer. */
static enum http1_result feed_prefix(struct http1_parser *parser, const struct http1_case *one,
                                     size_t size)
{
    char *prefix = malloc(size == 0 ? 1 : size);
    memcpy(prefix, one->text, size);
    enum http1_result result = feed(parser, prefix, size);
    free(prefix);
    return result;
}

static void corpus_gets_its_verdicts_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http1_cases); i++) {
        struct http1_parser parser;
        http1_parser_init(&parser);
        enum http1_result result = feed_prefix(&parser, &http1_cases[i], http1_cases[i].size);
        check_verdict(&http1_cases[i], result, &parser, "whole");
    }
}

static void corpus_gets_its_verdicts_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http1_cases); i++) {
        struct http1_parser parser;
        enum http1_result result = HTTP1_MORE;
        http1_parser_init(&parser);
        for (size_t size = 1; size <= http1_cases[i].size && result == HTTP1_MORE; size++)
            result = feed_prefix(&parser, &http1_cases[i], size);
        check_verdict(&http1_cases[i], result, &parser, "byte by byte");
    }
}

static void corpus_gets_its_verdicts_at_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http1_cases); i++) {
        for (size_t at = 0; at <= http1_cases[i].size; at++) {
            struct http1_parser parser;
            http1_parser_init(&parser);
            enum http1_result result = feed_prefix(&parser, &http1_cases[i], at);
            if (result == HTTP1_MORE)
                result = feed_prefix(&parser, &http1_cases[i], http1_cases[i].size);
            check_verdict(&http1_cases[i], result, &parser, "cut");
        }
    }
}

static void accepted_heads_are_incomplete_without_their_last_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http1_cases); i++) {
        if (http1_cases[i].status != 0)
            continue;
        struct http1_parser parser;
        http1_parser_init(&parser);
        assert_int_equal(feed(&parser, http1_cases[i].text, http1_cases[i].size - 1), HTTP1_MORE);
    }
}

/* Node knows a list of methods; a gateway in front of us decides by framing, not by method. */
static bool is_only_an_unknown_method(const struct http1_case *one)
{
    return strstr(one->name, "method") != NULL && one->others == NODE_REFUSES;
}

static void nothing_is_accepted_that_others_refuse(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http1_cases); i++) {
        const struct http1_case *one = &http1_cases[i];
        if (one->status == 0 && one->others != 0 && !is_only_an_unknown_method(one))
            fail_msg("%s is accepted here, refused by %s%s", one->name,
                     (one->others & NODE_REFUSES) != 0 ? "Node " : "",
                     (one->others & GO_REFUSES) != 0 ? "Go" : "");
    }
}

static void assert_span(const char *text, struct http1_span span, const char *wanted)
{
    assert_int_equal(span.size, strlen(wanted));
    assert_memory_equal(text + span.at, wanted, span.size);
}

/* RFC 9112 §3.2.2: a server takes them, and the target's host counts, not the header's. */
static void absolute_targets_are_taken_apart(void **state)
{
    static const struct {
        const char *target;
        const char *path; /* NULL: refused */
        const char *query;
        const char *host;
    } rows[] = {
        {"http://host/v1/traces", "/v1/traces", "", "host"},
        {"HTTPS://host:4318/v1/traces?a=b", "/v1/traces", "a=b", "host:4318"},
        {"http://[::1]:4318/v1/traces", "/v1/traces", "", "[::1]:4318"},
        {"http://[::1]/", "/", "", "[::1]"},
        {"http://host:/", "/", "", "host:"},
        {"http://host", "", "", "host"},
        {"http://host?a=b", "", "a=b", "host"},
        {"/http://host/", "/http://host/", "", "header"},
        {"http:///v1/traces", NULL, NULL, NULL},
        {"http://", NULL, NULL, NULL},
        {"http:/v1/traces", NULL, NULL, NULL},
        {"http:", NULL, NULL, NULL},
        {"://host/", NULL, NULL, NULL},
        {"ftp://host/", NULL, NULL, NULL},
        {"http://user@host/", NULL, NULL, NULL},
        {"http://host:port/", NULL, NULL, NULL},
        {"http://:80/", NULL, NULL, NULL},
        {"http://a:1:2/", NULL, NULL, NULL},
        {"http://[::1/", NULL, NULL, NULL},
        {"http://[::1]a/", NULL, NULL, NULL},
        {"http://::1]/", NULL, NULL, NULL},
        {"http://h\"st/", NULL, NULL, NULL},
        {"http://host/%zz", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        struct http1_parser parser;
        int size = snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: header\r\n\r\n",
                            rows[i].target);
        http1_parser_init(&parser);
        enum http1_result result = feed(&parser, text, (size_t)size);
        if ((result == HTTP1_COMPLETE) != (rows[i].path != NULL))
            fail_msg("%s: result %d, %s", rows[i].target, (int)result,
                     parser.reason != NULL ? parser.reason : "");
        if (rows[i].path == NULL) {
            assert_int_equal(parser.status, 400);
            continue;
        }
        assert_span(text, parser.path, rows[i].path);
        assert_span(text, parser.query, rows[i].query);
        assert_span(text, parser.host, rows[i].host);
    }
}

static void parts_of_a_head_are_found(void **state)
{
    (void)state;
    static const char text[] = "POST /v1/traces?a=b HTTP/1.1\r\nHost: example:4318\r\n"
                               "Content-Length: 120\r\nX-Token: \t s e \t\r\nX-Empty:\r\n\r\nbody";
    struct http1_parser parser;
    http1_parser_init(&parser);
    assert_int_equal(feed(&parser, text, sizeof(text) - 1), HTTP1_COMPLETE);
    assert_int_equal(parser.position, sizeof(text) - 1 - strlen("body"));
    assert_span(text, parser.method, "POST");
    assert_span(text, parser.path, "/v1/traces");
    assert_span(text, parser.query, "a=b");
    assert_span(text, parser.host, "example:4318");
    assert_int_equal(parser.version_minor, 1);
    assert_true(parser.has_content_length);
    assert_int_equal(parser.content_length, 120);
    assert_int_equal(parser.header_count, 4);
    assert_span(text, parser.headers[2].name, "X-Token");
    assert_span(text, parser.headers[2].value, "s e");
    assert_span(text, parser.headers[3].value, "");
}

static void connection_and_expect_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        bool closes, keeps, expects, is_chunked;
    } rows[] = {
        {"", false, false, false, false},
        {"Connection: close\r\n", true, false, false, false},
        {"Connection: CLOSE\r\n", true, false, false, false},
        {"Connection: Keep-Alive\r\n", false, true, false, false},
        {"Connection: foo, close , bar\r\n", true, false, false, false},
        {"Connection: foo\r\nConnection: close\r\n", true, false, false, false},
        {"Connection: closed\r\n", false, false, false, false},
        {"Expect: 100-Continue\r\n", false, false, true, false},
        {"Transfer-Encoding: cHuNkEd\r\n", false, false, false, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        struct http1_parser parser;
        int size =
            snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", rows[i].headers);
        http1_parser_init(&parser);
        assert_int_equal(feed(&parser, text, (size_t)size), HTTP1_COMPLETE);
        assert_int_equal(parser.wants_close, rows[i].closes);
        assert_int_equal(parser.wants_keep_alive, rows[i].keeps);
        assert_int_equal(parser.expects_continue, rows[i].expects);
        assert_int_equal(parser.is_chunked, rows[i].is_chunked);
    }
}

/* "GET /", padded to line_size with its CR LF, then header lines, then the end. */
static unsigned status_of(size_t target_size, size_t header_count, size_t header_size)
{
    size_t capacity = 64 + target_size + header_count * (header_size + 8);
    char *text = malloc(capacity);
    size_t size = (size_t)sprintf(text, "GET /");
    memset(text + size, 'a', target_size);
    size += target_size;
    size += (size_t)sprintf(text + size, " HTTP/1.1\r\nHost: a\r\n");
    for (size_t i = 0; i < header_count; i++) {
        size += (size_t)sprintf(text + size, "X: ");
        memset(text + size, 'b', header_size);
        size += header_size;
        size += (size_t)sprintf(text + size, "\r\n");
    }
    size += (size_t)sprintf(text + size, "\r\n");
    assert_true(size < capacity);
    struct http1_parser parser;
    http1_parser_init(&parser);
    enum http1_result result = feed(&parser, text, size);
    free(text);
    assert_int_equal(result, parser.status == 0 ? HTTP1_COMPLETE : HTTP1_REFUSED);
    return parser.status;
}

static void head_limits_give_431(void **state)
{
    (void)state;
    size_t line_overhead = strlen("GET / HTTP/1.1\r\n");
    assert_int_equal(status_of(HTTP_HEADER_BYTES_MAX - line_overhead, 0, 0), 0);
    assert_int_equal(status_of(HTTP_HEADER_BYTES_MAX - line_overhead + 1, 0, 0), 431);
    assert_int_equal(status_of(0, 1, HTTP_HEADER_BYTES_MAX - strlen("X: \r\n")), 0);
    assert_int_equal(status_of(0, 1, HTTP_HEADER_BYTES_MAX - strlen("X: \r\n") + 1), 431);
    assert_int_equal(status_of(0, HTTP_HEADERS_MAX - 1, 1), 0);
    assert_int_equal(status_of(0, HTTP_HEADERS_MAX, 1), 431);
    size_t rest = HTTP_HEADER_BLOCK_BYTES_MAX - strlen("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(rest % 2, 1);
    assert_int_equal(status_of(1, 2, (rest - 1) / 2 - strlen("X: \r\n")), 0);
    assert_int_equal(status_of(2, 2, (rest - 1) / 2 - strlen("X: \r\n")), 431);
}

/* result HTTP1_COMPLETE: payload is what comes out, and rest_size bytes stay unread. */
static const struct {
    const char *text;
    enum http1_result result;
    const char *payload;
    size_t rest_size;
} chunk_rows[] = {
    {"0\r\n\r\n", HTTP1_COMPLETE, "", 0},
    {"000\r\n\r\n", HTTP1_COMPLETE, "", 0},
    {"5\r\nhello\r\n0\r\n\r\n", HTTP1_COMPLETE, "hello", 0},
    {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET /", HTTP1_COMPLETE, "hello world", 5},
    {"a\r\n0123456789\r\n0\r\n\r\n", HTTP1_COMPLETE, "0123456789", 0},
    {"A\r\n0123456789\r\n0\r\n\r\n", HTTP1_COMPLETE, "0123456789", 0},
    {"0000000000000005\r\nhello\r\n0\r\n\r\n", HTTP1_COMPLETE, "hello", 0},
    {"2\r\n\r\n\r\n0\r\n\r\n", HTTP1_COMPLETE, "\r\n", 0},
    {"5;a=b\r\nhello\r\n0;c\r\n\r\n", HTTP1_COMPLETE, "hello", 0},
    {"5;a=\"b c\"\r\nhello\r\n0\r\n\r\n", HTTP1_COMPLETE, "hello", 0},
    {"0\r\nX-Sum: 1\r\n\r\n", HTTP1_COMPLETE, "", 0},
    {"0\r\nX-Sum: 1\r\nX-Other:\t2\r\n\r\nrest", HTTP1_COMPLETE, "", 4},
    {"0\r\nContent-Length: 5\r\n\r\n", HTTP1_COMPLETE, "", 0},
    {"", HTTP1_MORE, "", 0},
    {"5\r\nhel", HTTP1_MORE, "hel", 0},
    {"5\r\nhello\r\n", HTTP1_MORE, "hello", 0},
    {"0\r\n\r", HTTP1_MORE, "", 0},
    {"0\r\nX: 1\r\n", HTTP1_MORE, "", 0},
    {"7fffffffffffffff\r\nx", HTTP1_MORE, "x", 0},
    {"8000000000000000\r\n", HTTP1_REFUSED, "", 0},
    {"ffffffffffffffff\r\n", HTTP1_REFUSED, "", 0},
    {"10000000000000000\r\n", HTTP1_REFUSED, "", 0},
    {"00000000000000005\r\n", HTTP1_REFUSED, "", 0},
    {"\r\n", HTTP1_REFUSED, "", 0},
    {";a\r\n", HTTP1_REFUSED, "", 0},
    {"g\r\n", HTTP1_REFUSED, "", 0},
    {"-5\r\n", HTTP1_REFUSED, "", 0},
    {"+5\r\n", HTTP1_REFUSED, "", 0},
    {"0x5\r\n", HTTP1_REFUSED, "", 0},
    {"5_0\r\n", HTTP1_REFUSED, "", 0},
    {" 5\r\n", HTTP1_REFUSED, "", 0},
    {"5 \r\n", HTTP1_REFUSED, "", 0},
    {"5\t\r\n", HTTP1_REFUSED, "", 0},
    {"5 ;a\r\n", HTTP1_REFUSED, "", 0},
    {"5\n", HTTP1_REFUSED, "", 0},
    {"5\rx", HTTP1_REFUSED, "", 0},
    {"5\r\r\n", HTTP1_REFUSED, "", 0},
    {"5;a\n", HTTP1_REFUSED, "", 0},
    {"5;\r\n", HTTP1_REFUSED, "", 0},
    {"5; a\r\n", HTTP1_REFUSED, "", 0},
    {"5;=a\r\n", HTTP1_REFUSED, "", 0},
    {"5;a\x01\r\n", HTTP1_REFUSED, "", 0},
    {"5;a\x7f\r\n", HTTP1_REFUSED, "", 0},
    {"5;a\rb\r\n", HTTP1_REFUSED, "", 0},
    {"5\r\nhelloX", HTTP1_REFUSED, "hello", 0},
    {"5\r\nhello\n", HTTP1_REFUSED, "hello", 0},
    {"5\r\nhello\rX", HTTP1_REFUSED, "hello", 0},
    {"5\r\nhello0\r\n", HTTP1_REFUSED, "hello", 0},
    {"0\r\n\n", HTTP1_REFUSED, "", 0},
    {"0\r\n\rX", HTTP1_REFUSED, "", 0},
    {"0\n\n", HTTP1_REFUSED, "", 0},
    {"0\r\n X: 1\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX : 1\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\n: 1\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX: 1\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX: a\x01\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX: 1\r\n folded\r\n\r\n", HTTP1_REFUSED, "", 0},
    {"0\r\nX: 1\rY: 2\r\n\r\n", HTTP1_REFUSED, "", 0},
};

struct chunk_outcome {
    enum http1_result result;
    size_t used;
    size_t size;
    char payload[64];
};

static void feed_chunks(struct http1_chunks *chunks, const char *text, size_t size,
                        struct chunk_outcome *outcome)
{
    char *copy = malloc(size == 0 ? 1 : size);
    memcpy(copy, text, size);
    for (size_t at = 0; at < size && outcome->result == HTTP1_MORE;) {
        size_t used;
        struct slice payload;
        outcome->result =
            http1_chunks_feed(chunks, (const uint8_t *)copy + at, size - at, &used, &payload);
        assert_true(used > 0 && used <= size - at);
        assert_true(outcome->size + payload.size < sizeof(outcome->payload));
        memcpy(outcome->payload + outcome->size, payload.data, payload.size);
        outcome->size += payload.size;
        outcome->used += used;
        at += used;
    }
    free(copy);
}

static void chunked_bodies_get_their_verdicts_at_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(chunk_rows); i++) {
        const char *text = chunk_rows[i].text;
        size_t size = strlen(text);
        for (size_t at = 0; at <= size; at++) {
            struct http1_chunks chunks;
            struct chunk_outcome outcome = {.result = HTTP1_MORE};
            http1_chunks_init(&chunks);
            feed_chunks(&chunks, text, at, &outcome);
            if (outcome.result == HTTP1_MORE)
                feed_chunks(&chunks, text + at, size - at, &outcome);
            if (outcome.result != chunk_rows[i].result)
                fail_msg("\"%s\" cut at %zu: %d, not %d", text, at, (int)outcome.result,
                         (int)chunk_rows[i].result);
            assert_string_equal(outcome.payload, chunk_rows[i].payload);
            if (outcome.result == HTTP1_COMPLETE)
                assert_int_equal(size - outcome.used, chunk_rows[i].rest_size);
        }
    }
}

static enum http1_result feed_repeated(const char *start, char fill, size_t count, const char *end)
{
    struct http1_chunks chunks;
    struct chunk_outcome outcome = {.result = HTTP1_MORE};
    http1_chunks_init(&chunks);
    feed_chunks(&chunks, start, strlen(start), &outcome);
    for (size_t i = 0; i < count; i++)
        feed_chunks(&chunks, &fill, 1, &outcome);
    feed_chunks(&chunks, end, strlen(end), &outcome);
    return outcome.result;
}

static void chunk_extensions_and_trailers_are_limited(void **state)
{
    (void)state;
    size_t extension_max = HTTP_CHUNK_EXTENSION_BYTES_MAX - strlen("\r");
    assert_int_equal(feed_repeated("0;", 'a', extension_max, "\r\n\r\n"), HTTP1_COMPLETE);
    assert_int_equal(feed_repeated("0;", 'a', extension_max + 1, "\r\n\r\n"), HTTP1_REFUSED);
    size_t trailer_max = HTTP_TRAILER_BYTES_MAX - strlen("X:\r\r");
    assert_int_equal(feed_repeated("0\r\nX:", 'a', trailer_max, "\r\n\r\n"), HTTP1_COMPLETE);
    assert_int_equal(feed_repeated("0\r\nX:", 'a', trailer_max + 1, "\r\n\r\n"), HTTP1_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus_gets_its_verdicts_whole),
        cmocka_unit_test(corpus_gets_its_verdicts_byte_by_byte),
        cmocka_unit_test(corpus_gets_its_verdicts_at_every_cut),
        cmocka_unit_test(accepted_heads_are_incomplete_without_their_last_byte),
        cmocka_unit_test(nothing_is_accepted_that_others_refuse),
        cmocka_unit_test(absolute_targets_are_taken_apart),
        cmocka_unit_test(parts_of_a_head_are_found),
        cmocka_unit_test(connection_and_expect_are_understood),
        cmocka_unit_test(head_limits_give_431),
        cmocka_unit_test(chunked_bodies_get_their_verdicts_at_every_cut),
        cmocka_unit_test(chunk_extensions_and_trailers_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
