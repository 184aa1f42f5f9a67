/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical names, one row for each kind of profile that producers send. */
#include "src/profiles/pprof/profile_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct type_case {
    const char *from[4]; /* type, unit, period type, period unit */
    bool has_period;
    bool has_time_beside;
    const char *to; /* name type:unit:period_type:period_unit */
    bool counts_periods;
};

#define CPU_TIME     "process_cpu cpu:nanoseconds:cpu:nanoseconds"
#define CPU_SAMPLES  "process_cpu samples:count:cpu:nanoseconds"
#define WALL_TIME    "wall wall:nanoseconds:wall:nanoseconds"
#define WALL_SAMPLES "wall samples:count:wall:nanoseconds"

static const struct type_case cases[] = {
    /* eBPF profiler */
    {{"samples", "count", "cpu", "nanoseconds"}, true, false, CPU_TIME, true},
    {{"off_cpu", "nanoseconds", "", ""}, false, false, "off_cpu off_cpu:nanoseconds::", false},
    {{"events", "count", "", ""}, false, false, "events events:count::", false},
    /* Go's CPU profile: the count stays one beside the time */
    {{"samples", "count", "cpu", "nanoseconds"}, true, true, CPU_SAMPLES, false},
    {{"cpu", "nanoseconds", "cpu", "nanoseconds"}, true, true, CPU_TIME, false},
    /* no period, or one that is no time: nothing to multiply by */
    {{"samples", "count", "cpu", "nanoseconds"}, false, false, CPU_SAMPLES, false},
    {{"samples", "count", "cpu", "cycles"}, true, false, CPU_SAMPLES, false},
    {{"samples", "count", "", ""}, false, false, CPU_SAMPLES, false},
    /* Go's heap */
    {{"alloc_objects", "count", "space", "bytes"},
     true,
     false,
     "memory alloc_objects:count:space:bytes",
     false},
    {{"inuse_space", "bytes", "", ""}, false, false, "memory inuse_space:bytes:space:bytes", false},
    {{"inuse_space", "byte", "", ""}, false, false, "memory inuse_space:bytes:space:bytes", false},
    /* JFR and async-profiler */
    {{"alloc_in_new_tlab_bytes", "bytes", "", ""},
     false,
     false,
     "memory alloc_in_new_tlab_bytes:bytes:space:bytes",
     false},
    {{"alloc", "bytes", "", ""}, true, false, "memory alloc_space:bytes:space:bytes", false},
    {{"itimer", "count", "", ""}, true, false, CPU_SAMPLES, false},
    {{"itimer", "ns", "itimer", "ns"}, true, false, CPU_TIME, false},
    {{"ctimer", "ns", "", ""}, true, false, CPU_TIME, false},
    {{"perf_events_cycles", "count", "", ""}, true, false, CPU_SAMPLES, false},
    {{"cpu", "count", "", ""}, true, false, CPU_SAMPLES, false},
    {{"wall", "count", "", ""}, true, false, WALL_SAMPLES, false},
    {{"wall", "ns", "", ""}, true, false, WALL_TIME, false},
    {{"j9_wall", "count", "", ""}, true, false, WALL_SAMPLES, false},
    /* counted once more for other spans: their own series, beside those that came */
    {{"cpu_root", "nanoseconds", "cpu", "nanoseconds"},
     true,
     true,
     "process_cpu cpu_root:nanoseconds:cpu:nanoseconds",
     false},
    {{"samples_ancestors", "count", "cpu", "nanoseconds"},
     true,
     false,
     "process_cpu cpu_ancestors:nanoseconds:cpu:nanoseconds",
     true},
    {{"goroutine_root", "count", "", ""},
     false,
     false,
     "goroutine goroutine_root:count:goroutine:count",
     false},
    {{"off_cpu_root", "nanoseconds", "", ""},
     false,
     false,
     "off_cpu off_cpu_root:nanoseconds::",
     false},
    {{"_root", "count", "", ""}, false, false, "_root _root:count::", false},
    {{"lock", "ns", "", ""}, true, false, "lock lock:nanoseconds::", false},
    /* Node */
    {{"wall", "nanoseconds", "wall", "nanoseconds"}, true, false, WALL_TIME, false},
    {{"samples", "count", "wall", "nanoseconds"}, true, false, WALL_SAMPLES, false},
    {{"cpu", "nanoseconds", "wall", "nanoseconds"},
     true,
     false,
     "wall cpu:nanoseconds:wall:nanoseconds",
     false},
    /* others of Go */
    {{"goroutine", "count", "goroutine", "count"},
     true,
     false,
     "goroutine goroutine:count:goroutine:count",
     false},
    {{"goroutines", "count", "", ""},
     false,
     false,
     "goroutine goroutine:count:goroutine:count",
     false},
    {{"contentions", "count", "contentions", "count"},
     true,
     false,
     "mutex contentions:count:contentions:count",
     false},
    {{"delay", "nanoseconds", "contentions", "count"},
     true,
     false,
     "mutex delay:nanoseconds:contentions:count",
     false},
    {{"delay", "nanoseconds", "block", "count"},
     true,
     false,
     "block delay:nanoseconds:contentions:count",
     false},
    {{"exceptions", "count", "", ""}, false, false, "exception exception:count::", false},
    /* what servers refuse */
    {{"my-type", "count", "", ""}, false, false, "my_type my_type:count::", false},
    {{"caf\xc3\xa9", "count", "", ""}, false, false, "caf__ caf__:count::", false},
    {{"9lives", "count", "", ""}, false, false, "unknown 9lives:count::", false},
    {{"", "", "", ""}, false, false, "unknown unknown:::", false},
};

static void every_kind_of_profile_has_its_canonical_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct type_case *row = &cases[i];
        const struct profile_type_texts texts = {
            .type = slice_of_text(row->from[0]),
            .unit = slice_of_text(row->from[1]),
            .period_type = slice_of_text(row->from[2]),
            .period_unit = slice_of_text(row->from[3]),
        };
        char text[5 * PROFILE_TYPE_TEXT_MAX];
        struct profile_type type =
            profile_type_canonical(&texts, row->has_period, row->has_time_beside);
        snprintf(text, sizeof(text), "%s %s:%s:%s:%s", type.name, type.type, type.unit,
                 type.period_type, type.period_unit);
        assert_string_equal(text, row->to);
        assert_int_equal(type.counts_periods, row->counts_periods);
    }
}

static void long_words_are_cut(void **state)
{
    char word[1000];
    (void)state;
    memset(word, 'x', sizeof(word));
    const struct profile_type_texts texts = {.type = slice_of(word, sizeof(word))};
    struct profile_type type = profile_type_canonical(&texts, false, false);
    assert_int_equal(strlen(type.type), PROFILE_TYPE_TEXT_MAX - 1);
    type = profile_type_plain(&texts);
    assert_int_equal(strlen(type.type), PROFILE_TYPE_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_profile_has_its_canonical_name),
        cmocka_unit_test(long_words_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
