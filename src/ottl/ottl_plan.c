/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the groups of a processor's statements. Runs when the configuration is read. */
#include "src/ottl/ottl_plan.h"

#include <assert.h>
#include <strings.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/ottl/ottl_parse.h"
#include "src/ottl/ottl_problem.h"

enum { CONSTANT_BYTES_MAX = 16 << 20 };

bool ottl_error_mode_read(const char *text, enum ottl_error_mode *ret, struct error *error)
{
    static const char *const names[] = {"ignore", "silent", "propagate"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *ret = (enum ottl_error_mode)i;
        if (strcasecmp(text, names[i]) == 0)
            return true;
    }
    return error_set(error, "unknown error mode \"%s\"; expected ignore, silent or propagate",
                     text) ||
           error_at(error, "error_mode");
}

struct ottl_plan *ottl_plan_create(enum signal_kind signal, unsigned users)
{
    struct ottl_plan *plan = mem_zalloc(sizeof(*plan));
    plan->signal = signal;
    plan->users = users;
    arena_init(&plan->arena, OTTL_PLAN_BYTES_MAX);
    ottl_memory_init(&plan->constants, CONSTANT_BYTES_MAX, NULL);
    return plan;
}

void ottl_plan_destroy(struct ottl_plan *plan)
{
    if (plan == NULL)
        return;
    for (struct ottl_state *state = plan->states; state != NULL; state = state->next)
        if (state->function->release != NULL)
            state->function->release(state->state);
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        mem_free(plan->keys[i].keys);
        mem_free(plan->keys[i].table);
    }
    ottl_memory_fini(&plan->constants);
    arena_clear(&plan->arena);
    mem_free(plan);
}

unsigned ottl_contexts_of(enum signal_kind signal)
{
    const unsigned common = OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE);
    switch (signal) {
    case TRACES:
        return common | OTTL_CONTEXT_BIT(OTTL_SPAN) | OTTL_CONTEXT_BIT(OTTL_SPAN_EVENT);
    case METRICS:
        return common | OTTL_CONTEXT_BIT(OTTL_METRIC) | OTTL_CONTEXT_BIT(OTTL_DATA_POINT) |
               OTTL_CONTEXT_BIT(OTTL_EXEMPLAR);
    case LOGS:
        return common | OTTL_CONTEXT_BIT(OTTL_LOG);
    case PROFILES:
        return common | OTTL_CONTEXT_BIT(OTTL_PROFILE) | OTTL_CONTEXT_BIT(OTTL_PROFILE_SAMPLE);
    case SIGNAL_KINDS:
        break;
    }
    return 0;
}

static bool fail_text(const struct ottl_problem *problem, const char *text, const char *list,
                      size_t index, bool is_list, struct error *error)
{
    ottl_problem_to_error(problem, slice_of_text(text), error);
    error_at_index(error, index);
    return !is_list && error_at(error, list);
}

static bool parse(struct ottl_plan *plan, const struct ottl_group *group, bool is_list,
                  struct ottl_tree **conditions, struct ottl_statement *statements,
                  struct error *error)
{
    struct ottl_problem problem;
    for (size_t i = 0; i < group->conditions_count; i++)
        if (!ottl_parse_condition(&plan->arena, slice_of_text(group->conditions[i]), &conditions[i],
                                  &problem))
            return fail_text(&problem, group->conditions[i], "conditions", i, is_list, error);
    for (size_t i = 0; i < group->statements_count; i++)
        if (!ottl_parse_statement(&plan->arena, slice_of_text(group->statements[i]), &statements[i],
                                  &problem))
            return fail_text(&problem, group->statements[i], "statements", i, is_list, error);
    return true;
}

static bool compile(struct ottl_plan *plan, const struct ottl_group *group, bool is_list,
                    struct ottl_tree *const *conditions, const struct ottl_statement *statements,
                    struct ottl_sequence *sequence, struct error *error)
{
    struct ottl_problem problem;
    for (size_t i = 0; i < group->conditions_count; i++) {
        struct ottl_condition *condition = &sequence->conditions[i];
        *condition = (struct ottl_condition){.text = group->conditions[i]};
        if (!ottl_compile_condition(plan, sequence->context, group->paths, conditions[i], condition,
                                    &problem))
            return fail_text(&problem, condition->text, "conditions", i, is_list, error);
    }
    for (size_t i = 0; i < group->statements_count; i++) {
        struct ottl_compiled_statement *statement = &sequence->statements[i];
        *statement = (struct ottl_compiled_statement){.text = group->statements[i]};
        if (!ottl_compile_statement(plan, sequence->context, group->paths, &statements[i],
                                    statement, &problem))
            return fail_text(&problem, statement->text, "statements", i, is_list, error);
    }
    return true;
}

static bool infer(struct ottl_plan *plan, const struct ottl_group *group,
                  struct ottl_tree *const *conditions, const struct ottl_statement *statements,
                  enum ottl_context *ret, struct error *error)
{
    const struct ottl_tree **trees =
        arena_try_alloc(&plan->arena, (2 * group->statements_count + group->conditions_count + 1) *
                                          sizeof(struct ottl_tree *));
    size_t count = 0;
    if (trees == NULL)
        return error_set(error, "the statements are too large");
    for (size_t i = 0; i < group->statements_count; i++) {
        trees[count++] = statements[i].editor;
        if (statements[i].where != NULL)
            trees[count++] = statements[i].where;
    }
    for (size_t i = 0; i < group->conditions_count; i++)
        trees[count++] = conditions[i];
    return ottl_infer(plan, trees, count, ret, error);
}

bool ottl_plan_add(struct ottl_plan *plan, const struct ottl_group *group, bool is_list,
                   struct error *error)
{
    assert(!plan->is_finished);
    struct ottl_sequence *sequence = arena_try_alloc(&plan->arena, sizeof(*sequence));
    struct ottl_tree **conditions =
        arena_try_alloc(&plan->arena, (group->conditions_count + 1) * sizeof(struct ottl_tree *));
    struct ottl_statement *statements =
        arena_try_alloc(&plan->arena, (group->statements_count + 1) * sizeof(*statements));
    struct ottl_condition *made_conditions =
        arena_try_alloc(&plan->arena, (group->conditions_count + 1) * sizeof(*made_conditions));
    struct ottl_compiled_statement *made_statements =
        arena_try_alloc(&plan->arena, (group->statements_count + 1) * sizeof(*made_statements));
    if (sequence == NULL || conditions == NULL || statements == NULL || made_conditions == NULL ||
        made_statements == NULL)
        return error_set(error, "the statements are too large");
    *sequence = (struct ottl_sequence){.context = group->context,
                                       .error_mode = group->error_mode,
                                       .conditions = made_conditions,
                                       .conditions_count = group->conditions_count,
                                       .statements = made_statements,
                                       .statements_count = group->statements_count};
    if (!parse(plan, group, is_list, conditions, statements, error))
        return false;
    if (group->context == OTTL_CONTEXTS &&
        !infer(plan, group, conditions, statements, &sequence->context, error))
        return false;
    if (ottl_context_type(sequence->context) == NULL)
        return error_set(error, "statements of this context are not supported yet") ||
               error_unsupported(error);
    if (!compile(plan, group, is_list, conditions, statements, sequence, error))
        return false;
    struct ottl_sequence **last = &plan->sequences[sequence->context];
    while (*last != NULL)
        last = &(*last)->next;
    *last = sequence;
    plan->contexts |= OTTL_CONTEXT_BIT(sequence->context);
    return true;
}

/* Lets a test that depends on outer records alone remember its result; of others, their parts.
 * Recursion is bounded by the depth of trees. */
static struct ottl_test *remember(struct ottl_plan *plan, enum ottl_context context,
                                  struct ottl_test *test)
{
    bool is_outer =
        !test->is_volatile && (test->uses & (plan->written | OTTL_CONTEXT_BIT(context))) == 0;
    bool is_chain =
        test->test == ottl_test_and || test->test == ottl_test_or || test->test == ottl_test_not;
    if (test->is_literal || (!is_outer && !is_chain))
        return test;
    if (!is_outer) {
        struct ottl_test **items = (struct ottl_test **)(uintptr_t)test->chain.items;
        for (uint32_t i = 0; i < test->chain.count; i++)
            items[i] = remember(plan, context, items[i]);
        return test;
    }
    struct ottl_test *memo = arena_try_alloc(&plan->arena, sizeof(*memo));
    if (memo == NULL)
        return test;
    *memo = (struct ottl_test){.test = ottl_test_memo, .uses = test->uses};
    memo->memo.inner = test;
    memo->memo.place = plan->memos++;
    return memo;
}

void ottl_plan_visit(struct ottl_plan *plan, enum ottl_context context)
{
    assert(!plan->is_finished);
    plan->contexts |= OTTL_CONTEXT_BIT(context);
    plan->used |= OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE);
    plan->keys[context].fields = UINT32_MAX;
}

void ottl_plan_finish(struct ottl_plan *plan)
{
    assert(!plan->is_finished);
    plan->keys[OTTL_METRIC_DATA].fields = UINT32_MAX;
    for (const struct ottl_outer *outer = plan->outer; outer != NULL; outer = outer->next)
        if ((outer->node->uses & plan->written) == 0) {
            outer->node->get = ottl_node_memo;
            outer->node->place = plan->memos++;
        }
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        ottl_keys_finish(&plan->keys[i]);
        for (struct ottl_sequence *sequence = plan->sequences[i]; sequence != NULL;
             sequence = sequence->next) {
            for (size_t k = 0; k < sequence->conditions_count; k++)
                sequence->conditions[k].test =
                    remember(plan, sequence->context, sequence->conditions[k].test);
            for (size_t k = 0; k < sequence->statements_count; k++)
                if (sequence->statements[k].where != NULL)
                    sequence->statements[k].where =
                        remember(plan, sequence->context, sequence->statements[k].where);
        }
    }
    plan->is_finished = true;
}
