/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the rig that the figures rest on: what a sink counts is what was sent. */
#include "tests/bench/body_coding.h"
#include "tests/bench/gzip_body.h"
#include "tests/bench/h2_frame.h"
#include "tests/bench/histogram.h"
#include "tests/bench/http1_message.h"
#include "tests/bench/payload.h"
#include "tests/bench/span_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <zstd.h>

enum { SPANS = 100, FIRST = 41, SPANS_MAX = FIRST + SPANS - 1 };

static struct bytes bytes_of(const struct byte_buffer *buffer)
{
    return (struct bytes){buffer->data, buffer->size};
}

static void every_span_has_the_size_that_was_asked_for(void **state)
{
    static const uint32_t sizes[] = {PAYLOAD_SPAN_BYTES_MIN, 250, 672, 1700};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct payload few = payload_make(100, sizes[i], 1);
        struct payload many = payload_make(200, sizes[i], 1);
        /* The three lengths of the envelope take as many bytes in both. */
        assert_int_equal(many.body.size - few.body.size, 100 * sizes[i]);
        payload_free(&few);
        payload_free(&many);
    }
}

static void a_sink_finds_exactly_the_spans_that_were_numbered(void **state)
{
    struct payload payload = payload_make(SPANS, 672, 1);
    struct span_ids ids;

    (void)state;
    payload_renumber(&payload, FIRST);
    span_ids_init(&ids, SPANS_MAX);
    assert_true(span_ids_add_body(&ids, BODY_TRACES, bytes_of(&payload.body)));
    assert_int_equal(ids.spans, SPANS);
    assert_int_equal(ids.unique, SPANS);
    assert_int_equal(ids.duplicates, 0);
    assert_int_equal(ids.unknown, 0);
    assert_true(ids.sum == payload_weight(SPANS, FIRST));
    for (uint64_t number = 0; number <= SPANS_MAX; number++)
        assert_int_equal(ids.bitmap[number / 8] >> (number % 8) & 1, number >= FIRST);
    free(ids.bitmap);
    payload_free(&payload);
}

static void a_sink_notices_doubled_invented_and_torn_spans(void **state)
{
    struct payload payload = payload_make(SPANS, 672, FIRST);
    struct span_ids ids;

    (void)state;
    span_ids_init(&ids, SPANS_MAX);
    assert_true(span_ids_add_body(&ids, BODY_TRACES, bytes_of(&payload.body)));
    assert_true(span_ids_add_body(&ids, BODY_TRACES, bytes_of(&payload.body)));
    assert_int_equal(ids.duplicates, SPANS);
    payload_renumber(&payload, SPANS_MAX + 1);
    assert_true(span_ids_add_body(&ids, BODY_TRACES, bytes_of(&payload.body)));
    assert_int_equal(ids.unknown, SPANS);
    payload.body.size--;
    assert_false(span_ids_add_body(&ids, BODY_TRACES, bytes_of(&payload.body)));
    free(ids.bitmap);
    payload_free(&payload);
}

/* One item of each kind, whose id or first value is 300, by hand. */
static void a_sink_finds_the_items_of_every_kind(void **state)
{
    static const struct {
        enum body_kind kind;
        const char *body;
        size_t size;
        uint64_t items;
        bool is_sound;
    } rows[] = {
#define ROW(kind, text, items, is_sound) {kind, text, sizeof(text) - 1, items, is_sound}
        ROW(BODY_TRACES, "\n\016\022\014\022\n\022\010\x2c\1\0\0\0\0\0\0", 1, true),
        ROW(BODY_TRACES, "{\"spanId\":\"2c01000000000000\",\"parentSpanId\":\"1\"}", 1, true),
        ROW(BODY_TRACES, "{\"spanId\":\"2C01000000000000\"}", 1, true),
        ROW(BODY_TRACES, "{\"spanId\":\"2c0100000000000\"}", 0, false),
        ROW(BODY_TRACES, "{\"spanId\":\"2c01", 0, false),
        ROW(BODY_TRACES, "{}", 0, true),
        ROW(BODY_PROFILES, "\n\012\022\010\022\6\022\4\"\2\xac\2", 1, true),
        ROW(BODY_PROFILES, "\n\010\022\6\022\4\022\2\10\1", 0, false),
        ROW(BODY_PUSH, "\n\012\022\010\n\6\022\4\022\2\xac\2", 1, true),
        ROW(BODY_PUSH, "\n\7\022\5\n\3\x1f\x8b\1", 0, false),
#undef ROW
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes body = {(const uint8_t *)rows[i].body, rows[i].size};
        struct span_ids ids;
        span_ids_init(&ids, 0);
        assert_int_equal(span_ids_add_body(&ids, rows[i].kind, body), rows[i].is_sound);
        assert_int_equal(ids.spans, rows[i].items);
        assert_true(ids.sum == rows[i].items * span_id_weight(300));
    }
}

static void zstd_frames_come_out_as_they_went_in(void **state)
{
    static const uint8_t text[] = "some text, some text, some text";
    struct byte_buffer packed = {0};
    struct byte_buffer plain = {0};

    (void)state;
    byte_buffer_reserve(&packed, 2 * ZSTD_compressBound(sizeof text));
    for (unsigned frame = 0; frame < 2; frame++)
        packed.size += ZSTD_compress(packed.data + packed.size, packed.capacity - packed.size, text,
                                     sizeof text, 3);
    assert_int_equal(body_coding_of("zstd\r\n"), BODY_ZSTD);
    assert_true(body_decode(BODY_ZSTD, bytes_of(&packed), &plain));
    assert_int_equal(plain.size, 2 * sizeof text);
    assert_memory_equal(plain.data + sizeof text, text, sizeof text);
    packed.size--;
    assert_false(body_decode(BODY_ZSTD, bytes_of(&packed), &plain));
    assert_false(body_decode(body_coding_of("br"), bytes_of(&packed), &plain));
    byte_buffer_free(&packed);
    byte_buffer_free(&plain);
}

static void gzip_members_come_out_as_they_went_in(void **state)
{
    struct payload payload = payload_make(SPANS, 672, 1);
    struct byte_buffer packed = payload_gzip(&payload);
    struct bytes halves[] = {{payload.body.data, 1000},
                             {payload.body.data + 1000, payload.body.size - 1000}};
    struct byte_buffer again = {0};
    struct byte_buffer plain = {0};

    (void)state;
    gzip_body_deflate(halves, 2, &again);
    byte_buffer_append(&packed, again.data, again.size);
    assert_true(gzip_body_inflate(bytes_of(&packed), &plain));
    assert_int_equal(plain.size, 2 * payload.body.size);
    assert_memory_equal(plain.data, payload.body.data, payload.body.size);
    assert_memory_equal(plain.data + payload.body.size, payload.body.data, payload.body.size);
    packed.size--;
    assert_false(gzip_body_inflate(bytes_of(&packed), &plain));
    byte_buffer_free(&packed);
    byte_buffer_free(&again);
    byte_buffer_free(&plain);
    payload_free(&payload);
}

static void chunks_are_joined_wherever_reads_end(void **state)
{
    static const char text[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\nGET";
    struct http1_message message = {0};
    enum http1_state reached = HTTP1_MORE;
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (size_t i = 0; i < sizeof text - 4; i++) {
        assert_int_equal(reached, HTTP1_MORE);
        assert_int_equal(write(ends[0], text + i, 1), 1);
        reached = http1_receive(&message, ends[1]);
    }
    assert_int_equal(reached, HTTP1_COMPLETE);
    assert_int_equal(http1_body(&message).size, 11);
    assert_memory_equal(http1_body(&message).data, "hello world", 11);
    http1_consume(&message);
    assert_int_equal(message.received.size, 0);
    http1_free(&message);
    close(ends[0]);
    close(ends[1]);
}

/* Returns how many fields nghttp2 finds, and whether one of them is the path of the service. */
static unsigned decode(nghttp2_hd_inflater *inflater, struct bytes block, bool *ret_has_path)
{
    static const char path[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    unsigned fields = 0;

    for (int state = 0; (state & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
        nghttp2_nv field;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &state, block.data, block.size, 1);
        assert_true(used >= 0);
        block.data += used;
        block.size -= (size_t)used;
        if ((state & NGHTTP2_HD_INFLATE_EMIT) == 0)
            continue;
        fields++;
        *ret_has_path |=
            field.valuelen == sizeof path - 1 && memcmp(field.value, path, sizeof path - 1) == 0;
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return fields;
}

static void every_request_head_decodes_to_the_same_fields(void **state)
{
    static const size_t table_sizes[] = {0, 512, 1024, H2_HPACK_TABLE_BYTES};
    uint8_t block[H2_REQUEST_HEAD_BYTES_MAX];

    (void)state;
    for (unsigned row = 0; row < 8; row++) {
        size_t table_bytes = table_sizes[row / 2];
        bool is_gzip = row % 2 == 1;
        nghttp2_hd_inflater *inflater;
        assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
        nghttp2_hd_inflate_change_table_size(inflater, table_bytes);
        for (unsigned request = 0; request < 3; request++) {
            size_t size =
                h2_request_head(block, is_gzip ? "gzip" : NULL, request == 0, table_bytes);
            bool has_path = false;
            unsigned fields = decode(inflater, (struct bytes){block, size}, &has_path);
            assert_int_equal(fields, is_gzip ? 8 : 7);
            assert_true(has_path);
        }
        nghttp2_hd_inflate_del(inflater);
    }
}

static void quantiles_are_known_to_a_sixtyfourth(void **state)
{
    static struct histogram histogram;

    (void)state;
    for (uint64_t value = 1; value <= 100000; value++)
        histogram_add(&histogram, value * 1000);
    histogram_add(&histogram, UINT64_MAX);
    for (unsigned percent = 1; percent < 100; percent++) {
        uint64_t exact = percent * (uint64_t)1000000;
        uint64_t found = histogram_quantile(&histogram, percent / 100.0);
        assert_in_range(found, exact, exact + exact / 64 + 2000);
    }
    assert_true(histogram_quantile(&histogram, 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_span_has_the_size_that_was_asked_for),
        cmocka_unit_test(a_sink_finds_exactly_the_spans_that_were_numbered),
        cmocka_unit_test(a_sink_notices_doubled_invented_and_torn_spans),
        cmocka_unit_test(a_sink_finds_the_items_of_every_kind),
        cmocka_unit_test(zstd_frames_come_out_as_they_went_in),
        cmocka_unit_test(gzip_members_come_out_as_they_went_in),
        cmocka_unit_test(chunks_are_joined_wherever_reads_end),
        cmocka_unit_test(every_request_head_decodes_to_the_same_fields),
        cmocka_unit_test(quantiles_are_known_to_a_sixtyfourth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
