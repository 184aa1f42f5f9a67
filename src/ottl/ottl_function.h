/* SPDX-License-Identifier: Apache-2.0 */
/* How OTTL's functions (editors and converters) are written: a table row with name and parameters,
 * and an evaluator that asks for its arguments. A function knows nothing of paths, plans and wire
 * bytes. Evaluators run on the processor's thread, for each record; they allocate from call->memory
 * alone. src/ottl/README.md shows how to add one. */
#pragma once

#include <stdarg.h>

#include "src/ottl/ottl_map.h"

struct error;
struct ottl_call;
struct ottl_path;
struct ottl_preparation;

/* Parameters are named and typed as the fields of Go's …Arguments struct. An argument is checked
 * against its type when the statement is parsed, as far as it is constant, and else when it is got.
 */
enum ottl_parameter_type {
    OTTL_ANY,          /* Getter */
    OTTL_STRINGS_ONLY, /* StringGetter */
    OTTL_STRING_LIKE,  /* StringLikeGetter; the others in the same way */
    OTTL_INTS_ONLY,
    OTTL_INT_LIKE,
    OTTL_DOUBLES_ONLY, /* FloatGetter */
    OTTL_DOUBLE_LIKE,
    OTTL_BOOLS_ONLY,
    OTTL_BOOL_LIKE,
    OTTL_BYTES_LIKE,
    OTTL_TIMES_ONLY,
    OTTL_DURATIONS_ONLY,
    OTTL_MAPS_ONLY,    /* PMapGetter */
    OTTL_LISTS_ONLY,   /* PSliceGetter */
    OTTL_PATH,         /* Setter, GetSetter: a path, which can be got and set */
    OTTL_MAP_PATH,     /* PMapGetSetter */
    OTTL_LIST_PATH,    /* PSliceGetSetter */
    OTTL_ENUM_NAME,    /* Enum: a symbol; got as int */
    OTTL_TEXT_LITERAL, /* string: a literal; so are the next three */
    OTTL_INT_LITERAL,
    OTTL_DOUBLE_LITERAL,
    OTTL_BOOL_LITERAL,
    OTTL_FUNCTION_NAME, /* FunctionGetter: the name of a converter (ottl_apply) */
};

struct ottl_parameter {
    const char *name; /* as Go's field: "PairDelimiter"; users write pair_delimiter */
    uint8_t type;     /* enum ottl_parameter_type */
    bool is_optional;
    bool is_list; /* a list literal whose elements have the type */
};

/* Which components have a function. */
enum ottl_users {
    OTTL_FOR_ALL = 0,
    OTTL_FOR_TRANSFORM = 1 << 0, /* editors */
    OTTL_FOR_FILTER = 1 << 1,
    OTTL_FOR_ROUTING = 1 << 2, /* route() */
};

/* enum ottl_context's bits; 0: all. */
typedef unsigned ottl_contexts;

struct ottl_function {
    const char *name;
    const struct ottl_parameter *parameters; /* ended by a name NULL; NULL: none */
    /* False: the statement fails; ottl_fail has set the reason. Editors leave *ret nil. */
    bool (*evaluate)(struct ottl_call *call, struct ottl_value *ret);
    /* Checks what is constant and makes what calls need: compiled patterns. NULL: nothing. Runs
     * when the configuration is read. error is one line without the function's name. */
    bool (*prepare)(const struct ottl_preparation *preparation, void **ret_state,
                    struct error *error);
    void (*release)(void *state); /* frees what prepare made, which may be NULL */
    unsigned users;               /* enum ottl_users */
    ottl_contexts contexts;
    uint32_t fields; /* with contexts: of the record, by number, that it looks at; 0: any of them */
    bool makes_metrics; /* it is a user of ottl_rewrite.h */
    bool is_lookup;     /* it takes no longer for larger arguments */
    bool is_volatile;   /* its result may differ though its arguments do not: clock, chance */
    bool spends;       /* it may take far more than its arguments have, and counts it: ottl_spend */
    uint8_t spends_by; /* the same, unless this parameter is constant; 0: none */
};

/* The arguments of one call in a statement, by the parameters' order. */
struct ottl_argument;

struct ottl_run;

struct ottl_call {
    const struct ottl_function *function;
    const struct ottl_argument *arguments;
    void *state;                /* what prepare made */
    struct ottl_memory *memory; /* until the end of the record */
    struct ottl_run *run;       /* for the functions below */
    /* A map or list that its path gave as a copy: it is set again when the editor is done. */
    const struct ottl_path *lent;
    struct ottl_value lent_value;
};

/* True when the statement gives the argument. */
bool ottl_has(const struct ottl_call *call, unsigned parameter);
/* Each evaluates the argument, as Go's getters do, with their conversions and error texts. False:
 * the error is set; pass it on. "like" getters set *ret_has to false for nil. */
bool ottl_get(struct ottl_call *call, unsigned parameter, struct ottl_value *ret);
bool ottl_get_string(struct ottl_call *call, unsigned parameter, struct slice *ret);
bool ottl_get_string_like(struct ottl_call *call, unsigned parameter, struct slice *ret,
                          bool *ret_has);
bool ottl_get_int(struct ottl_call *call, unsigned parameter, int64_t *ret);
bool ottl_get_int_like(struct ottl_call *call, unsigned parameter, int64_t *ret, bool *ret_has);
bool ottl_get_double(struct ottl_call *call, unsigned parameter, double *ret);
bool ottl_get_double_like(struct ottl_call *call, unsigned parameter, double *ret, bool *ret_has);
bool ottl_get_bool(struct ottl_call *call, unsigned parameter, bool *ret);
bool ottl_get_bool_like(struct ottl_call *call, unsigned parameter, bool *ret, bool *ret_has);
/* nil gives no bytes, without data. */
bool ottl_get_bytes_like(struct ottl_call *call, unsigned parameter, struct slice *ret);
bool ottl_get_time(struct ottl_call *call, unsigned parameter, struct ottl_value *ret);
bool ottl_get_duration(struct ottl_call *call, unsigned parameter, int64_t *ret_ns);
/* The map itself: changes to it change the record. */
bool ottl_get_map(struct ottl_call *call, unsigned parameter, struct ottl_map **ret);
bool ottl_get_list(struct ottl_call *call, unsigned parameter, struct ottl_list **ret);
/* Sets the path that is the argument. */
bool ottl_set(struct ottl_call *call, unsigned parameter, const struct ottl_value *value);
/* The map that is the first argument stays as it is: Go does not set it. */
void ottl_leave(struct ottl_call *call);
/* Lists of arguments (is_list), one by one. */
unsigned ottl_items(const struct ottl_call *call, unsigned parameter);
bool ottl_get_item(struct ottl_call *call, unsigned parameter, unsigned item,
                   struct ottl_value *ret);
bool ottl_get_item_string(struct ottl_call *call, unsigned parameter, unsigned item,
                          struct slice *ret);
bool ottl_get_item_string_like(struct ottl_call *call, unsigned parameter, unsigned item,
                               struct slice *ret, bool *ret_has);
/* Calls the function that is the argument with values. */
bool ottl_apply(struct ottl_call *call, unsigned parameter, const struct ottl_value *values,
                unsigned count, struct ottl_value *ret);

/* Conversions that getters use, for values from elsewhere. */
bool ottl_to_string_like(struct ottl_call *call, const struct ottl_value *value, struct slice *ret,
                         bool *ret_has);

/* Sets the error; returns false. */
bool ottl_fail(struct ottl_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Memory until the record's end, aligned for every value. NULL: refused, and the error is set. */
void *ottl_alloc(struct ottl_call *call, size_t bytes) __attribute__((warn_unused_result));
/* For containers' functions that return false: the error of refused memory. Returns false. */
bool ottl_no_memory(struct ottl_call *call);
/* The same for memory outside the record, which the budget has refused: it would have been so many
 * bytes. Returns false. */
bool ottl_no_budget(struct ottl_call *call, size_t bytes);
/* Counts bytes that a function of `spends` is about to copy, or what takes as long. False: all
 * calls for the request have taken too many, and the error is set. */
bool ottl_spend(struct ottl_call *call, uint64_t bytes) __attribute__((warn_unused_result));
/* The wall clock, as the service's clock has it. */
uint64_t ottl_now_ns(const struct ottl_call *call);

/* In prepare: whether the statement gives the argument, and its value if that is constant. */
bool ottl_is_given(const struct ottl_preparation *preparation, unsigned parameter);
bool ottl_is_constant(const struct ottl_preparation *preparation, unsigned parameter,
                      struct ottl_value *ret);
/* Literals (…_LITERAL) are always constant: "" or 0 when not given. */
struct slice ottl_literal_text(const struct ottl_preparation *preparation, unsigned parameter);
int64_t ottl_literal_int(const struct ottl_preparation *preparation, unsigned parameter,
                         int64_t absent);
bool ottl_literal_bool(const struct ottl_preparation *preparation, unsigned parameter, bool absent);
unsigned ottl_literal_items(const struct ottl_preparation *preparation, unsigned parameter);
struct slice ottl_literal_item(const struct ottl_preparation *preparation, unsigned parameter,
                               unsigned item);

/* All functions: tables of each file in functions/, ended by a row without a name. */
extern const struct ottl_function *const ottl_function_tables[]; /* ended by NULL */
const struct ottl_function *ottl_function_find(struct slice name);
