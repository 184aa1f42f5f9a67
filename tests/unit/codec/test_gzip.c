/* SPDX-License-Identifier: Apache-2.0 */
/* gzip against zlib in both directions, its limits, and that users of one state do not mix. */
#include "src/codec/gzip.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

enum { TEXT_BYTES = 300000, ROOM_BYTES = 1 << 20, GZIP_WINDOW_BITS = 15 + 16 };

static struct gzip *gzip;
static struct budget budget;

/* Repeats like telemetry and never quite. */
static void fill(uint8_t *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245 + 12345;
        data[i] = i % 97 < 60 ? (uint8_t)('a' + i % 23) : (uint8_t)(seed >> 16);
    }
}

static size_t zlib_deflate(const uint8_t *data, size_t size, uint8_t *output, int level)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW_BITS, 8, 0), Z_OK);
    stream.next_out = output;
    stream.avail_out = ROOM_BYTES;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t used = stream.total_out;
    deflateEnd(&stream);
    return used;
}

static size_t zlib_inflate(const uint8_t *data, size_t size, uint8_t *output)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    assert_int_equal(inflateInit2(&stream, GZIP_WINDOW_BITS), Z_OK);
    stream.next_out = output;
    stream.avail_out = ROOM_BYTES;
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    size_t used = stream.total_out;
    inflateEnd(&stream);
    return used;
}

static int set_up(void **state)
{
    (void)state;
    gzip = gzip_create();
    budget_init(&budget, 64 * MIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gzip_destroy(gzip);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static void what_zlib_deflates_is_inflated(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 672, 32768, 70000, TEXT_BYTES};
    static const int levels[] = {0, 1, 6, 9};
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, TEXT_BYTES, 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t j = 0; j < sizeof(levels) / sizeof(levels[0]); j++) {
            struct buffer *output = NULL;
            size_t size = zlib_deflate(text, sizes[i], packed, levels[j]);
            assert_int_equal(gzip_inflate(gzip, &budget, packed, size, MIB, &output), GZIP_OK);
            assert_int_equal(output->size, sizes[i]);
            assert_memory_equal(output->data, text, sizes[i]);
            buffer_unref(output);
        }
    }
    mem_free(text);
    mem_free(packed);
}

static void what_is_deflated_zlib_inflates(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 672, 65536, TEXT_BYTES};
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *plain = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, TEXT_BYTES, 2);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int level = -1; level <= 9; level++) {
            struct buffer *output = NULL;
            struct batch_part part = {.bytes = slice_of(text, sizes[i])};
            assert_int_equal(gzip_deflate(gzip, &budget, &part, 1, level, &output), GZIP_OK);
            assert_int_equal(zlib_inflate(output->data, output->size, plain), sizes[i]);
            assert_memory_equal(plain, text, sizes[i]);
            buffer_unref(output);
        }
    }
    mem_free(text);
    mem_free(plain);
}

static void noise_is_deflated_without_loss(void **state)
{
    uint8_t *noise = mem_alloc(TEXT_BYTES);
    uint8_t *plain = mem_alloc(ROOM_BYTES);
    unsigned seed = 3;
    (void)state;
    for (size_t i = 0; i < TEXT_BYTES; i++)
        noise[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
    for (int level = 0; level <= 3; level++) {
        struct buffer *output = NULL;
        struct batch_part part = {.bytes = slice_of(noise, TEXT_BYTES)};
        assert_int_equal(gzip_deflate(gzip, &budget, &part, 1, level, &output), GZIP_OK);
        assert_int_equal(zlib_inflate(output->data, output->size, plain), TEXT_BYTES);
        assert_memory_equal(plain, noise, TEXT_BYTES);
        buffer_unref(output);
    }
    mem_free(noise);
    mem_free(plain);
}

static void scattered_parts_become_one_member(void **state)
{
    enum { PARTS = 1000 };
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *plain = mem_alloc(ROOM_BYTES);
    struct batch_part *parts = mem_zalloc(PARTS * sizeof(*parts));
    size_t at = 0;
    (void)state;
    fill(text, TEXT_BYTES, 4);
    for (size_t i = 0; i < PARTS; i++) {
        size_t size = i * 7 % 300;
        parts[i].bytes = slice_of(text + at, size);
        at += size;
    }
    struct buffer *output = NULL;
    assert_int_equal(gzip_deflate(gzip, &budget, parts, PARTS, -1, &output), GZIP_OK);
    assert_int_equal(zlib_inflate(output->data, output->size, plain), at);
    assert_memory_equal(plain, text, at);
    buffer_unref(output);
    mem_free(parts);
    mem_free(text);
    mem_free(plain);
}

/* Small ones are deflated together, large ones alone. */
static void parts_of_any_size_become_one_member(void **state)
{
    static const size_t sizes[] = {5,     32768, 32769, 0,     1,     100,   65536, 20000, 20000,
                                   20000, 20000, 32768, 32768, 70000, 32768, 3,     0};
    enum { PARTS = sizeof(sizes) / sizeof(sizes[0]), SIZE = 450000 };
    uint8_t *text = mem_alloc(SIZE);
    uint8_t *plain = mem_alloc(ROOM_BYTES);
    struct batch_part parts[PARTS] = {{.owner = NULL}};
    (void)state;
    fill(text, SIZE, 5);
    for (size_t count = 1; count <= PARTS; count++) {
        size_t at = 0;
        for (size_t i = 0; i < count; at += sizes[i++])
            parts[i].bytes = slice_of(text + at, sizes[i]);
        assert_true(at <= SIZE);
        struct buffer *output = NULL;
        assert_int_equal(gzip_deflate(gzip, &budget, parts, count, -1, &output), GZIP_OK);
        assert_int_equal(zlib_inflate(output->data, output->size, plain), at);
        assert_memory_equal(plain, text, at);
        buffer_unref(output);
    }
    mem_free(text);
    mem_free(plain);
}

static void no_parts_become_an_empty_member(void **state)
{
    struct buffer *output = NULL;
    uint8_t plain[1];
    (void)state;
    assert_int_equal(gzip_deflate(gzip, &budget, NULL, 0, -1, &output), GZIP_OK);
    assert_int_equal(zlib_inflate(output->data, output->size, plain), 0);
    buffer_unref(output);
}

static void a_deflated_buffer_holds_little_more_than_its_size(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    struct buffer *output = NULL;
    struct batch_part part = {.bytes = slice_of(text, TEXT_BYTES)};
    (void)state;
    fill(text, TEXT_BYTES, 5);
    assert_int_equal(gzip_deflate(gzip, &budget, &part, 1, -1, &output), GZIP_OK);
    assert_true(output->size > 65536);
    assert_true(output->capacity <= output->size + output->size / 8 + 512);
    assert_int_equal(budget_used(&budget), output->capacity + sizeof(*output));
    buffer_unref(output);
    mem_free(text);
}

static void concatenated_members_are_inflated_as_one(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *packed = mem_alloc(2 * ROOM_BYTES);
    size_t used = 0;
    struct buffer *output = NULL;
    (void)state;
    fill(text, TEXT_BYTES, 6);
    for (size_t i = 0; i < 100; i++)
        used += zlib_deflate(text + i * 3000, 3000, packed + used, (int)(i % 10));
    assert_int_equal(gzip_inflate(gzip, &budget, packed, used, MIB, &output), GZIP_OK);
    assert_int_equal(output->size, TEXT_BYTES);
    assert_memory_equal(output->data, text, TEXT_BYTES);
    buffer_unref(output);
    mem_free(text);
    mem_free(packed);
}

static void every_torn_body_is_malformed(void **state)
{
    uint8_t text[2000];
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, sizeof(text), 7);
    size_t size = zlib_deflate(text, sizeof(text), packed, 6);
    for (size_t cut = 0; cut < size; cut++) {
        struct buffer *output = NULL;
        /* An allocation of that size: a read beyond it is seen by the sanitizer. */
        uint8_t *torn = mem_copy(packed, cut);
        assert_int_equal(gzip_inflate(gzip, &budget, torn, cut, MIB, &output), GZIP_MALFORMED);
        assert_null(output);
        mem_free(torn);
    }
    mem_free(packed);
}

static void damaged_bodies_are_malformed(void **state)
{
    static const struct {
        int from_end; /* which byte is damaged; negative: counted from the start */
        const char *what;
    } rows[] = {
        {-1, "first magic byte"}, {-2, "second magic byte"},
        {-3, "method"},           {8, "CRC-32"},
        {5, "CRC-32, last byte"}, {4, "ISIZE"},
        {1, "ISIZE, last byte"},
    };
    uint8_t text[2000];
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, sizeof(text), 8);
    size_t size = zlib_deflate(text, sizeof(text), packed, 6);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer *output = NULL;
        size_t at = rows[i].from_end < 0 ? (size_t)(-rows[i].from_end - 1)
                                         : size - (size_t)rows[i].from_end;
        packed[at] ^= 0x40;
        if (gzip_inflate(gzip, &budget, packed, size, MIB, &output) != GZIP_MALFORMED)
            fail_msg("accepted although damaged: %s", rows[i].what);
        packed[at] ^= 0x40;
    }
    mem_free(packed);
}

static void trailing_garbage_is_malformed(void **state)
{
    static const size_t extra[] = {1, 7, 17, 18, 40};
    uint8_t text[2000];
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, sizeof(text), 9);
    size_t size = zlib_deflate(text, sizeof(text), packed, 6);
    memset(packed + size, 0, 64);
    for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++) {
        struct buffer *output = NULL;
        assert_int_equal(gzip_inflate(gzip, &budget, packed, size + extra[i], MIB, &output),
                         GZIP_MALFORMED);
    }
    mem_free(packed);
}

static void header_options_are_skipped(void **state)
{
    static const uint8_t name[] = "a name\0a comment";
    uint8_t text[100];
    uint8_t packed[1024];
    uint8_t named[1024];
    struct buffer *output = NULL;
    (void)state;
    fill(text, sizeof(text), 10);
    size_t size = zlib_deflate(text, sizeof(text), packed, 6);
    memcpy(named, packed, 10);
    named[3] = 0x18; /* FNAME and FCOMMENT */
    memcpy(named + 10, name, sizeof(name));
    memcpy(named + 10 + sizeof(name), packed + 10, size - 10);
    assert_int_equal(gzip_inflate(gzip, &budget, named, size + sizeof(name), MIB, &output),
                     GZIP_OK);
    assert_int_equal(output->size, sizeof(text));
    assert_memory_equal(output->data, text, sizeof(text));
    buffer_unref(output);
}

static void max_bytes_holds_to_the_byte(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    struct buffer *output = NULL;
    (void)state;
    fill(text, TEXT_BYTES, 11);
    size_t size = zlib_deflate(text, TEXT_BYTES, packed, 6);
    assert_int_equal(gzip_inflate(gzip, &budget, packed, size, TEXT_BYTES - 1, &output),
                     GZIP_TOO_LARGE);
    assert_int_equal(gzip_inflate(gzip, &budget, packed, size, TEXT_BYTES, &output), GZIP_OK);
    buffer_unref(output);
    mem_free(text);
    mem_free(packed);
}

/* 64 MiB of zeros in 64 KiB: stopped, and never more memory than doubling what is free takes. */
static void a_bomb_is_stopped_within_its_bound(void **state)
{
    uint8_t *zeros = mem_zalloc(64 * MIB);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    struct buffer *output = NULL;
    (void)state;
    size_t size = zlib_deflate(zeros, 64 * MIB, packed, 9);
    mem_free(zeros);
    assert_int_equal(gzip_inflate(gzip, &budget, packed, size, 64 * MIB, &output), GZIP_TOO_LARGE);
    assert_true(atomic_load(&budget.high_water) < 2 * INFLATE_RATIO_FREE_BYTES);
    mem_free(packed);
}

static void telemetry_that_repeats_is_no_bomb(void **state)
{
    uint8_t *zeros = mem_zalloc(INFLATE_RATIO_FREE_BYTES);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    struct buffer *output = NULL;
    (void)state;
    size_t size = zlib_deflate(zeros, INFLATE_RATIO_FREE_BYTES, packed, 9);
    assert_true(size * INFLATE_RATIO_MAX < INFLATE_RATIO_FREE_BYTES);
    assert_int_equal(gzip_inflate(gzip, &budget, packed, size, 64 * MIB, &output), GZIP_OK);
    assert_int_equal(output->size, INFLATE_RATIO_FREE_BYTES);
    buffer_unref(output);
    mem_free(zeros);
    mem_free(packed);
}

/* The hint is the client's: a lie costs no more than honest bytes could. */
static void a_lying_length_is_malformed_and_cheap(void **state)
{
    static const uint32_t lies[] = {0, 1, 1999, 2001, 1 << 20, 0x7fffffff, 0xffffffff};
    uint8_t text[2000];
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    fill(text, sizeof(text), 12);
    size_t size = zlib_deflate(text, sizeof(text), packed, 6);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct buffer *output = NULL;
        for (size_t j = 0; j < 4; j++)
            packed[size - 4 + j] = (uint8_t)(lies[i] >> (8 * j));
        assert_int_equal(gzip_inflate(gzip, &budget, packed, size, 32 * MIB, &output),
                         GZIP_MALFORMED);
    }
    assert_true(atomic_load(&budget.high_water) <= MIB + 4096);
    mem_free(packed);
}

static void a_short_budget_refuses_and_returns_everything(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    struct buffer *output = NULL;
    struct batch_part part = {.bytes = slice_of(text, TEXT_BYTES)};
    struct budget small;
    (void)state;
    fill(text, TEXT_BYTES, 13);
    size_t size = zlib_deflate(text, TEXT_BYTES, packed, 6);
    for (uint64_t limit = 0; limit < TEXT_BYTES / 4; limit += 10000) {
        budget_init(&small, limit);
        assert_int_equal(gzip_inflate(gzip, &small, packed, size, MIB, &output), GZIP_NO_BUDGET);
        if (limit < 60000)
            assert_int_equal(gzip_deflate(gzip, &small, &part, 1, -1, &output), GZIP_NO_BUDGET);
        assert_int_equal(budget_used(&small), 0);
        budget_fini(&small);
    }
    mem_free(text);
    mem_free(packed);
}

/* A kept state must carry nothing over: failures in between, sizes up and down, both directions. */
static void users_in_turn_get_their_own_bytes(void **state)
{
    uint8_t *text = mem_alloc(TEXT_BYTES);
    uint8_t *packed = mem_alloc(ROOM_BYTES);
    (void)state;
    for (unsigned turn = 0; turn < 200; turn++) {
        size_t wanted = 1 + (size_t)turn * 7919 % 60000;
        struct buffer *inflated = NULL;
        struct buffer *deflated = NULL;
        fill(text, wanted, turn);
        size_t size = zlib_deflate(text, wanted, packed, (int)(turn % 10));
        if (turn % 3 == 0)
            assert_int_equal(gzip_inflate(gzip, &budget, packed, size - 9, MIB, &inflated),
                             GZIP_MALFORMED);
        struct batch_part part = {.bytes = slice_of(text, wanted)};
        assert_int_equal(gzip_deflate(gzip, &budget, &part, 1, (int)(turn % 4), &deflated),
                         GZIP_OK);
        assert_int_equal(
            gzip_inflate(gzip, &budget, deflated->data, deflated->size, MIB, &inflated), GZIP_OK);
        assert_int_equal(inflated->size, wanted);
        assert_memory_equal(inflated->data, text, wanted);
        buffer_unref(inflated);
        buffer_unref(deflated);
    }
    mem_free(text);
    mem_free(packed);
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(what_zlib_deflates_is_inflated),
        ROW(what_is_deflated_zlib_inflates),
        ROW(noise_is_deflated_without_loss),
        ROW(scattered_parts_become_one_member),
        ROW(parts_of_any_size_become_one_member),
        ROW(no_parts_become_an_empty_member),
        ROW(a_deflated_buffer_holds_little_more_than_its_size),
        ROW(concatenated_members_are_inflated_as_one),
        ROW(every_torn_body_is_malformed),
        ROW(damaged_bodies_are_malformed),
        ROW(trailing_garbage_is_malformed),
        ROW(header_options_are_skipped),
        ROW(max_bytes_holds_to_the_byte),
        ROW(a_bomb_is_stopped_within_its_bound),
        ROW(telemetry_that_repeats_is_no_bomb),
        ROW(a_lying_length_is_malformed_and_cheap),
        ROW(a_short_budget_refuses_and_returns_everything),
        ROW(users_in_turn_get_their_own_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
