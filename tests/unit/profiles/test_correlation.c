/* SPDX-License-Identifier: Apache-2.0 */
/* Labels that name trace and span, in every spelling. */
#include "src/profiles/pprof/correlation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TRACE "5b8aa5a2d2c872e8321cf37308d69df2"
#define SPAN  "051a1b6c441acd00"

struct label_case {
    const char *pairs[6]; /* key, text, … up to NULL */
    bool has_trace;
    const char *span; /* in hex; NULL: none */
};

static const struct label_case cases[] = {
    {{"trace_id", TRACE, "span_id", SPAN}, true, SPAN},
    {{"traceid", TRACE, "spanid", SPAN}, true, SPAN},
    {{"trace.id", TRACE, "span.id", SPAN}, true, SPAN},
    {{"otel.traceid", TRACE}, true, NULL},
    {{"process.context.label.trace_id", TRACE, "process.context.label.span_id", SPAN}, true, SPAN},
    {{"process.context.label.otel.traceid", TRACE, "process.context.label.profile_id", SPAN},
     true,
     SPAN},
    {{"process.context.label.span_id", "0000000000000001", "span_id", SPAN}, false, SPAN},
    {{"process.context.label.span id", "10"}, false, "000000000000000a"},
    {{"profile_id", SPAN}, false, SPAN},
    {{"profile_id", "0000000000000001", "span_id", SPAN}, false, SPAN},
    {{"span_id", SPAN, "profile_id", "0000000000000001"}, false, SPAN},
    {{"trace id", TRACE, "span id", "10", "local root span id", "11"}, true, "000000000000000a"},
    {{"local root span id", "18446744073709551615"}, false, "ffffffffffffffff"},
    {{"span_id", "051A1B6C441ACD00"}, false, SPAN},
    /* not ids */
    {{"span id", "18446744073709551616"}, false, NULL},
    {{"span id", "1x"}, false, NULL},
    {{"span id", ""}, false, NULL},
    {{"span_id", "0000000000000000"}, false, NULL},
    {{"span_id", "051a1b6c441acd0"}, false, NULL},
    {{"span_id", "051a1b6c441acd0g"}, false, NULL},
    {{"trace_id", SPAN}, false, NULL},
    {{"SPAN_ID", SPAN}, false, NULL},
    {{"thread", SPAN}, false, NULL},
    {{"process.context.label.", SPAN}, false, NULL},
    {{"process.context.label.process.context.label.span_id", SPAN}, false, NULL},
};

static void every_spelling_is_known_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct correlation correlation = {.has_span = false};
        for (size_t k = 0; k < 6 && cases[i].pairs[k] != NULL; k += 2)
            correlation_take(&correlation, slice_of_text(cases[i].pairs[k]),
                             slice_of_text(cases[i].pairs[k + 1]));
        print_message("   %s %s\n", cases[i].pairs[0], cases[i].pairs[1]);
        assert_int_equal(correlation.has_trace, cases[i].has_trace);
        assert_int_equal(correlation.has_span, cases[i].span != NULL);
        if (cases[i].span != NULL) {
            char text[17];
            for (size_t k = 0; k < 8; k++)
                snprintf(text + 2 * k, 3, "%02x", correlation.span_id[k]);
            assert_string_equal(text, cases[i].span);
        }
    }
}

static void numbers_are_ids_where_strings_are_decimal(void **state)
{
    struct correlation correlation = {.has_span = false};
    static const uint8_t last[8] = {255, 255, 255, 255, 255, 255, 255, 254};
    (void)state;
    assert_false(correlation_take_number(&correlation, slice_of_text("span_id"), 1));
    assert_false(correlation_take_number(&correlation, slice_of_text("trace id"), 1));
    assert_false(correlation_take_number(&correlation, slice_of_text("span id"), 0));
    assert_false(correlation.has_span);
    assert_true(correlation_take_number(&correlation, slice_of_text("local root span id"), 1));
    assert_true(correlation_take_number(&correlation, slice_of_text("span id"), -2));
    assert_memory_equal(correlation.span_id, last, sizeof(last));
}

static void bytes_are_ids_of_their_length(void **state)
{
    struct correlation correlation = {.has_span = false};
    static const uint8_t bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const uint8_t zeros[16];
    (void)state;
    assert_false(
        correlation_take_bytes(&correlation, slice_of_text("trace_id"), slice_of(bytes, 8)));
    assert_false(
        correlation_take_bytes(&correlation, slice_of_text("span_id"), slice_of(bytes, 16)));
    assert_false(
        correlation_take_bytes(&correlation, slice_of_text("span id"), slice_of(bytes, 8)));
    assert_false(
        correlation_take_bytes(&correlation, slice_of_text("span_id"), slice_of(zeros, 8)));
    assert_false(
        correlation_take_bytes(&correlation, slice_of_text("trace_id"), slice_of(zeros, 16)));
    assert_true(correlation_take_bytes(&correlation, slice_of_text("span_id"), slice_of(bytes, 8)));
    assert_true(
        correlation_take_bytes(&correlation, slice_of_text("trace_id"), slice_of(bytes, 16)));
    assert_memory_equal(correlation.span_id, bytes, 8);
    assert_memory_equal(correlation.trace_id, bytes, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_known_and_nothing_else),
        cmocka_unit_test(numbers_are_ids_where_strings_are_decimal),
        cmocka_unit_test(bytes_are_ids_of_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
