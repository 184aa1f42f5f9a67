/* SPDX-License-Identifier: Apache-2.0 */
/* Runs when the configuration is read. */
#include "processors/shared/statement_groups.h"

#include <strings.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/component.h"

enum { CONTEXT_BYTES_MAX = 32 };

static bool read_context(const char *text, enum signal_kind signal, enum ottl_context *ret,
                         struct error *error)
{
    const unsigned known = ottl_contexts_of(signal);
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        const struct ottl_context_type *type = ottl_context_type((enum ottl_context)i);
        if (type == NULL || (known & OTTL_CONTEXT_BIT(i)) == 0 || strcasecmp(text, type->name) != 0)
            continue;
        *ret = (enum ottl_context)i;
        return true;
    }
    return error_set(error, "unknown context \"%s\" for %s", text, signal_name(signal)) ||
           error_at(error, "context");
}

static bool read_entry(const char *key, const struct config_value *value, enum signal_kind signal,
                       bool has_statements, struct statement_group *ret, struct error *error)
{
    bool is_text = strcmp(key, "context") == 0 || strcmp(key, "error_mode") == 0;
    bool is_list =
        strcmp(key, "conditions") == 0 || (has_statements && strcmp(key, "statements") == 0);
    if (!is_text && !is_list)
        return error_set(error, "unknown key \"%s\"; expected context, conditions%s or error_mode",
                         key, has_statements ? ", statements" : "");
    if (value->type == CONFIG_VALUE_NULL)
        return true;
    if (value->type != (is_text ? CONFIG_VALUE_TEXT : CONFIG_VALUE_LIST))
        return error_set(error, "expected %s", is_text ? "a string" : "a list of strings") ||
               error_at(error, is_text && key[0] == 'c' ? "context"
                               : is_text                ? "error_mode"
                               : key[0] == 'c'          ? "conditions"
                                                        : "statements");
    if (is_list) {
        *(key[0] == 'c' ? &ret->conditions : &ret->statements) = value;
        return true;
    }
    if (value->text[0] == '\0')
        return true;
    return key[0] == 'c' ? read_context(value->text, signal, &ret->context, error)
                         : ottl_error_mode_read(value->text, &ret->error_mode, error);
}

bool statement_error_mode(const char *text, const struct component *component,
                          enum feature_gate gate, enum ottl_error_mode *ret, struct error *error)
{
    const struct service_view *service = component != NULL ? component->service : NULL;
    if (text[0] != '\0')
        return ottl_error_mode_read(text, ret, error);
    *ret = feature_gate_is_enabled(service != NULL ? service->gates : NULL, gate) ? OTTL_IGNORE
                                                                                  : OTTL_PROPAGATE;
    return true;
}

bool statement_group_read(const struct config_value *map, enum signal_kind signal,
                          bool has_statements, enum ottl_error_mode error_mode,
                          struct statement_group *ret, struct error *error)
{
    *ret = (struct statement_group){.context = OTTL_CONTEXTS, .error_mode = error_mode};
    for (size_t i = 0; i < map->count; i++)
        if (!read_entry(map->keys[i], &map->items[i], signal, has_statements, ret, error))
            return false;
    return true;
}

const char **statement_texts(const struct config_value *list, struct error *error)
{
    const size_t count = list != NULL ? list->count : 0;
    const char **texts = mem_alloc((count + 1) * sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        texts[i] = list->items[i].text;
        if (list->items[i].type == CONFIG_VALUE_TEXT)
            continue;
        error_set(error, "expected a string");
        error_at_index(error, i);
        mem_free(texts);
        return NULL;
    }
    return texts;
}
