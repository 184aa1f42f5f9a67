/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of cumulative profiles: what becomes one and what stays, new and repeated stacks,
 * another process, no memory. */
#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pprof/pprof_delta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES_MAX = 8, TYPES_MAX = 4, PRINTED_BYTES = 1024, ARENA_BYTES = 1 << 20 };

/* Strings of all profiles here. */
enum {
    EMPTY,
    ALLOC_OBJECTS,
    COUNT,
    INUSE_SPACE,
    BYTES,
    CONTENTIONS,
    DELAY,
    NANOSECONDS,
    MAIN,
    SIZE
};

static struct slice strings[] = {
    {.size = 0},
    {.data = (const uint8_t *)"alloc_objects", .size = 13},
    {.data = (const uint8_t *)"count", .size = 5},
    {.data = (const uint8_t *)"inuse_space", .size = 11},
    {.data = (const uint8_t *)"bytes", .size = 5},
    {.data = (const uint8_t *)"contentions", .size = 11},
    {.data = (const uint8_t *)"delay", .size = 5},
    {.data = (const uint8_t *)"nanoseconds", .size = 11},
    {.data = (const uint8_t *)"main", .size = 4},
    {.data = (const uint8_t *)"size", .size = 4},
};
static struct pprof_value_type heap_types[] = {{.type = ALLOC_OBJECTS, .unit = COUNT},
                                               {.type = INUSE_SPACE, .unit = BYTES}};
static struct pprof_value_type mutex_types[] = {{.type = CONTENTIONS, .unit = COUNT},
                                                {.type = DELAY, .unit = NANOSECONDS}};
static struct pprof_value_type cpu_types[] = {{.type = DELAY, .unit = COUNT},
                                              {.type = INUSE_SPACE, .unit = BYTES}};
/* By address, but the last two, which have functions. */
static const struct pprof_line lines[] = {{.function = 1, .line = 1}, {.function = 1, .line = 2}};
static struct pprof_location locations[] = {
    {.address = 0x10},
    {.address = 0x20},
    {.address = 0x30},
    {.lines_count = 1, .lines = &lines[0]},
    {.lines_count = 1, .lines = &lines[1]},
};
static struct pprof_function functions[] = {{.name = MAIN}};

static struct budget budget;
static struct pprof_delta delta;
static struct arena arena;
static struct pprof_sample samples[SAMPLES_MAX];
static int64_t values[SAMPLES_MAX][TYPES_MAX];
static uint32_t stacks[SAMPLES_MAX][2];
static struct pprof_label labels[SAMPLES_MAX];
static struct pprof profile;
static char printed[PRINTED_BYTES];

static int set_up(void **state)
{
    (void)state;
    budget_init(&budget, UINT64_MAX);
    pprof_delta_init(&delta, &budget);
    arena_init(&arena, ARENA_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pprof_delta_fini(&delta);
    arena_clear(&arena);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static void begin(struct pprof_value_type *types, int64_t time_ns)
{
    profile = (struct pprof){
        .strings = strings,
        .strings_count = sizeof(strings) / sizeof(strings[0]),
        .sample_types = types,
        .sample_types_count = 2,
        .samples = samples,
        .locations = locations,
        .locations_count = sizeof(locations) / sizeof(locations[0]),
        .functions = functions,
        .functions_count = 1,
        .time_ns = time_ns,
    };
}

/* A sample of two frames. size: of a label, 0: none. */
static void add(uint32_t leaf, uint32_t root, int64_t size, int64_t first, int64_t second)
{
    size_t i = profile.samples_count++;
    stacks[i][0] = leaf;
    stacks[i][1] = root;
    values[i][0] = first;
    values[i][1] = second;
    labels[i] = (struct pprof_label){.key = SIZE, .number = size};
    samples[i] = (struct pprof_sample){
        .locations = stacks[i],
        .locations_count = 2,
        .values = values[i],
        .labels = &labels[i],
        .labels_count = size != 0,
    };
}

/* "leaf:first,second " for each sample. */
static const char *take(enum pprof_delta_result expected)
{
    assert_int_equal(pprof_delta_take(&delta, &profile, &arena), expected);
    size_t size = 0;
    printed[0] = '\0';
    for (size_t i = 0; i < profile.samples_count; i++)
        size += (size_t)snprintf(printed + size, sizeof(printed) - size, "%u:%lld,%lld ",
                                 samples[i].locations[0], (long long)samples[i].values[0],
                                 (long long)samples[i].values[1]);
    return printed;
}

static void test_allocations_differ_and_use_stays(void **state)
{
    (void)state;
    begin(heap_types, 1000);
    add(1, 2, 0, 10, 100);
    add(2, 3, 0, 5, 0);
    assert_string_equal(take(PPROF_DELTA_FIRST), "1:0,100 ");
    assert_int_equal(profile.time_ns, 1000);
    begin(heap_types, 3000);
    add(1, 2, 0, 14, 90);
    add(2, 3, 0, 5, 0);
    add(3, 3, 0, 7, 1);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:4,90 3:7,1 ");
    assert_int_equal(profile.time_ns, 1000);
    assert_int_equal(profile.duration_ns, 2000);
    begin(heap_types, 4000);
    add(1, 2, 0, 14, 0);
    add(2, 3, 0, 6, 0);
    add(3, 3, 0, 7, 0);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "2:1,0 ");
    assert_int_equal(profile.time_ns, 3000);
}

static void test_both_values_of_contention_differ(void **state)
{
    (void)state;
    begin(mutex_types, 1);
    add(1, 2, 0, 10, 100);
    assert_string_equal(take(PPROF_DELTA_FIRST), "");
    begin(mutex_types, 2);
    add(1, 2, 0, 11, 150);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:1,50 ");
}

static void test_equal_stacks_are_summed(void **state)
{
    (void)state;
    begin(heap_types, 1);
    add(1, 2, 0, 10, 1);
    add(1, 2, 0, 20, 2);
    add(1, 2, 64, 1, 0);
    take(PPROF_DELTA_FIRST);
    begin(heap_types, 2);
    add(1, 2, 0, 15, 1);
    add(1, 2, 0, 25, 2);
    add(1, 2, 64, 2, 0);
    add(1, 2, 128, 3, 0);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:10,1 1:0,2 1:1,0 1:3,0 ");
    /* In another order, and with the second one gone. */
    begin(heap_types, 3);
    add(1, 2, 128, 3, 0);
    add(1, 2, 64, 4, 0);
    add(1, 2, 0, 41, 0);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:2,0 1:1,0 ");
}

static void test_stacks_without_addresses_have_lines(void **state)
{
    (void)state;
    begin(heap_types, 1);
    add(4, 4, 0, 10, 0);
    add(5, 4, 0, 20, 0);
    take(PPROF_DELTA_FIRST);
    begin(heap_types, 2);
    add(5, 4, 0, 21, 0);
    add(4, 4, 0, 12, 0);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "5:1,0 4:2,0 ");
}

static void test_another_process_begins_anew(void **state)
{
    (void)state;
    begin(heap_types, 1);
    add(1, 2, 0, 10, 0);
    add(2, 2, 0, 10, 0);
    take(PPROF_DELTA_FIRST);
    begin(heap_types, 2);
    add(1, 2, 0, 12, 3);
    add(2, 2, 0, 9, 4);
    assert_string_equal(take(PPROF_DELTA_FIRST), "1:0,3 2:0,4 ");
    assert_int_equal(profile.time_ns, 2);
    begin(heap_types, 3);
    add(1, 2, 0, 13, 0);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:1,0 ");
    /* Other types are another profile, too. */
    begin(mutex_types, 4);
    add(1, 2, 0, 20, 20);
    assert_string_equal(take(PPROF_DELTA_FIRST), "");
}

static void test_other_profiles_stay_as_they_are(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(cpu_types, i);
        add(1, 2, 0, 10, 0);
        add(2, 2, 0, 0, 0);
        assert_string_equal(take(PPROF_DELTA_TAKEN), "1:10,0 2:0,0 ");
    }
    assert_false(delta.has_profile);
}

static void test_sums_do_not_overflow(void **state)
{
    (void)state;
    begin(heap_types, 1);
    add(1, 2, 0, INT64_MAX, 0);
    add(1, 2, 0, INT64_MAX, 0);
    take(PPROF_DELTA_FIRST);
    begin(heap_types, 2);
    add(1, 2, 0, INT64_MAX, 1);
    assert_string_equal(take(PPROF_DELTA_TAKEN), "1:0,1 ");
}

static void test_without_memory_the_next_profile_is_the_first(void **state)
{
    (void)state;
    begin(heap_types, 1);
    add(1, 2, 0, 10, 0);
    take(PPROF_DELTA_FIRST);
    pprof_delta_fini(&delta);
    struct budget tight;
    budget_init(&tight, 100);
    pprof_delta_init(&delta, &tight);
    begin(heap_types, 2);
    add(1, 2, 0, 11, 0);
    take(PPROF_DELTA_NO_MEMORY);
    assert_false(delta.has_profile);
    assert_int_equal(budget_used(&tight), 0);
    budget_fini(&tight);
    pprof_delta_init(&delta, &budget);
    struct arena small;
    for (size_t room = 0; room < 400; room += 16) {
        arena_init(&small, room);
        begin(heap_types, 3);
        add(1, 2, 0, 12, 0);
        assert_int_not_equal(pprof_delta_take(&delta, &profile, &small), PPROF_DELTA_TAKEN);
        arena_clear(&small);
        if (delta.has_profile)
            break;
    }
    assert_true(delta.has_profile);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_allocations_differ_and_use_stays),
        TEST(test_both_values_of_contention_differ),
        TEST(test_equal_stacks_are_summed),
        TEST(test_stacks_without_addresses_have_lines),
        TEST(test_another_process_begins_anew),
        TEST(test_other_profiles_stay_as_they_are),
        TEST(test_sums_do_not_overflow),
        TEST(test_without_memory_the_next_profile_is_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
