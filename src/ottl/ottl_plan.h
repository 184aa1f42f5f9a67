/* SPDX-License-Identifier: Apache-2.0 */
/* The statements or conditions of one processor for one signal, compiled. Made when the
 * configuration is read. When it is finished nothing writes to it: one lane and its helper may run
 * it at once, each with a runner of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/arena.h"
#include "src/base/signal_kind.h"
#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_record.h"
#include "src/ottl/ottl_tree.h"

struct error;
struct ottl_problem;

enum ottl_error_mode { OTTL_IGNORE, OTTL_SILENT, OTTL_PROPAGATE };

/* How paths are written. */
enum ottl_path_mode {
    OTTL_PATHS_BARE,       /* attributes["a"]; an outer context begins with its name */
    OTTL_PATHS_OF_CONTEXT, /* the same, where `context:` is given */
    OTTL_PATHS_FULL,       /* span.attributes["a"], always */
};

struct ottl_condition {
    struct ottl_test *test;
    const char *text;
    bool is_outer; /* it reads records around its own, or a function spends */
};

struct ottl_compiled_statement {
    struct ottl_invocation editor;
    struct ottl_test *where; /* NULL: always */
    const char *text;
    /* What `set`, or `delete_key` of an attribute with a constant key, changes; NULL: the editor
     * runs. */
    const struct ottl_path *target;
    /* What `set` gives it; NULL: others. */
    const struct ottl_node *value;
    /* `set` of an attribute with a slot to a constant; NULL: others. */
    const struct ottl_ready *ready;
    /* The attribute's slot; -1: none. */
    int32_t slot;
    bool is_outer; /* it reads or writes records around its own, or a function spends */
};

/* What runs for each record of a context. */
struct ottl_sequence {
    enum ottl_context context;
    enum ottl_error_mode error_mode;
    struct ottl_condition *conditions; /* any of them; without statements: the record is dropped */
    size_t conditions_count;
    struct ottl_compiled_statement *statements;
    size_t statements_count;
    struct ottl_sequence *next; /* of the same context */
};

/* States that functions have made. */
struct ottl_state {
    const struct ottl_function *function;
    void *state;
    struct ottl_state *next;
};

/* A node that reads nothing but records around the statement's. */
struct ottl_outer {
    struct ottl_node *node;
    struct ottl_outer *next;
};

struct ottl_plan {
    enum signal_kind signal;
    unsigned users; /* enum ottl_users, of the component */
    struct arena arena;
    struct ottl_memory constants; /* maps and lists */
    unsigned contexts;            /* that have sequences */
    unsigned used;                /* whose records anything reads */
    unsigned written;             /* whose records statements change */
    struct ottl_sequence *sequences[OTTL_CONTEXTS];
    struct ottl_keys keys[OTTL_CONTEXTS];
    uint32_t keys_capacity[OTTL_CONTEXTS];
    bool makes_metrics; /* some function does */
    uint32_t memos;
    struct ottl_outer *outer;
    struct ottl_state *states;
    bool is_finished;
};

struct ottl_group {
    enum ottl_context context; /* OTTL_CONTEXTS: to be inferred, with OTTL_PATHS_FULL */
    enum ottl_path_mode paths;
    enum ottl_error_mode error_mode;
    const char *const *conditions;
    size_t conditions_count;
    const char *const *statements; /* none: the conditions drop */
    size_t statements_count;
};

/* ignore, silent or propagate, in any case. False: error says what is wrong. */
bool ottl_error_mode_read(const char *text, enum ottl_error_mode *ret, struct error *error);

struct ottl_plan *ottl_plan_create(enum signal_kind signal, unsigned users);
/* NULL is a no-op. */
void ottl_plan_destroy(struct ottl_plan *plan);
/* Parses and checks. On failure the error is at the index of the condition or statement below
 * "conditions" or "statements", without those keys if the group is a plain list (lists: true). */
bool ottl_plan_add(struct ottl_plan *plan, const struct ottl_group *group, bool is_list,
                   struct error *error);
/* For a visitor (ottl_runner_visit), which sees all fields of the context's records, and those of
 * their Resources and scopes. */
void ottl_plan_visit(struct ottl_plan *plan, enum ottl_context context);
/* The slot of an attribute that a visitor looks at (ottl_record_slot). The plan borrows the key. */
uint32_t ottl_plan_slot(struct ottl_plan *plan, enum ottl_context context, struct slice key);
/* After the last group. */
void ottl_plan_finish(struct ottl_plan *plan);

/* The context of statements and conditions that name none, by their paths, functions and enums;
 * texts are NULL-free. False: there is none; error has the reason. */
bool ottl_infer(const struct ottl_plan *plan, const struct ottl_tree *const *trees, size_t count,
                enum ottl_context *ret, struct error *error);
/* Whether the component of that plan has the function in a context. */
bool ottl_plan_has_function(const struct ottl_plan *plan, enum ottl_context context,
                            const struct ottl_function *function);
/* Contexts that the signal has. */
unsigned ottl_contexts_of(enum signal_kind signal);

/* Compiles one condition or statement of a context. */
bool ottl_compile_condition(struct ottl_plan *plan, enum ottl_context context,
                            enum ottl_path_mode paths, const struct ottl_tree *tree,
                            struct ottl_condition *ret, struct ottl_problem *problem);
bool ottl_compile_statement(struct ottl_plan *plan, enum ottl_context context,
                            enum ottl_path_mode paths, const struct ottl_statement *statement,
                            struct ottl_compiled_statement *ret, struct ottl_problem *problem);
