/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for normalizing hostile profiles: every allocation is charged before, so that memory in
 * use never exceeds the budget, and what would exceed it on every attempt is refused for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "tests/support/memory_watch.h"

/* Neither charged nor growing with input: batch headers, lists of chunks. */
enum { SLACK_BYTES = 64 * 1024 };

/* Field numbers of the dictionary. */
enum { LOCATIONS = 2, FUNCTIONS = 3, STRINGS = 5, ATTRIBUTES = 6, STACKS = 7 };

static void put_varint(struct profile_bytes *out, uint64_t value)
{
    uint8_t *at = profile_bytes_room(out, WIRE_VARINT_BYTES_MAX);
    out->size += (size_t)(profile_put_varint(at, value) - at);
}

static void put_number(struct profile_bytes *out, uint32_t number, uint64_t value)
{
    put_varint(out, wire_tag(number, WIRE_VARINT));
    put_varint(out, value);
}

static void put_text(struct profile_bytes *out, uint32_t number, size_t size)
{
    size_t begin = out->size;
    uint8_t *room = profile_bytes_room(out, size);
    memset(room, 'x', size);
    out->size += size;
    profile_bytes_wrap(out, begin, number);
}

/* An AnyValue that refers to the first string, as field `number`. */
static void put_reference(struct profile_bytes *out, uint32_t number)
{
    size_t begin = out->size;
    put_number(out, 8, 1);
    profile_bytes_wrap(out, begin, number);
}

/* One profile with one sample, which uses entry 1 of stacks and the attribute. */
static void put_profile(struct profile_bytes *out, uint64_t attribute)
{
    size_t resource = out->size;
    size_t scope = out->size;
    size_t profile = out->size;
    size_t sample = out->size;
    put_number(out, 1, 1);
    put_number(out, 2, attribute);
    put_number(out, 4, 5);
    profile_bytes_wrap(out, sample, 2);
    profile_bytes_wrap(out, profile, 2);
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, resource, 1);
}

/* The string that is referred to, and what the sample needs. */
static void put_basic_tables(struct profile_bytes *out, size_t text_bytes)
{
    put_text(out, STRINGS, 0);
    put_text(out, STRINGS, text_bytes);
    put_text(out, STACKS, 0);
    put_text(out, STACKS, 0);
}

/* Each attribute of the table is one reference to a long string. */
static void attributes_with_one_reference(struct profile_bytes *out, size_t count)
{
    put_profile(out, 1);
    size_t begin = out->size;
    put_basic_tables(out, 1 * MIB);
    for (size_t i = 0; i < count; i++) {
        size_t attribute = out->size;
        put_number(out, 1, i % 2);
        put_reference(out, 2);
        profile_bytes_wrap(out, attribute, ATTRIBUTES);
    }
    profile_bytes_wrap(out, begin, 2);
}

/* The one attribute is a list of them. */
static void one_attribute_with_many_references(struct profile_bytes *out, size_t count)
{
    put_profile(out, 1);
    size_t begin = out->size;
    put_basic_tables(out, 1 * MIB);
    put_text(out, ATTRIBUTES, 0);
    size_t attribute = out->size;
    put_number(out, 1, 1);
    size_t value = out->size;
    size_t array = out->size;
    for (size_t i = 0; i < count; i++)
        put_reference(out, 1);
    profile_bytes_wrap(out, array, 5);
    profile_bytes_wrap(out, value, 2);
    profile_bytes_wrap(out, attribute, ATTRIBUTES);
    profile_bytes_wrap(out, begin, 2);
}

/* A resource of keys and values by reference. */
static void a_resource_of_references(struct profile_bytes *out, size_t count)
{
    size_t resources = out->size;
    size_t resource = out->size;
    for (size_t i = 0; i < count; i++) {
        size_t attribute = out->size;
        put_number(out, 3, 1);
        put_reference(out, 2);
        profile_bytes_wrap(out, attribute, 1);
    }
    profile_bytes_wrap(out, resource, 1);
    size_t scope = out->size;
    put_text(out, 2, 0);
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, resources, 1);
    size_t begin = out->size;
    put_basic_tables(out, 1 * MIB);
    profile_bytes_wrap(out, begin, 2);
}

/* Two bytes each, in every table, and a profile without type: it has to be rewritten. */
static void empty_entries(struct profile_bytes *out, size_t count)
{
    put_profile(out, 1);
    size_t begin = out->size;
    for (uint32_t table = 1; table <= STACKS; table++)
        for (size_t i = 0; i < count * 4096; i++)
            put_text(out, table, 0);
    profile_bytes_wrap(out, begin, 2);
}

/* Each with a number of its own, all used by one stack. */
static void small_locations(struct profile_bytes *out, size_t count)
{
    put_profile(out, 0);
    size_t begin = out->size;
    put_text(out, LOCATIONS, 0);
    for (size_t i = 1; i < count * 2048; i++) {
        size_t location = out->size;
        put_number(out, 2, i);
        profile_bytes_wrap(out, location, LOCATIONS);
    }
    put_text(out, STACKS, 0);
    size_t stack = out->size;
    size_t packed = out->size;
    for (size_t i = count * 2048 - 1; i > 0; i--)
        put_varint(out, i);
    profile_bytes_wrap(out, packed, 1);
    profile_bytes_wrap(out, stack, STACKS);
    profile_bytes_wrap(out, begin, 2);
}

/* Many indices of one byte, which become longer when their entries come late. */
static void stacks_whose_indices_grow(struct profile_bytes *out, size_t count)
{
    small_locations(out, count);
    size_t begin = out->size;
    for (size_t i = 0; i < count; i++) {
        size_t stack = out->size;
        size_t packed = out->size;
        for (size_t k = 0; k < 4096; k++)
            put_varint(out, 1 + k % 100);
        profile_bytes_wrap(out, packed, 1);
        profile_bytes_wrap(out, stack, STACKS);
    }
    profile_bytes_wrap(out, begin, 2);
}

/* Many empty Profile messages. */
static void empty_profiles(struct profile_bytes *out, size_t count)
{
    size_t resources = out->size;
    size_t scope = out->size;
    for (size_t i = 0; i < count * 4096; i++)
        put_text(out, 2, 0);
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, resources, 1);
}

/* Many resources with a scope and a profile each, all different. */
static void small_resources(struct profile_bytes *out, size_t count)
{
    for (size_t i = 0; i < count * 512; i++) {
        size_t resources = out->size;
        size_t resource = out->size;
        put_number(out, 2, i + 1);
        profile_bytes_wrap(out, resource, 1);
        size_t scope = out->size;
        put_text(out, 2, 0);
        profile_bytes_wrap(out, scope, 2);
        profile_bytes_wrap(out, resources, 1);
    }
}

struct ranges {
    size_t locations;
    size_t samples;
    size_t ranges; /* different ones, each begins that many locations after the one before */
    size_t step;
    size_t size;
    bool are_alike; /* every other one, else none */
};

/* Layout 1.7: samples name ranges of one list of locations. */
static void put_ranges(struct profile_bytes *out, const struct ranges *ranges)
{
    size_t resources = out->size;
    size_t scope = out->size;
    size_t profile = out->size;
    size_t type = out->size;
    put_number(out, 1, 1);
    put_number(out, 3, 1);
    profile_bytes_wrap(out, type, 1);
    for (size_t i = 0; i < ranges->samples; i++) {
        size_t sample = out->size;
        put_number(out, 1, i % ranges->ranges * ranges->step);
        put_number(out, 2, ranges->size);
        size_t values = out->size;
        put_varint(out, 5);
        profile_bytes_wrap(out, values, 3);
        profile_bytes_wrap(out, sample, 2);
    }
    size_t packed = out->size;
    for (uint32_t i = 0; i < ranges->locations; i++)
        put_varint(out, ranges->are_alike ? i % 2 : i * 2654435761u >> 31);
    profile_bytes_wrap(out, packed, 3);
    profile_bytes_wrap(out, profile, 2);
    profile_bytes_wrap(out, scope, 2);
    profile_bytes_wrap(out, resources, 1);
    size_t begin = out->size;
    put_basic_tables(out, 1);
    put_text(out, LOCATIONS, 0);
    put_text(out, LOCATIONS, 0);
    profile_bytes_wrap(out, begin, 2);
}

static void spelt_stacks(struct profile_bytes *out, size_t count)
{
    enum { LOCATIONS_COUNT = 200000 };
    put_ranges(out, &(struct ranges){.locations = LOCATIONS_COUNT,
                                     .samples = count,
                                     .ranges = count,
                                     .step = 1,
                                     .size = LOCATIONS_COUNT - count,
                                     .are_alike = true});
}

/* Layout 1.7: an attribute whose key comes many times, each time another one. */
static void keys_of_one_attribute(struct profile_bytes *out, size_t count)
{
    put_ranges(out, &(struct ranges){.locations = 1, .samples = 1, .ranges = 1, .size = 1});
    size_t begin = out->size;
    size_t pair = out->size;
    for (size_t i = 0; i < count * 8192; i++) {
        const char key[] = {(char)i, (char)(i >> 8), (char)(i >> 16)};
        profile_bytes_field(out, 1, slice_of(key, sizeof(key)));
    }
    profile_bytes_wrap(out, pair, ATTRIBUTES);
    profile_bytes_wrap(out, begin, 2);
}

static const struct {
    const char *name;
    void (*put)(struct profile_bytes *out, size_t count);
    enum profile_layout layout;
    size_t count_max; /* accepted when there is memory; 0: any */
} shapes[] = {
    {"attributes with one reference", attributes_with_one_reference, LAYOUT_1_10, 63},
    {"one attribute with many references", one_attribute_with_many_references, LAYOUT_1_10, 63},
    {"a resource of references", a_resource_of_references, LAYOUT_1_10, 31},
    {"empty entries", empty_entries, LAYOUT_1_10, 0},
    {"small locations", small_locations, LAYOUT_1_10, 0},
    {"stacks whose indices grow", stacks_whose_indices_grow, LAYOUT_1_10, 0},
    {"empty profiles", empty_profiles, LAYOUT_1_10, 0},
    {"small resources", small_resources, LAYOUT_1_10, 0},
    {"spelt stacks", spelt_stacks, LAYOUT_1_7, 0},
    {"keys of one attribute", keys_of_one_attribute, LAYOUT_1_7, 0},
};

static enum profile_verdict pass(size_t shape, size_t count, uint64_t limit)
{
    struct profile_bytes out = {0};
    shapes[shape].put(&out, count);
    struct buffer *request = buffer_create(NULL, out.size);
    memcpy(request->data, out.data, out.size);
    request->size = out.size;
    profile_bytes_fini(&out);
    struct budget budget;
    struct profile_normalized normalized;
    budget_init(&budget, limit);
    memory_watch_begin();
    enum profile_verdict verdict = profile_normalize(request, buffer_slice(request),
                                                     shapes[shape].layout, &budget, &normalized);
    uint64_t charged = atomic_load(&budget.high_water);
    if (memory_watch_peak() > charged + SLACK_BYTES || charged > limit + SLACK_BYTES)
        fail_msg("%s x %zu, %zu bytes: verdict %u, %llu held, %llu charged of %llu",
                 shapes[shape].name, count, request->size, (unsigned)verdict,
                 (unsigned long long)memory_watch_peak(), (unsigned long long)charged,
                 (unsigned long long)limit);
    if (verdict == PROFILES_TAKEN)
        buffer_unref(normalized.owner);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    buffer_unref(request);
    return verdict;
}

static void what_is_allocated_was_charged_before(void **state)
{
    static const size_t counts[] = {1, 60, 150};
    static const uint64_t limits[] = {1 * MIB, 32 * MIB, 4096 * MIB};
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++)
                (void)pass(shape, counts[i], limits[k]);
}

/* Limiting a normalized request: what is reserved before suffices, and is requested once. */
static enum budget_result limit_within(size_t shape, size_t count, uint64_t limit)
{
    const struct profile_limit_rules rules = {.depth_max = 100};
    struct profile_limit_figures figures;
    struct profile_bytes out = {0};
    struct profile_normalized normalized;
    struct budget budget;
    struct budget_reserve reserve;
    shapes[shape].put(&out, count);
    struct buffer *request = buffer_create(NULL, out.size);
    memcpy(request->data, out.data, out.size);
    request->size = out.size;
    profile_bytes_fini(&out);
    enum profile_verdict verdict =
        profile_normalize(request, buffer_slice(request), shapes[shape].layout, NULL, &normalized);
    buffer_unref(request);
    assert_int_equal(verdict, PROFILES_TAKEN);
    budget_init(&budget, limit);
    memory_watch_begin();
    enum budget_result result = profile_measure_reserve(
        normalized.request, profile_limit_bytes(normalized.request), &budget, &reserve);
    if (result == BUDGET_GIVEN) {
        struct buffer *shaped = profile_limit(&rules, normalized.request, NULL, &budget, &figures);
        budget_release(&reserve);
        uint64_t charged = atomic_load(&budget.high_water);
        if (shaped == NULL || memory_watch_peak() > charged + SLACK_BYTES || charged > limit)
            fail_msg("%s x %zu, %zu bytes: %llu held, %llu charged of %llu", shapes[shape].name,
                     count, normalized.request.size, (unsigned long long)memory_watch_peak(),
                     (unsigned long long)charged, (unsigned long long)limit);
        buffer_unref(shaped);
    }
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    buffer_unref(normalized.owner);
    return result;
}

static void limiting_stays_within_what_was_reserved(void **state)
{
    static const uint64_t limits[] = {300 * KIB, 8 * MIB, 24 * MIB, 48 * MIB, 96 * MIB};
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
            (void)limit_within(shape, 20, limits[i]);
}

/* 300 000 empty profiles, in 600 KB, and as many other small ones. */
static void many_small_profiles_are_limited_within_64_mib(void **state)
{
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        if (shapes[shape].put == empty_profiles)
            assert_int_equal(limit_within(shape, 300000 / 4096 + 1, 60 * MIB), BUDGET_GIVEN);
}

static void what_expands_has_an_allowance(void **state)
{
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
        size_t max = shapes[shape].count_max;
        assert_int_equal(pass(shape, max > 0 ? max : 20, 4096 * MIB), PROFILES_TAKEN);
        if (max > 0)
            assert_int_equal(pass(shape, max + 2, 4096 * MIB), PROFILES_TOO_LARGE);
    }
}

static void what_exceeds_the_whole_budget_is_reported_as_such(void **state)
{
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        if (shapes[shape].layout == LAYOUT_1_10)
            assert_int_equal(pass(shape, 30, 300 * KIB), PROFILES_TOO_LARGE);
}

/* The overlapping ranges of 31 KB would spell 20 MB; ranges that are named again are one stack, as
 * senders name them. */
static void ranges_are_spelt_within_a_multiple_of_the_request(void **state)
{
    static const struct {
        struct ranges ranges;
        bool is_refused;
    } rows[] = {
        {{.locations = 15000, .samples = 1500, .ranges = 1500, .step = 1, .size = 13500}, true},
        {{.locations = 40000, .samples = 20000, .ranges = 100, .step = 400, .size = 400}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct profile_bytes out = {0};
        struct budget budget;
        struct profile_normalized normalized;
        put_ranges(&out, &rows[i].ranges);
        struct buffer *request = buffer_create(NULL, out.size);
        memcpy(request->data, out.data, out.size);
        request->size = out.size;
        profile_bytes_fini(&out);
        budget_init(&budget, 4096 * MIB);
        enum profile_verdict verdict =
            profile_normalize(request, buffer_slice(request), LAYOUT_1_7, &budget, &normalized);
        assert_int_equal(verdict, PROFILES_TAKEN);
        assert_int_equal(normalized.rejected_profiles, rows[i].is_refused);
        assert_int_equal(normalized.samples + normalized.rejected_samples, rows[i].ranges.samples);
        assert_true(atomic_load(&budget.high_water) < 60 * request->size + 12 * MIB);
        buffer_unref(normalized.owner);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
        buffer_unref(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allocated_was_charged_before),
        cmocka_unit_test(limiting_stays_within_what_was_reserved),
        cmocka_unit_test(many_small_profiles_are_limited_within_64_mib),
        cmocka_unit_test(what_expands_has_an_allowance),
        cmocka_unit_test(what_exceeds_the_whole_budget_is_reported_as_such),
        cmocka_unit_test(ranges_are_spelt_within_a_multiple_of_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
