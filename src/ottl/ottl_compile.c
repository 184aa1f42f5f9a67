/* SPDX-License-Identifier: Apache-2.0 */
/* Trees to nodes: resolves paths, functions, arguments and enums, checks what is constant, and
 * folds conditions as Go does. Runs when the configuration is read. Recursion is bounded by the
 * depth of trees, OTTL_DEPTH_MAX. */
#include <assert.h>
#include <stdio.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/suggest.h"
#include "src/otlp/wire.h"
#include "src/ottl/ottl_access.h"
#include "src/ottl/ottl_plan.h"
#include "src/ottl/ottl_problem.h"

enum { SEGMENTS_TEXT_MAX = 256, NAME_MAX_BYTES = 128 };

struct compiler {
    struct ottl_plan *plan;
    enum ottl_context context;
    enum ottl_path_mode paths;
    struct ottl_problem *problem;
    unsigned uses;
    bool is_volatile;
    bool is_outer;
    bool spends; /* some function does */
};

struct ottl_preparation {
    const struct ottl_argument *arguments;
};

static bool compile_value(struct compiler *compiler, const struct ottl_tree *tree,
                          struct ottl_node **ret);
static bool compile_test(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_test **ret);

static void *room_of(struct compiler *compiler, size_t bytes)
{
    void *room = arena_try_alloc(&compiler->plan->arena, bytes > 0 ? bytes : 1);
    if (room == NULL)
        ottl_problem_set(compiler->problem, 0, "the statements are too large");
    else
        memset(room, 0, bytes);
    return room;
}

static int width(struct slice text)
{
    return text.size < NAME_MAX_BYTES ? (int)text.size : NAME_MAX_BYTES;
}

#define TEXT(slice) width(slice), (const char *)(slice).data

static size_t count_list(const struct ottl_tree *tree)
{
    size_t count = 0;
    for (; tree != NULL; tree = tree->next)
        count++;
    return count;
}

static struct ottl_node *new_node(struct compiler *compiler,
                                  bool (*get)(const struct ottl_node *node, struct ottl_run *run,
                                              struct ottl_value *ret))
{
    struct ottl_node *node = room_of(compiler, sizeof(*node));
    if (node != NULL)
        node->get = get;
    return node;
}

static bool make_constant(struct compiler *compiler, const struct ottl_value *value,
                          struct ottl_node **ret)
{
    *ret = new_node(compiler, ottl_node_constant);
    if (*ret == NULL)
        return false;
    (*ret)->constant = *value;
    (*ret)->is_literal = true;
    return true;
}

/* Paths. */

static bool compile_keys(struct compiler *compiler, const struct ottl_tree *tree,
                         const struct ottl_key **ret, uint32_t *ret_count)
{
    size_t count = count_list(tree);
    struct ottl_key *keys = count > 0 ? room_of(compiler, count * sizeof(*keys)) : NULL;
    *ret = keys;
    *ret_count = (uint32_t)count;
    if (count > 0 && keys == NULL)
        return false;
    for (; tree != NULL; tree = tree->next, keys++) {
        const struct ottl_tree *value = tree->first;
        struct ottl_node *node;
        if (value->kind == OTTL_TREE_STRING) {
            keys->is_text = true;
            keys->text = value->text;
        } else if (value->kind == OTTL_TREE_INT) {
            keys->index = value->integer;
        } else {
            if (!compile_value(compiler, value, &node))
                return false;
            keys->node = node;
        }
    }
    return true;
}

uint32_t ottl_plan_slot(struct ottl_plan *plan, enum ottl_context context, struct slice key)
{
    struct ottl_keys *keys = &plan->keys[context];
    uint32_t *capacity = &plan->keys_capacity[context];
    for (uint32_t i = 0; i < keys->count; i++)
        if (slice_equal(keys->keys[i], key))
            return i;
    if (keys->count == *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 16;
        keys->keys = mem_resize(keys->keys, *capacity * sizeof(*keys->keys));
    }
    keys->keys[keys->count] = key;
    return keys->count++;
}

static void list_contexts(const struct ottl_context_type *type, const char *suffix, char *room,
                          size_t bytes)
{
    size_t used = 0;
    room[0] = '\0';
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        const struct ottl_context_type *other = ottl_context_type((enum ottl_context)i);
        if (other != NULL && (type->reaches & OTTL_CONTEXT_BIT(i)) != 0 && used < bytes)
            used += (size_t)snprintf(room + used, bytes - used, "%s%s%s", used > 0 ? ", " : "",
                                     other->name, suffix);
    }
}

/* OTTL_CONTEXTS: paths of the statement's context cannot name it so. */
static enum ottl_context find_named(const struct compiler *compiler, struct slice name)
{
    const enum ottl_context named = ottl_context_find(name);
    const unsigned reaches = ottl_context_type(compiler->context)->reaches;
    if (named == OTTL_CONTEXTS || (reaches & OTTL_CONTEXT_BIT(named)) == 0)
        return OTTL_CONTEXTS;
    /* The scope's older name is for the contexts inside it. */
    const bool is_own_alias =
        named == OTTL_SCOPE && compiler->context == OTTL_SCOPE && !slice_equal_text(name, "scope");
    return is_own_alias ? OTTL_CONTEXTS : named;
}

/* Which context the path belongs to, and which of its fields is the first behind the name. As Go,
 * the name may be taken for the first field where paths are bare. */
static bool resolve_context(struct compiler *compiler, const struct ottl_tree *tree,
                            enum ottl_context *ret, struct slice *ret_first,
                            const struct ottl_tree **ret_field)
{
    const struct ottl_context_type *own = ottl_context_type(compiler->context);
    char names[SEGMENTS_TEXT_MAX];
    enum ottl_context named =
        tree->text.size > 0 ? find_named(compiler, tree->text) : OTTL_CONTEXTS;
    *ret = compiler->context;
    *ret_field = tree->first;
    *ret_first = tree->text;
    if (named != OTTL_CONTEXTS) {
        *ret = named;
        *ret_first = slice_of(NULL, 0);
        return true;
    }
    if (compiler->paths == OTTL_PATHS_FULL && tree->text.size > 0) {
        list_contexts(own, "", names, sizeof(names));
        return ottl_problem_set(compiler->problem, tree->at,
                                "\"%.*s\" is no context of a %s; expected one of: %s",
                                TEXT(tree->text), own->name, names);
    }
    if (compiler->paths == OTTL_PATHS_FULL) {
        list_contexts(own, ".", names, sizeof(names));
        return ottl_problem_set(compiler->problem, tree->at,
                                "the path \"%.*s\" does not begin with a context; expected one "
                                "of: %s",
                                TEXT(tree->first->text), names);
    }
    if (compiler->paths == OTTL_PATHS_BARE && tree->text.size == 0) {
        named = find_named(compiler, tree->first->text);
        if (named != OTTL_CONTEXTS && tree->first->keys == NULL && tree->first->next != NULL) {
            *ret = named;
            *ret_field = tree->first->next;
        }
    }
    return true;
}

/* The fields with points between them. False: a field before the last one has keys, or they are too
 * long. */
static bool join_fields(struct slice first, const struct ottl_tree *field, char *room, size_t bytes,
                        const struct ottl_tree **ret_keys)
{
    size_t used = 0;
    *ret_keys = NULL;
    room[0] = '\0';
    if (first.size > 0)
        used += (size_t)snprintf(room, bytes, "%.*s.", width(first), (const char *)first.data);
    for (; field != NULL && used < bytes; field = field->next) {
        used += (size_t)snprintf(room + used, bytes - used, "%.*s%s", width(field->text),
                                 (const char *)field->text.data, field->next != NULL ? "." : "");
        if (field->keys != NULL && field->next != NULL)
            return false;
        *ret_keys = field->keys;
    }
    return used < bytes;
}

static bool get_cache(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    if (path->keys_count > 0 && path->keys[0].is_text) {
        const struct ottl_entry *entry =
            run->cache != NULL ? ottl_map_find(run->cache, path->keys[0].text) : NULL;
        *ret = entry != NULL ? entry->value : ottl_nil();
        if (entry == NULL || (path->keys_count == 1 && ret->type != OTTL_ENCODED))
            return true;
    }
    if (run->cache == NULL && (run->cache = ottl_map_create(run->memory)) == NULL)
        return ottl_run_no_memory(run);
    if (path->keys_count > 0)
        return ottl_map_select(run, run->cache, path, ret);
    *ret = ottl_map_value(run->cache);
    return true;
}

static bool set_cache(struct ottl_run *run, const struct ottl_path *path,
                      const struct ottl_value *value)
{
    if (run->cache == NULL && (run->cache = ottl_map_create(run->memory)) == NULL)
        return ottl_run_no_memory(run);
    if (path->keys_count > 0)
        return ottl_map_assign(run, run->cache, path, value);
    if (value->type == OTTL_NIL)
        return true;
    if (value->type != OTTL_MAP)
        return ottl_run_fail(run, "unsupported type provided for setting a pcommon.Map: %s",
                             ottl_type_name(value));
    return ottl_map_copy(run->cache, value->map) || ottl_run_no_memory(run);
}

static const struct ottl_path_row cache_row = {
    .name = "cache", .get = get_cache, .set = set_cache, .takes_keys = true};

static bool fail_path(struct compiler *compiler, const struct ottl_tree *tree,
                      const struct ottl_context_type *type, const char *name)
{
    struct suggestion suggestion = suggestion_for(name);
    for (const struct ottl_path_row *row = type->rows; row->name != NULL; row++)
        suggestion_consider(&suggestion, row->name);
    struct suggestion_text nearest = suggestion_to_text(&suggestion);
    return ottl_problem_set(compiler->problem, tree->at, "a %s has no path \"%s\"%s", type->name,
                            name, nearest.text);
}

static bool compile_path(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_path *ret)
{
    char name[SEGMENTS_TEXT_MAX];
    enum ottl_context context;
    struct slice first;
    const struct ottl_tree *field;
    const struct ottl_tree *keys;
    if (!resolve_context(compiler, tree, &context, &first, &field))
        return false;
    const struct ottl_context_type *type = ottl_context_type(context);
    if (type == NULL)
        return ottl_problem_set(compiler->problem, tree->at,
                                "this context is not supported yet; leave the statement out");
    if (!join_fields(first, field, name, sizeof(name), &keys))
        return ottl_problem_set(compiler->problem, tree->at,
                                "only the last part of a path may be indexed");
    const struct ottl_path_row *row = type->rows;
    while (row->name != NULL && strcmp(row->name, name) != 0)
        row++;
    if (row->name == NULL && strcmp(name, "cache") == 0) {
        if (context != compiler->context)
            return ottl_problem_set(compiler->problem, tree->at,
                                    "the cache is that of the %s the statement is for; write "
                                    "%s.cache",
                                    ottl_context_type(compiler->context)->name,
                                    ottl_context_type(compiler->context)->name);
        row = &cache_row;
        compiler->is_volatile = true;
    }
    if (row->name == NULL)
        return fail_path(compiler, tree, type, name);
    if (keys != NULL && (row->takes_keys & ~(OTTL_COPY | OTTL_SHARED)) == 0)
        return ottl_problem_set(compiler->problem, keys->at,
                                "\"%s\" is no map or list; it cannot be indexed", row->name);
    if (row->takes_keys == OTTL_ONE_KEY && keys != NULL && keys->next != NULL)
        return ottl_problem_set(compiler->problem, keys->next->at, "\"%s\" takes exactly one key",
                                row->name);
    *ret = (struct ottl_path){.row = row, .context = (uint8_t)context, .slot = -1};
    ret->text = slice_of(NULL, 0);
    if (!compile_keys(compiler, keys, &ret->keys, &ret->keys_count))
        return false;
    char *text = room_of(compiler, strlen(name) + 1);
    if (text == NULL)
        return false;
    memcpy(text, name, strlen(name) + 1);
    ret->text = slice_of_text(text);
    /* Attributes and texts of profiles are entries of a dictionary that all share. */
    const bool is_shared = (context == OTTL_PROFILE || context == OTTL_PROFILE_SAMPLE) &&
                           (row->takes_keys & (OTTL_COPY | OTTL_SHARED)) != 0;
    compiler->is_outer = compiler->is_outer || context != compiler->context || is_shared;
    if (row != &cache_row) {
        compiler->uses |= OTTL_CONTEXT_BIT(context);
        compiler->plan->keys[context].fields |= row->field == OTTL_ANY_FIELD  ? UINT32_MAX
                                                : row->field == OTTL_NO_FIELD ? 0
                                                                              : 1u << row->field;
        if (row->get == ottl_get_attributes && ret->keys_count > 0 && ret->keys[0].is_text)
            ret->slot = (int32_t)ottl_plan_slot(compiler->plan, context, ret->keys[0].text);
    }
    return true;
}

static bool compile_path_value(struct compiler *compiler, const struct ottl_tree *tree,
                               struct ottl_node **ret)
{
    *ret = new_node(compiler, ottl_node_path);
    if (*ret == NULL || !compile_path(compiler, tree, &(*ret)->path))
        return false;
    if ((*ret)->path.slot >= 0 && (*ret)->path.keys_count == 1)
        (*ret)->get = ottl_node_attribute;
    else if ((*ret)->path.row->get == ottl_get_text)
        (*ret)->get = ottl_node_text;
    return true;
}

/* Functions. */

static const char *type_text(enum ottl_parameter_type type)
{
    static const char *const texts[] = {
        [OTTL_ANY] = "a value",
        [OTTL_STRINGS_ONLY] = "a string",
        [OTTL_STRING_LIKE] = "a value that becomes a string",
        [OTTL_INTS_ONLY] = "an int",
        [OTTL_INT_LIKE] = "a value that becomes an int",
        [OTTL_DOUBLES_ONLY] = "a double",
        [OTTL_DOUBLE_LIKE] = "a value that becomes a double",
        [OTTL_BOOLS_ONLY] = "a bool",
        [OTTL_BOOL_LIKE] = "a value that becomes a bool",
        [OTTL_BYTES_LIKE] = "a value that becomes bytes",
        [OTTL_TIMES_ONLY] = "a time",
        [OTTL_DURATIONS_ONLY] = "a duration",
        [OTTL_MAPS_ONLY] = "a map",
        [OTTL_LISTS_ONLY] = "a list",
        [OTTL_PATH] = "a path",
        [OTTL_MAP_PATH] = "a path",
        [OTTL_LIST_PATH] = "a path",
        [OTTL_ENUM_NAME] = "an enum",
        [OTTL_TEXT_LITERAL] = "a string literal",
        [OTTL_INT_LITERAL] = "an int literal",
        [OTTL_DOUBLE_LITERAL] = "a double literal",
        [OTTL_BOOL_LITERAL] = "true or false",
        [OTTL_FUNCTION_NAME] = "the name of a function",
    };
    return texts[type];
}

bool ottl_plan_has_function(const struct ottl_plan *plan, enum ottl_context context,
                            const struct ottl_function *function)
{
    return (function->users == 0 || (function->users & plan->users) != 0) &&
           (function->contexts == 0 || (function->contexts & OTTL_CONTEXT_BIT(context)) != 0);
}

const struct ottl_function *ottl_function_find(struct slice name)
{
    for (size_t i = 0; ottl_function_tables[i] != NULL; i++)
        for (const struct ottl_function *function = ottl_function_tables[i]; function->name != NULL;
             function++)
            if (slice_equal_text(name, function->name))
                return function;
    return NULL;
}

static bool find_function(struct compiler *compiler, struct slice name, uint32_t at,
                          const struct ottl_function **ret)
{
    char text[NAME_MAX_BYTES];
    const struct ottl_function *function = ottl_function_find(name);
    if (function != NULL && ottl_plan_has_function(compiler->plan, compiler->context, function)) {
        *ret = function;
        return true;
    }
    if (function != NULL)
        return ottl_problem_set(
            compiler->problem, at, "the function \"%s\" is not for %s %s", function->name,
            (function->users & compiler->plan->users) != 0 || function->users == 0
                ? "the context"
                : "this component and the context",
            ottl_context_type(compiler->context)->name);
    snprintf(text, sizeof(text), "%.*s", width(name), (const char *)name.data);
    struct suggestion suggestion = suggestion_for(text);
    for (size_t i = 0; ottl_function_tables[i] != NULL; i++)
        for (const struct ottl_function *other = ottl_function_tables[i]; other->name != NULL;
             other++)
            if (ottl_plan_has_function(compiler->plan, compiler->context, other))
                suggestion_consider(&suggestion, other->name);
    struct suggestion_text nearest = suggestion_to_text(&suggestion);
    return ottl_problem_set(compiler->problem, at, "undefined function \"%s\"%s", text,
                            nearest.text);
}

static bool find_enum(struct compiler *compiler, const struct ottl_tree *tree, int64_t *ret)
{
    const struct ottl_context_type *type = ottl_context_type(compiler->context);
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof(text), "%.*s", width(tree->text), (const char *)tree->text.data);
    struct suggestion suggestion = suggestion_for(text);
    for (const struct ottl_enum *row = type->enums; row != NULL && row->name != NULL; row++) {
        if (slice_equal_text(tree->text, row->name)) {
            *ret = row->value;
            return true;
        }
        suggestion_consider(&suggestion, row->name);
    }
    struct suggestion_text nearest = suggestion_to_text(&suggestion);
    return ottl_problem_set(compiler->problem, tree->at, "a %s has no enum symbol \"%s\"%s",
                            type->name, text, nearest.text);
}

static bool fail_argument(struct compiler *compiler, const struct ottl_tree *tree,
                          const struct ottl_parameter *parameter, const char *reason)
{
    return ottl_problem_set(compiler->problem, tree->at, "the argument %s must be %s%s%s%s",
                            parameter->name, parameter->is_list ? "a list, each item " : "",
                            type_text((enum ottl_parameter_type)parameter->type),
                            reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

static bool compile_path_argument(struct compiler *compiler, const struct ottl_tree *tree,
                                  const struct ottl_parameter *parameter, struct ottl_argument *ret)
{
    struct ottl_node *node;
    if (tree->kind != OTTL_TREE_PATH)
        return fail_argument(compiler, tree, parameter, NULL);
    if (!compile_path_value(compiler, tree, &node))
        return false;
    if (node->path.row->set == NULL)
        return ottl_problem_set(compiler->problem, tree->at, "the path \"%s\" cannot be set",
                                node->path.row->name);
    ret->node = node;
    ret->path = &node->path;
    if (node->path.row != &cache_row)
        compiler->plan->written |= OTTL_CONTEXT_BIT(node->path.context);
    return true;
}

static bool compile_own_argument(struct compiler *compiler, const struct ottl_tree *tree,
                                 const struct ottl_parameter *parameter, struct ottl_argument *ret)
{
    static const struct {
        uint8_t type;
        uint8_t kind;
    } literals[] = {{OTTL_TEXT_LITERAL, OTTL_TREE_STRING},
                    {OTTL_INT_LITERAL, OTTL_TREE_INT},
                    {OTTL_DOUBLE_LITERAL, OTTL_TREE_FLOAT},
                    {OTTL_BOOL_LITERAL, OTTL_TREE_BOOL},
                    {OTTL_ENUM_NAME, OTTL_TREE_ENUM}};
    struct ottl_node *node;
    ret->is_given = true;
    if (parameter->type == OTTL_PATH || parameter->type == OTTL_MAP_PATH ||
        parameter->type == OTTL_LIST_PATH)
        return compile_path_argument(compiler, tree, parameter, ret);
    for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
        if (literals[i].type == parameter->type && literals[i].kind != tree->kind)
            return fail_argument(compiler, tree, parameter, NULL);
    if (tree->kind == OTTL_TREE_FUNCTION)
        return fail_argument(compiler, tree, parameter, "found the name of a function");
    if (!compile_value(compiler, tree, &node))
        return false;
    ret->node = node;
    const char *mismatch =
        node->is_literal
            ? ottl_parameter_mismatch((enum ottl_parameter_type)parameter->type, &node->constant)
            : NULL;
    return mismatch == NULL || fail_argument(compiler, tree, parameter, mismatch);
}

static bool compile_argument(struct compiler *compiler, const struct ottl_tree *tree,
                             const struct ottl_parameter *parameter, struct ottl_argument *ret)
{
    const bool is_outer = compiler->is_outer;
    compiler->is_outer = false;
    if (!compile_own_argument(compiler, tree, parameter, ret))
        return false;
    ret->is_outer = compiler->is_outer;
    compiler->is_outer = compiler->is_outer || is_outer;
    return true;
}

static bool prepare_function(struct compiler *compiler, const struct ottl_function *function,
                             const struct ottl_argument *arguments, uint32_t at, void **ret_state)
{
    const struct ottl_preparation preparation = {.arguments = arguments};
    struct error error;
    *ret_state = NULL;
    if (function->prepare == NULL)
        return true;
    struct ottl_state *state = room_of(compiler, sizeof(*state));
    if (state == NULL)
        return false;
    if (!function->prepare(&preparation, ret_state, &error))
        return ottl_problem_set(compiler->problem, at, "%s: %s", function->name, error.text);
    state->function = function;
    state->state = *ret_state;
    state->next = compiler->plan->states;
    compiler->plan->states = state;
    return true;
}

/* Of a call whose arguments are compiled. */
static bool call_spends(const struct ottl_function *function, const struct ottl_argument *arguments)
{
    const struct ottl_preparation preparation = {.arguments = arguments};
    struct ottl_value value;
    return function->spends || (function->spends_by != 0 &&
                                !ottl_is_constant(&preparation, function->spends_by, &value));
}

static bool compile_function_name(struct compiler *compiler, const struct ottl_tree *tree,
                                  const struct ottl_parameter *parameter, struct ottl_argument *ret)
{
    enum { PARAMETERS_MAX = 16 };
    if (tree->kind != OTTL_TREE_FUNCTION && tree->kind != OTTL_TREE_ENUM)
        return fail_argument(compiler, tree, parameter, NULL);
    if (!find_function(compiler, tree->text, tree->at, &ret->function))
        return false;
    /* It is called with one string. */
    const struct ottl_parameter *wanted = ret->function->parameters;
    if (wanted == NULL || wanted[0].type != OTTL_STRINGS_ONLY || wanted[0].is_list ||
        wanted[1].name != NULL)
        return fail_argument(compiler, tree, parameter, "of one that takes one string");
    struct ottl_argument *arguments = room_of(compiler, PARAMETERS_MAX * sizeof(*arguments));
    ret->is_given = true;
    compiler->is_volatile = compiler->is_volatile || ret->function->is_volatile;
    compiler->spends = compiler->spends || ret->function->spends;
    return arguments != NULL &&
           prepare_function(compiler, ret->function, arguments, tree->at, &ret->state);
}

static bool compile_list_argument(struct compiler *compiler, const struct ottl_tree *tree,
                                  const struct ottl_parameter *parameter, struct ottl_argument *ret)
{
    if (tree->kind != OTTL_TREE_LIST)
        return fail_argument(compiler, tree, parameter, NULL);
    size_t count = count_list(tree->first);
    struct ottl_argument *items = room_of(compiler, count * sizeof(*items));
    if (items == NULL)
        return false;
    ret->is_given = true;
    ret->items = items;
    ret->count = (uint32_t)count;
    for (const struct ottl_tree *item = tree->first; item != NULL; item = item->next)
        if (!compile_argument(compiler, item, parameter, items++))
            return false;
    return true;
}

/* Go's field name of a named argument (strcase.ToCamel): letters behind underscores and digits
 * become capitals, capitals behind capitals small letters. */
static void to_camel(struct slice name, char room[NAME_MAX_BYTES])
{
    size_t used = 0;
    bool is_next_capital = true;
    bool was_capital = false;
    for (size_t i = 0; i < name.size && used + 1 < NAME_MAX_BYTES; i++) {
        uint8_t byte = name.data[i];
        bool is_upper = byte >= 'A' && byte <= 'Z';
        bool is_lower = byte >= 'a' && byte <= 'z';
        if (is_next_capital && is_lower)
            byte = (uint8_t)(byte - 'a' + 'A');
        else if (!is_next_capital && is_upper && was_capital)
            byte = (uint8_t)(byte - 'A' + 'a');
        was_capital = is_upper;
        bool is_digit = byte >= '0' && byte <= '9';
        if (is_upper || is_lower || is_digit)
            room[used++] = (char)byte;
        is_next_capital = !is_upper && !is_lower;
    }
    room[used] = '\0';
}

static bool find_parameter(struct compiler *compiler, const struct ottl_function *function,
                           const struct ottl_tree *argument, unsigned place, unsigned *ret)
{
    char name[NAME_MAX_BYTES];
    *ret = place;
    if (argument->text.size == 0)
        return true;
    to_camel(argument->text, name);
    struct suggestion suggestion = suggestion_for(name);
    for (unsigned i = 0; function->parameters[i].name != NULL; i++) {
        if (strcmp(function->parameters[i].name, name) == 0) {
            *ret = i;
            return true;
        }
        suggestion_consider(&suggestion, function->parameters[i].name);
    }
    struct suggestion_text nearest = suggestion_to_text(&suggestion);
    return ottl_problem_set(compiler->problem, argument->at, "%s has no parameter \"%.*s\"%s",
                            function->name, TEXT(argument->text), nearest.text);
}

static bool check_count(struct compiler *compiler, const struct ottl_function *function,
                        const struct ottl_tree *tree, size_t parameters)
{
    size_t required = 0;
    size_t given = count_list(tree->first);
    bool has_named = false;
    for (const struct ottl_tree *argument = tree->first; argument != NULL;
         argument = argument->next) {
        if (has_named && argument->text.size == 0)
            return ottl_problem_set(compiler->problem, argument->at,
                                    "an argument without a name behind one with a name");
        has_named = has_named || argument->text.size > 0;
    }
    for (size_t i = 0; i < parameters; i++)
        required += !function->parameters[i].is_optional;
    if (given >= required && given <= parameters)
        return true;
    if (required == parameters)
        return ottl_problem_set(compiler->problem, tree->at, "%s takes %zu arguments, found %zu",
                                function->name, parameters, given);
    return ottl_problem_set(compiler->problem, tree->at, "%s takes %zu to %zu arguments, found %zu",
                            function->name, required, parameters, given);
}

static bool compile_call(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_invocation *ret)
{
    const struct ottl_function *function;
    size_t parameters = 0;
    if (!find_function(compiler, tree->text, tree->at, &function))
        return false;
    while (function->parameters != NULL && function->parameters[parameters].name != NULL)
        parameters++;
    struct ottl_argument *arguments = room_of(compiler, (parameters + 1) * sizeof(*arguments));
    if (arguments == NULL)
        return false;
    if (parameters > 0 && !check_count(compiler, function, tree, parameters))
        return false;
    unsigned place = 0;
    for (const struct ottl_tree *argument = parameters > 0 ? tree->first : NULL; argument != NULL;
         argument = argument->next, place++) {
        unsigned found;
        if (!find_parameter(compiler, function, argument, place, &found))
            return false;
        const struct ottl_parameter *parameter = &function->parameters[found];
        bool is_fine =
            parameter->type == OTTL_FUNCTION_NAME
                ? compile_function_name(compiler, argument->first, parameter, &arguments[found])
            : parameter->is_list
                ? compile_list_argument(compiler, argument->first, parameter, &arguments[found])
                : compile_argument(compiler, argument->first, parameter, &arguments[found]);
        if (!is_fine)
            return false;
    }
    for (size_t i = 0; i < parameters; i++)
        if (!arguments[i].is_given && !function->parameters[i].is_optional)
            return ottl_problem_set(compiler->problem, tree->at, "%s lacks the argument %s",
                                    function->name, function->parameters[i].name);
    for (size_t i = 0; i < parameters && function->is_lookup; i++)
        arguments[i].is_outer = false;
    compiler->is_volatile = compiler->is_volatile || function->is_volatile;
    compiler->spends = compiler->spends || call_spends(function, arguments);
    compiler->plan->makes_metrics = compiler->plan->makes_metrics || function->makes_metrics;
    compiler->is_outer =
        compiler->is_outer || (function->makes_metrics && compiler->context == OTTL_DATA_POINT);
    if (function->contexts != 0) { /* it looks at the record itself */
        compiler->uses |= OTTL_CONTEXT_BIT(compiler->context);
        compiler->plan->keys[compiler->context].fields |=
            function->fields != 0 ? function->fields : UINT32_MAX;
        if (function->users == OTTL_FOR_TRANSFORM)
            compiler->plan->written |= OTTL_CONTEXT_BIT(compiler->context);
    }
    *ret = (struct ottl_invocation){.function = function, .arguments = arguments};
    return prepare_function(compiler, function, arguments, tree->at, &ret->state) &&
           compile_keys(compiler, tree->keys, &ret->keys, &ret->keys_count);
}

bool ottl_is_given(const struct ottl_preparation *preparation, unsigned parameter)
{
    return preparation->arguments[parameter].is_given;
}

bool ottl_is_constant(const struct ottl_preparation *preparation, unsigned parameter,
                      struct ottl_value *ret)
{
    const struct ottl_node *node = preparation->arguments[parameter].node;
    if (node == NULL || !node->is_literal)
        return false;
    *ret = node->constant;
    return true;
}

struct slice ottl_literal_text(const struct ottl_preparation *preparation, unsigned parameter)
{
    struct ottl_value value;
    return ottl_is_constant(preparation, parameter, &value) && value.type == OTTL_STRING
               ? ottl_slice(&value)
               : slice_of(NULL, 0);
}

int64_t ottl_literal_int(const struct ottl_preparation *preparation, unsigned parameter,
                         int64_t absent)
{
    struct ottl_value value;
    return ottl_is_constant(preparation, parameter, &value) && value.type == OTTL_INT
               ? value.integer
               : absent;
}

bool ottl_literal_bool(const struct ottl_preparation *preparation, unsigned parameter, bool absent)
{
    struct ottl_value value;
    return ottl_is_constant(preparation, parameter, &value) && value.type == OTTL_BOOL
               ? value.boolean
               : absent;
}

unsigned ottl_literal_items(const struct ottl_preparation *preparation, unsigned parameter)
{
    return preparation->arguments[parameter].count;
}

struct slice ottl_literal_item(const struct ottl_preparation *preparation, unsigned parameter,
                               unsigned item)
{
    const struct ottl_argument *argument = &preparation->arguments[parameter];
    assert(item < argument->count);
    const struct ottl_node *node = argument->items[item].node;
    return node->is_literal && node->constant.type == OTTL_STRING ? ottl_slice(&node->constant)
                                                                  : slice_of(NULL, 0);
}

/* Values. */

static bool compile_items(struct compiler *compiler, const struct ottl_tree *tree,
                          struct ottl_node **ret)
{
    bool is_map = tree->kind == OTTL_TREE_MAP;
    size_t count = count_list(tree->first);
    struct ottl_node *node = new_node(compiler, is_map ? ottl_node_map : ottl_node_list);
    const struct ottl_node **items = room_of(compiler, count * sizeof(struct ottl_node *));
    struct slice *keys = room_of(compiler, count * sizeof(*keys));
    if (node == NULL || items == NULL || keys == NULL)
        return false;
    bool is_literal = true;
    uint32_t used = 0;
    for (const struct ottl_tree *item = tree->first; item != NULL; item = item->next) {
        struct ottl_node *value;
        if (!compile_value(compiler, is_map ? item->first : item, &value))
            return false;
        is_literal = is_literal && value->is_literal;
        keys[used] = item->text;
        items[used++] = value;
    }
    node->list.items = items;
    node->list.keys = keys;
    node->list.count = used;
    *ret = node;
    if (!is_literal)
        return true;
    struct ottl_run run = {.memory = &compiler->plan->constants};
    struct ottl_value value;
    if (!node->get(node, &run, &value))
        return ottl_problem_set(compiler->problem, tree->at, "%s", run.error);
    if (!ottl_value_fix(&value))
        return ottl_problem_set(compiler->problem, tree->at, "no memory");
    return make_constant(compiler, &value, ret);
}

static bool compile_math(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_node **ret)
{
    struct ottl_node *left;
    struct ottl_node *right = NULL;
    if (!compile_value(compiler, tree->first, &left) ||
        (tree->kind == OTTL_TREE_MATH && !compile_value(compiler, tree->first->next, &right)))
        return false;
    /* A number with a sign is a literal. */
    bool is_number = tree->first->kind == OTTL_TREE_INT || tree->first->kind == OTTL_TREE_FLOAT;
    if (tree->kind == OTTL_TREE_NEGATE && is_number) {
        struct ottl_value value;
        ottl_negate(&left->constant, &value);
        return make_constant(compiler, &value, ret);
    }
    *ret = new_node(compiler, ottl_node_math);
    if (*ret == NULL)
        return false;
    (*ret)->math.left = left;
    (*ret)->math.right = right;
    (*ret)->math.op = (enum ottl_arithmetic)tree->op;
    return true;
}

/* Getters that take no longer than finding out whether their result is remembered. */
static bool is_quick(const struct ottl_path_row *row)
{
    return row->get == ottl_get_attributes || row->get == ottl_get_text ||
           row->get == ottl_get_uint32 || row->get == ottl_get_fixed32 ||
           row->get == ottl_get_enumeration || row->get == ottl_get_nanoseconds ||
           row->get == ottl_get_moment || row->get == ottl_get_trace_id ||
           row->get == ottl_get_span_id;
}

/* Notes a call or path that reads nothing but records around the statement's: it is evaluated once
 * for them, if no statement changes them. */
static bool note_outer(struct compiler *compiler, struct ottl_node *node)
{
    const unsigned inner = OTTL_CONTEXT_BIT(compiler->context) | OTTL_CONTEXT_BIT(OTTL_OTELCOL);
    const bool is_path = node->get == ottl_node_path;
    if (compiler->is_volatile || compiler->uses == 0 || (compiler->uses & inner) != 0 ||
        (is_path ? is_quick(node->path.row) : node->get != ottl_node_call))
        return true;
    struct ottl_outer *outer = room_of(compiler, sizeof(*outer));
    if (outer == NULL)
        return false;
    node->is_path = is_path;
    node->uses = (uint16_t)compiler->uses;
    *outer = (struct ottl_outer){.node = node, .next = compiler->plan->outer};
    compiler->plan->outer = outer;
    return true;
}

static bool compile_any_value(struct compiler *compiler, const struct ottl_tree *tree,
                              struct ottl_node **ret)
{
    struct ottl_value value = ottl_nil();
    switch (tree->kind) {
    case OTTL_TREE_NIL:
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_BOOL:
        value = ottl_bool(tree->integer != 0);
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_INT:
        value = ottl_int(tree->integer);
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_FLOAT:
        value = ottl_double(tree->real);
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_STRING:
        value = ottl_string(tree->text);
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_BYTES:
        value = ottl_bytes_of(OTTL_BYTES, tree->text);
        return make_constant(compiler, &value, ret);
    case OTTL_TREE_ENUM:
        value.type = OTTL_INT;
        return find_enum(compiler, tree, &value.integer) && make_constant(compiler, &value, ret);
    case OTTL_TREE_PATH:
        return compile_path_value(compiler, tree, ret);
    case OTTL_TREE_CALL:
        *ret = new_node(compiler, ottl_node_call);
        return *ret != NULL && compile_call(compiler, tree, &(*ret)->call);
    case OTTL_TREE_LAMBDA:
        return ottl_problem_set(compiler->problem, tree->at,
                                "lambdas need the feature gate ottl.functions.enableLambda, which "
                                "is off; no function takes one yet");
    case OTTL_TREE_MAP:
    case OTTL_TREE_LIST:
        return compile_items(compiler, tree, ret);
    case OTTL_TREE_MATH:
    case OTTL_TREE_NEGATE:
        return compile_math(compiler, tree, ret);
    case OTTL_TREE_GROUP:
        return compile_value(compiler, tree->first, ret);
    default:
        return ottl_problem_set(compiler->problem, tree->at, "expected a value");
    }
}

static bool compile_value(struct compiler *compiler, const struct ottl_tree *tree,
                          struct ottl_node **ret)
{
    const unsigned uses = compiler->uses;
    const bool is_volatile = compiler->is_volatile;
    compiler->uses = 0;
    compiler->is_volatile = false;
    if (!compile_any_value(compiler, tree, ret) || !note_outer(compiler, *ret))
        return false;
    compiler->uses |= uses;
    compiler->is_volatile = compiler->is_volatile || is_volatile;
    return true;
}

/* Conditions. */

static struct ottl_test *new_test(struct compiler *compiler,
                                  int (*test)(const struct ottl_test *test, struct ottl_run *run))
{
    struct ottl_test *made = room_of(compiler, sizeof(*made));
    if (made != NULL)
        made->test = test;
    return made;
}

static bool make_literal_test(struct compiler *compiler, bool is_true, struct ottl_test **ret)
{
    *ret = new_test(compiler, ottl_test_literal);
    if (*ret == NULL)
        return false;
    (*ret)->is_literal = true;
    (*ret)->is_true = is_true;
    return true;
}

/* Prepares comparisons with constants. A text that is short is the most frequent one. */
static bool specialize(struct compiler *compiler, struct ottl_test *test)
{
    enum { ENCODED_BYTES_MAX = 0x7f };
    const struct ottl_node *left = test->compare.left;
    const struct ottl_value *constant = &test->compare.right->constant;
    if (!test->compare.right->is_literal || constant->type == OTTL_NIL ||
        (constant->type == OTTL_BYTES && constant->bytes == NULL))
        return true;
    const bool is_text = constant->type == OTTL_STRING && test->compare.op <= OTTL_NE;
    if (left->get == ottl_node_text && is_text)
        test->test = ottl_test_text;
    if (left->get != ottl_node_attribute)
        return true;
    test->test = ottl_test_attribute;
    if (!is_text || constant->size >= ENCODED_BYTES_MAX)
        return true;
    const size_t size = ottl_value_encoded_size(constant);
    uint8_t *room = room_of(compiler, size);
    if (room == NULL)
        return false;
    ottl_value_encode(constant, room);
    test->compare.encoded = slice_of(room, size);
    return true;
}

/* A value, and whether it reads records around that of the statement. */
static bool compile_side(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_node **ret, bool *ret_is_outer)
{
    const bool is_outer = compiler->is_outer;
    compiler->is_outer = false;
    if (!compile_value(compiler, tree, ret))
        return false;
    *ret_is_outer = compiler->is_outer;
    compiler->is_outer = compiler->is_outer || is_outer;
    return true;
}

static bool compile_comparison(struct compiler *compiler, const struct ottl_tree *tree,
                               struct ottl_test **ret)
{
    static const enum ottl_comparison mirrored[] = {
        [OTTL_EQ] = OTTL_EQ, [OTTL_NE] = OTTL_NE, [OTTL_LT] = OTTL_GT,
        [OTTL_LE] = OTTL_GE, [OTTL_GE] = OTTL_LE, [OTTL_GT] = OTTL_LT};
    struct ottl_node *left;
    struct ottl_node *right;
    enum ottl_comparison op = (enum ottl_comparison)tree->op;
    bool is_left_outer;
    bool is_right_outer;
    if (!compile_side(compiler, tree->first, &left, &is_left_outer) ||
        !compile_side(compiler, tree->first->next, &right, &is_right_outer))
        return false;
    if (left->is_literal && right->is_literal)
        return make_literal_test(compiler, ottl_compare(&left->constant, op, &right->constant),
                                 ret);
    *ret = new_test(compiler, ottl_test_compare);
    if (*ret == NULL)
        return false;
    if (left->is_literal) {
        struct ottl_node *other = left;
        left = right;
        right = other;
        op = mirrored[op];
    }
    (*ret)->compare.left = left;
    (*ret)->compare.right = right;
    (*ret)->compare.op = op;
    (*ret)->compare.is_outer = is_left_outer && is_right_outer;
    return specialize(compiler, *ret);
}

/* Literals decide or fall out when the statement is read, whatever stands before them. */
static bool compile_chain(struct compiler *compiler, const struct ottl_tree *tree,
                          struct ottl_test **ret)
{
    bool is_or = tree->kind == OTTL_TREE_OR;
    const struct ottl_test **items =
        room_of(compiler, count_list(tree->first) * sizeof(struct ottl_test *));
    struct ottl_test *item = NULL;
    uint32_t count = 0;
    bool is_decided = false;
    if (items == NULL)
        return false;
    for (const struct ottl_tree *child = tree->first; child != NULL; child = child->next) {
        if (!compile_test(compiler, child, &item))
            return false;
        if (!item->is_literal)
            items[count++] = item;
        else if (item->is_true == is_or)
            is_decided = true;
    }
    if (is_decided || count == 0)
        return make_literal_test(compiler, is_decided == is_or, ret);
    *ret = new_test(compiler, is_or ? ottl_test_or : ottl_test_and);
    if (*ret == NULL)
        return false;
    (*ret)->chain.items = items;
    (*ret)->chain.count = count;
    return true;
}

static bool compile_negation(struct compiler *compiler, const struct ottl_tree *tree,
                             struct ottl_test **ret)
{
    struct ottl_test *inner;
    if (!compile_test(compiler, tree->first, &inner))
        return false;
    if (inner->is_literal)
        return make_literal_test(compiler, !inner->is_true, ret);
    *ret = new_test(compiler, ottl_test_not);
    const struct ottl_test **items = room_of(compiler, sizeof(struct ottl_test *));
    if (*ret == NULL || items == NULL)
        return false;
    items[0] = inner;
    (*ret)->chain.items = items;
    (*ret)->chain.count = 1;
    return true;
}

static bool compile_kind(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_test **ret)
{
    struct ottl_node *node;
    switch (tree->kind) {
    case OTTL_TREE_OR:
    case OTTL_TREE_AND:
        return compile_chain(compiler, tree, ret);
    case OTTL_TREE_NOT:
        return compile_negation(compiler, tree, ret);
    case OTTL_TREE_COMPARE:
        return compile_comparison(compiler, tree, ret);
    case OTTL_TREE_BOOL:
        return make_literal_test(compiler, tree->integer != 0, ret);
    default:
        if (!compile_value(compiler, tree, &node))
            return false;
        *ret = new_test(compiler, ottl_test_node);
        if (*ret != NULL)
            (*ret)->node = node;
        return *ret != NULL;
    }
}

static bool compile_test(struct compiler *compiler, const struct ottl_tree *tree,
                         struct ottl_test **ret)
{
    unsigned uses = compiler->uses;
    bool is_volatile = compiler->is_volatile;
    compiler->uses = 0;
    compiler->is_volatile = false;
    if (!compile_kind(compiler, tree, ret))
        return false;
    (*ret)->uses = compiler->uses;
    (*ret)->is_volatile = compiler->is_volatile;
    compiler->uses |= uses;
    compiler->is_volatile = compiler->is_volatile || is_volatile;
    return true;
}

bool ottl_compile_condition(struct ottl_plan *plan, enum ottl_context context,
                            enum ottl_path_mode paths, const struct ottl_tree *tree,
                            struct ottl_condition *ret, struct ottl_problem *problem)
{
    struct compiler compiler = {
        .plan = plan, .context = context, .paths = paths, .problem = problem};
    bool is_fine = compile_test(&compiler, tree, &ret->test);
    ret->is_outer = compiler.is_outer || compiler.spends;
    plan->used |= compiler.uses;
    return is_fine;
}

/* Encodes what `set` of an attribute writes, if that is known. */
static bool prepare_ready(struct compiler *compiler, struct ottl_compiled_statement *statement)
{
    enum { KEY = 1, VALUE = 2, TAG_LATER = 1 };
    const struct ottl_path *path = statement->target;
    const struct ottl_value *constant = &statement->value->constant;
    if (!statement->value->is_literal || constant->type < OTTL_BOOL || constant->type > OTTL_BYTES)
        return true;
    const size_t size = ottl_value_encoded_size(constant);
    const struct slice key = path->keys[0].text;
    const size_t content = wire_field_size(KEY, key.size) + wire_field_size(VALUE, size);
    const size_t whole = wire_field_size(TAG_LATER, content);
    struct ottl_ready *ready = room_of(compiler, sizeof(*ready));
    uint8_t *room = room_of(compiler, whole + OTTL_READY_SLACK);
    if (ready == NULL || room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, whole);
    wire_write_header(&writer, TAG_LATER, content);
    wire_write_bytes(&writer, KEY, key);
    wire_write_header(&writer, VALUE, size);
    ottl_value_encode(constant, room + (whole - size));
    memset(room + whole, 0, OTTL_READY_SLACK);
    *ready = (struct ottl_ready){.key = compiler->plan->keys[path->context].keys[path->slot],
                                 .value = *constant,
                                 .encoded = slice_of(room, whole)};
    statement->ready = ready;
    return true;
}

/* Prepares `set`. */
static bool prepare_set(struct compiler *compiler, struct ottl_compiled_statement *statement)
{
    const struct ottl_path *path = statement->editor.arguments[0].path;
    const struct ottl_node *value = statement->editor.arguments[1].node;
    if (path->row->set == NULL || value == NULL)
        return true;
    statement->target = path;
    statement->value = value;
    statement->slot = path->keys_count == 1 ? path->slot : -1;
    return statement->slot < 0 || prepare_ready(compiler, statement);
}

/* Gives the key of `delete_key` a slot, since most records lack what is deleted. */
static void note_removed(struct compiler *compiler, struct ottl_compiled_statement *statement)
{
    const struct ottl_path *path = statement->editor.arguments[0].path;
    const struct ottl_node *key = statement->editor.arguments[1].node;
    if (path->row->get != ottl_get_attributes || path->keys_count > 0 || !key->is_literal)
        return;
    statement->target = path;
    statement->slot = (int32_t)ottl_plan_slot(compiler->plan, (enum ottl_context)path->context,
                                              ottl_slice(&key->constant));
}

bool ottl_compile_statement(struct ottl_plan *plan, enum ottl_context context,
                            enum ottl_path_mode paths, const struct ottl_statement *statement,
                            struct ottl_compiled_statement *ret, struct ottl_problem *problem)
{
    struct compiler compiler = {
        .plan = plan, .context = context, .paths = paths, .problem = problem};
    bool is_fine = compile_call(&compiler, statement->editor, &ret->editor);
    if (is_fine && statement->where != NULL)
        is_fine = compile_test(&compiler, statement->where, &ret->where);
    if (is_fine && strcmp(ret->editor.function->name, "set") == 0)
        is_fine = prepare_set(&compiler, ret);
    else if (is_fine && strcmp(ret->editor.function->name, "delete_key") == 0)
        note_removed(&compiler, ret);
    ret->is_outer = compiler.is_outer || compiler.spends;
    plan->used |= compiler.uses;
    return is_fine;
}
