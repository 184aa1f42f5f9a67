/* SPDX-License-Identifier: Apache-2.0 */
/* src/config/yaml_tree.c: what YAML becomes, and limits on its cost. */
#include "src/config/yaml_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/config/config_limits.h"
#include "src/config/loader.h"
#include "src/config/print.h"

static struct loader loader;
static struct yaml_failure failure;
static struct yaml_origin origin;

static int set_up(void **state)
{
    static const struct source source = {.name = "t"};
    (void)state;
    memset(&loader, 0, sizeof(loader));
    arena_init(&loader.arena, CONFIG_ARENA_BYTES_MAX);
    memset(&failure, 0, sizeof(failure));
    origin = (struct yaml_origin){.position = {.source = &source, .line = 1, .column = 1}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < loader.problems.count; i++)
        mem_free(loader.problems.items[i].text);
    mem_free(loader.problems.items);
    arena_clear(&loader.arena);
    return 0;
}

static struct node *parse(const char *text)
{
    return yaml_tree_parse(&loader, slice_of_text(text), &origin, &failure);
}

/* The tree as JSON without blanks. */
static void assert_tree(const char *text, const char *expected)
{
    char json[4096];
    char squeezed[4096];
    struct node *node = parse(text);
    if (node == NULL)
        fail_msg("%s: %s", text, failure.error.text);
    FILE *file = fmemopen(json, sizeof(json), "w");
    assert_non_null(file);
    assert_true(print_json(node, file));
    fclose(file);
    char *to = squeezed;
    for (const char *from = json; *from != '\0'; from++)
        if (*from != ' ' && *from != '\n')
            *to++ = *from;
    *to = '\0';
    assert_string_equal(squeezed, expected);
}

static const struct {
    const char *yaml;
    const char *json;
} trees[] = {
    {"", "null"},
    {"# nothing", "null"},
    {"a: 1", "{\"a\":1}"},
    {"{a: [1, x], \"b\": 'y'}", "{\"a\":[1,\"x\"],\"b\":\"y\"}"},
    {"a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
    {"a: &x 1\nb: &x 2\nc: *x", "{\"a\":1,\"b\":2,\"c\":2}"},
    {"a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}", "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"c\":3,\"b\":1}}"},
    {"d: {<<: [{a: 1}, {a: 2, b: 3}], b: 4}", "{\"d\":{\"b\":4,\"a\":1}}"},
    {"d: {'<<': 1}", "{\"d\":{\"<<\":1}}"},
    {"a: !!str 1", "{\"a\":\"1\"}"},
    {"a: !!int '1'", "{\"a\":1}"},
    {"a: !!float 1", "{\"a\":1}"},
    {"a: ! 1", "{\"a\":\"1\"}"},
    {"a: !mine 1", "{\"a\":\"1\"}"},
    {"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
    {"a: >-\n  x\n  y\n", "{\"a\":\"xy\"}"},
    {"1: x\n2.5: y", "{\"1\":\"x\",\"2.5\":\"y\"}"},
    {"a: 1\n---\nb: 2", "{\"a\":1}"},
    {"---\n---\nb: 2", "null"},
    {"a: 1\n...\n]]]", "{\"a\":1}"},
    {"\xef\xbb\xbf"
     "a: 1\r\nb: 2\r\n",
     "{\"a\":1,\"b\":2}"},
};

static void documents_become_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
        assert_tree(trees[i].yaml, trees[i].json);
}

static const struct {
    const char *yaml;
    size_t line;
    size_t column;
    const char *problem;
} failures[] = {
    {"a: [1", 2, 1, "this is not valid YAML: did not find expected ',' or ']'"},
    {"a:\n\t- b", 2, 1, "tabs cannot indent"},
    {"a: {x: ${env:N}}", 1, 9, "put ${…} in quotes"},
    {"a: 1\n b: 2", 2, 3, "this is not valid YAML"},
    {"~: 1", 1, 1, "found null as a key"},
    {"a:\n  true: 1", 2, 3, "found the boolean true as a key"},
    {"? [a]\n: 1", 1, 3, "found a list as a key"},
    {"a: *x", 1, 4, "the alias *x has no anchor"},
    {"a: &x [*x]", 1, 8, "the anchor &x contains itself"},
    {"a: {<<: 5}", 1, 9, "expected a map or a list of maps"},
    {"a: !!int x", 1, 4, "cannot read the string \"x\" with the tag"},
    {"a: !!binary e", 1, 4, "the value of !!binary is not base64"},
    {"a: !!binary AA==", 1, 4, "found a NUL character in a string"},
    {"a: \"x\\0y\"", 1, 4, "found a NUL character"},
    {"a: x\001", 1, 5, "control characters are not allowed"},
    {"a: \xff", 1, 4, "UTF-8"},
};

static void broken_yaml_is_reported_with_its_position(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        assert_null(parse(failures[i].yaml));
        if (strstr(failure.error.text, failures[i].problem) == NULL)
            fail_msg("%s: %s", failures[i].yaml, failure.error.text);
        assert_false(failure.is_limit);
        if (failure.position.line != failures[i].line ||
            failure.position.column != failures[i].column)
            fail_msg("%s: line %zu, column %zu", failures[i].yaml, failure.position.line,
                     failure.position.column);
    }
}

static void a_key_that_stands_twice_is_reported_and_the_rest_is_read(void **state)
{
    (void)state;
    assert_tree("a: 1\nb: 2\na: 3", "{\"a\":1,\"b\":2}");
    assert_int_equal(loader.problems.count, 1);
    assert_string_equal(loader.problems.items[0].text,
                        "t:3:1: found the key \"a\" a second time in the same map (first in line "
                        "1), expected each key once");
}

static void in_substituted_text_it_is_a_failure_at_the_reference(void **state)
{
    (void)state;
    origin.reference = "${env:X}";
    origin.position.line = 7;
    assert_null(parse("a: 1\na: 3"));
    assert_false(failure.is_limit);
    assert_int_equal(failure.position.line, 7);
}

static void utf_16_is_read_by_its_byte_order_mark(void **state)
{
    static const char little[] = "\xff\xfe"
                                 "a\0:\0 \0001\0";
    (void)state;
    struct node *node =
        yaml_tree_parse(&loader, slice_of(little, sizeof(little) - 1), &origin, &failure);
    assert_non_null(node);
    assert_int_equal(node_value(node, "a")->integer, 1);
}

static void positions_count_characters_from_one(void **state)
{
    struct node *node = parse("a:\n  \xc3\xa4: x\n  b: [1,\n    2]");
    (void)state;
    struct node *inner = node_value(node, "a");
    assert_int_equal(inner->entries[0].position.line, 2);
    assert_int_equal(inner->entries[0].position.column, 3);
    assert_int_equal(inner->entries[0].value->position.column, 6);
    struct node *second = node_value(inner, "b")->entries[1].value;
    assert_int_equal(second->position.line, 4);
    assert_int_equal(second->position.column, 5);
}

/* levels of "[" around nothing */
static char *nested(size_t levels)
{
    char *text = mem_zalloc(2 * levels + 1);
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    return text;
}

static void depth_is_bounded(void **state)
{
    char *fitting = nested(CONFIG_DEPTH_MAX);
    char *deep = nested(CONFIG_DEPTH_MAX + 1);
    char *deeper = nested(100000);
    (void)state;
    assert_non_null(parse(fitting));
    assert_null(parse(deep));
    assert_true(failure.is_limit);
    assert_null(parse(deeper));
    assert_true(failure.is_limit);
    mem_free(fitting);
    mem_free(deep);
    mem_free(deeper);
}

static void aliases_cannot_deepen_a_tree_without_end(void **state)
{
    char text[4096] = "a0: &a0 [[[[[[[[[x]]]]]]]]]\n";
    size_t length = strlen(text);
    (void)state;
    for (int i = 1; i < 10; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "a%d: &a%d [[[[[[[[[*a%d]]]]]]]]]\n", i, i, i - 1);
    assert_null(parse(text));
    assert_true(failure.is_limit);
}

static void so_many_aliases_and_no_more(void **state)
{
    static char text[4 * CONFIG_ALIASES_MAX + 64];
    (void)state;
    for (int more = 0; more < 2; more++) {
        size_t length = (size_t)snprintf(text, sizeof(text), "a: &a 1\nb: [");
        for (int i = 0; i < CONFIG_ALIASES_MAX + more; i++)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "*a, ");
        snprintf(text + length, sizeof(text) - length, "]\n");
        assert_int_equal(parse(text) != NULL, more == 0);
        assert_int_equal(failure.is_limit, more == 1);
    }
}

static void an_alias_bomb_ends_at_the_limit_of_nodes(void **state)
{
    char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    size_t length = strlen(text);
    (void)state;
    for (int i = 1; i < 10; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
                                   i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    assert_null(parse(text));
    assert_true(failure.is_limit);
    assert_true(loader.nodes_count <= CONFIG_NODES_MAX);
    assert_true(loader.arena.used_bytes < 512 * MIB);
}

enum { MANY_KEYS = 300000 };

/* Linear: quadratic work would take minutes here. */
static void maps_may_have_as_many_keys_as_a_file_holds(void **state)
{
    size_t size = (size_t)MANY_KEYS * 12 + 64;
    char *text = mem_zalloc(size);
    size_t length = 0;
    (void)state;
    for (int i = 0; i < MANY_KEYS; i++)
        length += (size_t)snprintf(text + length, size - length, "k%d: 1\n", i);
    assert_true(length > 2 << 20);
    struct node *map = parse(text);
    assert_non_null(map);
    assert_int_equal(map->count, MANY_KEYS);
    assert_non_null(node_find(map, "k0"));
    assert_non_null(node_find(map, "k299999"));
    assert_null(node_find(map, "k300000"));
    assert_ptr_equal(node_find(map, "k299999"), &map->entries[MANY_KEYS - 1]);
    mem_free(text);
}

static void keys_may_be_longer_than_a_kilobyte(void **state)
{
    char text[4096] = "? ";
    (void)state;
    memset(text + 2, 'k', 3000);
    strcpy(text + 3002, "\n: 1\n");
    struct node *map = parse(text);
    assert_non_null(map);
    assert_int_equal(strlen(map->entries[0].key), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documents_become_trees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_yaml_is_reported_with_its_position, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_stands_twice_is_reported_and_the_rest_is_read,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_substituted_text_it_is_a_failure_at_the_reference,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(utf_16_is_read_by_its_byte_order_mark, set_up, tear_down),
        cmocka_unit_test_setup_teardown(positions_count_characters_from_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(depth_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(aliases_cannot_deepen_a_tree_without_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(so_many_aliases_and_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_alias_bomb_ends_at_the_limit_of_nodes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(maps_may_have_as_many_keys_as_a_file_holds, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(keys_may_be_longer_than_a_kilobyte, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
