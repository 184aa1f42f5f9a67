/* SPDX-License-Identifier: Apache-2.0 */
/* Labels that name trace and span, in every spelling. */
#include "src/pprof/correlation.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_spelling_is_known_and_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
