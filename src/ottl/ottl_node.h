/* SPDX-License-Identifier: Apache-2.0 */
/* What statements are compiled to: nodes with the function that evaluates them. Constant once made,
 * in the plan's arena; any thread. What changes while they run is in struct ottl_run. */
#pragma once

#include "src/ottl/ottl_compare.h"
#include "src/ottl/ottl_context.h"
#include "src/ottl/ottl_function.h"
#include "src/ottl/ottl_limits.h"
#include "src/ottl/ottl_patterns.h"

struct client_info;
struct ottl_dictionary;
struct ottl_node;
struct ottl_record;
struct ottl_rewrite;

/* ["text"], [1] or [expression] */
struct ottl_key {
    struct slice text;
    int64_t index;
    const struct ottl_node *node; /* an expression; NULL: see is_text */
    bool is_text;
};

struct ottl_path {
    const struct ottl_path_row *row;
    uint8_t context; /* enum ottl_context: whose record */
    int32_t slot;    /* of the first key; -1: none */
    const struct ottl_key *keys;
    uint32_t keys_count;
    struct slice text; /* as written */
};

struct ottl_argument {
    bool is_given;
    const struct ottl_node *node;      /* values; paths, too */
    const struct ottl_path *path;      /* …_PATH */
    const struct ottl_argument *items; /* is_list */
    uint32_t count;
    const struct ottl_function *function; /* FUNCTION_NAME */
    void *state;                          /* of that function */
    bool is_outer;                        /* it reads records around that of the statement */
};

struct ottl_invocation {
    const struct ottl_function *function;
    const struct ottl_argument *arguments;
    void *state;
    const struct ottl_key *keys;
    uint32_t keys_count;
};

struct ottl_node {
    bool (*get)(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
    /* As Go sees it: known when it is parsed. */
    bool is_literal;
    bool is_path;   /* of ottl_node_memo: its path, not its call */
    uint16_t uses;  /* of ottl_node_memo: contexts whose records it reads */
    uint32_t place; /* of ottl_node_memo: in ottl_run.remembered */
    union {
        struct ottl_value constant;
        struct ottl_path path;
        struct ottl_invocation call;
        struct {
            const struct ottl_node *const *items;
            const struct slice *keys; /* of maps */
            uint32_t count;
        } list;
        struct {
            const struct ottl_node *left;
            const struct ottl_node *right; /* NULL: negation */
            enum ottl_arithmetic op;
        } math;
    };
};

enum { OTTL_FALSE = 0, OTTL_TRUE = 1, OTTL_FAILED = -1 };

struct ottl_test {
    /* OTTL_FALSE, _TRUE or _FAILED: the run's error is set. */
    int (*test)(const struct ottl_test *test, struct ottl_run *run);
    unsigned uses;    /* contexts whose records it reads */
    bool is_volatile; /* its result may change without them: clock, cache */
    bool is_literal;  /* constant, is_true */
    bool is_true;
    union {
        struct {
            const struct ottl_test *const *items;
            uint32_t count;
        } chain; /* and, or; the only item of not */
        struct {
            const struct ottl_node *left;
            const struct ottl_node *right;
            enum ottl_comparison op;
            struct slice
                encoded;   /* right, as the AnyValue of an attribute, if it is a short text */
            bool is_outer; /* both sides read records around that of the statement */
        } compare;
        const struct ottl_node *node;
        struct {
            const struct ottl_test *inner;
            uint32_t place; /* in ottl_run.remembered */
        } memo;
    };
};

/* A result that holds until a record that it depends on changes. */
struct ottl_remembered {
    uint64_t generations;
    int8_t result;           /* of a test; of a node: whether it has a value */
    struct ottl_value value; /* of a node, in the memory of the innermost of those records */
    char *error;             /* of a node that failed; NULL: none did yet */
};

struct ottl_run {
    struct ottl_memory *memory; /* of the record whose statements run */
    struct ottl_record *records[OTTL_CONTEXTS];
    struct ottl_map *cache; /* NULL: nobody has asked for it yet */
    struct ottl_remembered *remembered;
    const struct client_info *client;
    struct ottl_dictionary *dictionary; /* of profiles */
    struct ottl_rewrite *rewrite;
    struct ottl_patterns patterns;
    /* Bytes, or what takes as long, that statements may still read of records around theirs. */
    uint64_t work_left;
    bool is_out_of_memory; /* the budget has refused memory */
    uint64_t missed_bytes; /* that something beside records and edits would have held */
    char error[OTTL_ERROR_BYTES_MAX];
};

/* Sets the run's error. Returns false. */
bool ottl_run_fail(struct ottl_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Memory was refused: by the record's limit, which is a failure like others, or by the budget,
 * which ends the batch. Returns false. */
bool ottl_run_no_memory(struct ottl_run *run);
/* The same when the budget has refused memory to something else, which would have held so many
 * bytes. Returns false. */
bool ottl_run_no_budget(struct ottl_run *run, uint64_t bytes);

/* Counts what was read of a record around that of the statement, or of a dictionary: the runner
 * lets no such statement run once nothing is left. */
void ottl_run_work(struct ottl_run *run, uint64_t bytes);
/* Sets the run's error to that nothing is left. Returns false. */
bool ottl_run_fail_used_up(struct ottl_run *run);
/* ottl_run_work of what one statement may read any number of times. False, with the run's error
 * set: nothing is left. */
bool ottl_run_spend(struct ottl_run *run, uint64_t bytes);
/* ottl_run_work of a value. */
void ottl_run_charge(struct ottl_run *run, const struct ottl_value *value);
/* Whether the record is around that of the statement that runs. */
static inline bool ottl_run_is_around(const struct ottl_run *run, const struct ottl_memory *memory)
{
    return run->memory != memory;
}

/* Evaluators, for nodes and tests that the compiler makes. */
bool ottl_node_constant(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
bool ottl_node_path(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
/* A path that is a string field of its record (ottl_get_text). */
bool ottl_node_text(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
/* A path that is an attribute with a slot, without further keys. */
bool ottl_node_attribute(const struct ottl_node *node, struct ottl_run *run,
                         struct ottl_value *ret);
bool ottl_node_call(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
/* A call or path that depends on outer records alone: evaluated once for them. */
bool ottl_node_memo(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
bool ottl_node_list(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
bool ottl_node_map(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
bool ottl_node_math(const struct ottl_node *node, struct ottl_run *run, struct ottl_value *ret);
int ottl_test_literal(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_and(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_or(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_not(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_compare(const struct ottl_test *test, struct ottl_run *run);
/* A string field of a record with a string constant, == or != only. */
int ottl_test_text(const struct ottl_test *test, struct ottl_run *run);
/* An attribute that has a slot with a constant other than nil. */
int ottl_test_attribute(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_node(const struct ottl_test *test, struct ottl_run *run);
int ottl_test_memo(const struct ottl_test *test, struct ottl_run *run);

/* Runs a function with its arguments, without keys. */
bool ottl_invoke(const struct ottl_invocation *invocation, struct ottl_run *run,
                 struct ottl_value *ret);
/* A key that must be a string. */
bool ottl_key_text(struct ottl_run *run, const struct ottl_key *key, struct slice *ret);
/* What keys select of a value that a path gave: a map's missing key is nil. */
bool ottl_select(struct ottl_run *run, const struct ottl_value *value, const struct ottl_key *keys,
                 uint32_t count, struct ottl_value *ret);
/* The same of a map, whose first key is looked up by its slot if a record has it. */
bool ottl_map_select(struct ottl_run *run, struct ottl_map *map, const struct ottl_path *path,
                     struct ottl_value *ret);
/* Sets what a path's keys select of a map. */
bool ottl_map_assign(struct ottl_run *run, struct ottl_map *map, const struct ottl_path *path,
                     const struct ottl_value *value);
/* Sets what keys select of a value, *target, which is part of `owner`. */
bool ottl_assign_at(struct ottl_run *run, struct ottl_container *owner, struct ottl_value *target,
                    const struct ottl_key *keys, uint32_t count, const struct ottl_value *value);
/* Replaces a value as pcommon.Value takes it; *target is part of `owner`. nil changes nothing. */
bool ottl_assign(struct ottl_run *run, struct ottl_container *owner, struct ottl_value *target,
                 const struct ottl_value *value);
/* Checks a constant against a parameter's type. NULL: it fits; else what is wrong. */
const char *ottl_parameter_mismatch(enum ottl_parameter_type type, const struct ottl_value *value);
