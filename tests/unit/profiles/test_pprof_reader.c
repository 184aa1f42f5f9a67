/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing pprof: real files against protobuf-c, and every way to be malformed. */
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/batch.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "tests/support/pprof_copy.h"
#include "tests/unit/profiles/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_BYTES_MAX = 16 << 20 };

static const char *const corpus[] = {"cpu.pb", "cpu.pb.gz", "heap.pb.gz", "goroutine.pb.gz"};

static void check_copy(const struct pprof *pprof, const char *expected)
{
    struct pprof_writer writer;
    struct pprof again;
    struct arena arena;
    struct error error = {.text = ""};
    pprof_writer_init(&writer, NULL, 1 << 30);
    pprof_copy(&writer, pprof);
    struct buffer *output = pprof_writer_take(&writer);
    pprof_writer_fini(&writer);
    assert_non_null(output);
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_true(pprof_read(&arena, buffer_slice(output), &again, &error));
    char *ours = pprof_described(&again);
    char *theirs = pprof_described_by_oracle(buffer_slice(output));
    assert_string_equal(ours, expected);
    assert_string_equal(theirs, expected);
    mem_free(ours);
    mem_free(theirs);
    arena_clear(&arena);
    buffer_unref(output);
}

static void real_profiles_are_read_and_written_as_protobuf_c_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        struct slice bytes = corpus_file(corpus[i]);
        struct pprof pprof;
        struct arena arena;
        struct error error = {.text = ""};
        arena_init(&arena, ARENA_BYTES_MAX);
        print_message("   %s\n", corpus[i]);
        if (!pprof_read(&arena, bytes, &pprof, &error))
            fail_msg("%s", error.text);
        assert_true(pprof.samples_count > 0);
        char *ours = pprof_described(&pprof);
        char *theirs = pprof_described_by_oracle(bytes);
        assert_string_equal(ours, theirs);
        check_copy(&pprof, theirs);
        mem_free(ours);
        mem_free(theirs);
        arena_clear(&arena);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

struct malformed_case {
    const char *bytes;
    size_t size;
    const char *reason; /* part of it; NULL: it reads */
};

#define CASE(text, why)                                                                            \
    {                                                                                              \
        .bytes = (text), .size = sizeof(text) - 1, .reason = (why)                                 \
    }
#define EMPTY_TEXT "\x32\x00"
#define ONE_TYPE   "\x0a\x00"

static const struct malformed_case malformed_cases[] = {
    CASE("", NULL),
    CASE(EMPTY_TEXT, NULL),
    CASE(ONE_TYPE "\x12\x02\x10\x01", NULL),
    /* ids are any numbers, and may come after what refers to them */
    CASE(ONE_TYPE "\x12\x0e\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01"
                  "\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         "it is damaged"),
    CASE(ONE_TYPE "\x12\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01"
                  "\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         NULL),
    /* packed and one by one, mixed */
    CASE("\x0a\x00\x0a\x00\x12\x05\x10\x01\x12\x01\x02", NULL),
    CASE("\x32\x01x", "first string of the string table is not empty"),
    CASE("\x0a\x02\x08\x01" EMPTY_TEXT, "string 1 is used, but the string table has only 1"),
    CASE("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "string -1 is used"),
    CASE("\x08\x01", "field 1 of the profile has the wrong type"),
    CASE("\x4a\x00", "field 9 is not a number"),
    CASE("\x12\x00", NULL),
    CASE(ONE_TYPE "\x12\x00", "sample 1: 0 values for 1 sample types"),
    CASE(ONE_TYPE "\x12\x04\x08\x07\x10\x01", "sample 1: location: id 7 is used"),
    CASE(ONE_TYPE "\x12\x04\x08\x00\x10\x01", "location id 0"),
    CASE("\x22\x00", "location 1: id 0"),
    CASE("\x22\x02\x08\x01\x22\x02\x08\x01", "location 2: id 1 twice"),
    CASE("\x22\x04\x08\x01\x10\x02", "mapping: id 2 is used"),
    CASE("\x22\x06\x08\x01\x22\x02\x08\x03", "function: id 3 is used"),
    CASE("\x22\x04\x08\x01\x20\x03", "a line is not a message"),
    CASE("\x1a\x00", "a mapping: id 0"),
    CASE("\x1a\x02\x08\x01\x1a\x02\x08\x01", "a mapping: id 1 twice"),
    CASE("\x2a\x04\x08\x01\x10\x05", "a function: string 5"),
    CASE(ONE_TYPE "\x12\x04\x10\x01\x18\x01", "a label is not a message"),
    CASE(ONE_TYPE "\x12\x06\x10\x01\x1a\x02\x08\x09", "string 9"),
    CASE("\x68\x05", "a comment is not in the string table"),
    CASE("\x6a\x02\x00\x00", NULL),
    CASE("\x6a\x02\x00\x80", "cut off"),
    CASE("\x0a\x05", "longer than the message"),
    CASE("\x0b", "a group"),
};

static void every_malformed_profile_is_refused_with_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(malformed_cases) / sizeof(malformed_cases[0]); i++) {
        const struct malformed_case *row = &malformed_cases[i];
        struct pprof pprof;
        struct arena arena;
        struct error error = {.text = ""};
        arena_init(&arena, ARENA_BYTES_MAX);
        bool is_read = pprof_read(&arena, slice_of(row->bytes, row->size), &pprof, &error);
        print_message("   %zu: %s\n", i, is_read ? "fine" : error.text);
        assert_int_equal(is_read, row->reason == NULL);
        if (row->reason != NULL)
            assert_non_null(strstr(error.text, row->reason));
        /* copied by callers that build names of strings, even if empty */
        for (size_t k = 0; is_read && k < pprof.strings_count; k++)
            assert_non_null(pprof.strings[k].data);
        arena_clear(&arena);
    }
}

static void samples_have_a_bounded_number_of_labels(void **state)
{
    (void)state;
    for (size_t labels = 127; labels <= 130; labels++) {
        /* a sample type, and a sample with one value and empty labels */
        uint8_t bytes[512] = {0x0a, 0, 0x12, 0, 0, 0x10, 1};
        struct pprof pprof;
        struct arena arena;
        struct error error = {.text = ""};
        size_t content = 2 + 2 * labels;
        bytes[3] = (uint8_t)(content | 0x80);
        bytes[4] = (uint8_t)(content >> 7);
        for (size_t i = 0; i < labels; i++)
            bytes[7 + 2 * i] = 0x1a;
        arena_init(&arena, ARENA_BYTES_MAX);
        bool is_read = pprof_read(&arena, slice_of(bytes, 5 + content), &pprof, &error);
        assert_int_equal(is_read, labels <= 128);
        if (!is_read)
            assert_non_null(strstr(error.text, "at most 128"));
        arena_clear(&arena);
    }
}

static void memory_is_bounded_by_the_arena(void **state)
{
    struct slice bytes = corpus_file("heap.pb.gz");
    (void)state;
    for (size_t cap = 0; cap < 4096; cap += 64) {
        struct pprof pprof;
        struct arena arena;
        struct error error = {.text = ""};
        arena_init(&arena, cap);
        assert_false(pprof_read(&arena, bytes, &pprof, &error));
        assert_non_null(strstr(error.text, "more memory"));
        arena_clear(&arena);
    }
    mem_free((void *)(uintptr_t)bytes.data);
}

static void broken_and_oversized_gzip_is_refused(void **state)
{
    static const uint8_t broken[] = {0x1f, 0x8b, 8, 0, 0};
    struct slice bytes = corpus_file("heap.pb.gz");
    struct gzip *gzip = gzip_create();
    struct buffer *packed;
    struct buffer *inflated;
    struct error error = {.text = ""};
    (void)state;
    assert_false(
        pprof_unpack(gzip, NULL, slice_of(broken, sizeof(broken)), 100, &inflated, &error));
    assert_non_null(strstr(error.text, "broken gzip"));
    assert_false(pprof_unpack(gzip, NULL, bytes, 100, &inflated, &error));
    assert_non_null(strstr(error.text, "more than 100 bytes"));
    struct buffer *whole = buffer_create(NULL, bytes.size);
    memcpy(whole->data, bytes.data, bytes.size);
    const struct batch_part part = {.owner = whole, .bytes = bytes};
    assert_int_equal(gzip_deflate(gzip, NULL, &part, 1, -1, &packed), GZIP_OK);
    assert_false(pprof_unpack(gzip, NULL, buffer_slice(packed), 100, &inflated, &error));
    assert_non_null(strstr(error.text, "once inflated"));
    assert_true(pprof_unpack(gzip, NULL, buffer_slice(packed), bytes.size, &inflated, &error));
    assert_true(slice_equal(buffer_slice(inflated), bytes));
    buffer_unref(inflated);
    buffer_unref(packed);
    buffer_unref(whole);
    gzip_destroy(gzip);
    mem_free((void *)(uintptr_t)bytes.data);
}

static void strings_are_written_once(void **state)
{
    struct pprof_writer writer;
    char text[32];
    (void)state;
    pprof_writer_init(&writer, NULL, 1 << 20);
    assert_int_equal(pprof_writer_string(&writer, slice_of_text("")), 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 1; i <= 5000; i++) {
            snprintf(text, sizeof(text), "function_%u", i);
            assert_int_equal(pprof_writer_string(&writer, slice_of_text(text)), i);
        }
    assert_int_equal(writer.strings.count, 5001);
    pprof_writer_fini(&writer);
}

static void limits_of_the_writer_are_kept(void **state)
{
    (void)state;
    for (uint64_t limit = 2; limit < 200; limit++) {
        struct pprof_writer writer;
        char text[16];
        pprof_writer_init(&writer, NULL, limit);
        for (unsigned i = 0; i < 100; i++) {
            snprintf(text, sizeof(text), "%u", i);
            pprof_writer_string(&writer, slice_of_text(text));
            assert_true(writer.output->size <= limit);
        }
        assert_true(writer.has_failed);
        assert_null(pprof_writer_take(&writer));
        pprof_writer_fini(&writer);
    }
}

static void refused_memory_fails_the_writer_and_nothing_else(void **state)
{
    struct slice bytes = corpus_file("heap.pb.gz");
    struct pprof pprof;
    struct arena arena;
    struct error error = {.text = ""};
    bool has_succeeded = false;
    (void)state;
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_true(pprof_read(&arena, bytes, &pprof, &error));
    for (uint64_t n = 1; !has_succeeded; n++) {
        struct pprof_writer writer;
        assert_true(n < 1000);
        mem_refuse_nth(n);
        pprof_writer_init(&writer, NULL, 1 << 20);
        pprof_copy(&writer, &pprof);
        mem_refuse_nth(0);
        struct buffer *output = pprof_writer_take(&writer);
        has_succeeded = output != NULL;
        buffer_unref(output);
        pprof_writer_fini(&writer);
    }
    arena_clear(&arena);
    mem_free((void *)(uintptr_t)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_profiles_are_read_and_written_as_protobuf_c_does),
        cmocka_unit_test(every_malformed_profile_is_refused_with_its_reason),
        cmocka_unit_test(samples_have_a_bounded_number_of_labels),
        cmocka_unit_test(memory_is_bounded_by_the_arena),
        cmocka_unit_test(broken_and_oversized_gzip_is_refused),
        cmocka_unit_test(strings_are_written_once),
        cmocka_unit_test(limits_of_the_writer_are_kept),
        cmocka_unit_test(refused_memory_fails_the_writer_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
