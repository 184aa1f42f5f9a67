/* SPDX-License-Identifier: Apache-2.0 */
/* Target groups in JSON and YAML: what Prometheus takes and refuses, limits, and no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "receivers/scrape/target_groups.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"

enum { PRINTED_BYTES = 4096 };

static struct budget budget;
static struct target_groups groups;
static struct error error;
static char printed[PRINTED_BYTES];

static const struct prometheus_label source = {
    .name = {.data = (const uint8_t *)"__meta_from", .size = 11},
    .value = {.data = (const uint8_t *)"here", .size = 4},
};

static int set_up(void **state)
{
    (void)state;
    budget_init(&budget, UINT64_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static void append(const char *before, struct slice text)
{
    size_t size = strlen(printed);
    snprintf(printed + size, sizeof(printed) - size, "%s%.*s", before, (int)text.size,
             text.size > 0 ? (const char *)text.data : "");
}

/* "[a b x=1]" for each group. */
static const char *print(void)
{
    printed[0] = '\0';
    for (size_t i = 0; i < groups.count; i++) {
        const struct target_group *group = &groups.groups[i];
        append("[", (struct slice){.size = 0});
        for (size_t k = 0; k < group->targets_count; k++)
            append(k > 0 ? " " : "", group->targets[k]);
        for (size_t k = 0; k < group->labels_count; k++) {
            append(" ", group->labels[k].name);
            append("=", group->labels[k].value);
        }
        append("]", (struct slice){.size = 0});
    }
    target_groups_free(&groups);
    return printed;
}

static const char *json(const char *text)
{
    error.text[0] = '\0';
    if (target_groups_read_json(&groups, slice_of_text(text), &source, &budget, &error))
        return print();
    assert_string_not_equal(error.text, "");
    assert_int_equal(groups.count, 0);
    return error.text;
}

static const char *yaml(const char *text)
{
    error.text[0] = '\0';
    if (target_groups_read_yaml(&groups, slice_of_text(text), &source, &budget, &error))
        return print();
    assert_string_not_equal(error.text, "");
    assert_int_equal(groups.count, 0);
    return error.text;
}

#define assert_contains(text, part) assert_non_null(strstr(text, part))

static void test_json_gives_groups(void **state)
{
    (void)state;
    assert_string_equal(json(" [ ] "), "");
    assert_string_equal(json("null"), "");
    assert_string_equal(json("[{}]"), "[ __meta_from=here]");
    assert_string_equal(json("[{\"targets\":[\"a:1\",\"b:2\"],\"labels\":{\"x\":\"1\",\"y\":\"\"}},"
                             "{\"LABELS\":null,\"Targets\":null}]"),
                        "[a:1 b:2 x=1 y= __meta_from=here][ __meta_from=here]");
    assert_string_equal(json("[{\"targets\":[\"a\",null],\"labels\":{\"x\":null}}]"),
                        "[a  x= __meta_from=here]");
    assert_string_equal(json("[{\"targets\":[\"\\u00e9\\ud83d\\ude00\\/\"]}]"),
                        "[\xc3\xa9\xf0\x9f\x98\x80/ __meta_from=here]");
    assert_string_equal(json("[{\"labels\":{\"x\":\"1\"},\"labels\":{\"y\":\"2\"}}]"),
                        "[ y=2 __meta_from=here]");
    /* The last of equal ones counts, and the source always. */
    assert_string_equal(json("[{\"targets\":[\"a\"],\"targets\":[\"b\"],"
                             "\"labels\":{\"x\":\"1\",\"x\":\"2\",\"__meta_from\":\"there\"}}]"),
                        "[b x=2 __meta_from=here]");
}

static void test_json_mistakes_are_named(void **state)
{
    (void)state;
    assert_contains(json(""), "expected a list of target groups");
    assert_contains(json("{}"), "expected a list of target groups");
    assert_contains(json("[null]"), "nil target group");
    assert_contains(json("[{\"target\":[]}]"), "unknown field \"target\"");
    assert_contains(json("[{\"targets\":\"a\"}]"), "a list of targets");
    assert_contains(json("[{\"targets\":[1]}]"), "expected a string, found 1");
    assert_contains(json("[{\"targets\":[\"a\",]}]"), "expected a string");
    assert_contains(json("[{\"labels\":{\"\":\"1\"}}]"), "not a valid label name");
    assert_contains(json("[{\"labels\":{\"\xff\":\"1\"}}]"), "not a valid label name");
    assert_contains(json("[{\"labels\":{\"x\":1}}]"), "expected a string");
    assert_contains(json("[{\"labels\":[]}]"), "a map of labels");
    assert_contains(json("[{}] x"), "the end of the text");
    assert_contains(json("[\n\n{\"targets\":[\"a\"]}"), "line 3");
    assert_contains(json("[{},]"), "a map with targets and labels");
    assert_contains(json("[{\"targets\":[\"a"), "expected a string");
}

static void test_yaml_gives_groups(void **state)
{
    (void)state;
    assert_string_equal(yaml(""), "");
    assert_string_equal(yaml("# nothing\n"), "");
    assert_string_equal(yaml("~"), "");
    assert_string_equal(yaml("[]"), "");
    assert_string_equal(
        yaml("- targets: [a:1, 'b:2']\n  labels: {x: 1, y: ~, z: 'null', on: true}\n"
             "- labels:\n  targets:\n- {}\n"),
        "[a:1 b:2 x=1 y= z=null on=true __meta_from=here][ __meta_from=here]"
        "[ __meta_from=here]");
    assert_string_equal(yaml("- targets:\n  - \"\\xe9\"\n--- \n- nonsense\n"),
                        "[\xc3\xa9 __meta_from=here]");
}

static void test_yaml_mistakes_are_named(void **state)
{
    (void)state;
    assert_contains(yaml("a: 1"), "line 1: expected a list of target groups");
    assert_contains(yaml("- ~"), "nil target group");
    assert_contains(yaml("- a"), "a map with targets and labels");
    assert_contains(yaml("- target: [a]"), "unknown field \"target\"");
    assert_contains(yaml("- targets: a"), "a list of targets");
    assert_contains(yaml("- targets: [[a]]"), "a target, host:port");
    assert_contains(yaml("- targets: []\n  targets: []"), "line 2: expected each key once");
    assert_contains(yaml("- labels: {x: 1, x: 2}"), "each label once");
    assert_contains(yaml("- labels: {x: []}"), "a string as the value");
    assert_contains(yaml("- labels: {'': a}"), "not a valid label name");
    assert_contains(yaml("- labels: {~: a}"), "not a valid label name");
    assert_contains(yaml("- &a {}\n- *a\n"), "no anchors and aliases");
    assert_contains(yaml("- [\n"), "line");
    assert_contains(yaml("- {targets: [a"), "line");
}

static void test_limits_hold(void **state)
{
    (void)state;
    enum { ROOM = 4 << 20 };
    char *text = mem_alloc(ROOM);
    size_t size = (size_t)snprintf(text, ROOM, "[{\"targets\":[\"a\"");
    for (int i = 0; i < TARGET_GROUPS_TARGETS_MAX; i++)
        size += (size_t)snprintf(text + size, ROOM - size, ",\"a\"");
    snprintf(text + size, ROOM - size, "]}]");
    assert_contains(json(text), "more than 65536 targets");
    size = (size_t)snprintf(text, ROOM, "[{}");
    for (int i = 0; i < TARGET_GROUPS_MAX; i++)
        size += (size_t)snprintf(text + size, ROOM - size, ",{}");
    snprintf(text + size, ROOM - size, "]");
    assert_contains(json(text), "more than 65536 target groups");
    size = (size_t)snprintf(text, ROOM, "[{\"labels\":{\"l\":\"\"");
    for (int i = 1; i < TARGET_GROUP_LABELS_MAX; i++)
        size += (size_t)snprintf(text + size, ROOM - size, ",\"l%d\":\"\"", i);
    snprintf(text + size, ROOM - size, "}}]");
    assert_contains(json(text), "more than 256 labels");
    mem_free(text);
}

/* Each target is made with a copy of its group's labels. */
static void test_labels_are_counted_for_each_target(void **state)
{
    (void)state;
    enum { ROOM = 1 << 20, VALUE_BYTES = 64 * 1024 };
    char *text = mem_alloc(ROOM);
    for (size_t too_many = 0; too_many < 2; too_many++) {
        size_t targets = TARGET_GROUPS_LABEL_BYTES_MAX / VALUE_BYTES - 100 + 100 * too_many;
        size_t size = (size_t)snprintf(
            text, ROOM, "[{\"labels\":{\"l\":\"%0*d\"},\"targets\":[\"a\"", VALUE_BYTES, 0);
        for (size_t i = 1; i < targets; i++)
            size += (size_t)snprintf(text + size, ROOM - size, ",\"a\"");
        snprintf(text + size, ROOM - size, "]}]");
        bool is_read =
            target_groups_read_json(&groups, slice_of_text(text), &source, &budget, &error);
        assert_int_equal(is_read, too_many == 0);
        target_groups_free(&groups);
    }
    assert_contains(error.text, "more than 512 MiB");
    mem_free(text);
}

static void test_a_short_budget_is_an_error(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"targets\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"],"
        "\"labels\":{\"x\":\"\\u00e9\"}}]";
    bool is_read = false;
    for (uint64_t limit = 0; !is_read; limit += 1024) {
        struct budget tight;
        assert_true(limit < 1 << 20);
        budget_init(&tight, limit);
        is_read = target_groups_read_json(&groups, slice_of_text(text), &source, &tight, &error);
        if (!is_read)
            assert_contains(error.text, "budget");
        target_groups_free(&groups);
        assert_int_equal(budget_used(&tight), 0);
        budget_fini(&tight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_json_gives_groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_json_mistakes_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_yaml_gives_groups, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_yaml_mistakes_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_labels_are_counted_for_each_target, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_short_budget_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
