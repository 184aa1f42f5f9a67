/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte: s a statement, c a condition, else a value; the rest is its text. */
#include <assert.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/error.h"
#include "src/ottl/ottl_parse.h"
#include "src/ottl/ottl_problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything lies inside the text, in order. Recursion is bounded by OTTL_DEPTH_MAX. */
static void check_tree(const struct ottl_tree *tree, size_t size)
{
    for (; tree != NULL; tree = tree->next) {
        assert(tree->at <= tree->end && tree->end <= size);
        check_tree(tree->first, size);
        check_tree(tree->keys, size);
        check_tree(tree->body, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ottl_statement statement = {.editor = NULL};
    struct ottl_problem problem;
    struct ottl_tree *tree = NULL;
    struct arena arena;
    if (size == 0)
        return 0;
    struct slice text = slice_of(data + 1, size - 1);
    arena_init(&arena, OTTL_PLAN_BYTES_MAX);
    bool is_valid = data[0] == 's'   ? ottl_parse_statement(&arena, text, &statement, &problem)
                    : data[0] == 'c' ? ottl_parse_condition(&arena, text, &tree, &problem)
                                     : ottl_parse_value(&arena, text, &tree, &problem);
    if (is_valid) {
        check_tree(statement.editor, text.size);
        check_tree(statement.where, text.size);
        check_tree(tree, text.size);
    } else {
        struct error error;
        ottl_problem_to_error(&problem, text, &error);
        assert(error.text[0] != '\0');
    }
    arena_clear(&arena);
    return 0;
}
