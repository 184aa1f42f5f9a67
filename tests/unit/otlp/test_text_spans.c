/* SPDX-License-Identifier: Apache-2.0 */
/* Spans with the functions that took their time, as the debug exporter shows them. */
#include "src/otlp/text/text.h"

#include "src/base/mem.h"
#include "tests/support/profile_sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SLOW_TRACE "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20"
#define SLOW_SPAN  "\1\2\3\4\5\6\7\10"
#define FAST_SPAN  "\10\7\6\5\4\3\2\1"

static void write_spans(struct text *text, const struct sketch *sketch, size_t functions_max)
{
    struct slice request = sketch_request(sketch);
    text_init(text, NULL);
    otlp_text_write_spans(text, request, functions_max);
    mem_free((void *)(uintptr_t)request.data);
}

static void the_busiest_span_comes_first_with_its_hottest_functions(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "idle;main", .values_count = 1, .values = {1000}},
        {.stack = "parse;main",
         .values_count = 1,
         .values = {5},
         .trace_id = SLOW_TRACE,
         .span_id = FAST_SPAN},
        {.stack = "render;main",
         .values_count = 1,
         .values = {20},
         .trace_id = SLOW_TRACE,
         .span_id = SLOW_SPAN,
         .attributes = {"span_name=checkout"}},
        {.stack = "query;main",
         .values_count = 1,
         .values = {10},
         .trace_id = SLOW_TRACE,
         .span_id = SLOW_SPAN,
         .attributes = {"span_name=checkout"}},
        {.stack = "render;loop;main",
         .values_count = 1,
         .values = {40},
         .trace_id = SLOW_TRACE,
         .span_id = SLOW_SPAN,
         .attributes = {"span_name=checkout"}},
        {.stack = "log;main",
         .values_count = 1,
         .values = {1},
         .trace_id = SLOW_TRACE,
         .span_id = SLOW_SPAN,
         .attributes = {"span_name=checkout"}},
    };
    static const struct sketch_profile profile = {
        .type = {"samples", "count"},
        .period_type = {"cpu", "nanoseconds"},
        .period = 10000000,
        .samples_count = sizeof(samples) / sizeof(samples[0]),
        .samples = samples,
    };
    struct text text;
    (void)state;
    write_spans(&text, &(struct sketch){.profiles_count = 1, .profiles = &profile}, 2);
    assert_string_equal(text.data,
                        "Span checkout, trace 0102030405060708090a0b0c0d0e0f10, span "
                        "0102030405060708: 710.0 ms of cpu\n"
                        "      84.5 %  render\n"
                        "      14.1 %  query\n"
                        "Span trace 0102030405060708090a0b0c0d0e0f10, span 0807060504030201: "
                        "50.0 ms of cpu\n"
                        "     100.0 %  parse\n");
    text_fini(&text);
}

static void names_do_not_move_the_cursor(void **state)
{
    static const struct sketch_sample sample = {.stack = "a\033[2Jb\n;main",
                                                .values_count = 1,
                                                .values = {1},
                                                .trace_id = SLOW_TRACE,
                                                .span_id = SLOW_SPAN,
                                                .attributes = {"span_name=check\r\nout\177"}};
    static const struct sketch_profile profile = {
        .type = {"alloc_space", "bytes"}, .samples_count = 1, .samples = &sample};
    struct text text;
    (void)state;
    write_spans(&text, &(struct sketch){.profiles_count = 1, .profiles = &profile}, 5);
    assert_string_equal(text.data, "Span check  out , trace 0102030405060708090a0b0c0d0e0f10, span "
                                   "0102030405060708: 1 bytes of alloc_space\n"
                                   "     100.0 %  a [2Jb \n");
    text_fini(&text);
}

static void without_links_there_is_nothing_to_say(void **state)
{
    static const struct sketch_sample sample = {.stack = "main", .values_count = 1, .values = {1}};
    static const struct sketch_profile profile = {
        .type = {"alloc_space", "bytes"}, .samples_count = 1, .samples = &sample};
    struct text text;
    (void)state;
    write_spans(&text, &(struct sketch){.profiles_count = 1, .profiles = &profile}, 5);
    assert_int_equal(text.size, 0);
    text_fini(&text);
}

static void a_sample_without_values_or_symbols_counts_its_times(void **state)
{
    static const struct sketch_sample sample = {
        .timestamps_count = 3, .trace_id = SLOW_TRACE, .span_id = SLOW_SPAN};
    static const struct sketch_profile profile = {
        .type = {"events", "count"}, .samples_count = 1, .samples = &sample};
    struct text text;
    (void)state;
    write_spans(&text, &(struct sketch){.profiles_count = 1, .profiles = &profile}, 5);
    assert_non_null(strstr(text.data, ": 3 count of events\n     100.0 %  (no symbol)\n"));
    text_fini(&text);
}

static void a_count_beside_the_time_that_it_stands_for_is_not_added_to_it(void **state)
{
    static const struct sketch_sample counted = {.stack = "main",
                                                 .values_count = 1,
                                                 .values = {3},
                                                 .trace_id = SLOW_TRACE,
                                                 .span_id = SLOW_SPAN};
    static const struct sketch_sample timed = {.stack = "main",
                                               .values_count = 1,
                                               .values = {30000000},
                                               .trace_id = SLOW_TRACE,
                                               .span_id = SLOW_SPAN};
    static const struct sketch_profile profiles[] = {
        {.type = {"samples", "count"},
         .period_type = {"cpu", "nanoseconds"},
         .period = 10000000,
         .samples_count = 1,
         .samples = &counted},
        {.type = {"cpu", "nanoseconds"},
         .period_type = {"cpu", "nanoseconds"},
         .period = 10000000,
         .samples_count = 1,
         .samples = &timed},
    };
    struct text text;
    (void)state;
    write_spans(&text, &(struct sketch){.profiles_count = 2, .profiles = profiles}, 5);
    assert_non_null(strstr(text.data, ": 30.0 ms of cpu\n     100.0 %  main\n"));
    text_fini(&text);
}

static void many_spans_are_cut(void **state)
{
    enum { SPANS = TEXT_SPANS_MAX + 7 };
    static struct sketch_sample samples[SPANS];
    static char ids[SPANS][9];
    struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .samples_count = SPANS, .samples = samples};
    struct text text;
    (void)state;
    for (int i = 0; i < SPANS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "span%04u", (unsigned)i % 1000);
        samples[i] = (struct sketch_sample){.stack = "main",
                                            .values_count = 1,
                                            .values = {1000000 * (i + 1)},
                                            .trace_id = SLOW_TRACE,
                                            .span_id = ids[i]};
    }
    write_spans(&text, &(struct sketch){.profiles_count = 1, .profiles = &profile}, 1);
    assert_non_null(strstr(text.data, "27.0 ms of cpu"));
    assert_null(strstr(text.data, ": 7.0 ms of cpu"));
    assert_non_null(strstr(text.data, "… and 7 more spans\n"));
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_busiest_span_comes_first_with_its_hottest_functions),
        cmocka_unit_test(names_do_not_move_the_cursor),
        cmocka_unit_test(without_links_there_is_nothing_to_say),
        cmocka_unit_test(a_sample_without_values_or_symbols_counts_its_times),
        cmocka_unit_test(a_count_beside_the_time_that_it_stands_for_is_not_added_to_it),
        cmocka_unit_test(many_spans_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
