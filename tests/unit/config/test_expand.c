/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/expand.c: ${…} by the Go collector's rules, through a whole load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "src/config/config.h"
#include "tests/unit/config/support.h"

static const struct {
    const char *name;
    const char *value;
} variables[] = {
    {"CT_INT", "123"},
    {"CT_OCTAL", "0123"},
    {"CT_HEX", "0xff"},
    {"CT_QUOTED", "\"0123\""},
    {"CT_BOOL", "true"},
    {"CT_LIST", "[a,b]"},
    {"CT_COMMAS", "a,b"},
    {"CT_COMMENT", "true # comment ${env:bad.name}"},
    {"CT_FINE_COMMENT", "12 # ${env:CT_INT}"},
    {"CT_BROKEN", "[\"a\","},
    {"CT_TIME", "2006-01-02T15:04:05Z"},
    {"CT_IPV6", "::1"},
    {"CT_EMPTY", ""},
    {"CT_NAME", "CT_INT"},
    {"CT_NESTED", "${env:CT_INT}"},
    {"CT_MAP", "{size: 9, name: \"${env:CT_INT}\"}"},
    {"CT_SELF", "${env:CT_SELF}"},
    {"CT_GROW", "x${env:CT_GROW}"},
    {"CT_SELF_LIST", "[\"${env:CT_SELF_LIST}\"]"},
    {"CT_HOST", "localhost"},
    {"CT_PORT", "4317"},
    {"CT_DOLLARS", "a$$b"},
    {"CT_DUPLICATE", "{a: 1, a: 2}"},
    {"CT_SECRET", "hunter2"},
};

static int set_up(void **state)
{
    (void)state;
    unsetenv("CT_UNSET");
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        setenv(variables[i].name, variables[i].value, 1);
    return 0;
}

/* What text becomes as the value of probe's text field. */
static const struct {
    const char *yaml;
    const char *text;
} texts[] = {
    {"${env:CT_INT}", "123"},
    {"${CT_INT}", "123"},
    {"${env:CT_OCTAL}", "0123"},
    {"${env:CT_HEX}", "0xff"},
    {"${env:CT_QUOTED}", "\"0123\""},
    {"${env:CT_BOOL}", "true"},
    {"${env:CT_LIST}", "[a,b]"},
    {"${env:CT_BROKEN}", "[\"a\","},
    {"${env:CT_TIME}", "2006-01-02T15:04:05Z"},
    {"${env:CT_IPV6}", "::1"},
    {"${env:CT_EMPTY}", ""},
    {"${env:CT_UNSET}", ""},
    {"${env:CT_FINE_COMMENT}", "12 # 123"},
    {"${env:CT_DUPLICATE}", "{a: 1, a: 2}"},
    {"a ${env:CT_OCTAL} b", "a 0123 b"},
    {"a ${env:CT_UNSET} b", "a  b"},
    {"${env:CT_HOST}:${env:CT_PORT}", "localhost:4317"},
    {"${env:CT_UNSET:-d}", "d"},
    {"${env:CT_EMPTY:-d}", ""},
    {"${env:CT_UNSET:-}", ""},
    {"${env:CT_UNSET:-a:b}", "a:b"},
    {"${env:${env:CT_NAME}}", "123"},
    {"${env:CT_UNSET:-${env:CT_INT}}", "123"},
    {"${env:CT_NESTED}", "123"},
    {"$CT_INT", "$CT_INT"},
    {"${CT_INT", "${CT_INT"},
    {"x}", "x}"},
    {"$${CT_INT}", "${CT_INT}"},
    {"$$${CT_INT}", "$123"},
    {"$$$${CT_INT}", "$${CT_INT}"},
    {"$$$$CT_INT", "$$CT_INT"},
    {"text$$", "text$"},
    {"a$b", "a$b"},
    {"} ${CT_INT}", "} 123"},
    {"$${CT_INT} ${CT_INT}", "${CT_INT} ${CT_INT}"},
    {"${CT_INT} $${CT_INT}", "123 $123"},
    {"${env:CT_DOLLARS}", "a$b"},
    {"${yaml:5s}", "5s"},
    {"${file:part.yaml}", "from a file\n"},
};

static struct load_result load_with_file(const char *field, const char *value)
{
    static const char form[] = "receivers: {nop: }\nexporters: {nop: }\n"
                               "service: {pipelines: {traces: {receivers: [nop], processors: "
                               "[probe], exporters: [nop]}}}\n"
                               "processors:\n  probe:\n    %s: %s\n";
    char text[1024];
    static const char *const location = "otel.yaml";
    struct load_result result;
    struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = fake_factories};
    snprintf(text, sizeof(text), form, field, value);
    memory_files_set((const char *const[]){location, text, "part.yaml", "from a file\n", NULL});
    result.config = config_load(&request, &result.problems);
    memory_files_set(NULL);
    return result;
}

static void string_fields_take_the_verbatim_string(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char quoted[256];
        snprintf(quoted, sizeof(quoted), "'%s'", texts[i].yaml);
        struct load_result result = load_with_file("text", quoted);
        const char *found = probe_of(&result)->text;
        if (strcmp(found, texts[i].text) != 0)
            fail_msg("%s: \"%s\"", texts[i].yaml, found);
        load_result_clear(&result);
    }
}

static void other_fields_take_the_parsed_value(void **state)
{
    (void)state;
    struct load_result result =
        load_probe("{count: '${env:CT_OCTAL}', number: '${env:CT_FINE_COMMENT}', flag: "
                   "'${env:CT_COMMENT}', ratio: '${env:CT_INT}', texts: '${env:CT_LIST}', always: "
                   "'${env:CT_MAP}', value: '${env:CT_OCTAL}', timeout: '${env:CT_UNSET}'}");
    const struct probe_config *probe = probe_of(&result);
    assert_int_equal(probe->count, 83);
    assert_int_equal(probe->number, 12);
    assert_true(probe->flag);
    assert_true(probe->ratio == 123);
    assert_int_equal(probe->texts.count, 2);
    assert_int_equal(probe->always.size, 9);
    assert_string_equal(probe->always.name, "123");
    assert_int_equal(probe->value->integer, 83);
    assert_int_equal(probe->timeout_ns, 0);
    load_result_clear(&result);
}

static void an_unset_variable_is_the_zero_of_its_field_and_a_warning(void **state)
{
    (void)state;
    struct load_result result = load_probe(
        "{count: '${env:CT_UNSET}', flag: '${CT_UNSET}', texts: '${env:CT_UNSET}', headers: {x: "
        "'${CT_UNSET}'}}");
    const struct probe_config *probe = probe_of(&result);
    assert_int_equal(probe->count, 0);
    assert_false(probe->flag);
    assert_int_equal(probe->texts.count, 0);
    assert_string_equal(probe->headers.pairs[0].value, "");
    assert_int_equal(result.problems.warnings_count, 4);
    assert_warning(&result, "otel.yaml:6:15: processors::probe::count: Configuration references "
                            "unset environment variable \"CT_UNSET\"");
    load_result_clear(&result);
}

static void lists_and_headers_take_references_in_their_elements(void **state)
{
    (void)state;
    struct load_result result =
        load_probe("{texts: ['${env:CT_OCTAL}', x], headers: {n: '${env:CT_OCTAL}'}}");
    const struct probe_config *probe = probe_of(&result);
    assert_string_equal(probe->texts.texts[0], "0123");
    assert_string_equal(probe->headers.pairs[0].value, "0123");
    load_result_clear(&result);
    result = load_probe("{texts: '${env:CT_COMMAS}'}");
    assert_int_equal(probe_of(&result)->texts.count, 2);
    load_result_clear(&result);
}

static const struct {
    const char *field;
    const char *value;
    const char *problem;
} mistakes[] = {
    {"text", "${NAME:-x}",
     "otel.yaml:6:11: processors::probe::text: scheme \"NAME\" is not "
     "supported for uri \"NAME:-x\""},
    {"text", "${CT_UNSET:-x}", "invalid uri: \"CT_UNSET:-x\""},
    {"text", "${CT_UNSET:-x}", "(a default needs ${env:NAME:-default})"},
    {"text", "${vault:x}", "scheme \"vault\" is not supported for uri \"vault:x\""},
    {"text", "${http://x/y}", "configuration from http and https is not supported"},
    {"text", "${env:x.y}", "environment variable \"x.y\" has invalid name"},
    {"text", "${}", "environment variable \"\" has invalid name"},
    {"text", "${env:A$B}", "the uri \"env:A$B\" contains unsupported characters ('$')"},
    {"text", "a ${env:CT_COMMENT} b", "environment variable \"bad.name\" has invalid name"},
    {"text", "${env:CT_COMMENT}", "found a boolean from ${env:CT_COMMENT}, expected a string"},
    {"text", "${env:CT_SELF}", "too many recursive expansions"},
    {"text", "${env:CT_GROW}", "too many recursive expansions"},
    {"value", "${env:CT_SELF_LIST}", "nest deeper than"},
    {"text", "${file:missing.yaml}", "unable to read the file missing.yaml: No such file"},
    {"count", "${env:CT_QUOTED}", "found a string from ${env:CT_QUOTED}, expected"},
    {"count", "1${env:CT_INT}", "found a string from 1${env:CT_INT}, expected"},
    {"count", "${env:CT_SECRET}", "found a string from ${env:CT_SECRET}, expected"},
    {"flag", "${env:CT_INT}", "found a number from ${env:CT_INT}, expected true or false"},
    {"timeout", "${file:part.yaml}", "found a string from ${file:part.yaml}, expected a duration"},
};

static void mistakes_point_at_the_reference_and_keep_values_secret(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct load_result result = load_with_file(mistakes[i].field, mistakes[i].value);
        assert_problem(&result, mistakes[i].problem);
        assert_int_equal(result.problems.count, 1);
        assert_null(strstr(result.problems.texts[0], "hunter2"));
        load_result_clear(&result);
    }
}

/* Each variable names the next twice: 2^30 copies if nothing stopped it. */
static void a_bomb_of_variables_ends_at_the_limit_of_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        char name[32];
        char value[128];
        snprintf(name, sizeof(name), "CT_BOMB%d", i);
        snprintf(value, sizeof(value), "${env:CT_BOMB%d}%s${env:CT_BOMB%d} ", i + 1, "-", i + 1);
        setenv(name, value, 1);
    }
    setenv("CT_BOMB30", "0123456789012345678901234567890123456789012345678901234567890123", 1);
    struct load_result result = load_with_file("text", "${env:CT_BOMB0}");
    assert_null(result.config);
    assert_int_equal(result.problems.count, 1);
    assert_problem(&result, "processors::probe::text: ");
    load_result_clear(&result);
}

static void a_bomb_of_lists_ends_at_a_limit(void **state)
{
    (void)state;
    setenv("CT_LISTS", "['${env:CT_LISTS}', '${env:CT_LISTS}', '${env:CT_LISTS}']", 1);
    struct load_result result = load_with_file("value", "${env:CT_LISTS}");
    assert_null(result.config);
    assert_true(result.problems.count >= 1 && result.problems.count <= 101);
    load_result_clear(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(string_fields_take_the_verbatim_string),
        cmocka_unit_test(other_fields_take_the_parsed_value),
        cmocka_unit_test(an_unset_variable_is_the_zero_of_its_field_and_a_warning),
        cmocka_unit_test(lists_and_headers_take_references_in_their_elements),
        cmocka_unit_test(mistakes_point_at_the_reference_and_keep_values_secret),
        cmocka_unit_test(a_bomb_of_variables_ends_at_the_limit_of_bytes),
        cmocka_unit_test(a_bomb_of_lists_ends_at_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
