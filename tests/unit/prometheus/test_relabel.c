/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on sets of labels, and rules that are refused. Expected is what prometheus/prometheus 0.312
 * (model/relabel) does. */
#include "src/prometheus/relabel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/error.h"

enum { TEXT_MAX = 512, RULES_MAX = 3 };

#define SOURCES(...)                                                                               \
    .source_labels = (const char *const[]){__VA_ARGS__},                                           \
    .source_labels_count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)

/* Adds the labels of "a=b,c=d". */
static void add_labels(struct relabel_labels *set, const char *labels)
{
    while (*labels != '\0') {
        size_t name = strcspn(labels, "=");
        size_t value = strcspn(labels + name + 1, ",");
        relabel_labels_add(set, slice_of(labels, name), slice_of(labels + name + 1, value));
        labels += name + 1 + value;
        labels += *labels == ',';
    }
}

static void print_labels(const struct relabel_labels *set, char text[TEXT_MAX])
{
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < set->count; i++) {
        const struct prometheus_label *label = &set->labels[i].label;
        size += (size_t)snprintf(text + size, TEXT_MAX - size, "%s%.*s=%.*s", i > 0 ? "," : "",
                                 (int)label->name.size, (const char *)label->name.data,
                                 (int)label->value.size, (const char *)label->value.data);
    }
}

static const struct {
    struct relabel_config rules[RULES_MAX];
    const char *labels;
    const char *expected; /* NULL: dropped */
} changes[] = {
    /* replace */
    {{{SOURCES("a"), .regex = "f(.*)", .target_label = "d", .replacement = "ch${1}-ch${1}"}},
     "a=foo,b=bar",
     "a=foo,b=bar,d=choo-choo"},
    {{{SOURCES("a", "b"), .target_label = "c"}}, "a=1,b=2", "a=1,b=2,c=1;2"},
    {{{SOURCES("a", "b"), .separator = "", .target_label = "c"}}, "b=2", "b=2,c=2"},
    {{{SOURCES("a"), .regex = "x", .target_label = "b"}}, "a=1,b=2", "a=1,b=2"},
    {{{SOURCES("a"), .target_label = "a", .replacement = ""}}, "a=1,b=2", "b=2"},
    {{{.target_label = "c", .replacement = "x"}}, "", "c=x"},
    {{{SOURCES("a"), .regex = "(.+)", .target_label = "b"}}, "b=2", "b=2"},
    {{{SOURCES("a"), .regex = ".*", .target_label = "b"}}, "a=1,b=2", "a=1"},
    {{{SOURCES("a"), .regex = "(b|c)(.*)", .target_label = "${1}x", .replacement = "$2"}},
     "a=cd",
     "a=cd,cx=d"},
    {{{SOURCES("a"), .target_label = "$1"}}, "b=2", "b=2"}, /* the target would be empty */
    {{{SOURCES("a"), .regex = "(?P<x>.)(?P<y>.)", .target_label = "b", .replacement = "$y${x}"}},
     "a=12",
     "a=12,b=21"},
    {{{SOURCES("a"), .target_label = "b", .replacement = "$1_x$$${2}$"}}, "a=1", "a=1,b=$$"},
    {{{SOURCES("a"), .regex = "a.c", .target_label = "b", .replacement = "x"}},
     "a=a\nc",
     "a=a\nc,b=x"}, /* a dot matches the end of a line */
    {{{SOURCES("a"), .regex = "b", .target_label = "c"}}, "a=abc", "a=abc"}, /* anchored */
    {{{SOURCES("a"), .regex = "x|y\\.z|", .target_label = "c", .replacement = "$0"}},
     "a=y.z",
     "a=y.z,c=y.z"},
    {{{SOURCES("a"), .target_label = "b"}, {SOURCES("b"), .target_label = "c"}},
     "a=1",
     "a=1,b=1,c=1"},
    /* keep and drop */
    {{{SOURCES("a"), .regex = "foo|bar", .action = "keep"}}, "a=bar", "a=bar"},
    {{{SOURCES("a"), .regex = "foo|bar", .action = "keep"}}, "a=barx", NULL},
    {{{SOURCES("a"), .regex = "b.*", .action = "Drop"}}, "a=bar", NULL},
    {{{SOURCES("a"), .regex = "b.*", .action = "drop"}}, "a=foo", "a=foo"},
    {{{.action = "drop"}}, "a=foo", NULL},
    {{{SOURCES("a"), .target_label = "b", .action = "keepequal"}}, "a=1,b=1", "a=1,b=1"},
    {{{SOURCES("a"), .target_label = "b", .action = "keepequal"}}, "a=1,b=2", NULL},
    {{{SOURCES("a"), .target_label = "b", .action = "dropequal"}}, "c=1", NULL},
    {{{SOURCES("a"), .target_label = "b", .action = "dropequal"}}, "a=1", "a=1"},
    /* hashmod */
    {{{SOURCES("c"), .target_label = "d", .modulus = 1000, .action = "hashmod"}},
     "a=foo,c=baz",
     "a=foo,c=baz,d=976"},
    {{{SOURCES("a"), .target_label = "d", .modulus = 1000, .action = "hashmod"}},
     "a=foo\nbar",
     "a=foo\nbar,d=734"},
    /* labelmap: the last one wins, by name and then by age */
    {{{.regex = "(b.*)", .replacement = "bar_${1}", .action = "labelmap"}},
     "a=foo,b1=bar,b2=baz",
     "a=foo,b1=bar,b2=baz,bar_b1=bar,bar_b2=baz"},
    {{{.regex = "b.", .replacement = "c", .action = "labelmap"}}, "b1=1,b2=2", "b1=1,b2=2,c=2"},
    {{{.target_label = "b1", .replacement = "3"},
      {.regex = "b.", .replacement = "c", .action = "labelmap"}},
     "b1=1,b2=2",
     "b1=3,b2=2,c=3"},
    {{{.regex = "a)|(b", .replacement = "x", .action = "labelmap"}}, "ab=1", "ab=1,xx=1"},
    /* labeldrop and labelkeep */
    {{{.regex = "b.*", .action = "labeldrop"}}, "a=1,b1=2,b2=3", "a=1"},
    {{{.regex = "a|b1", .action = "labelkeep"}}, "a=1,b1=2,b2=3", "a=1,b1=2"},
    /* lowercase and uppercase */
    {{{SOURCES("a"), .target_label = "b", .action = "lowercase"}},
     "a=ÉcoLE İ",
     "a=ÉcoLE İ,b=école i"},
    {{{SOURCES("a"), .target_label = "b", .action = "uppercase"}}, "a=straße", "a=straße,b=STRAßE"},
    {{{SOURCES("a"), .target_label = "b", .action = "uppercase"}}, "b=1", ""},
};

static void rules_change_labels(void **state)
{
    struct relabel_labels set;
    struct error error;
    char found[TEXT_MAX];
    (void)state;
    relabel_labels_init(&set);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        size_t count = 0;
        while (count < RULES_MAX && (changes[i].rules[count].action != NULL ||
                                     changes[i].rules[count].target_label != NULL))
            count++;
        struct relabel_rules *rules =
            relabel_rules_create(changes[i].rules, count, RELABEL_NAMES_UTF8, &error);
        if (rules == NULL)
            fail_msg("row %zu: %s", i, error.text);
        relabel_labels_reset(&set);
        add_labels(&set, changes[i].labels);
        bool is_kept = relabel_rules_apply(rules, &set);
        assert_false(set.has_overflowed);
        assert_false(set.has_duplicates);
        print_labels(&set, found);
        if (is_kept != (changes[i].expected != NULL) ||
            (is_kept && strcmp(found, changes[i].expected) != 0))
            fail_msg("row %zu: %s, expected %s", i, is_kept ? found : "dropped",
                     changes[i].expected != NULL ? changes[i].expected : "dropped");
        relabel_rules_destroy(rules);
    }
    relabel_labels_fini(&set);
}

/* With the key that the error names. */
static const struct {
    struct relabel_config rule;
    const char *utf8_key;   /* NULL: accepted */
    const char *legacy_key; /* NULL: accepted */
} checks[] = {
    {{.target_label = "a"}, NULL, NULL},
    {{.action = "replace"}, "target_label", "target_label"},
    {{.action = "relabel", .target_label = "a"}, "action", "action"},
    {{.action = "", .target_label = "a"}, "action", "action"},
    {{.regex = "(", .target_label = "a"}, "regex", "regex"},
    {{.regex = "\\C", .target_label = "a"}, "regex", "regex"},
    {{SOURCES("a", ""), .target_label = "a"}, "source_labels", "source_labels"},
    {{SOURCES("a.b"), .target_label = "a"}, NULL, NULL},
    {{.target_label = "a.b"}, NULL, "target_label"},
    {{.target_label = "1a"}, NULL, "target_label"},
    {{.target_label = "a_$1_${b}0"}, NULL, NULL},
    {{.target_label = "$1.b"}, NULL, "target_label"},
    {{.target_label = "${1"}, NULL, "target_label"},
    {{.target_label = "a$"}, NULL, "target_label"},
    {{.action = "hashmod", .target_label = "a"}, "modulus", "modulus"},
    {{.action = "hashmod", .modulus = 8}, "target_label", "target_label"},
    {{.action = "hashmod", .modulus = 8, .target_label = "$1"}, NULL, "target_label"},
    {{.action = "labelmap"}, NULL, NULL},
    {{.action = "labelmap", .replacement = ""}, "replacement", "replacement"},
    {{.action = "labelmap", .replacement = "a-b"}, NULL, "replacement"},
    {{.action = "lowercase"}, "target_label", "target_label"},
    {{.action = "lowercase", .target_label = "a", .replacement = "$1"}, NULL, NULL},
    {{.action = "uppercase", .target_label = "a", .replacement = "x"},
     "replacement",
     "replacement"},
    {{.action = "keepequal", .target_label = "a", .separator = ";"}, NULL, NULL},
    {{.action = "keepequal", .target_label = "a", .separator = ","}, "separator", "separator"},
    {{.action = "keepequal", .target_label = "a", .regex = "(.*)"}, "regex", "regex"},
    {{.action = "dropequal", .target_label = "a", .modulus = 1}, "modulus", "modulus"},
    {{.action = "labeldrop", .regex = "a"}, NULL, NULL},
    {{.action = "labeldrop", SOURCES("a")}, "source_labels", "source_labels"},
    {{.action = "labelkeep", .target_label = "a"}, "target_label", "target_label"},
    {{.action = "labelkeep", .replacement = "x"}, "replacement", "replacement"},
    {{.target_label = "a", .regex = "(a)", .replacement = "${63}${64}"}, NULL, NULL},
};

static void expect_verdict(const struct relabel_config *rule, enum relabel_names names,
                           const char *key)
{
    struct relabel_config rules[] = {{.action = "labelmap"}, *rule};
    struct error error = {.steps_count = 0};
    size_t row = 0;
    while (&checks[row].rule != rule)
        row++;
    bool is_good = relabel_configs_check(rules, 2, names, &error);
    if (is_good != (key == NULL))
        fail_msg("row %zu: %s", row, is_good ? "accepted" : error.text);
    if (is_good)
        return;
    assert_string_equal(
        error.steps[strcmp(key, "source_labels") == 0 && error.steps[0].key == NULL].key, key);
    assert_null(error.steps[error.steps_count - 1].key);
    assert_int_equal(error.steps[error.steps_count - 1].index, 1);
}

static void rules_are_checked_as_in_prometheus(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        expect_verdict(&checks[i].rule, RELABEL_NAMES_UTF8, checks[i].utf8_key);
        expect_verdict(&checks[i].rule, RELABEL_NAMES_LEGACY, checks[i].legacy_key);
    }
}

static void limits_of_the_configuration_are_errors(void **state)
{
    static const char *names[RELABEL_SOURCE_LABELS_MAX + 1];
    static struct relabel_config rules[RELABEL_RULES_MAX + 1];
    struct error error;
    (void)state;
    for (size_t i = 0; i <= RELABEL_SOURCE_LABELS_MAX; i++)
        names[i] = "a";
    struct relabel_config rule = {
        .source_labels = names, .source_labels_count = RELABEL_SOURCE_LABELS_MAX, .action = "drop"};
    assert_true(relabel_configs_check(&rule, 1, RELABEL_NAMES_UTF8, &error));
    rule.source_labels_count++;
    assert_false(relabel_configs_check(&rule, 1, RELABEL_NAMES_UTF8, &error));
    assert_false(relabel_configs_check(rules, RELABEL_RULES_MAX + 1, RELABEL_NAMES_UTF8, &error));
    /* More groups than a replacement can use. */
    char regex[3 * 70 + 1] = "";
    for (size_t i = 0; i < 70; i++)
        strcat(regex, "(a)");
    rule = (struct relabel_config){.regex = regex, .target_label = "a", .replacement = "$63"};
    assert_true(relabel_configs_check(&rule, 1, RELABEL_NAMES_UTF8, &error));
    rule.replacement = "$64";
    assert_false(relabel_configs_check(&rule, 1, RELABEL_NAMES_UTF8, &error));
    assert_string_equal(error.steps[0].key, "replacement");
}

static void a_set_keeps_labels_sorted(void **state)
{
    struct relabel_labels set;
    char found[TEXT_MAX];
    (void)state;
    relabel_labels_init(&set);
    add_labels(&set, "c=3,a=1,b=2,d=,aa=4");
    print_labels(&set, found);
    assert_string_equal(found, "a=1,aa=4,b=2,c=3");
    relabel_labels_set(&set, slice_of_text("b"), slice_of_text("x"));
    relabel_labels_set(&set, slice_of_text("a"), slice_of_text(""));
    relabel_labels_delete(&set, slice_of_text("nothing"));
    relabel_labels_set(&set, slice_of_text("0"), slice_of_text("y"));
    print_labels(&set, found);
    assert_string_equal(found, "0=y,aa=4,b=x,c=3");
    assert_true(slice_equal_text(relabel_labels_get(&set, slice_of_text("c")), "3"));
    assert_int_equal(relabel_labels_get(&set, slice_of_text("d")).size, 0);
    assert_false(set.has_duplicates);
    add_labels(&set, "c=9");
    assert_true(set.has_duplicates);
    assert_true(slice_equal_text(relabel_labels_get(&set, slice_of_text("c")), "3"));
    relabel_labels_reset(&set);
    assert_int_equal(set.count, 0);
    assert_false(set.has_duplicates);
    relabel_labels_fini(&set);
}

static void too_many_labels_overflow(void **state)
{
    static char names[RELABEL_LABELS_MAX + 1][8];
    struct relabel_labels set;
    (void)state;
    relabel_labels_init(&set);
    for (size_t i = 0; i <= RELABEL_LABELS_MAX; i++) {
        assert_false(set.has_overflowed);
        snprintf(names[i], sizeof(names[i]), "l%zu", i);
        relabel_labels_add(&set, slice_of_text(names[i]), slice_of_text("x"));
    }
    assert_true(set.has_overflowed);
    assert_int_equal(set.count, RELABEL_LABELS_MAX);
    relabel_labels_fini(&set);
}

static void too_much_text_overflows(void **state)
{
    const struct relabel_config rules[] = {
        {SOURCES("a", "a"), .target_label = "b"},
        {SOURCES("a"), .target_label = "b", .replacement = "$1$1"},
        {SOURCES("a"), .target_label = "b", .action = "uppercase"},
        {SOURCES("a"), .target_label = "${1}x"},
        {.regex = "(.)", .replacement = "$1$2", .action = "labelmap"},
    };
    struct relabel_labels set;
    struct error error;
    (void)state;
    char *value = malloc(RELABEL_TEXT_BYTES_MAX);
    memset(value, 'x', RELABEL_TEXT_BYTES_MAX);
    relabel_labels_init(&set);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        bool is_map = rules[i].regex != NULL;
        struct relabel_rules *made = relabel_rules_create(&rules[i], 1, RELABEL_NAMES_UTF8, &error);
        assert_non_null(made);
        relabel_labels_reset(&set);
        relabel_labels_add(&set, slice_of_text("a"), slice_of(value, RELABEL_TEXT_BYTES_MAX));
        if (is_map) /* nothing is left for the name */
            relabel_labels_copy(&set, slice_of(value, RELABEL_TEXT_BYTES_MAX));
        assert_true(relabel_rules_apply(made, &set));
        if (!set.has_overflowed)
            fail_msg("rule %zu", i);
        relabel_rules_destroy(made);
    }
    /* What rules compare takes no room for good. */
    const struct relabel_config keep[] = {{SOURCES("a", "a"), .action = "keep"},
                                          {SOURCES("a", "a"), .action = "keep"}};
    struct relabel_rules *made = relabel_rules_create(keep, 2, RELABEL_NAMES_UTF8, &error);
    relabel_labels_reset(&set);
    relabel_labels_add(&set, slice_of_text("a"), slice_of(value, RELABEL_TEXT_BYTES_MAX / 3));
    assert_true(relabel_rules_apply(made, &set));
    assert_false(set.has_overflowed);
    relabel_rules_destroy(made);
    relabel_rules_destroy(NULL);
    relabel_labels_fini(&set);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_change_labels),
        cmocka_unit_test(rules_are_checked_as_in_prometheus),
        cmocka_unit_test(limits_of_the_configuration_are_errors),
        cmocka_unit_test(a_set_keeps_labels_sorted),
        cmocka_unit_test(too_many_labels_overflow),
        cmocka_unit_test(too_much_text_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
