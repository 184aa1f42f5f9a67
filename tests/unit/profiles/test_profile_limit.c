/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and rules on a small profile: what is left, and what its bytes no longer have. */
#include "src/profiles/otlp/profile_limit.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/cli/profile/profile_report.h"
#include "src/cli/profile/profile_top.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "tests/support/profile_sketch.h"
#include "tests/unit/cli/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Every path of the tree with its samples, "main;work;work 6", one per line, in order of insertion.
 */
static void describe(FILE *out, const struct report *report)
{
    const struct report_type *type = report_find_type(report, "samples");
    const struct call_node *nodes = type->tree.nodes;
    for (uint32_t i = 0; i < type->tree.edges.count; i++) {
        char path[512] = "";
        if (nodes[i].self == 0)
            continue;
        for (uint32_t k = i; k > 0; k = nodes[k].parent) {
            char rest[512];
            struct slice name = report_name(report, nodes[k].name);
            strcpy(rest, path);
            snprintf(path, sizeof(path), "%.*s%s%.256s", (int)name.size, (const char *)name.data,
                     rest[0] != '\0' ? ";" : "", rest);
        }
        fprintf(out, "%s %lld\n", path, (long long)nodes[i].self);
    }
}

/* The request must be normalized already. */
static void check_shaped(const struct profile_limit_rules *rules, const char *want,
                         struct profile_limit_figures *ret_figures)
{
    static struct report report;
    struct error error;
    struct captured captured;
    struct profile_normalized normalized;
    struct buffer *request = small_otlp(1, "work");
    struct buffer *shaped = profile_limit(rules, buffer_slice(request), NULL, NULL, ret_figures);
    assert_non_null(shaped);
    assert_int_equal(
        profile_normalize(shaped, buffer_slice(shaped), PROFILE_LAYOUTS, NULL, &normalized),
        PROFILES_TAKEN);
    assert_int_equal(normalized.rejected_profiles, 0);
    assert_ptr_equal(normalized.owner, shaped);
    assert_int_equal(normalized.samples, ret_figures->samples);
    buffer_unref(normalized.owner);
    report_init(&report);
    assert_true(report_add(&report, buffer_slice(shaped), &error));
    captured_open(&captured);
    describe(captured.out, &report);
    assert_string_equal(captured_text(&captured), want);
    free(captured.text);
    report_fini(&report);
    buffer_unref(request);
    buffer_unref(shaped);
}

static void without_rules_everything_stays(void **state)
{
    const struct profile_limit_rules rules = {.depth_max = 0};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&rules, "main;work;work 6\nmain;idle 3\nmain;0x1234 (shop) 1\n", &figures);
    assert_int_equal(figures.samples, 6);
    assert_int_equal(
        figures.cut_stacks + figures.dropped_frames + figures.renamed + figures.other_values, 0);
}

static void deep_stacks_keep_their_root_under_a_marker(void **state)
{
    const struct profile_limit_rules two = {.depth_max = 2};
    const struct profile_limit_rules one = {.depth_max = 1};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&two, "main;[truncated] 6\nmain;idle 3\nmain;0x1234 (shop) 1\n", &figures);
    assert_int_equal(figures.cut_stacks, 1);
    check_shaped(&one, "[truncated] 10\n", &figures);
    assert_int_equal(figures.cut_stacks, 3);
}

static void samples_beyond_the_limit_go(void **state)
{
    const struct profile_limit_rules rules = {.samples_max = 2};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&rules, "main;work;work 6\nmain;idle 3\n", &figures);
    assert_int_equal(figures.samples, 4); /* two of each type */
}

static void bytes_beyond_the_limit_go_with_their_samples(void **state)
{
    const struct profile_limit_rules rules = {.bytes_max = 1};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&rules, "main;work;work 6\n", &figures); /* one is always kept */
    assert_int_equal(figures.samples, 1);
}

static void dropped_frames_leave_their_callers_and_callees(void **state)
{
    struct error error;
    struct pattern *drops[] = {pattern_create("^work$", &error), pattern_create("main", &error)};
    const struct profile_limit_rules rules = {.drops = drops, .drops_count = 2};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&rules, " 6\nidle 3\n0x1234 (shop) 1\n", &figures);
    assert_int_equal(figures.dropped_frames, 2);
    pattern_destroy(drops[0]);
    pattern_destroy(drops[1]);
}

/* Of several lines of a function, and of several functions with one name. A line without a function
 * is none of a function without a name. */
static void frames_are_dropped_by_their_name_alone(void **state)
{
    static const uint64_t names[] = {0, 1, 1, 2, 0};    /* of functions; 0: none */
    static const uint64_t lines[] = {1, 2, 3, 1, 0, 4}; /* functions */
    struct profile_bytes out = {0};
    struct profile_limit_figures figures;
    struct error error;
    (void)state;
    profile_bytes_field(&out, 5, slice_of_text(""));
    profile_bytes_field(&out, 5, slice_of_text("work"));
    profile_bytes_field(&out, 5, slice_of_text("idle"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t begin = out.size;
        profile_bytes_number(&out, 1, names[i]);
        profile_bytes_wrap(&out, begin, 3);
    }
    profile_bytes_field(&out, 2, slice_of_text(""));
    size_t location = out.size;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t begin = out.size;
        profile_bytes_number(&out, 1, lines[i]);
        profile_bytes_wrap(&out, begin, 3);
    }
    profile_bytes_wrap(&out, location, 2);
    profile_bytes_wrap(&out, 0, 2);
    struct pattern *drops[] = {pattern_create("^wo", &error), pattern_create("^$", &error)};
    const struct profile_limit_rules rules = {.drops = drops, .drops_count = 2};
    struct buffer *shaped =
        profile_limit(&rules, slice_of(out.data, out.size), NULL, NULL, &figures);
    assert_non_null(shaped);
    assert_int_equal(figures.dropped_frames, 4);
    buffer_unref(shaped);
    pattern_destroy(drops[0]);
    pattern_destroy(drops[1]);
    profile_bytes_fini(&out);
}

static void renamed_functions_and_files_are_gone_from_the_bytes(void **state)
{
    struct error error;
    struct profile_rename renames[2] = {{.pattern = pattern_create("w(or)k", &error)},
                                        {.pattern = pattern_create("shop", &error)}};
    renames[0].replacement = pattern_replacement_create(renames[0].pattern, "<$1$$>", &error);
    renames[1].replacement = pattern_replacement_create(renames[1].pattern, "x", &error);
    const struct profile_limit_rules rules = {.renames = renames, .renames_count = 2};
    struct profile_limit_figures figures;
    (void)state;
    check_shaped(&rules, "main;<or$>;<or$> 6\nmain;idle 3\nmain;0x1234 (x) 1\n", &figures);
    assert_int_equal(figures.renamed, 3); /* work, shop.c, /bin/shop */
    struct buffer *request = small_otlp(1, "work");
    struct buffer *shaped = profile_limit(&rules, buffer_slice(request), NULL, NULL, &figures);
    assert_non_null(memmem(request->data, request->size, "shop", 4));
    assert_null(memmem(shaped->data, shaped->size, "shop", 4));
    assert_null(memmem(shaped->data, shaped->size, "work", 4));
    buffer_unref(request);
    buffer_unref(shaped);
    for (size_t i = 0; i < 2; i++) {
        pattern_replacement_destroy(renames[i].replacement);
        pattern_destroy(renames[i].pattern);
    }
}

static void values_of_a_label_beyond_the_limit_become_one(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"user=ann", "pool=x"}},
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"user=bob", "pool=x"}},
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"user=cleo", "pool=x"}},
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"user=dan", "pool=y"}},
        {.stack = "a", .values_count = 1, .values = {1}, .attributes = {"user=ann", "pool=y"}},
    };
    static const struct sketch_profile profile = {
        .type = {"samples", "count"}, .samples_count = 5, .samples = samples};
    const struct sketch sketch = {.profiles_count = 1, .profiles = &profile};
    const struct profile_limit_rules rules = {.label_values_max = 2};
    static struct report report;
    struct profile_limit_figures figures;
    struct error error;
    (void)state;
    struct slice request = sketch_request(&sketch);
    struct buffer *shaped = profile_limit(&rules, request, NULL, NULL, &figures);
    assert_int_equal(figures.other_values, 2);
    report_init(&report);
    assert_true(report_add(&report, buffer_slice(shaped), &error));
    assert_int_equal(report.label_keys.count, 3);
    for (size_t i = 1; i < 3; i++) {
        bool is_user = slice_equal_text(report_text(&report, report.labels[i].key), "user");
        assert_int_equal(report.labels[i].values, is_user ? 3 : 2);
        assert_int_equal(report.labels[i].samples, 5);
    }
    assert_non_null(memmem(shaped->data, shaped->size, "other", 5));
    assert_null(memmem(shaped->data, shaped->size, "cleo", 4));
    report_fini(&report);
    buffer_unref(shaped);
    mem_free((void *)(uintptr_t)request.data);
}

/* Twenty thousand names of a few bytes, each of which would take four thousand. */
static void names_that_grow_without_end_are_refused(void **state)
{
    enum { NAMES = 20000, LONG = 4000 };
    struct error error;
    char text[LONG + 1];
    struct profile_bytes out = {0};
    (void)state;
    memset(text, 'x', LONG - 16);
    strcpy(text + LONG - 16, "${0}");
    for (int i = 0; i <= NAMES; i++) {
        size_t begin = out.size;
        char name[16];
        if (i > 0)
            profile_bytes_add(&out, slice_of(name, (size_t)snprintf(name, sizeof(name), "%d", i)));
        profile_bytes_wrap(&out, begin, 5);
        begin = out.size;
        uint8_t *at = profile_bytes_room(&out, 16);
        out.size += (size_t)(profile_put_number(at, 1, (uint64_t)i) - at);
        profile_bytes_wrap(&out, begin, 3);
    }
    profile_bytes_wrap(&out, 0, 2);
    struct profile_rename rename = {.pattern = pattern_create(".+", &error)};
    rename.replacement = pattern_replacement_create(rename.pattern, text, &error);
    const struct profile_limit_rules rules = {.renames = &rename, .renames_count = 1};
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t limit = i == 0 ? UINT64_MAX / 2 : 8 << 20;
        struct profile_limit_figures figures;
        struct budget budget;
        budget_init(&budget, limit);
        assert_null(profile_limit(&rules, slice_of(out.data, out.size), NULL, &budget, &figures));
        assert_int_equal(budget_used(&budget), 0);
        assert_in_range(atomic_load(&budget.high_water), 1, limit);
        assert_int_equal(figures.names_bytes > 0, i == 1);
        budget_fini(&budget);
    }
    pattern_replacement_destroy(rename.replacement);
    pattern_destroy(rename.pattern);
    profile_bytes_fini(&out);
}

/* The last value of a field counts; those before may be invalid indices. */
static void fields_that_stand_twice_count_by_their_last_value(void **state)
{
    struct profile_bytes out = {0};
    struct budget budget;
    struct profile_limit_figures figures;
    struct error error;
    (void)state;
    profile_bytes_field(&out, 5, slice_of_text(""));
    profile_bytes_field(&out, 5, slice_of_text("work"));
    profile_bytes_field(&out, 5, slice_of_text("file"));
    for (uint32_t field = 1; field <= 3; field++) {
        size_t begin = out.size;
        profile_bytes_number(&out, field, 70000000); /* outside of the table */
        profile_bytes_number(&out, field, UINT64_MAX);
        profile_bytes_number(&out, field, 1);
        profile_bytes_wrap(&out, begin, 3);
    }
    size_t begin = out.size;
    profile_bytes_number(&out, 4, 70000000);
    profile_bytes_number(&out, 4, 2);
    profile_bytes_wrap(&out, begin, 1);
    profile_bytes_wrap(&out, 0, 2);
    struct profile_rename rename = {.pattern = pattern_create("work|file", &error)};
    rename.replacement = pattern_replacement_create(rename.pattern, "hidden", &error);
    const struct profile_limit_rules rules = {.renames = &rename, .renames_count = 1};
    budget_init(&budget, UINT64_MAX / 2);
    struct buffer *shaped =
        profile_limit(&rules, slice_of(out.data, out.size), NULL, &budget, &figures);
    assert_non_null(shaped);
    buffer_unref(shaped);
    budget_fini(&budget);
    pattern_replacement_destroy(rename.replacement);
    pattern_destroy(rename.pattern);
    profile_bytes_fini(&out);
}

/* Nothing is read of it. */
static void a_request_that_has_grown_beyond_32_bits_is_not_indexed(void **state)
{
    const struct profile_limit_rules rules = {.depth_max = 1};
    const struct slice large = slice_of("", (size_t)UINT32_MAX + 1);
    struct profile_limit_figures figures;
    (void)state;
    assert_null(profile_limit(&rules, large, NULL, NULL, &figures));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_everything_stays),
        cmocka_unit_test(deep_stacks_keep_their_root_under_a_marker),
        cmocka_unit_test(samples_beyond_the_limit_go),
        cmocka_unit_test(bytes_beyond_the_limit_go_with_their_samples),
        cmocka_unit_test(dropped_frames_leave_their_callers_and_callees),
        cmocka_unit_test(frames_are_dropped_by_their_name_alone),
        cmocka_unit_test(values_of_a_label_beyond_the_limit_become_one),
        cmocka_unit_test(renamed_functions_and_files_are_gone_from_the_bytes),
        cmocka_unit_test(names_that_grow_without_end_are_refused),
        cmocka_unit_test(fields_that_stand_twice_count_by_their_last_value),
        cmocka_unit_test(a_request_that_has_grown_beyond_32_bits_is_not_indexed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
