/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the context of statements that name none (contrib, pkg/ottl, context_inferrer.go): the
 * innermost that a path names, or one inside it, if it lacks a function or enum. Runs when the
 * configuration is read. Recursion is bounded by the depth of trees. */
#include <stdio.h>

#include "src/base/error.h"
#include "src/ottl/ottl_plan.h"

/* From the innermost; Go's order. What is not here comes last. */
static const enum ottl_context priorities[] = {
    OTTL_LOG,  OTTL_EXEMPLAR,       OTTL_DATA_POINT, OTTL_METRIC, OTTL_SPAN_EVENT,
    OTTL_SPAN, OTTL_PROFILE_SAMPLE, OTTL_PROFILE,    OTTL_SCOPE,  OTTL_RESOURCE};
enum { PRIORITIES = sizeof(priorities) / sizeof(priorities[0]) };

struct inference {
    const struct ottl_plan *plan;
    enum ottl_context named; /* by the innermost path so far */
    bool is_legacy;          /* instrumentation_scope, which is a name in paths but no context */
    bool has_unknown;        /* a path begins with another name */
    struct slice unknown;
    unsigned capable;     /* contexts that have all functions and enums */
    struct slice lacking; /* the first function or enum that some context lacks */
    bool has_requirements;
};

static unsigned priority_of(enum ottl_context context)
{
    unsigned i = 0;
    while (i < PRIORITIES && priorities[i] != context)
        i++;
    return i;
}

static void visit_path(struct inference *inference, const struct ottl_tree *path)
{
    if (path->text.size == 0)
        return;
    enum ottl_context context = ottl_context_find(path->text);
    if (context == OTTL_CONTEXTS) {
        if (!inference->has_unknown)
            inference->unknown = path->text;
        inference->has_unknown = true;
        return;
    }
    bool is_legacy = slice_equal_text(path->text, "instrumentation_scope");
    bool is_first = inference->named == OTTL_CONTEXTS;
    unsigned priority = priority_of(context);
    unsigned before = is_first ? PRIORITIES + 1 : priority_of(inference->named);
    if (priority < before || (priority == before && inference->is_legacy && !is_legacy)) {
        inference->named = context;
        inference->is_legacy = is_legacy;
    }
}

static void require(struct inference *inference, unsigned capable, struct slice name)
{
    unsigned left = inference->capable & capable;
    inference->has_requirements = true;
    if (left != inference->capable && inference->lacking.size == 0)
        inference->lacking = name;
    inference->capable = left;
}

static void visit_function(struct inference *inference, struct slice name)
{
    const struct ottl_function *function = ottl_function_find(name);
    unsigned capable = 0;
    if (function == NULL)
        return; /* compiling finds the mistake */
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++)
        if (ottl_plan_has_function(inference->plan, (enum ottl_context)i, function))
            capable |= OTTL_CONTEXT_BIT(i);
    require(inference, capable, name);
}

static void visit_enum(struct inference *inference, struct slice name)
{
    unsigned capable = 0;
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        const struct ottl_context_type *type = ottl_context_type((enum ottl_context)i);
        const struct ottl_enum *row = type != NULL ? type->enums : NULL;
        for (; row != NULL && row->name != NULL; row++)
            if (slice_equal_text(name, row->name))
                capable |= OTTL_CONTEXT_BIT(i);
    }
    if (capable != 0)
        require(inference, capable, name);
}

static void visit(struct inference *inference, const struct ottl_tree *tree)
{
    for (; tree != NULL; tree = tree->next) {
        if (tree->kind == OTTL_TREE_PATH)
            visit_path(inference, tree);
        else if (tree->kind == OTTL_TREE_CALL)
            visit_function(inference, tree->text);
        else if (tree->kind == OTTL_TREE_ENUM)
            visit_enum(inference, tree->text);
        visit(inference, tree->first);
        visit(inference, tree->keys);
        visit(inference, tree->body);
    }
}

/* Contexts that a component of the plan's kind may infer. */
static unsigned candidates_of(const struct ottl_plan *plan)
{
    static const unsigned not_routed =
        OTTL_CONTEXT_BIT(OTTL_SCOPE) | OTTL_CONTEXT_BIT(OTTL_SPAN_EVENT) |
        OTTL_CONTEXT_BIT(OTTL_EXEMPLAR) | OTTL_CONTEXT_BIT(OTTL_PROFILE_SAMPLE);
    const unsigned all = ottl_contexts_of(plan->signal);
    return (plan->users & OTTL_FOR_ROUTING) == 0
               ? all
               : (all & ~not_routed) | OTTL_CONTEXT_BIT(OTTL_OTELCOL);
}

bool ottl_infer(const struct ottl_plan *plan, const struct ottl_tree *const *trees, size_t count,
                enum ottl_context *ret, struct error *error)
{
    struct inference inference = {
        .plan = plan, .named = OTTL_CONTEXTS, .capable = candidates_of(plan)};
    for (size_t i = 0; i < count; i++) {
        struct ottl_tree tree = *trees[i];
        tree.next = NULL; /* of another list */
        visit(&inference, &tree);
    }
    const char *name = inference.named != OTTL_CONTEXTS
                           ? ottl_context_type(inference.named) != NULL
                                 ? ottl_context_type(inference.named)->name
                                 : "that"
                           : NULL;
    if (name == NULL && inference.has_unknown)
        return error_set(error,
                         "\"%.*s\" is no context; a path begins with one, as in "
                         "span.attributes[\"a\"]",
                         (int)inference.unknown.size, (const char *)inference.unknown.data);
    if (name == NULL)
        return error_set(error, "no path says which context this is for: begin one with the "
                                "context's name, as in span.attributes[\"a\"], or give the context "
                                "with {context: …}");
    const unsigned known = candidates_of(plan);
    bool is_candidate = !inference.is_legacy && (known & OTTL_CONTEXT_BIT(inference.named)) != 0;
    if (is_candidate && (inference.capable & OTTL_CONTEXT_BIT(inference.named)) != 0) {
        *ret = inference.named;
        return true;
    }
    for (unsigned i = 0; is_candidate && inference.has_requirements && i < PRIORITIES; i++) {
        enum ottl_context inner = priorities[i];
        const struct ottl_context_type *type = ottl_context_type(inner);
        if (inner != inference.named && type != NULL &&
            (inference.capable & OTTL_CONTEXT_BIT(inner)) != 0 &&
            (type->reaches & OTTL_CONTEXT_BIT(inference.named)) != 0) {
            *ret = inner;
            return true;
        }
    }
    if (!is_candidate)
        return error_set(error, "\"%s\" is no context of this list%s", name,
                         inference.is_legacy ? "; write scope instead of instrumentation_scope"
                                             : "");
    return error_set(error, "the context \"%s\" does not have \"%.*s\"", name,
                     (int)inference.lacking.size, (const char *)inference.lacking.data);
}
