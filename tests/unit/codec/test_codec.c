/* SPDX-License-Identifier: Apache-2.0 */
/* Every codec against streams that other implementations made, against itself, torn, damaged, in
 * pieces, and as a bomb. gzip's own rows are in test_gzip.c. */
#include "src/codec/codec.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec_output.h"
#include "src/core/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STREAM_BYTES_MAX = 512, PLAIN_BYTES = 220, TEXT_BYTES = 300000 };

static struct codec_box *box;
static struct budget budget;

/* The same 220 bytes, by other hands. */
static const struct stream {
    const char *maker;
    enum codec codec;
    const char *hex;
} streams[] = {
    {"compress/gzip of Go", CODEC_GZIP,
     "1f8b08000000000000ff2a2e48cc5348cb49cc4d5518764c40000000ffff16fe2b17dc000000"},
    {"gzip of Python", CODEC_GZIP,
     "1f8b08000000000002032b2e48cc5348cb49cc4d55281e6e4c0016fe2b17dc000000"},
    {"compress/zlib of Go", CODEC_ZLIB, "789c2a2e48cc5348cb49cc4d5518764c40000000ffff5a4c4f4d"},
    {"klauspost/compress of Go", CODEC_ZSTD,
     "28b52ffd04009d0000587370616e20666c616d652001540b032b4e07409654e1"},
    {"klauspost/compress of Go, flushed twenty times", CODEC_ZSTD,
     "28b52ffd04685800007370616e20666c616d65205800007370616e20666c616d65205800007370616e20666c"
     "616d65205800007370616e20666c616d65205800007370616e20666c616d65205800007370616e20666c616d"
     "65205800007370616e20666c616d65205800007370616e20666c616d65205800007370616e20666c616d6520"
     "5800007370616e20666c616d65205800007370616e20666c616d65205800007370616e20666c616d65205800"
     "007370616e20666c616d65205800007370616e20666c616d65205800007370616e20666c616d652058000073"
     "70616e20666c616d65205800007370616e20666c616d65205800007370616e20666c616d6520580000737061"
     "6e20666c616d65205800007370616e20666c616d6520010000409654e1"},
    {"zstd, with size and checksum", CODEC_ZSTD,
     "28b52ffd0468950000587370616e20666c616d652001004e53c50b409654e1"},
    {"zstd, size unknown, window of 8 MiB", CODEC_ZSTD,
     "28b52ffd0068950000587370616e20666c616d652001004e53c50b"},
    {"pierrec/lz4 of Go", CODEC_LZ4,
     "04224d186470b922000000bf7370616e20666c616d65200b00aa00bb0000c600c0207370616e20666c616d65"
     "2000000000c492727e"},
    {"lz4, linked blocks, checksums of blocks", CODEC_LZ4,
     "04224d187440bd15000000bf7370616e20666c616d65200b00b9506c616d65201344ef3700000000c492727e"},
    {"golang/snappy, a block", CODEC_SNAPPY,
     "dc01287370616e20666c616d6520fe0b00fe0b00fe0b00420b00"},
    {"golang/snappy, framed", CODEC_SNAPPY_FRAMED,
     "ff060000734e61507059001e0000cba1136adc01287370616e20666c616d6520fe0b00fe0b00fe0b00420b00"},
    {"golang/snappy, framed under the name of the block", CODEC_SNAPPY,
     "ff060000734e61507059001e0000cba1136adc01287370616e20666c616d6520fe0b00fe0b00fe0b00420b00"},
};

enum { STREAMS = sizeof(streams) / sizeof(streams[0]) };

static const enum codec all_codecs[] = {CODEC_GZIP,   CODEC_ZLIB,          CODEC_ZSTD,
                                        CODEC_SNAPPY, CODEC_SNAPPY_FRAMED, CODEC_LZ4};

enum { ALL_CODECS = sizeof(all_codecs) / sizeof(all_codecs[0]) };

static size_t from_hex(const char *hex, uint8_t *bytes)
{
    size_t size = strlen(hex) / 2;
    assert_true(size <= STREAM_BYTES_MAX);
    for (size_t i = 0; i < size; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

static void fill_plain(char *plain)
{
    for (size_t i = 0; i < PLAIN_BYTES; i++)
        plain[i] = "span flame "[i % 11];
}

/* Repeats like telemetry and never quite. */
static void fill_text(uint8_t *data, size_t size)
{
    unsigned seed = 1;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245 + 12345;
        data[i] = i % 97 < 60 ? (uint8_t)('a' + i % 23) : (uint8_t)(seed >> 16);
    }
}

static void assert_plain_times(const struct buffer *output, size_t times, const char *what)
{
    char plain[PLAIN_BYTES];
    fill_plain(plain);
    if (output->size != times * PLAIN_BYTES)
        fail_msg("%s: %zu bytes", what, output->size);
    for (size_t i = 0; i < times; i++)
        assert_memory_equal(output->data + i * PLAIN_BYTES, plain, PLAIN_BYTES);
}

/* Inflates hex; 0 is "as much as anybody wants". */
static enum codec_result inflate_hex(enum codec codec, const char *hex, struct buffer **ret_output)
{
    uint8_t bytes[STREAM_BYTES_MAX];
    size_t size = from_hex(hex, bytes);
    /* A copy of the exact size, so that a sanitizer sees a read behind its end. */
    uint8_t *exact = mem_copy(bytes, size);
    enum codec_result result = codec_inflate(box, codec, slice_of(exact, size), MIB, ret_output);
    mem_free(exact);
    return result;
}

static int set_up(void **state)
{
    (void)state;
    budget_init(&budget, 64 * MIB);
    box = codec_box_create(&budget);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    codec_box_destroy(box);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static void what_others_deflate_is_inflated(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        struct buffer *output = NULL;
        if (inflate_hex(streams[i].codec, streams[i].hex, &output) != CODEC_OK)
            fail_msg("%s: %s", streams[i].maker, codec_reason(box));
        assert_plain_times(output, 1, streams[i].maker);
        buffer_unref(output);
    }
}

static void every_torn_stream_is_malformed(void **state)
{
    uint8_t bytes[STREAM_BYTES_MAX];
    enum { IDENTIFIER_BYTES = 10 };
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        size_t size = from_hex(streams[i].hex, bytes);
        for (size_t cut = 1; cut < size; cut++) {
            struct buffer *output = NULL;
            bool is_framed = bytes[0] == 0xff;
            if (is_framed && cut == IDENTIFIER_BYTES)
                continue; /* a whole stream, of nothing */
            uint8_t *exact = mem_copy(bytes, cut);
            if (codec_inflate(box, streams[i].codec, slice_of(exact, cut), MIB, &output) !=
                CODEC_MALFORMED)
                fail_msg("%s, %zu of %zu bytes", streams[i].maker, cut, size);
            mem_free(exact);
        }
    }
}

/* A flipped bit is noticed, or harmless where a format has no checksum; never more. */
static void damaged_streams_do_no_harm(void **state)
{
    uint8_t bytes[STREAM_BYTES_MAX];
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        size_t size = from_hex(streams[i].hex, bytes);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            struct buffer *output = NULL;
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            enum codec_result result =
                codec_inflate(box, streams[i].codec, slice_of(bytes, size), MIB, &output);
            if (result == CODEC_OK)
                buffer_unref(output);
            else if (result == CODEC_MALFORMED)
                assert_true(strlen(codec_reason(box)) > 0);
            assert_int_equal(budget_used(&budget), 0);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

static void broken_streams_get_the_error_messages_of_go(void **state)
{
    static const struct {
        enum codec codec;
        const char *hex;
        const char *reason; /* NULL: fine, and nothing comes out */
    } rows[] = {
        {CODEC_GZIP, "", "EOF"},
        {CODEC_ZLIB, "", "unexpected EOF"},
        {CODEC_ZSTD, "", NULL},
        {CODEC_SNAPPY, "", "snappy: corrupt input"},
        {CODEC_SNAPPY_FRAMED, "", NULL},
        {CODEC_LZ4, "", NULL},
        {CODEC_GZIP, "00112233445566778899aabbccddeeff", "gzip: invalid header"},
        {CODEC_GZIP, "1f8b0800", "unexpected EOF"},
        {CODEC_GZIP, "1f8b08000000000000030300010000000000000000", "gzip: invalid checksum"},
        {CODEC_GZIP, "1f8b0800000000000003ff0300000000000000000000", "flate: corrupt input"},
        {CODEC_ZLIB, "00112233445566778899", "zlib: invalid header"},
        {CODEC_ZLIB, "789c030000000002", "zlib: invalid checksum"},
        {CODEC_ZLIB, "78bb00000001030000000001", "zlib: invalid dictionary"},
        {CODEC_ZSTD, "00112233445566778899", "invalid input: magic number mismatch"},
        /* "hello" in the format of zstd 0.7 */
        {CODEC_ZSTD, "27b52ffd200540000568656c6c6fc00000", "invalid input: magic number mismatch"},
        {CODEC_ZSTD, "28b52ffd", "unexpected EOF"},
        {CODEC_ZSTD, "28b52ffd0088010000", "window size exceeded"}, /* 2^27 */
        {CODEC_ZSTD, "28b52ffd2102010000", "unknown dictionary"},
        {CODEC_ZSTD, "28b52ffd0468950000587370616e20666c616d652001004e53c50b419654e1",
         "CRC check failed"},
        {CODEC_ZSTD, "502a4d18030000000a0b0c", NULL},
        {CODEC_SNAPPY, "ffffffffff", "snappy: corrupt input"},
        {CODEC_SNAPPY, "dc0128", "snappy: corrupt input"},
        {CODEC_SNAPPY_FRAMED, "00112233445566778899", "snappy: corrupt input"},
        {CODEC_SNAPPY_FRAMED, "ff060000734e61507059", NULL},
        {CODEC_SNAPPY_FRAMED, "ff060000734e61507058", "snappy: corrupt input"},
        {CODEC_SNAPPY_FRAMED, "ff060000734e6150705902000000", "snappy: unsupported input"},
        {CODEC_SNAPPY_FRAMED, "ff060000734e61507059fe030000000000", NULL}, /* padding */
        {CODEC_SNAPPY_FRAMED, "ff060000734e6150705900030000000000", "snappy: corrupt input"},
        {CODEC_SNAPPY_FRAMED, "ff060000734e6150705901ffffff", "snappy: unsupported input"},
        {CODEC_SNAPPY_FRAMED, "ff060000734e6150705901050000000000000a", "snappy: corrupt input"},
        {CODEC_LZ4, "00112233445566778899", "lz4: bad magic number"},
        {CODEC_LZ4, "04224d186470ba22000000", "lz4: invalid header checksum"},
        {CODEC_LZ4, "04224d1864", "unexpected EOF"},
        {CODEC_LZ4, "502a4d18030000000a0b0c", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer *output = NULL;
        enum codec_result result = inflate_hex(rows[i].codec, rows[i].hex, &output);
        if (result != (rows[i].reason == NULL ? CODEC_OK : CODEC_MALFORMED))
            fail_msg("%s: %d", rows[i].hex, (int)result);
        if (rows[i].reason == NULL) {
            assert_int_equal(output->size, 0);
            buffer_unref(output);
        } else if (strcmp(codec_reason(box), rows[i].reason) != 0) {
            fail_msg("%s: %s", rows[i].hex, codec_reason(box));
        }
    }
}

/* What stands behind a stream: garbage, and the stream once more. */
static void what_follows_a_stream_is_treated_as_go_does(void **state)
{
    static const struct {
        enum codec codec;
        bool takes_garbage;
        size_t taken_twice; /* times the plain text; 0: malformed */
    } rows[] = {
        {CODEC_GZIP, false, 2}, {CODEC_ZLIB, true, 1},           {CODEC_ZSTD, false, 2},
        {CODEC_LZ4, false, 2},  {CODEC_SNAPPY_FRAMED, false, 2}, {CODEC_SNAPPY, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct stream *stream = streams;
        char hex[4 * STREAM_BYTES_MAX];
        struct buffer *output = NULL;
        while (stream->codec != rows[i].codec)
            stream++;
        snprintf(hex, sizeof(hex), "%sdeadbeefdeadbeef", stream->hex);
        enum codec_result result = inflate_hex(rows[i].codec, hex, &output);
        assert_int_equal(result, rows[i].takes_garbage ? CODEC_OK : CODEC_MALFORMED);
        if (result == CODEC_OK)
            buffer_unref(output);
        snprintf(hex, sizeof(hex), "%s%s", stream->hex, stream->hex);
        result = inflate_hex(rows[i].codec, hex, &output);
        assert_int_equal(result, rows[i].taken_twice > 0 ? CODEC_OK : CODEC_MALFORMED);
        if (result != CODEC_OK)
            continue;
        assert_plain_times(output, rows[i].taken_twice, stream->maker);
        buffer_unref(output);
    }
}

static void skippable_frames_lie_between_others(void **state)
{
    static const enum codec codecs[] = {CODEC_ZSTD, CODEC_LZ4};
    (void)state;
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        const struct stream *stream = streams;
        char hex[4 * STREAM_BYTES_MAX];
        struct buffer *output = NULL;
        while (stream->codec != codecs[i])
            stream++;
        snprintf(hex, sizeof(hex), "5f2a4d180100000000%s502a4d18000000005a2a4d1802000000abcd%s",
                 stream->hex, stream->hex);
        assert_int_equal(inflate_hex(codecs[i], hex, &output), CODEC_OK);
        assert_plain_times(output, 2, stream->maker);
        buffer_unref(output);
    }
}

static struct buffer *deflated(enum codec codec, const struct codec_input *input)
{
    struct buffer *packed = NULL;
    assert_int_equal(codec_deflate(box, codec, input, &packed), CODEC_OK);
    assert_true(packed->capacity - packed->size <= packed->size / 8 + 512);
    return packed;
}

static void assert_inflates_to(enum codec codec, const struct buffer *packed, struct slice text)
{
    struct buffer *plain = NULL;
    assert_int_equal(codec_inflate(box, codec, buffer_slice(packed), MIB, &plain), CODEC_OK);
    assert_int_equal(plain->size, text.size);
    assert_memory_equal(plain->data, text.data, text.size);
    buffer_unref(plain);
}

static void every_size_and_level_survives_a_round_trip(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, TEXT_BYTES};
    static const int levels[] = {-7, -2, -1, 0, 1, 3, 6, 9, 22};
    uint8_t *text = mem_alloc(TEXT_BYTES);
    (void)state;
    fill_text(text, TEXT_BYTES);
    for (size_t i = 0; i < ALL_CODECS * sizeof(sizes) / sizeof(sizes[0]); i++) {
        enum codec codec = all_codecs[i % ALL_CODECS];
        struct slice plain = slice_of(text, sizes[i / ALL_CODECS]);
        for (size_t j = 0; j < sizeof(levels) / sizeof(levels[0]); j++) {
            struct batch_part part = {.bytes = plain};
            struct codec_input input = {.parts = &part, .parts_count = 1, .level = levels[j]};
            struct buffer *packed = deflated(codec, &input);
            assert_inflates_to(codec, packed, plain);
            buffer_unref(packed);
        }
    }
    mem_free(text);
}

static void scattered_parts_are_deflated_as_one(void **state)
{
    enum { PARTS = 1000 };
    uint8_t *text = mem_alloc(TEXT_BYTES);
    struct batch_part *parts = mem_zalloc(PARTS * sizeof(*parts));
    size_t at = 0;
    (void)state;
    fill_text(text, TEXT_BYTES);
    for (size_t i = 0; i < PARTS; i++) {
        parts[i].bytes = slice_of(text + at, i * 7 % 300);
        at += parts[i].bytes.size;
    }
    for (size_t i = 0; i < ALL_CODECS; i++) {
        struct codec_input input = {.parts = parts, .parts_count = PARTS, .level = -1};
        struct buffer *packed = deflated(all_codecs[i], &input);
        assert_true(packed->size < at);
        assert_inflates_to(all_codecs[i], packed, slice_of(text, at));
        buffer_unref(packed);
        input.parts_count = 0;
        packed = deflated(all_codecs[i], &input);
        assert_inflates_to(all_codecs[i], packed, slice_of(text, 0));
        buffer_unref(packed);
    }
    mem_free(parts);
    mem_free(text);
}

static void noise_grows_little(void **state)
{
    uint8_t *noise = mem_alloc(TEXT_BYTES);
    unsigned seed = 3;
    (void)state;
    for (size_t i = 0; i < TEXT_BYTES; i++)
        noise[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
    for (size_t i = 0; i < ALL_CODECS; i++) {
        struct batch_part part = {.bytes = slice_of(noise, TEXT_BYTES)};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        struct buffer *packed = deflated(all_codecs[i], &input);
        assert_true(packed->size < TEXT_BYTES + TEXT_BYTES / 100);
        assert_inflates_to(all_codecs[i], packed, part.bytes);
        buffer_unref(packed);
    }
    mem_free(noise);
}

static void max_bytes_holds_to_the_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        uint8_t bytes[STREAM_BYTES_MAX];
        struct buffer *output = NULL;
        struct slice stream = slice_of(bytes, from_hex(streams[i].hex, bytes));
        assert_int_equal(codec_inflate(box, streams[i].codec, stream, PLAIN_BYTES - 1, &output),
                         CODEC_TOO_LARGE);
        assert_string_equal(codec_reason(box), "inflates to more than the limit");
        assert_int_equal(codec_inflate(box, streams[i].codec, stream, PLAIN_BYTES, &output),
                         CODEC_OK);
        assert_plain_times(output, 1, streams[i].maker);
        buffer_unref(output);
    }
}

/* All formats but lz4 and snappy reach more than 200 : 1; those two are held by max_bytes. */
static void a_bomb_is_stopped_within_its_bound(void **state)
{
    enum { ZEROS = 64 << 20 };
    uint8_t *zeros = mem_zalloc(ZEROS);
    (void)state;
    for (size_t i = 0; i < ALL_CODECS; i++) {
        struct batch_part part = {.bytes = slice_of(zeros, ZEROS)};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        struct buffer *packed = NULL;
        struct buffer *plain = NULL;
        budget_fini(&budget);
        budget_init(&budget, 256 * MIB);
        assert_int_equal(codec_deflate(box, all_codecs[i], &input, &packed), CODEC_OK);
        uint64_t held = budget_used(&budget);
        budget_fini(&budget);
        budget_init(&budget, held + 64 * MIB);
        budget_take(&budget, held);
        assert_int_equal(codec_inflate(box, all_codecs[i], buffer_slice(packed), 20 * MIB, &plain),
                         CODEC_TOO_LARGE);
        assert_int_equal(budget_used(&budget), held);
        assert_true(budget.high_water - held <= 40 * MIB); /* a growing buffer counts twice */
        buffer_unref(packed);
    }
    mem_free(zeros);
}

static struct buffer *deflated_zeros(enum codec codec, const uint8_t *zeros, size_t size)
{
    struct batch_part part = {.bytes = slice_of(zeros, size)};
    return deflated(codec, &(struct codec_input){.parts = &part, .parts_count = 1, .level = -1});
}

/* What is too much for a lane is known, or found, before much is done. */
static void only_little_is_inflated_at_once(void **state)
{
    enum { PLAIN_MAX = 1 << 20, MUCH = 16 << 20 };
    uint8_t *zeros = mem_zalloc(MUCH);
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, 256 * MIB);
    for (size_t i = 0; i < ALL_CODECS; i++) {
        static const size_t sizes[] = {1000, PLAIN_MAX - 1, PLAIN_MAX, MUCH};
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            enum codec_result result = CODEC_MISSING;
            struct buffer *plain = NULL;
            struct buffer *packed = deflated_zeros(all_codecs[i], zeros, sizes[j]);
            uint64_t held = budget_used(&budget);
            bool is_long = packed->size > HELPED_CODED_BYTES_MAX;
            budget.high_water = held;
            bool is_little = codec_inflate_little(box, all_codecs[i], buffer_slice(packed), MUCH,
                                                  PLAIN_MAX, &result, &plain);
            assert_int_equal(is_little, sizes[j] < PLAIN_MAX && !is_long);
            assert_true(budget.high_water - held <= 3 * PLAIN_MAX);
            if (is_little) {
                assert_int_equal(result, CODEC_OK);
                assert_int_equal(plain->size, sizes[j]);
                buffer_unref(plain);
            }
            /* A lower limit is the limit. */
            if (!is_long && codec_inflate_little(box, all_codecs[i], buffer_slice(packed), 999,
                                                 PLAIN_MAX, &result, &plain))
                assert_int_equal(result, CODEC_TOO_LARGE);
            assert_int_equal(budget_used(&budget), held);
            buffer_unref(packed);
        }
        enum codec_result result;
        struct buffer *plain = NULL;
        assert_false(codec_inflate_little(box, all_codecs[i],
                                          slice_of(zeros, HELPED_CODED_BYTES_MAX + 1), MUCH,
                                          PLAIN_MAX, &result, &plain));
    }
    mem_free(zeros);
}

/* Two members: the trailer of the last one says nothing of the first. */
static void a_size_that_lies_is_found_out(void **state)
{
    enum { PLAIN_MAX = 1 << 20 };
    uint8_t *zeros = mem_zalloc(4 << 20);
    enum codec_result result;
    struct buffer *plain = NULL;
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, 256 * MIB);
    struct buffer *first = deflated_zeros(CODEC_GZIP, zeros, 4 << 20);
    struct buffer *last = deflated_zeros(CODEC_GZIP, zeros, 1);
    uint8_t *both = mem_alloc(first->size + last->size);
    memcpy(both, first->data, first->size);
    memcpy(both + first->size, last->data, last->size);
    assert_false(codec_inflate_little(box, CODEC_GZIP, slice_of(both, first->size + last->size),
                                      20 * MIB, PLAIN_MAX, &result, &plain));
    buffer_unref(first);
    buffer_unref(last);
    mem_free(both);
    mem_free(zeros);
}

static void what_is_believed_grows_with_the_input(void **state)
{
    static const struct {
        size_t size_input;
        uint64_t max_bytes;
        uint64_t limit;
    } rows[] = {
        {1, 64 * MIB, 20 * MIB},
        {100 * KIB, 64 * MIB, 20 * MIB},
        {200 * KIB, 64 * MIB, 40000 * KIB},
        {MIB, 64 * MIB, 64 * MIB},
        {MIB, 1024 * MIB, 200 * MIB},
        {1, 4 * MIB, 4 * MIB},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(codec_output_limit(rows[i].size_input, rows[i].max_bytes), rows[i].limit);
}

/* max_bytes alone would let it in: the ratio stops it. */
static void a_bomb_below_max_bytes_is_stopped_by_its_ratio(void **state)
{
    enum { ZEROS = 48 << 20 };
    static const enum codec codecs[] = {CODEC_GZIP, CODEC_ZLIB, CODEC_ZSTD};
    uint8_t *zeros = mem_zalloc(ZEROS);
    (void)state;
    budget_fini(&budget);
    budget_init(&budget, 256 * MIB);
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        struct batch_part part = {.bytes = slice_of(zeros, ZEROS)};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        struct buffer *packed = NULL;
        struct buffer *plain = NULL;
        assert_int_equal(codec_deflate(box, codecs[i], &input, &packed), CODEC_OK);
        assert_true(packed->size < ZEROS / INFLATE_RATIO_MAX);
        assert_int_equal(codec_inflate(box, codecs[i], buffer_slice(packed), 64 * MIB, &plain),
                         CODEC_TOO_LARGE);
        assert_null(plain);
        buffer_unref(packed);
    }
    assert_int_equal(budget_used(&budget), 0);
    mem_free(zeros);
}

/* A megabyte is claimed, or comes out, of almost nothing; more than that is not believed. */
static void lying_lengths_are_refused_before_memory_is_taken(void **state)
{
    static const struct {
        enum codec codec;
        const char *hex;
    } rows[] = {
        {CODEC_ZSTD, "28b52ffda0000000070100000000"},     /* 112 MiB, one segment */
        {CODEC_ZSTD, "28b52ffde0ffffffffffffff7f010000"}, /* 2^63 */
        {CODEC_SNAPPY, "ffffffff0f00"},
        {CODEC_SNAPPY, "8080800500"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer *output = NULL;
        budget.high_water = 0;
        assert_int_equal(inflate_hex(rows[i].codec, rows[i].hex, &output), CODEC_TOO_LARGE);
        assert_true(budget.high_water < 64 * KIB);
    }
}

static void a_window_is_charged_and_a_short_budget_refuses_it(void **state)
{
    static const char eight_mib[] = "28b52ffd0068950000587370616e20666c616d652001004e53c50b";
    struct buffer *output = NULL;
    (void)state;
    budget.high_water = 0;
    assert_int_equal(inflate_hex(CODEC_ZSTD, eight_mib, &output), CODEC_OK);
    assert_true(budget.high_water > 8 * MIB);
    buffer_unref(output);
    budget_fini(&budget);
    budget_init(&budget, 4 * MIB);
    assert_int_equal(inflate_hex(CODEC_ZSTD, eight_mib, &output), CODEC_NO_BUDGET);
    assert_int_equal(budget_used(&budget), 0);
}

static void a_short_budget_refuses_and_returns_everything(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    (void)state;
    fill_text(text, TEXT_BYTES);
    for (size_t i = 0; i < ALL_CODECS; i++) {
        struct batch_part part = {.bytes = slice_of(text, TEXT_BYTES)};
        struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
        enum codec_result result = CODEC_NO_BUDGET;
        unsigned refusals = 0;
        for (uint64_t limit = 1024; result == CODEC_NO_BUDGET; limit += 37 * KIB) {
            struct buffer *packed = NULL;
            struct buffer *plain = NULL;
            budget_fini(&budget);
            budget_init(&budget, limit);
            result = codec_deflate(box, all_codecs[i], &input, &packed);
            if (result == CODEC_OK)
                result = codec_inflate(box, all_codecs[i], buffer_slice(packed), MIB, &plain);
            if (result == CODEC_OK)
                assert_int_equal(plain->size, TEXT_BYTES);
            refusals += result == CODEC_NO_BUDGET;
            buffer_unref(packed);
            buffer_unref(plain);
            assert_int_equal(budget_used(&budget), 0);
        }
        assert_int_equal(result, CODEC_OK);
        assert_true(refusals > 3);
    }
    mem_free(text);
}

static void memory_that_is_refused_anywhere_is_no_budget(void **state)
{
    (void)state;
    for (size_t i = 0; i < STREAMS; i++) {
        enum codec_result result = CODEC_NO_BUDGET;
        struct buffer *output = NULL;
        for (uint64_t n = 1; result == CODEC_NO_BUDGET; n++) {
            mem_refuse_nth(n);
            result = inflate_hex(streams[i].codec, streams[i].hex, &output);
            mem_refuse_nth(0);
        }
        assert_int_equal(result, CODEC_OK);
        buffer_unref(output);
    }
}

static void names_are_those_of_the_collector(void **state)
{
    static const struct {
        const char *name;
        enum codec http;
        enum codec grpc;
    } rows[] = {
        {"", CODEC_NONE, CODEC_NONE},
        {"identity", CODECS, CODEC_NONE},
        {"gzip", CODEC_GZIP, CODEC_GZIP},
        {"GZIP", CODECS, CODECS},
        {"x-gzip", CODECS, CODECS},
        {"gzip, gzip", CODECS, CODECS},
        {"zlib", CODEC_ZLIB, CODECS},
        {"deflate", CODEC_ZLIB, CODECS},
        {"zstd", CODEC_ZSTD, CODEC_ZSTD},
        {"snappy", CODEC_SNAPPY, CODEC_SNAPPY_FRAMED},
        {"x-snappy-framed", CODEC_SNAPPY_FRAMED, CODECS},
        {"lz4", CODEC_LZ4, CODECS},
        {"br", CODECS, CODECS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(codec_of_http(slice_of_text(rows[i].name)), rows[i].http);
        assert_int_equal(codec_of_grpc(slice_of_text(rows[i].name)), rows[i].grpc);
    }
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(what_others_deflate_is_inflated),
        ROW(every_torn_stream_is_malformed),
        ROW(damaged_streams_do_no_harm),
        ROW(broken_streams_get_the_error_messages_of_go),
        ROW(what_follows_a_stream_is_treated_as_go_does),
        ROW(skippable_frames_lie_between_others),
        ROW(every_size_and_level_survives_a_round_trip),
        ROW(scattered_parts_are_deflated_as_one),
        ROW(noise_grows_little),
        ROW(max_bytes_holds_to_the_byte),
        ROW(a_bomb_is_stopped_within_its_bound),
        ROW(only_little_is_inflated_at_once),
        ROW(a_size_that_lies_is_found_out),
        ROW(what_is_believed_grows_with_the_input),
        ROW(a_bomb_below_max_bytes_is_stopped_by_its_ratio),
        ROW(lying_lengths_are_refused_before_memory_is_taken),
        ROW(a_window_is_charged_and_a_short_budget_refuses_it),
        ROW(a_short_budget_refuses_and_returns_everything),
        ROW(memory_that_is_refused_anywhere_is_no_budget),
        ROW(names_are_those_of_the_collector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
