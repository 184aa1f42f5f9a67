/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a request: each Profile is in one of them, in order, with its resource, scope and
 * dictionary. */
#include "src/profiles/otlp/profile_pieces.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES_MAX = 64 };

struct pieces {
    struct batch *batches[PIECES_MAX];
    size_t count;
};

static void take(void *arg, struct batch *piece)
{
    struct pieces *pieces = arg;
    assert_true(pieces->count < PIECES_MAX);
    pieces->batches[pieces->count++] = piece;
}

static void put(struct profile_bytes *out, const char *bytes, size_t size)
{
    profile_bytes_add(out, slice_of(bytes, size));
}

/* Numbers of profiles, one per scope. The name of a scope comes after its profiles, that of a
 * resource between its scopes, and the dictionary, in two fields, around the last resource. */
static void put_request(struct profile_bytes *out, const size_t counts[2][2], size_t name_bytes)
{
    static const char name[1000] = "";
    for (unsigned i = 0; i < 2; i++) {
        if (i == 1)
            put(out, "\x12\x02\x2a\0", 4);
        size_t resource = out->size;
        for (unsigned j = 0; j < 2; j++) {
            size_t scope = out->size;
            for (size_t k = 0; k < counts[i][j]; k++) {
                /* An empty sample, and a duration that tells profiles apart. */
                size_t begin = out->size;
                put(out, "\x12\0", 2);
                uint8_t *at = profile_bytes_room(out, 16);
                out->size += (size_t)(profile_put_number(at, 4, i * 1000 + j * 100 + k + 1) - at);
                profile_bytes_wrap(out, begin, 2);
            }
            size_t header = out->size;
            put(out, j == 0 ? "\x0a\x01s" : "\x0a\x01t", 3);
            profile_bytes_wrap(out, header, 1);
            profile_bytes_wrap(out, scope, 2);
            if (j == 0) {
                header = out->size;
                put(out, name, name_bytes);
                profile_bytes_wrap(out, header, 9);
            }
        }
        profile_bytes_wrap(out, resource, 1);
    }
    put(out,
        "\x12\x04\x2a\x02"
        "ab",
        6);
}

/* "resource bytes/scope name/duration" of each profile. */
static void describe(FILE *out, struct slice request)
{
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader fields = wire_reader_of(resource.bytes);
        struct wire_field field;
        size_t name_bytes = 0;
        while (wire_next_field(&fields, &field))
            name_bytes += field.number == 9 ? field.bytes.size : 0;
        struct profile_iterator at = profile_iterator_of_resource(resource.bytes);
        while (profile_iterator_next(&at))
            fprintf(out, "%zu/%.*s/%llu\n", name_bytes, (int)at.scope.scope.size,
                    (const char *)at.scope.scope.data, (unsigned long long)at.profile.duration_ns);
    }
}

static size_t dictionary_bytes(struct slice request)
{
    struct wire_reader fields = wire_reader_of(request);
    struct wire_field field;
    size_t bytes = 0;
    while (wire_next_field(&fields, &field))
        bytes += field.number == 2 ? field.bytes.size : 0;
    return bytes;
}

static size_t count_profiles(struct slice request)
{
    struct profile_normalized normalized;
    struct buffer *owner = buffer_create(NULL, request.size);
    memcpy(owner->data, request.data, request.size);
    owner->size = request.size;
    assert_int_equal(profile_normalize(owner, buffer_slice(owner), LAYOUT_1_10, NULL, &normalized),
                     PROFILES_TAKEN);
    assert_int_equal(normalized.rejected_profiles, 0);
    size_t profiles = (size_t)normalized.profiles;
    buffer_unref(normalized.owner);
    buffer_unref(owner);
    return profiles;
}

static struct pieces cut(const size_t counts[2][2], size_t name_bytes, uint64_t profiles_max,
                         struct batch **ret_whole)
{
    struct profile_bytes out = {0};
    struct pieces pieces = {.count = 0};
    put_request(&out, counts, name_bytes);
    struct buffer *buffer = buffer_create(NULL, out.size);
    memcpy(buffer->data, out.data, out.size);
    buffer->size = out.size;
    profile_bytes_fini(&out);
    *ret_whole = batch_create(PROFILES, 1);
    batch_append(*ret_whole, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    profile_pieces_cut(*ret_whole, profiles_max, NULL, take, &pieces);
    return pieces;
}

static void every_profile_is_in_one_piece_with_what_it_needs(void **state)
{
    static const size_t counts[][2][2] = {
        {{7, 3}, {0, 5}}, {{1, 0}, {0, 0}}, {{0, 0}, {0, 4}}, {{3, 3}, {3, 3}}, {{10, 1}, {1, 10}}};
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char *want = NULL;
        char *got = NULL;
        size_t size;
        struct batch *whole;
        struct pieces pieces = cut(counts[i], 2, 3, &whole);
        FILE *wanted = open_memstream(&want, &size);
        describe(wanted, whole->parts[0].bytes);
        fclose(wanted);
        FILE *found = open_memstream(&got, &size);
        uint64_t items = 0;
        for (size_t k = 0; k < pieces.count; k++) {
            struct slice request = pieces.batches[k]->parts[0].bytes;
            describe(found, request);
            assert_in_range(count_profiles(request), 1, 3);
            assert_int_equal(count_profiles(request), pieces.batches[k]->items);
            assert_int_equal(dictionary_bytes(request), dictionary_bytes(whole->parts[0].bytes));
            items += pieces.batches[k]->items;
            batch_unref(pieces.batches[k]);
        }
        fclose(found);
        assert_string_equal(got, want);
        size_t profiles = count_profiles(whole->parts[0].bytes);
        assert_int_equal(items, profiles);
        assert_int_equal(pieces.count, (profiles + 2) / 3);
        batch_unref(whole);
        mem_free(want);
        mem_free(got);
    }
}

/* 200 profiles of some 8 bytes, each of which would copy a name of 1000 bytes. */
static void what_is_copied_does_not_multiply(void **state)
{
    static const size_t counts[2][2] = {{100, 0}, {0, 100}};
    struct batch *whole;
    uint64_t bytes = 0;
    (void)state;
    struct pieces pieces = cut(counts, 1000, 1, &whole);
    for (size_t k = 0; k < pieces.count; k++) {
        bytes += pieces.batches[k]->bytes;
        batch_unref(pieces.batches[k]);
    }
    assert_in_range(bytes, whole->bytes, 3 * whole->bytes);
    batch_unref(whole);
}

static void only_many_short_profiles_are_cut(void **state)
{
    const uint64_t many = DENSE_PROFILES_MAX + 1;
    struct budget budget;
    (void)state;
    budget_init(&budget, 100 * MIB);
    assert_true(profile_pieces_are_needed(2 * many, many, &budget));
    assert_false(profile_pieces_are_needed(2 * many, many - 1, &budget));
    assert_false(profile_pieces_are_needed(DENSE_PROFILE_BYTES_MAX * many, many, &budget));
    budget_take(&budget, 100 * MIB - many);
    assert_false(profile_pieces_are_needed(2 * many, many, &budget));
    budget_return(&budget, 100 * MIB - many);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_is_in_one_piece_with_what_it_needs),
        cmocka_unit_test(what_is_copied_does_not_multiply),
        cmocka_unit_test(only_many_short_profiles_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
