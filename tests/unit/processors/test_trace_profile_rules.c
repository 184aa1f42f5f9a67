/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of keep as JSON: what is written is read back; anything else is refused with its position
 * and changes nothing. */
#include "processors/trace_profile_join/trace_profile_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/clock.h"
#include "src/base/error.h"

static void what_is_written_is_read_back(void **state)
{
    static const struct {
        struct keep_rules rules;
        const char *json;
    } rows[] = {
        {{.slow_ns = 0}, "{\"keep\": [], \"keep_unlinked\": false}\n"},
        {{.keeps_unlinked = true}, "{\"keep\": [], \"keep_unlinked\": true}\n"},
        {{.slow_ns = NS_PER_S}, "{\"keep\": [{\"slow\": \"1s\"}], \"keep_unlinked\": false}\n"},
        {{.keeps_errors = true}, "{\"keep\": [\"error\"], \"keep_unlinked\": false}\n"},
        {{.keeps_sampled = true}, "{\"keep\": [\"sampled\"], \"keep_unlinked\": false}\n"},
        {{.keeps_errors = true, .keeps_sampled = true},
         "{\"keep\": [\"error\", \"sampled\"], \"keep_unlinked\": false}\n"},
        {{KEEP_SLOW_MAX_NS, true, true, true},
         "{\"keep\": [{\"slow\": \"20015h59m54s37ms927us936ns\"}, \"error\", \"sampled\"], "
         "\"keep_unlinked\": true}\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct keep_json json = keep_rules_to_json(&rows[i].rules);
        struct keep_rules read = {.keeps_unlinked = !rows[i].rules.keeps_unlinked};
        struct keep_switch keep;
        struct error error;
        assert_string_equal(json.text, rows[i].json);
        assert_true(keep_rules_from_json(slice_of_text(json.text), &read, &error));
        keep_switch_init(&keep, &read);
        read = keep_switch_read(&keep);
        assert_int_equal(read.slow_ns, rows[i].rules.slow_ns);
        assert_int_equal(read.keeps_errors, rows[i].rules.keeps_errors);
        assert_int_equal(read.keeps_sampled, rows[i].rules.keeps_sampled);
        assert_int_equal(read.keeps_unlinked, rows[i].rules.keeps_unlinked);
    }
}

static void space_escapes_and_order_do_not_matter(void **state)
{
    struct keep_rules rules = {.keeps_unlinked = true};
    struct error error;
    (void)state;
    assert_true(keep_rules_from_json(slice_of_text("\n{ \"keep_unlinked\" : false ,\t\"keep\" : [ "
                                                   "\"\\u0065rror\" , { \"slow\" : \"2ms\" } ] } "),
                                     &rules, &error));
    assert_true(rules.keeps_errors);
    assert_false(rules.keeps_unlinked);
    assert_int_equal(rules.slow_ns, 2 * NS_PER_MS);
    assert_true(keep_rules_from_json(slice_of_text("{\"keep\": []}"), &rules, &error));
    assert_false(keep_rules_are_on(&rules));
    assert_false(rules.keeps_unlinked); /* as it was */
}

static void anything_else_is_refused_and_changes_nothing(void **state)
{
    static const char *const rows[][2] = {
        {"", "byte 0: expected an object"},
        {"null", "byte 0: expected an object"},
        {"{}", "byte 1: expected a string in quotes"},
        {"{\"keep\"", "byte 7: expected \":\""},
        {"{\"keep\":", "byte 8: expected a list"},
        {"{\"keep\": [", "byte 10: expected a string in quotes"},
        {"{\"keep\": [\"error\"", "byte 17: expected \",\" or \"]\""},
        {"{\"keep\": [\"error\",]}", "byte 18: expected a string in quotes"},
        {"{\"keep\": [], }", "byte 13: expected a string in quotes"},
        {"{\"keep\": []", "byte 11: expected \",\" or \"}\""},
        {"{\"keep\": []}{", "byte 12: expected the end"},
        {"{\"keep\": [], \"keep\": []}", "\"keep\" is given twice"},
        {"{\"keep_unlinked\": true}", "\"keep\" is missing"},
        {"{\"keep\": [], \"keep_unlinked\": 1}", "expected true or false"},
        {"{\"kept\": []}", "found \"kept\", expected keep or keep_unlinked"},
        {"{\"keep\": [\"error\", \"error\"]}", "\"error\" is given twice"},
        {"{\"keep\": [{\"slow\": \"1s\"}, {\"slow\": \"1s\"}]}", "slow is given twice"},
        {"{\"keep\": [{\"fast\": \"1s\"}]}", "found \"fast\", expected slow"},
        {"{\"keep\": [{\"slow\": \"0\"}]}", "expected a duration above 0"},
        {"{\"keep\": [{\"slow\": \"1s\", \"error\": 1}]}", "expected \"}\""},
        {"{\"keep\": [{}]}", "expected a string in quotes"},
        {"{\"keep\": [\"error\\u0000\"]}", "expected no \\u0000"},
        {"{\"keep\": [[]]}", "expected a string in quotes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct keep_rules rules = {.slow_ns = 7, .keeps_errors = true};
        struct error error;
        assert_false(keep_rules_from_json(slice_of_text(rows[i][0]), &rules, &error));
        if (strstr(error.text, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], error.text);
        assert_int_equal(rules.slow_ns, 7);
        assert_true(rules.keeps_errors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(space_escapes_and_order_do_not_matter),
        cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
