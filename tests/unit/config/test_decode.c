/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/decode*.c: option tables of every type, through a whole load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "tests/unit/config/support.h"

static void absent_keys_have_their_defaults(void **state)
{
    struct load_result result = load_probe("{}");
    const struct probe_config *probe = probe_of(&result);
    (void)state;
    assert_true(probe->flag);
    assert_int_equal(probe->count, 8192);
    assert_int_equal(probe->number, -5);
    assert_true(probe->ratio == 0.5);
    assert_int_equal(probe->timeout_ns, 200000000);
    assert_string_equal(probe->text, "1.0");
    assert_string_equal(probe->secret, "");
    assert_int_equal(probe->choice, 1);
    assert_int_equal(probe->texts.count, 2);
    assert_string_equal(probe->texts.texts[1], "b");
    assert_int_equal(probe->headers.count, 0);
    assert_null(probe->value);
    assert_string_equal(probe->always.name, "standard");
    assert_true(probe->has_on && probe->has_retry);
    assert_false(probe->has_enabling || probe->has_off);
    assert_int_equal(probe->off.size, 7);
    assert_int_equal(probe->parts.count, 0);
    load_result_clear(&result);
}

static void written_values_replace_defaults(void **state)
{
    struct load_result result = load_probe(
        "{flag: false, count: 0x10, number: -7, ratio: 2, timeout: 1m, text: abc, secret: s3, "
        "choice: gzip, texts: [x, y, z], headers: {a: b, c: }, always: {size: 9}, "
        "parts: [{name: one}, {size: 3}], old: [anything, {at: all}], "
        "old_flag: true, old_number: -5000000000, old_timeout: 3s, old_text: a, old_texts: 'a,b'}");
    const struct probe_config *probe = probe_of(&result);
    const struct probe_part *parts = probe->parts.items;
    (void)state;
    assert_false(probe->flag);
    assert_int_equal(probe->count, 16);
    assert_int_equal(probe->number, -7);
    assert_true(probe->ratio == 2);
    assert_int_equal(probe->timeout_ns, 60000000000);
    assert_string_equal(probe->text, "abc");
    assert_string_equal(probe->secret, "s3");
    assert_int_equal(probe->choice, 0);
    assert_int_equal(probe->texts.count, 3);
    assert_int_equal(probe->headers.count, 2);
    assert_string_equal(probe->headers.pairs[0].value, "b");
    assert_string_equal(probe->headers.pairs[1].value, "");
    assert_int_equal(probe->always.size, 9);
    assert_int_equal(probe->parts.count, 2);
    assert_string_equal(parts[0].name, "one");
    assert_int_equal(parts[0].size, 7);
    assert_string_equal(parts[1].name, "standard");
    load_result_clear(&result);
}

static void a_written_null_is_the_types_zero_but_keeps_lists(void **state)
{
    struct load_result result = load_probe("{flag: , count: , number: , ratio: , timeout: , text: "
                                           ", choice: , texts: , headers: , parts: , always: }");
    const struct probe_config *probe = probe_of(&result);
    (void)state;
    assert_false(probe->flag);
    assert_int_equal(probe->count, 0);
    assert_int_equal(probe->number, 0);
    assert_true(probe->ratio == 0);
    assert_int_equal(probe->timeout_ns, 0);
    assert_string_equal(probe->text, "");
    assert_int_equal(probe->choice, 2);
    assert_int_equal(probe->texts.count, 2);
    assert_int_equal(probe->always.size, 7);
    load_result_clear(&result);
}

/* Which of on, enabling, off and retry are on. */
static const struct {
    const char *yaml;
    const char *on;
} presences[] = {
    {"{}", "o--r"},
    {"{on: , enabling: , off: , retry: }", "oe-r"},
    {"{on: {}, enabling: {}, off: {}, retry: {}}", "oefr"},
    {"{on: {enabled: false}, enabling: {enabled: false}, off: {enabled: false}, retry: {enabled: "
     "false}}",
     "----"},
    {"{on: {enabled: true}, enabling: {enabled: true}, off: {enabled: true}, retry: {enabled: "
     "true}}",
     "oefr"},
    {"{on: '${env:CONFIG_TEST_UNSET}', enabling: '${env:CONFIG_TEST_UNSET}', off: "
     "'${env:CONFIG_TEST_UNSET}', retry: '${env:CONFIG_TEST_UNSET}'}",
     "oef-"},
    {"{off: {size: 0, enabled: false}, on: {size: 13, enabled: false}}", "---r"},
    {"{on: {enabled: '${env:CONFIG_TEST_FALSE}'}}", "---r"},
};

static void optional_sections_are_on_as_their_rule_says(void **state)
{
    (void)state;
    setenv("CONFIG_TEST_FALSE", "false", 1);
    for (size_t i = 0; i < sizeof(presences) / sizeof(presences[0]); i++) {
        struct load_result result = load_probe(presences[i].yaml);
        const struct probe_config *probe = probe_of(&result);
        char on[] = {probe->has_on ? 'o' : '-', probe->has_enabling ? 'e' : '-',
                     probe->has_off ? 'f' : '-', probe->has_retry ? 'r' : '-', '\0'};
        if (strcmp(on, presences[i].on) != 0)
            fail_msg("%s: %s", presences[i].yaml, on);
        load_result_clear(&result);
    }
}

/* The position is that of the probe's first line, 6, from column 7. */
static const struct {
    const char *yaml;
    const char *problem;
} mistakes[] = {
    {"flag: yes",
     "otel.yaml:6:13: processors::probe::flag: found the string \"yes\", expected true "
     "or false"},
    {"flag: 1", "found the number 1, expected true or false"},
    {"flag: 'true'", "expected true or false (without quotes)"},
    {"count: '8192'",
     "otel.yaml:6:14: processors::probe::count: found the string \"8192\", expected "
     "\"auto\" or a whole number from 0 to 65535 (without quotes)"},
    {"count: 65536", "found the number 65536, expected \"auto\" or a whole number from 0 to 65535"},
    {"count: -1", "found the number -1"},
    {"count: 99999999999999999999", "found the number 99999999999999999999"},
    {"count: -0.5", "found the number -0.5"},
    {"count: .inf", "found the number .inf"},
    {"count: true", "found the boolean true"},
    {"count: [1]", "found a list"},
    {"number: {}", "found a map, expected a whole number from -100 to 5000000000"},
    {"ratio: much", "found the string \"much\", expected a number"},
    {"timeout: 5", NULL},
    {"timeout: -5s", "found the string \"-5s\", expected a duration from 0s to 1h"},
    {"timeout: 2h", "expected a duration from 0s to 1h"},
    {"timeout: 5d", "found the string \"5d\", expected a duration from 0s to 1h (time: unknown "
                    "unit)"},
    {"timeout: soon", "(time: invalid duration)"},
    {"timeout: '5'", "(time: missing unit in duration)"},
    {"timeout: true", "found the boolean true, expected a duration"},
    {"text: 5", "found the number 5, expected a string (put it in quotes)"},
    {"text: 1.3", "found the number 1.3, expected a string"},
    {"text: true", "found the boolean true, expected a string"},
    {"text: [a]", "found a list, expected a string"},
    {"secret: 12345", "processors::probe::secret: found a number, expected a string"},
    {"choice: gzpi", "found the string \"gzpi\", expected one of \"gzip\", \"none\", \"\" (did you "
                     "mean \"gzip\"?)"},
    {"choice: GZIP", "did you mean \"gzip\"?"},
    {"texts: {}", "found a map, expected a list of strings"},
    {"texts: [a, 5]", "processors::probe::texts::1: found the number 5, expected a string"},
    {"headers: {a: 5}", "processors::probe::headers::a: found a number, expected a string"},
    {"headers: x", "found a string, expected a map of strings, or a list"},
    {"headers: [{name: a, value: x}, {name: a, value: y}]",
     "processors::probe::headers::1: duplicate keys in map-style list: [a]"},
    {"headers: [{name: a, valu: x}]", "expected a map with the keys name and value"},
    {"always: 5", "processors::probe::always: found the number 5, expected a map"},
    {"always: {size: 0}", "processors::probe::always::size: found the number 0, expected a whole "
                          "number from 1 to 100"},
    {"always: {size: 13}", "processors::probe::always: found size 13"},
    {"always: {enabled: true}", "processors::probe::always::enabled: found an unknown key"},
    {"always: {sise: 1}", "otel.yaml:6:16: processors::probe::always::sise: found an unknown key, "
                          "expected one of this section (did you mean \"size\"?)"},
    {"on: {enabled: x}", "processors::probe::on::enabled: found the string \"x\", expected true or "
                         "false"},
    {"on: {enabled: }", "processors::probe::on::enabled: found null, expected true or false"},
    {"on: {enabled: '${env:CONFIG_TEST_UNSET}'}", "processors::probe::on::enabled: found null"},
    {"off: {enabled: false, sise: 1}", "processors::probe::off::sise: found an unknown key"},
    {"off: {enabled: false, size: x}", "processors::probe::off::size: found the string"},
    {"parts: {}", "found a map, expected a list of maps"},
    {"parts: [{}, {size: x}]", "processors::probe::parts::1::size: found the string \"x\""},
    {"parts: [{size: 13}]", "otel.yaml:6:15: processors::probe::parts::0: found size 13"},
    {"parts: [null]", "processors::probe::parts::0: found null, expected a map"},
    {"count: 666", "otel.yaml:5:5: processors::probe: found count 666, expected another"},
    {"foo: 1", "otel.yaml:6:7: processors::probe::foo: found an unknown key"},
    {"old_flag: 3", "otel.yaml:6:17: processors::probe::old_flag: found the number 3, expected "
                    "true or false"},
    {"old_number: x", "found the string \"x\", expected a whole number"},
    {"old_number: '5'", "expected a whole number (without quotes)"},
    {"old_timeout: []", "found a list, expected a duration such as"},
    {"old_timeout: 5", NULL},
    {"old_text: {}", "found a map, expected a string"},
    {"old_map: {a: [b]}", NULL},
    {"old_map: 3", "old_map: found the number 3, expected a map"},
    {"old_list: [a, {b: c}]", NULL},
    {"old_list: {}", "old_list: found a map, expected a list"},
    {"old_texts: [a, 1]", "old_texts::1: found the number 1, expected a string"},
    {"Timeout: 5s", "(did you mean \"timeout\"?)"},
};

static void mistakes_say_where_what_and_what_was_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct load_result result = load_probe(mistakes[i].yaml);
        if (mistakes[i].problem == NULL)
            assert_loaded(&result);
        else
            assert_problem(&result, mistakes[i].problem);
        assert_true(result.problems.count <= 1);
        load_result_clear(&result);
    }
}

static void what_is_odd_but_works_is_a_warning(void **state)
{
    struct load_result result = load_probe("{timeout: 5, count: 1.5}");
    (void)state;
    assert_int_equal(probe_of(&result)->timeout_ns, 5);
    assert_int_equal(probe_of(&result)->count, 1);
    assert_warning(&result, "otel.yaml:6:17: processors::probe::timeout: found the number 5, which "
                            "is read as nanoseconds");
    assert_warning(&result, "found the number 1.5, which is cut to 1");
    load_result_clear(&result);
}

static void words_stand_for_their_index(void **state)
{
    struct load_result result = load_probe("count: auto");
    (void)state;
    assert_int_equal(probe_of(&result)->count, 0);
    load_result_clear(&result);
}

static void a_list_may_be_one_string_with_commas(void **state)
{
    struct load_result result = load_probe("texts: 'a,,b c'");
    const struct config_texts *texts = &probe_of(&result)->texts;
    (void)state;
    assert_int_equal(texts->count, 3);
    assert_string_equal(texts->texts[0], "a");
    assert_string_equal(texts->texts[1], "");
    assert_string_equal(texts->texts[2], "b c");
    load_result_clear(&result);
    result = load_probe("texts: ''");
    assert_int_equal(probe_of(&result)->texts.count, 0);
    load_result_clear(&result);
    result = load_probe("texts: []");
    assert_int_equal(probe_of(&result)->texts.count, 0);
    load_result_clear(&result);
}

static void headers_may_be_a_list(void **state)
{
    struct load_result result = load_probe("headers: [{name: a, value: x}, {name: b}]");
    const struct config_pairs *headers = &probe_of(&result)->headers;
    (void)state;
    assert_int_equal(headers->count, 2);
    assert_string_equal(headers->pairs[0].key, "a");
    assert_string_equal(headers->pairs[0].value, "x");
    assert_string_equal(headers->pairs[1].value, "");
    load_result_clear(&result);
}

static void values_keep_their_types(void **state)
{
    struct load_result result =
        load_probe("value: {a: [1, 2.5, true, null, x], b: {c: '2006-01-02'}}");
    const struct config_value *value = probe_of(&result)->value;
    (void)state;
    assert_int_equal(value->type, CONFIG_VALUE_MAP);
    assert_int_equal(value->count, 2);
    assert_string_equal(value->keys[1], "b");
    assert_int_equal(value->items[0].type, CONFIG_VALUE_LIST);
    assert_int_equal(value->items[0].items[0].integer, 1);
    assert_true(value->items[0].items[1].real == 2.5);
    assert_true(value->items[0].items[2].boolean);
    assert_int_equal(value->items[0].items[3].type, CONFIG_VALUE_NULL);
    assert_string_equal(value->items[0].items[4].text, "x");
    assert_string_equal(value->items[1].items[0].text, "2006-01-02");
    load_result_clear(&result);
}

static void all_mistakes_are_reported_at_once_in_file_order(void **state)
{
    struct load_result result =
        load_probe("{text: 5, foo: 1, count: x, parts: [{size: 0}, {bar: 1}], flag: 3}");
    (void)state;
    assert_int_equal(result.problems.count, 6);
    assert_non_null(strstr(result.problems.texts[0], "::text: "));
    assert_non_null(strstr(result.problems.texts[1], "::foo: "));
    assert_non_null(strstr(result.problems.texts[2], "::count: "));
    assert_non_null(strstr(result.problems.texts[3], "::parts::0::size: "));
    assert_non_null(strstr(result.problems.texts[4], "::parts::1::bar: "));
    assert_non_null(strstr(result.problems.texts[5], "::flag: "));
    load_result_clear(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_keys_have_their_defaults),
        cmocka_unit_test(written_values_replace_defaults),
        cmocka_unit_test(a_written_null_is_the_types_zero_but_keeps_lists),
        cmocka_unit_test(optional_sections_are_on_as_their_rule_says),
        cmocka_unit_test(mistakes_say_where_what_and_what_was_expected),
        cmocka_unit_test(what_is_odd_but_works_is_a_warning),
        cmocka_unit_test(words_stand_for_their_index),
        cmocka_unit_test(a_list_may_be_one_string_with_commas),
        cmocka_unit_test(headers_may_be_a_list),
        cmocka_unit_test(values_keep_their_types),
        cmocka_unit_test(all_mistakes_are_reported_at_once_in_file_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
