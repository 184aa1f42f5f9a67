/* SPDX-License-Identifier: Apache-2.0 */
/* What the grammar accepts and how trees look; what it refuses, and where the mistake is said to
 * be. Expected is what contrib 0.155 (pkg/ottl) accepts. */
#include "src/ottl/ottl_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/ottl/ottl_problem.h"

enum { TEXT_MAX = 4096 };

struct text {
    char bytes[TEXT_MAX];
    size_t size;
};

static void __attribute__((format(printf, 2, 3))) put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text->size += (size_t)vsnprintf(text->bytes + text->size, TEXT_MAX - text->size, format, args);
    va_end(args);
    assert_true(text->size < TEXT_MAX);
}

static void print_list(struct text *text, const char *name, const struct ottl_tree *tree);

static void print_tree(struct text *text, const struct ottl_tree *tree)
{
    static const char *const names[] = {
        "nil", "bool",  "int",  "float", "string",   "bytes", "enum", "path", "call",
        "lam", "map",   "list", "math",  "neg",      "group", "or",   "and",  "not",
        "cmp", "field", "key",  "arg",   "function", "par",   "item"};
    put(text, "%s", names[tree->kind]);
    if (tree->kind == OTTL_TREE_BOOL || tree->kind == OTTL_TREE_INT)
        put(text, ":%lld", (long long)tree->integer);
    else if (tree->kind == OTTL_TREE_FLOAT)
        put(text, ":%g", tree->real);
    else if (tree->kind == OTTL_TREE_MATH || tree->kind == OTTL_TREE_COMPARE)
        put(text, ":%d", tree->op);
    else if (tree->text.size > 0)
        put(text, ":%.*s", (int)tree->text.size, (const char *)tree->text.data);
    print_list(text, "", tree->first);
    print_list(text, "keys", tree->keys);
    print_list(text, tree->is_condition ? "condition" : "body", tree->body);
}

static void print_list(struct text *text, const char *name, const struct ottl_tree *tree)
{
    if (tree == NULL)
        return;
    put(text, " %s(", name);
    for (; tree != NULL; tree = tree->next) {
        print_tree(text, tree);
        put(text, "%s", tree->next != NULL ? ", " : "");
    }
    put(text, ")");
}

static void expect_condition(const char *condition, const char *expected)
{
    struct text text = {.size = 0};
    struct ottl_problem problem;
    struct ottl_tree *tree;
    struct arena arena;
    arena_init(&arena, OTTL_PLAN_BYTES_MAX);
    if (!ottl_parse_condition(&arena, slice_of_text(condition), &tree, &problem))
        fail_msg("%s: %s", condition, problem.text);
    print_tree(&text, tree);
    assert_string_equal(text.bytes, expected);
    arena_clear(&arena);
}

static void expect_problem(bool is_statement, const char *source, const char *expected)
{
    struct ottl_statement statement;
    struct ottl_problem problem;
    struct ottl_tree *tree;
    struct error error;
    struct arena arena;
    struct slice text = slice_of_text(source);
    arena_init(&arena, OTTL_PLAN_BYTES_MAX);
    if (is_statement)
        assert_false(ottl_parse_statement(&arena, text, &statement, &problem));
    else
        assert_false(ottl_parse_condition(&arena, text, &tree, &problem));
    ottl_problem_to_error(&problem, text, &error);
    assert_string_equal(error.text, expected);
    arena_clear(&arena);
}

static void test_conditions(void **state)
{
    (void)state;
    expect_condition("name == \"a\"", "cmp:0 (path (field:name), string:a)");
    expect_condition("span.attributes[\"a\"][0] != nil and not (x < 1.5 or true)",
                     "and (cmp:1 (path:span (field:attributes keys(key (string:a), key (int:0))), "
                     "nil), not (or (cmp:2 (path (field:x), float:1.5), bool:1)))");
    expect_condition("IsMatch(name, \"x\")[\"k\"]",
                     "call:IsMatch (arg (path (field:name)), arg (string:x)) keys(key (string:k))");
    expect_condition("1 + 2 * -(a) >= 0x0aff",
                     "cmp:4 (math:0 (int:1, math:2 (int:2, neg (path (field:a)))), bytes:\n\xff)");
    expect_condition("1 ++ 2 == 010", "cmp:0 (math:0 (int:1, group (int:2)), int:8)");
    expect_condition("F(x, pair_delimiter = \"=\", SHA256, Int) == [,1] ",
                     "cmp:0 (call:F (arg (path (field:x)), arg:pair_delimiter (string:=), arg "
                     "(enum:SHA256), arg (function:Int)), list (int:1))");
    expect_condition("{\"a\":1 \"b\":2} == SPAN_KIND_SERVER",
                     "cmp:0 (map (item:a (int:1), item:b (int:2)), enum:SPAN_KIND_SERVER)");
    expect_condition("F((k, _) => k == 1) == F(() => nil)",
                     "cmp:0 (call:F (arg (lam (par:k, par:_) condition(cmp:0 (path (field:k), "
                     "int:1)))), call:F (arg (lam body(nil))))");
    expect_condition("\"\\x41\\u00e9\\n\\101\" == \"\\\\\"",
                     "cmp:0 (string:A\xc3\xa9\nA, string:\\)");
    expect_condition("Is Match(a) == 1", "cmp:0 (call:IsMatch (arg (path (field:a))), int:1)");
}

static void test_problems(void **state)
{
    (void)state;
    expect_problem(false, "name = \"a\"",
                   "column 6: found \"=\"; expected \"(\", \"[\", \".\" or a comparison");
    expect_problem(false, "name == \"a", "column 9: a string without its closing quotation mark");
    expect_problem(
        false, "a == 1 and\n not not b",
        "line 2, column 6 of the text: found \"not\"; expected a value, \"(\", \"{\" or \"[\"");
    expect_problem(false, "a == 0xabc",
                   "column 6: bytes need an even number of hexadecimal digits");
    expect_problem(false, "a == 9223372036854775808", "column 6: does not fit in 64 bits");
    expect_problem(false, "a == 09",
                   "column 6: not an octal number, as numbers with a leading 0 are");
    expect_problem(false, "\xc3\xa4 == 1",
                   "column 1: a character that statements do not have here");
    expect_problem(false, "a == \"\\d\"",
                   "column 7: unknown escape sequence in a string; write \\\\ for a backslash");
    expect_problem(true, "set(a, 1) wher b == 1",
                   "column 11: found \"wher\"; expected \"[\" or \"where\"");
    expect_problem(true, "Set(a, 1)",
                   "column 1: \"Set\" is a converter; a statement begins with an editor, whose "
                   "name begins with a lowercase letter");
    expect_problem(true, "set(a, concat(b))",
                   "column 8: an editor stands at the beginning of a statement only; names of "
                   "converters begin with an uppercase letter");
    expect_problem(true, "set(a, 1)[0]",
                   "column 10: only paths and converters may be indexed, not editors");
    expect_problem(true, "set(a, F((x) => (y) => 1))",
                   "column 17: the body of a lambda cannot be another lambda");
    expect_problem(true, "set(a, 1", "column 9: the text ends here; expected \",\" or \")\"");
}

/* Nesting of every kind ends with a problem, not with the stack. */
static void test_depth(void **state)
{
    (void)state;
    static const char *const openings[] = {"(",       "[",  "F(", "not (",
                                           "{\"a\":", "a[", "-(", "F(()=>"};
    static char text[OTTL_TEXT_BYTES_MAX + 16];
    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
        struct ottl_problem problem;
        struct ottl_tree *tree;
        struct arena arena;
        size_t used = 0;
        while (used + strlen(openings[i]) < OTTL_TEXT_BYTES_MAX)
            used += (size_t)sprintf(text + used, "%s", openings[i]);
        arena_init(&arena, OTTL_PLAN_BYTES_MAX);
        assert_false(ottl_parse_condition(&arena, slice_of(text, used), &tree, &problem));
        assert_string_equal(problem.text, "nested too deeply");
        arena_clear(&arena);
    }
    struct ottl_problem problem;
    struct ottl_tree *tree;
    struct arena arena;
    arena_init(&arena, OTTL_PLAN_BYTES_MAX);
    memset(text, ' ', sizeof(text));
    assert_false(ottl_parse_condition(&arena, slice_of(text, sizeof(text)), &tree, &problem));
    assert_non_null(strstr(problem.text, "at most 65536 are allowed"));
    arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
