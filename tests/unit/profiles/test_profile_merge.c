/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and splitting profiles, checked with protobuf-c: the same samples come out, and the new
 * dictionaries have no missing, stale, duplicate or unused entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_queue.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/random_profiles.h"

enum { ROUNDS = 200, REQUESTS_MAX = 5, STACKS_LARGE = 2000, STACK_DEPTH = 64 };

struct expected {
    struct oracle_items items;
    uint64_t samples;
    uint64_t profiles;
};

static struct batch *batch_of(struct random_source *random, struct slice request)
{
    return random_parts(random, PROFILES, request);
}

static uint64_t count_profiles(struct slice request)
{
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    uint64_t count = 0;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (profile_next_scope(&scopes, &scope))
            count += scope.profiles_count;
    }
    return count;
}

/* The same as a library would encode it, so that its dictionary is copied whole; perhaps with
 * unused entries appended. Its samples are the same. */
static struct slice tidy_profiles(struct random_source *random)
{
    struct slice odd = random_profiles(random);
    struct slice other = random_profiles(random);
    struct profile_bytes tidy = {0};
    struct profile_merge merge;
    struct profile_source source;
    profile_merge_init(&merge, NULL);
    assert_true(profile_source_open(&source, odd, &merge));
    assert_true(profile_merge_take(&merge, &source, (struct otlp_limit){.bytes_max = 1 << 20}));
    profile_source_close(&source);
    struct buffer *buffer = profile_merge_finish(&merge, NULL);
    profile_bytes_add(&tidy, buffer != NULL ? buffer_slice(buffer) : (struct slice){0});
    struct wire_reader fields = wire_reader_of(other);
    struct wire_field field;
    bool has_unused = random_below(random, 2) == 0;
    while (wire_next_field(&fields, &field))
        if (has_unused && field.number == 2)
            profile_bytes_add(&tidy, field.whole);
    buffer_unref(buffer);
    profile_merge_fini(&merge);
    mem_free((void *)(uintptr_t)odd.data);
    mem_free((void *)(uintptr_t)other.data);
    return slice_of(tidy.data, tidy.size);
}

static void add_request(struct profile_queue *queue, struct random_source *random,
                        struct expected *expected, enum profile_detail detail)
{
    bool is_tidy = random_below(random, 2) == 0;
    struct slice request = is_tidy ? tidy_profiles(random) : random_profiles(random);
    struct batch *batch = batch_of(random, request);
    profile_oracle_list(&expected->items, request, detail);
    expected->samples += batch->items;
    expected->profiles += count_profiles(request);
    profile_queue_add(queue, batch);
    batch_unref(batch);
    mem_free((void *)(uintptr_t)request.data);
}

/* From shortly before the first difference. */
static void fail_with(const char *before, const char *after)
{
    size_t at = 0;
    while (before[at] != '\0' && before[at] == after[at])
        at++;
    at -= at < 40 ? at : 40;
    fail_msg("before: …%.200s\nafter:  …%.200s", before + at, after + at);
}

static void assert_same(struct oracle_items *before, struct oracle_items *after)
{
    profile_oracle_sort(before);
    profile_oracle_sort(after);
    for (size_t i = 0; i < before->count && i < after->count; i++)
        if (strcmp(before->texts[i], after->texts[i]) != 0)
            fail_with(before->texts[i], after->texts[i]);
    assert_int_equal(before->count, after->count);
}

/* A piece is whole, clean and within the limit unless it is one sample. */
static void check_piece(const struct batch *piece, struct otlp_limit limit)
{
    struct otlp_figures figures;
    const char *reason;
    struct batch_part whole;
    if (piece->parts_count == 0)
        return; /* nothing but empty resources */
    assert_true(batch_join(piece, NULL, &whole));
    struct slice request = whole.bytes;
    if (!otlp_check(PROFILES, request, &figures, &reason))
        fail_msg("%s", reason);
    assert_int_equal(figures.items, piece->items);
    const char *complaint = profile_oracle_complaint(request);
    if (complaint != NULL)
        fail_msg("%s", complaint);
    assert_true(limit.items_max == 0 || piece->items <= limit.items_max);
    assert_true(limit.bytes_max == 0 || request.size <= limit.bytes_max || piece->items <= 1);
    buffer_unref(whole.owner);
}

/* Merges some requests and cuts them to the limit. Returns the number of pieces. */
static unsigned merge_and_compare(uint64_t seed, struct otlp_limit limit,
                                  enum profile_detail detail)
{
    struct random_source random = {.state = seed};
    struct expected expected = {0};
    struct oracle_items after = {0};
    struct budget budget;
    struct profile_queue queue;
    struct batch *model = batch_create(PROFILES, 1);
    unsigned pieces = 0;
    bool is_last = false;
    budget_init(&budget, 1 << 20);
    profile_queue_init(&queue, &budget);
    for (uint64_t count = 1 + random_below(&random, REQUESTS_MAX); count > 0; count--)
        add_request(&queue, &random, &expected, detail);
    uint64_t samples = 0;
    for (; !is_last; pieces++) {
        struct batch *piece = profile_queue_cut(&queue, model, limit, &is_last);
        check_piece(piece, limit);
        samples += piece->items;
        if (piece->parts_count > 0)
            profile_oracle_list(&after, piece->parts[0].bytes, detail);
        batch_unref(piece);
    }
    assert_int_equal(samples, expected.samples);
    assert_same(&expected.items, &after);
    profile_queue_fini(&queue);
    batch_unref(model);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    oracle_clear(&expected.items);
    oracle_clear(&after);
    return pieces;
}

static void merged_requests_say_what_they_said(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++)
        assert_int_equal(merge_and_compare(seed, (struct otlp_limit){0}, PROFILE_WHOLE), 1);
}

static void pieces_by_samples_say_what_the_whole_said(void **state)
{
    unsigned pieces = 0;
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++)
        pieces += merge_and_compare(seed, (struct otlp_limit){.items_max = 1 + seed % 40},
                                    PROFILE_PIECES);
    assert_true(pieces > 2 * ROUNDS);
}

static void pieces_by_bytes_say_what_the_whole_said(void **state)
{
    unsigned pieces = 0;
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++)
        pieces += merge_and_compare(seed, (struct otlp_limit){.bytes_max = 300 + seed * 7},
                                    PROFILE_PIECES);
    assert_true(pieces > 2 * ROUNDS);
}

static void both_limits_hold_at_once(void **state)
{
    struct otlp_limit limit = {.items_max = 12, .bytes_max = 900};
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++)
        merge_and_compare(seed, limit, PROFILE_PIECES);
}

/* A request with one resource, whose key is `service`, and `profiles` with `samples` each. */
static struct batch *plain_batch(const char *service, unsigned profiles, unsigned samples)
{
    struct profile_bytes out = {0};
    size_t begin = out.size;
    profile_bytes_add(&out, slice_of_text(service));
    profile_bytes_wrap(&out, begin, 1); /* key */
    profile_bytes_wrap(&out, begin, 1); /* attribute */
    profile_bytes_wrap(&out, begin, 1); /* resource */
    size_t scope = out.size;
    for (unsigned i = 0; i < profiles; i++) {
        size_t profile = out.size;
        for (unsigned j = 0; j < samples; j++)
            profile_bytes_add(&out, slice_of("\x12\x03\x22\x01\x05", 5));
        profile_bytes_add(&out, slice_of_text("\x3a\x10"
                                              "0123456789abcdef"
                                              "\x4a\x05pprof\x52\x07payload"));
        profile_bytes_wrap(&out, profile, 2);
    }
    profile_bytes_wrap(&out, scope, 2);
    profile_bytes_wrap(&out, begin, 1);
    struct random_source random = {.state = 1};
    struct batch *batch = random_parts(&random, PROFILES, slice_of(out.data, out.size));
    profile_bytes_fini(&out);
    return batch;
}

struct seen_profile {
    size_t resources;
    uint64_t samples[8];
    bool has_payload[8];
    size_t count;
};

static struct seen_profile look_at(const struct batch *piece)
{
    struct seen_profile seen = {0};
    struct wire_reader resources = wire_reader_of(piece->parts[0].bytes);
    struct profile_resource resource;
    while (profile_next_resource(&resources, &resource)) {
        struct profile_iterator at = profile_iterator_of_resource(resource.bytes);
        seen.resources++;
        while (profile_iterator_next(&at)) {
            const struct profile *profile = &at.profile;
            assert_true(seen.count < 8);
            assert_int_equal(profile->id.size > 0, profile->payload.size > 0);
            assert_true(profile->sample_type.is_set && profile->period_type.is_set);
            seen.has_payload[seen.count] = profile->payload.size > 0;
            seen.samples[seen.count++] = profile->samples_count;
        }
    }
    return seen;
}

static struct seen_profile cut_one(struct profile_queue *queue, uint64_t items_max, bool is_last)
{
    struct batch *model = batch_create(PROFILES, 1);
    bool was_last;
    struct batch *piece =
        profile_queue_cut(queue, model, (struct otlp_limit){.items_max = items_max}, &was_last);
    struct seen_profile seen = look_at(piece);
    assert_int_equal(was_last, is_last);
    batch_unref(piece);
    batch_unref(model);
    return seen;
}

static void add_plain(struct profile_queue *queue, const char *service, unsigned profiles,
                      unsigned samples)
{
    struct batch *batch = plain_batch(service, profiles, samples);
    profile_queue_add(queue, batch);
    batch_unref(batch);
}

static void equal_resources_are_one_and_profiles_stay_apart(void **state)
{
    struct profile_queue queue;
    (void)state;
    profile_queue_init(&queue, NULL);
    add_plain(&queue, "shop", 1, 2);
    add_plain(&queue, "bank", 1, 3);
    add_plain(&queue, "shop", 2, 4);
    struct seen_profile seen = cut_one(&queue, 0, true);
    assert_int_equal(seen.resources, 2);
    assert_int_equal(seen.count, 4);
    const uint64_t samples[] = {2, 4, 4, 3}; /* by resource, then in order of arrival */
    assert_memory_equal(seen.samples, samples, sizeof(samples));
    profile_queue_fini(&queue);
}

static void only_a_profile_above_the_limit_is_cut(void **state)
{
    struct profile_queue queue;
    (void)state;
    profile_queue_init(&queue, NULL);
    add_plain(&queue, "shop", 2, 6);
    add_plain(&queue, "shop", 1, 23);
    struct seen_profile seen = cut_one(&queue, 10, false);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.samples[0], 6);
    assert_true(seen.has_payload[0]);
    seen = cut_one(&queue, 10, false);
    assert_int_equal(seen.samples[0], 6);
    for (unsigned i = 0; i < 3; i++) {
        seen = cut_one(&queue, 10, i == 2);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.samples[0], i < 2 ? 10 : 3);
        assert_false(seen.has_payload[0]);
    }
    profile_queue_fini(&queue);
}

static void a_payload_without_samples_survives(void **state)
{
    struct profile_queue queue;
    (void)state;
    profile_queue_init(&queue, NULL);
    add_plain(&queue, "shop", 2, 0);
    struct seen_profile seen = cut_one(&queue, 1, true);
    assert_int_equal(seen.count, 2);
    assert_true(seen.has_payload[0] && seen.has_payload[1]);
    profile_queue_fini(&queue);
}

static void what_is_left_in_a_queue_is_given_back(void **state)
{
    struct profile_queue queue;
    (void)state;
    profile_queue_init(&queue, NULL);
    add_plain(&queue, "shop", 2, 9);
    add_plain(&queue, "shop", 1, 2);
    cut_one(&queue, 4, false);
    profile_queue_fini(&queue); /* the sanitizer reports what is not freed */
}

/* A stack of its own, as the bits of its number, of locations 1 and 2. */
static void put_stack(struct profile_bytes *out, uint32_t number)
{
    uint8_t locations[STACK_DEPTH];
    size_t begin = out->size;
    for (unsigned i = 0; i < STACK_DEPTH; i++)
        locations[i] = 1 + (number >> i % 32 & 1);
    profile_bytes_add(out, slice_of(locations, sizeof(locations)));
    profile_bytes_wrap(out, begin, 1);
    profile_bytes_wrap(out, begin, 7);
}

/* STACKS_LARGE samples with a stack each, from number `first` on. */
static struct batch *large_batch(uint32_t first)
{
    /* The terminator is the length of the first stack. */
    static const char tables[] = "\x0a\x00\x12\x00\x12\x02\x10\x01\x12\x02\x10\x02"
                                 "\x1a\x00\x22\x00\x2a\x00\x32\x00\x3a";
    struct profile_bytes out = {0};
    for (uint32_t i = 1; i <= STACKS_LARGE; i++) {
        size_t begin = out.size;
        uint8_t *at = profile_bytes_room(&out, 16);
        out.size += (size_t)(profile_put_number(at, 1, i) - at);
        profile_bytes_add(&out, slice_of("\x22\x01\x05", 3));
        profile_bytes_wrap(&out, begin, 2);
    }
    for (unsigned i = 0; i < 3; i++)
        profile_bytes_wrap(&out, 0, i == 2 ? 1 : 2);
    size_t begin = out.size;
    profile_bytes_add(&out, slice_of(tables, sizeof(tables)));
    for (uint32_t i = 0; i < STACKS_LARGE; i++)
        put_stack(&out, first + i);
    profile_bytes_wrap(&out, begin, 2);
    struct random_source random = {.state = 1};
    struct batch *batch = random_parts(&random, PROFILES, slice_of(out.data, out.size));
    profile_bytes_fini(&out);
    return batch;
}

static void large_tables_are_handed_out_as_they_were_built(void **state)
{
    struct batch *model = batch_create(PROFILES, 1);
    struct budget budget;
    struct profile_queue queue;
    bool is_last;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    profile_queue_init(&queue, &budget);
    for (uint32_t i = 0; i < 3; i++) {
        /* The second has half of the stacks of the first. */
        struct batch *batch = large_batch(1 + i * STACKS_LARGE / 2);
        profile_queue_add(&queue, batch);
        batch_unref(batch);
    }
    struct batch *piece = profile_queue_cut(&queue, model, (struct otlp_limit){0}, &is_last);
    assert_true(is_last);
    profile_queue_fini(&queue);
    assert_true(piece->parts_count > 2);
    assert_int_equal(piece->items, 3 * STACKS_LARGE);
    assert_true(piece->bytes > 2 * STACKS_LARGE * STACK_DEPTH);
    assert_true(piece->bytes < 3 * STACKS_LARGE * STACK_DEPTH);
    check_piece(piece, (struct otlp_limit){0});
    batch_unref(piece);
    batch_unref(model);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

/* The size of what comes after the samples is known, even if its indices could have been longer. */
static void pieces_have_as_many_samples_as_fit_beside_the_attributes(void **state)
{
    enum { ENTRIES = 200, ATTRIBUTES = 600, SAMPLES = 100, LIMIT = 1000, PIECES_MAX = 5 };
    const struct otlp_limit limit = {.bytes_max = LIMIT};
    struct batch *model = batch_create(PROFILES, 1);
    struct profile_bytes out = {0};
    struct profile_queue queue;
    unsigned pieces = 0;
    bool is_last = false;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        profile_bytes_add(&out, slice_of("\x12\x03\x22\x01\x05", 5));
    size_t begin = out.size;
    memset(profile_bytes_room(&out, ATTRIBUTES), 1, ATTRIBUTES);
    out.size += ATTRIBUTES;
    profile_bytes_wrap(&out, begin, 11);
    for (unsigned i = 0; i < 3; i++)
        profile_bytes_wrap(&out, 0, i == 2 ? 1 : 2);
    begin = out.size;
    for (unsigned i = 0; i < ENTRIES; i++)
        profile_bytes_add(&out, i == 0 ? slice_of("\x32\x00", 2) : slice_of("\x32\x02\x12\x00", 4));
    profile_bytes_wrap(&out, begin, 2);
    struct random_source random = {.state = 1};
    struct batch *batch = random_parts(&random, PROFILES, slice_of(out.data, out.size));
    profile_bytes_fini(&out);
    profile_queue_init(&queue, NULL);
    profile_queue_add(&queue, batch);
    batch_unref(batch);
    for (; !is_last; pieces++) {
        struct batch *piece = profile_queue_cut(&queue, model, limit, &is_last);
        check_piece(piece, limit);
        batch_unref(piece);
    }
    assert_in_range(pieces, 2, PIECES_MAX);
    profile_queue_fini(&queue);
    batch_unref(model);
}

/* Samples of one large stack, of which every piece has a copy as long as they are cut. */
static void samples_above_the_limit_take_a_bounded_multiple_of_the_request(void **state)
{
    enum { DEPTH = 20000, SAMPLES = 1000, LIMIT = 1000 };
    static const char tables[] = "\x0a\x00\x12\x00\x12\x02\x10\x01\x1a\x00\x22\x00\x2a\x00"
                                 "\x32\x00\x3a"; /* the terminator is a length */
    const struct otlp_limit limit = {.bytes_max = LIMIT};
    struct batch *model = batch_create(PROFILES, 1);
    struct profile_bytes out = {0};
    struct profile_queue queue;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++)
        profile_bytes_add(&out, slice_of("\x12\x05\x08\x01\x22\x01\x05", 7));
    for (unsigned i = 0; i < 3; i++)
        profile_bytes_wrap(&out, 0, i == 2 ? 1 : 2);
    size_t begin = out.size;
    profile_bytes_add(&out, slice_of(tables, sizeof(tables)));
    size_t stack = out.size;
    memset(profile_bytes_room(&out, DEPTH), 1, DEPTH);
    out.size += DEPTH;
    profile_bytes_wrap(&out, stack, 1);
    profile_bytes_wrap(&out, stack, 7);
    profile_bytes_wrap(&out, begin, 2);
    struct random_source random = {.state = 1};
    struct batch *batch = random_parts(&random, PROFILES, slice_of(out.data, out.size));
    uint64_t bytes_max =
        PROFILE_OVERSIZE_BYTES_MORE + (PROFILE_OVERSIZE_GROWTH_MAX + 2) * batch->bytes;
    profile_bytes_fini(&out);
    profile_queue_init(&queue, NULL);
    profile_queue_add(&queue, batch);
    batch_unref(batch);
    /* What comes next is cut as ever. */
    add_plain(&queue, "shop", 40, 1);
    uint64_t bytes = 0;
    uint64_t items = 0;
    bool is_last = false;
    while (!is_last) {
        struct batch *piece = profile_queue_cut(&queue, model, limit, &is_last);
        bytes += piece->bytes;
        items += piece->items;
        assert_true(items <= SAMPLES || piece->bytes <= LIMIT);
        batch_unref(piece);
    }
    assert_int_equal(items, SAMPLES + 40);
    assert_in_range(bytes, PROFILE_OVERSIZE_BYTES_MORE, bytes_max);
    profile_queue_fini(&queue);
    batch_unref(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_requests_say_what_they_said),
        cmocka_unit_test(pieces_by_samples_say_what_the_whole_said),
        cmocka_unit_test(pieces_by_bytes_say_what_the_whole_said),
        cmocka_unit_test(both_limits_hold_at_once),
        cmocka_unit_test(equal_resources_are_one_and_profiles_stay_apart),
        cmocka_unit_test(only_a_profile_above_the_limit_is_cut),
        cmocka_unit_test(a_payload_without_samples_survives),
        cmocka_unit_test(large_tables_are_handed_out_as_they_were_built),
        cmocka_unit_test(what_is_left_in_a_queue_is_given_back),
        cmocka_unit_test(pieces_have_as_many_samples_as_fit_beside_the_attributes),
        cmocka_unit_test(samples_above_the_limit_take_a_bounded_multiple_of_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
