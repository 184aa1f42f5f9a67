/* SPDX-License-Identifier: Apache-2.0 */
/* Runs when the configuration is read, but for request_condition_holds, which runs on the lane or
 * its helper. */
#include "connectors/routing/routing_table.h"

#include <string.h>
#include <strings.h>

#include "src/base/error.h"
#include "src/core/client_info.h"
#include "src/ottl/ottl_parse.h"
#include "src/ottl/ottl_problem.h"

#define REQUEST_BEGIN "request[\""
#define REQUEST_END   "\"]"
#define ROUTE_WHERE   "route() where "

static const struct config_field entry_fields[] = {
    CONFIG_TEXT(
        struct routing_entry, context, "context", NULL,
        "What the condition is about: resource, span, metric, datapoint, log, profile, otelcol "
        "(the client), or request (client metadata). Without it the paths say so, and begin with "
        "it "
        "(resource.attributes[\"a\"])."),
    CONFIG_TEXT(struct routing_entry, condition, "condition", NULL,
                "What matches goes to the pipelines. An OTTL condition; with context request, "
                "request[\"key\"] == \"value\" or !=."),
    CONFIG_TEXT(
        struct routing_entry, statement, "statement", NULL,
        "The same, as an OTTL statement: route() where a condition holds; or delete_key(…), "
        "delete_matching_keys(…), which also edit what they match."),
    CONFIG_TEXT_NOT_EMPTY(struct routing_entry, action, "action",
                          "move (the default): what matches is not looked at by later entries. "
                          "copy: it is."),
    CONFIG_TEXTS(struct routing_entry, pipelines, "pipelines", NULL,
                 "Pipelines that have the connector as a receiver. Required."),
    CONFIG_END,
};

const struct config_field routing_fields[] = {
    CONFIG_TEXT_NOT_EMPTY(struct routing_config, error_mode, "error_mode",
                          "What a condition that fails does: ignore or silent (it does not hold), "
                          "propagate (the request is refused). ignore by default."),
    CONFIG_TEXTS(struct routing_config, default_pipelines, "default_pipelines", NULL,
                 "Where items go that no entry has moved. Without it they are dropped."),
    CONFIG_SECTIONS(struct routing_config, table, struct routing_entry, "table", entry_fields, NULL,
                    "Entries, looked at in order. Required."),
    CONFIG_END,
};

/* Contexts of entries; in which signal each is at home. */
static const struct {
    enum ottl_context context;
    enum signal_kind signal;
} contexts[] = {{OTTL_RESOURCE, SIGNAL_KINDS}, {OTTL_OTELCOL, SIGNAL_KINDS}, {OTTL_SPAN, TRACES},
                {OTTL_METRIC, METRICS},        {OTTL_DATA_POINT, METRICS},   {OTTL_LOG, LOGS},
                {OTTL_PROFILE, PROFILES}};
enum { CONTEXTS = sizeof(contexts) / sizeof(contexts[0]) };

static bool is_known(enum ottl_context context)
{
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (contexts[i].context == context)
            return true;
    return false;
}

static bool ends_with(struct slice text, const char *end)
{
    const size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

static bool begins_with(struct slice text, const char *begin)
{
    const size_t size = strlen(begin);
    return text.size >= size && memcmp(text.data, begin, size) == 0;
}

static struct slice trim(struct slice text)
{
    static const char spaces[] = " \t\n\v\f\r";
    while (text.size > 0 && memchr(spaces, text.data[0], sizeof(spaces) - 1) != NULL)
        text = slice_of(text.data + 1, text.size - 1);
    while (text.size > 0 && memchr(spaces, text.data[text.size - 1], sizeof(spaces) - 1) != NULL)
        text.size--;
    return text;
}

/* The place of "==" or "!=" from there on, or NULL. */
static const char *find_comparison(const char *text)
{
    for (; text[0] != '\0'; text++)
        if ((text[0] == '=' || text[0] == '!') && text[1] == '=')
            return text;
    return NULL;
}

/* Go looks for the parts rather than at a whole: what stands before or behind them belongs to the
 * key, or to the value. */
static bool read_request(const char *text, struct request_condition *ret, struct error *error)
{
    const char *at = find_comparison(text);
    if (at == NULL)
        return error_set(error, "condition does not contain a valid comparator; expected "
                                "request[\"key\"] == \"value\", or !=");
    if (find_comparison(at + 2) != NULL)
        return error_set(error, "condition contains multiple comparators; expected "
                                "request[\"key\"] == \"value\", or !=");
    struct slice key = trim(slice_of(text, (size_t)(at - text)));
    struct slice value = trim(slice_of_text(at + 2));
    const uint8_t *begin = memmem(key.data, key.size, REQUEST_BEGIN, sizeof(REQUEST_BEGIN) - 1);
    const size_t left =
        begin != NULL ? key.size - (size_t)(begin - key.data) - (sizeof(REQUEST_BEGIN) - 1) : 0;
    if (begin == NULL || memmem(begin + sizeof(REQUEST_BEGIN) - 1, left, REQUEST_END,
                                sizeof(REQUEST_END) - 1) == NULL)
        return error_set(error,
                         "condition must have format 'request[\"<name>\"] <comparator> "
                         "\"<value>\"'; found \"%.*s\" on the left",
                         (int)key.size, (const char *)key.data);
    const uint8_t *quote = value.size > 0 ? memchr(value.data, '"', value.size) : NULL;
    if (quote == NULL ||
        memchr(quote + 1, '"', value.size - (size_t)(quote + 1 - value.data)) == NULL)
        return error_set(error,
                         "condition must have format 'request[\"<name>\"] <comparator> "
                         "\"<value>\"'; found %.*s on the right",
                         (int)value.size, (const char *)value.data);
    if (begins_with(key, REQUEST_BEGIN))
        key =
            slice_of(key.data + sizeof(REQUEST_BEGIN) - 1, key.size - (sizeof(REQUEST_BEGIN) - 1));
    if (ends_with(key, REQUEST_END))
        key.size -= sizeof(REQUEST_END) - 1;
    if (begins_with(value, "\""))
        value = slice_of(value.data + 1, value.size - 1);
    if (ends_with(value, "\""))
        value.size--;
    *ret = (struct request_condition){.key = key, .value = value, .is_equal = at[0] == '='};
    return true;
}

bool request_condition_holds(const struct request_condition *condition,
                             const struct client_info *client)
{
    for (size_t i = 0; client != NULL && i < client->metadata_count; i++) {
        const struct client_metadata *row = &client->metadata[i];
        if (strlen(row->key) != condition->key.size ||
            strncasecmp(row->key, (const char *)condition->key.data, condition->key.size) != 0)
            continue;
        if (slice_equal_text(condition->value, row->value) == condition->is_equal)
            return true;
    }
    return false;
}

/* What holds after route() becomes the condition: it edits nothing. */
static void keep_condition(struct ottl_plan *plan)
{
    static const struct ottl_test always = {
        .test = ottl_test_literal, .is_literal = true, .is_true = true};
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        struct ottl_sequence *sequence = plan->sequences[i];
        if (sequence == NULL || sequence->statements_count == 0 ||
            strcmp(sequence->statements[0].editor.function->name, "route") != 0)
            continue;
        struct ottl_test *where = sequence->statements[0].where;
        /* ottl_plan_add leaves room for one. */
        sequence->conditions[0] = (struct ottl_condition){
            .test = where != NULL ? where : (struct ottl_test *)(uintptr_t)&always,
            .text = sequence->statements[0].text};
        sequence->conditions_count = 1;
        sequence->statements_count = 0;
    }
}

/* The entry in a context, or in the one that its paths name (OTTL_CONTEXTS). NULL: error says why
 * not. */
static struct ottl_plan *compile(const struct routing_entry *entry, enum signal_kind signal,
                                 enum ottl_context context, enum ottl_error_mode mode,
                                 struct error *error)
{
    struct ottl_plan *plan = ottl_plan_create(signal, OTTL_FOR_ROUTING);
    const bool is_condition = entry->condition[0] != '\0';
    const char *text = is_condition ? entry->condition : entry->statement;
    const struct ottl_group group = {.context = context,
                                     .paths = context == OTTL_CONTEXTS ? OTTL_PATHS_FULL
                                                                       : OTTL_PATHS_OF_CONTEXT,
                                     .error_mode = mode,
                                     .conditions = &text,
                                     .conditions_count = is_condition,
                                     .statements = &text,
                                     .statements_count = !is_condition};
    bool is_fine = ottl_plan_add(plan, &group, true, error);
    for (unsigned i = 0; is_fine && i < OTTL_CONTEXTS; i++)
        if (plan->sequences[i] != NULL && !is_known((enum ottl_context)i))
            is_fine = error_set(error,
                                "routing has no conditions on the context %s; expected "
                                "resource, span, metric, datapoint, log or profile",
                                ottl_context_type((enum ottl_context)i)->name);
    if (is_fine) {
        keep_condition(plan);
        ottl_plan_finish(plan);
        return plan;
    }
    error->steps_count = 0;
    ottl_plan_destroy(plan);
    return NULL;
}

/* As Go: by the paths, whatever the signal; if they name no context, of the Resource. */
static struct ottl_plan *compile_inferred(const struct routing_entry *entry,
                                          enum signal_kind signal, enum ottl_error_mode mode,
                                          bool *ret_never, struct error *error)
{
    struct error ignored = {.text = ""};
    struct ottl_plan *plan = compile(entry, signal, OTTL_CONTEXTS, mode, error);
    for (unsigned i = 0; plan == NULL && i < CONTEXTS; i++) {
        if (contexts[i].signal == signal || contexts[i].signal == SIGNAL_KINDS)
            continue;
        plan = compile(entry, contexts[i].signal, OTTL_CONTEXTS, mode, &ignored);
        *ret_never = plan != NULL;
    }
    return plan != NULL ? plan : compile(entry, signal, OTTL_RESOURCE, mode, &ignored);
}

enum { PATHS_MAX = 256 };

/* Where paths begin that name no context of their own; of the first PATHS_MAX, in order. Recursion
 * is bounded by the depth of trees. */
static void find_bare_paths(const struct ottl_tree *tree, unsigned reaches, uint32_t *places,
                            size_t *count)
{
    for (; tree != NULL; tree = tree->next) {
        const enum ottl_context named = ottl_context_find(tree->text);
        if (tree->kind == OTTL_TREE_PATH && *count < PATHS_MAX &&
            (named == OTTL_CONTEXTS || (reaches & OTTL_CONTEXT_BIT(named)) == 0)) {
            size_t at = (*count)++;
            for (; at > 0 && places[at - 1] > tree->at; at--)
                places[at] = places[at - 1];
            places[at] = tree->at;
        }
        find_bare_paths(tree->first, reaches, places, count);
        find_bare_paths(tree->keys, reaches, places, count);
        find_bare_paths(tree->body, reaches, places, count);
    }
}

/* As Go writes it: a condition becomes a statement, and each path begins with its context. NULL: it
 * is too large to be compared. */
static const char *spell_out(struct ottl_plan *plan, const struct routing_entry *entry)
{
    const struct ottl_context_type *type =
        ottl_context_type((enum ottl_context)__builtin_ctz(plan->contexts));
    const bool is_condition = entry->condition[0] != '\0';
    const char *text = is_condition ? entry->condition : entry->statement;
    const size_t size = strlen(text);
    struct ottl_statement statement = {.editor = NULL, .where = NULL};
    struct ottl_problem problem;
    uint32_t places[PATHS_MAX];
    size_t count = 0;
    if (!(is_condition
              ? ottl_parse_condition(&plan->arena, slice_of_text(text), &statement.where, &problem)
              : ottl_parse_statement(&plan->arena, slice_of_text(text), &statement, &problem)))
        return NULL;
    find_bare_paths(statement.editor, type->reaches, places, &count);
    find_bare_paths(statement.where, type->reaches, places, &count);
    const size_t name = strlen(type->name) + 1;
    char *whole = arena_try_alloc(&plan->arena, sizeof(ROUTE_WHERE) + size + count * name);
    if (whole == NULL)
        return NULL;
    char *next = is_condition ? stpcpy(whole, ROUTE_WHERE) : whole;
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(next, text + done, places[i] - done);
        next = stpcpy(next + (places[i] - done), type->name);
        *next++ = '.';
        done = places[i];
    }
    stpcpy(next, text + done);
    return whole;
}

static bool has_text(struct route *route, const struct routing_entry *entry, struct error *error)
{
    route->text = route->plan != NULL ? spell_out(route->plan, entry) : NULL;
    return route->text != NULL ||
           (route->plan != NULL && error_set(error, "the condition is too large"));
}

static bool init_plan(struct route *route, const struct routing_entry *entry,
                      enum signal_kind signal, enum ottl_error_mode mode, struct error *error)
{
    const char *key = entry->condition[0] != '\0' ? "condition" : "statement";
    if (entry->context[0] == '\0') {
        route->plan = compile_inferred(entry, signal, mode, &route->is_never, error);
        return has_text(route, entry, error) || error_at(error, key);
    }
    for (unsigned i = 0; i < CONTEXTS; i++) {
        if (strcmp(entry->context, ottl_context_type(contexts[i].context)->name) != 0)
            continue;
        route->is_never = contexts[i].signal != SIGNAL_KINDS && contexts[i].signal != signal;
        route->plan = compile(entry, route->is_never ? contexts[i].signal : signal,
                              contexts[i].context, mode, error);
        return has_text(route, entry, error) || error_at(error, key);
    }
    error_set(error,
              "invalid context: %s; expected request, otelcol, resource, span, metric, "
              "datapoint, log or profile",
              entry->context);
    return error_at(error, "context");
}

static bool init_request(struct route *route, const struct routing_entry *entry,
                         struct error *error)
{
    route->is_of_request = true;
    if (entry->condition[0] == '\0')
        return error_set(error, "\"request\" context requires a 'condition'") ||
               error_at(error, "statement");
    return read_request(entry->condition, &route->request, error) || error_at(error, "condition");
}

static bool init_route(struct route *route, const struct routing_entry *entry,
                       enum signal_kind signal, enum ottl_error_mode mode, struct error *error)
{
    if (entry->statement[0] == '\0' && entry->condition[0] == '\0')
        return error_set(error, "invalid route: no condition or statement provided");
    if (entry->statement[0] != '\0' && entry->condition[0] != '\0')
        return error_set(error, "invalid route: both condition and statement provided; keep one") ||
               error_at(error, "statement");
    if (entry->pipelines.count == 0)
        return error_set(error, "invalid route: no pipelines defined; list at least one pipeline "
                                "that has this connector as a receiver");
    route->is_copy = strcmp(entry->action, "copy") == 0;
    if (!route->is_copy && entry->action[0] != '\0' && strcmp(entry->action, "move") != 0)
        return error_set(error, "invalid Action string: %s; expected move or copy",
                         entry->action) ||
               error_at(error, "action");
    return strcmp(entry->context, "request") == 0 ? init_request(route, entry, error)
                                                  : init_plan(route, entry, signal, mode, error);
}

bool route_init(struct route *route, const struct routing_config *config, size_t index,
                enum signal_kind signal, enum ottl_error_mode mode, struct error *error)
{
    const struct routing_entry *entries = config->table.items;
    *route = (struct route){.plan = NULL};
    return init_route(route, &entries[index], signal, mode, error) ||
           error_at_index(error, index) || error_at(error, "table");
}

void route_fini(struct route *route)
{
    ottl_plan_destroy(route->plan);
    route->plan = NULL;
}

bool routes_are_equal(const struct route *left, const struct route *right)
{
    if (left->is_of_request != right->is_of_request)
        return false;
    if (left->is_of_request)
        return slice_equal(left->request.key, right->request.key) &&
               slice_equal(left->request.value, right->request.value) &&
               left->request.is_equal == right->request.is_equal;
    return left->plan->contexts == right->plan->contexts && strcmp(left->text, right->text) == 0;
}

bool routing_check(const void *section, struct error *error)
{
    const struct routing_config *config = section;
    enum ottl_error_mode mode = OTTL_IGNORE;
    if (config->error_mode[0] != '\0' && !ottl_error_mode_read(config->error_mode, &mode, error))
        return false;
    if (config->table.count == 0)
        return error_set(error, "invalid routing table: the routing table is empty") ||
               error_at(error, "table");
    for (size_t i = 0; i < config->table.count; i++) {
        struct route route;
        bool is_fine = route_init(&route, config, i, TRACES, mode, error);
        route_fini(&route);
        if (!is_fine)
            return false;
    }
    return true;
}
