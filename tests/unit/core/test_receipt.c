/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: one result joined from several, the worst of them, and the owner of its message. */
#include "src/core/receipt.h"

#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct result {
    unsigned times;
    struct outcome outcome;
    char text[64];
    char details[64];
};

static void on_result(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct result *result = arg;
    assert_non_null(receipt);
    result->times++;
    result->outcome = *outcome;
    snprintf(result->text, sizeof(result->text), "%s",
             outcome->message != NULL ? outcome->message : "");
    snprintf(result->details, sizeof(result->details), "%.*s", (int)outcome->details.size,
             outcome->details.size > 0 ? (const char *)outcome->details.data : "");
}

static struct outcome outcome(enum verdict verdict, bool is_permanent, const char *message)
{
    return (struct outcome){.verdict = verdict,
                            .code = STATUS_UNKNOWN,
                            .is_permanent = is_permanent,
                            .message = message};
}

struct join_case {
    const char *name;
    struct outcome parts[3];
    const char *worst;
};

static void the_last_result_resolves_with_the_worst(void **state)
{
    (void)state;
    const struct join_case cases[] = {
        {"all accepted", {outcome_accepted, outcome_accepted, outcome_accepted}, ""},
        {"refused beats accepted",
         {outcome_accepted, outcome(REFUSED, false, "busy"), outcome_accepted},
         "busy"},
        {"lost beats refused",
         {outcome(LOST, false, "lost"), outcome(REFUSED, true, "no"), outcome_accepted},
         "lost"},
        {"permanent beats retryable",
         {outcome(LOST, false, "later"), outcome(LOST, true, "never"), outcome_accepted},
         "never"},
        {"what may change beats what lasts",
         {outcome_failed("always"), outcome(REFUSED, false, "later"), outcome_failed("too")},
         "later"},
        {"permanent beats lasting",
         {outcome_failed("always"), outcome(REFUSED, true, "never"), outcome_accepted},
         "never"},
        {"lasting beats accepted",
         {outcome_accepted, outcome_failed("always"), outcome_accepted},
         "always"},
        {"the first of equals stays",
         {outcome(LOST, true, "first"), outcome(LOST, true, "second"), outcome_accepted},
         "first"},
        {"order does not matter",
         {outcome_accepted, outcome(REFUSED, true, "no"), outcome(LOST, false, "lost")},
         "lost"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result result = {0};
        struct receipt receipt;
        print_message("  %s\n", cases[i].name);
        receipt_init(&receipt, on_result, &result);
        receipt_expect(&receipt, 2);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(result.times, 0);
            receipt_resolve(&receipt, &cases[i].parts[j]);
        }
        assert_int_equal(result.times, 1);
        assert_string_equal(result.text, cases[i].worst);
    }
}

static void rejected_items_of_all_parts_are_summed(void **state)
{
    (void)state;
    struct result result = {0};
    struct receipt receipt;
    struct outcome partial = outcome_accepted;
    struct outcome refused = outcome(LOST, true, "no");
    partial.rejected_items = 2;
    receipt_init(&receipt, on_result, &result);
    receipt_expect(&receipt, 2);
    receipt_resolve(&receipt, &partial);
    receipt_resolve(&receipt, &refused);
    partial.rejected_items = 3;
    receipt_resolve(&receipt, &partial);
    assert_int_equal(result.outcome.rejected_items, 5);
    assert_int_equal(result.outcome.verdict, LOST);
}

static void a_message_outlives_the_party_that_gave_it(void **state)
{
    (void)state;
    struct result result = {0};
    struct receipt receipt;
    char *message = mem_copy_text("gone soon");
    struct outcome refused = outcome(REFUSED, false, message);
    receipt_init(&receipt, on_result, &result);
    receipt_expect(&receipt, 1);
    receipt_resolve(&receipt, &refused);
    memset(message, 'x', strlen(message));
    mem_free(message);
    receipt_resolve(&receipt, &outcome_accepted);
    assert_string_equal(result.text, "gone soon");
}

static void details_are_those_of_the_worst_result(void **state)
{
    (void)state;
    static const char fine[] = "\x1a\x03url";
    struct result result = {0};
    struct receipt receipt;
    char gone[] = "\x1a\x04gone";
    struct outcome refused = outcome(REFUSED, false, "first");
    struct outcome lost = outcome(LOST, false, "second");
    struct outcome bare = outcome(LOST, true, "third");
    refused.details = slice_of_text(fine);
    lost.details = slice_of_text(gone);
    bare.details = slice_of(gone, 0); /* none, whatever it points to */
    receipt_init(&receipt, on_result, &result);
    receipt_expect(&receipt, 2);
    receipt_resolve(&receipt, &lost);
    memset(gone, 'x', sizeof(gone) - 1);
    receipt_resolve(&receipt, &refused);
    receipt_resolve(&receipt, &outcome_accepted);
    assert_string_equal(result.details, "\x1a\x04gone");
    receipt_init(&receipt, on_result, &result);
    receipt_expect(&receipt, 1);
    receipt_resolve(&receipt, &refused);
    receipt_resolve(&receipt, &bare);
    assert_string_equal(result.details, "");
}

static void on_result_free(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    mem_free(receipt);
    assert_string_equal(outcome->message, "still there");
    ++*(unsigned *)arg;
}

static void the_callback_may_free_the_receipt(void **state)
{
    (void)state;
    unsigned times = 0;
    struct receipt *receipt = mem_alloc(sizeof(*receipt));
    struct outcome refused = outcome_refused(STATUS_INTERNAL, "still there");
    receipt_init(receipt, on_result_free, &times);
    receipt_resolve(receipt, &refused);
    assert_int_equal(times, 1);
}

static void without_a_receipt_nothing_waits(void **state)
{
    (void)state;
    struct outcome busy = outcome_busy("busy");
    receipt_expect(NULL, 3);
    receipt_resolve(NULL, &busy);
    assert_int_equal(busy.code, STATUS_UNAVAILABLE);
    assert_true(busy.retry_after_ns > 0);
    assert_false(busy.is_permanent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_result_resolves_with_the_worst),
        cmocka_unit_test(rejected_items_of_all_parts_are_summed),
        cmocka_unit_test(a_message_outlives_the_party_that_gave_it),
        cmocka_unit_test(details_are_those_of_the_worst_result),
        cmocka_unit_test(the_callback_may_free_the_receipt),
        cmocka_unit_test(without_a_receipt_nothing_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
