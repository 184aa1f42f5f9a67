/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to compiled attribute actions. Runs on the main thread, at start. */
#include "src/otlp/attributes/action.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <strings.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/otlp/attributes/attribute_actions.h"

const struct config_field attribute_action_fields[] = {
    CONFIG_TEXT(struct attribute_action_config, key, "key", "", "The attribute to act upon."),
    CONFIG_TEXT(struct attribute_action_config, action, "action", "",
                "insert (only if absent), update (only if present), upsert, delete, hash (SHA-256, "
                "lower-case hex), extract or convert; in any case."),
    CONFIG_VALUE(struct attribute_action_config, value, "value",
                 "insert, update, upsert: the value, with its YAML type."),
    CONFIG_VALUE(struct attribute_action_config, default_value, "default_value",
                 "insert, update, upsert: the value when the other source has none."),
    CONFIG_TEXT(struct attribute_action_config, from_attribute, "from_attribute", "",
                "insert, update, upsert: take the value of this attribute of the same resource."),
    CONFIG_TEXT(struct attribute_action_config, from_context, "from_context", "",
                "insert, update, upsert: take it from the request: metadata.<key> (needs "
                "include_metadata), auth.<attribute>, client.address, or a bare metadata key."),
    CONFIG_TEXT(struct attribute_action_config, pattern, "pattern", "",
                "delete, hash: also the keys that match; extract: groups (?P<name>…) of the text."),
    CONFIG_TEXT(struct attribute_action_config, converted_type, "converted_type", "",
                "convert: int, double or string."),
    CONFIG_END,
};

static const char *const verbs[ACTION_VERBS] = {
    [ACTION_INSERT] = "insert",   [ACTION_UPDATE] = "update", [ACTION_UPSERT] = "upsert",
    [ACTION_DELETE] = "delete",   [ACTION_HASH] = "hash",     [ACTION_EXTRACT] = "extract",
    [ACTION_CONVERT] = "convert",
};

/* An entry while it is checked. */
struct draft {
    const struct attribute_action_config *config;
    size_t index;
    char verb[32]; /* lower case, as errors show it */
    struct error *error;
    struct action *action;
};

static bool is_set(const char *text)
{
    return text[0] != '\0';
}

static bool has(const struct config_value *value)
{
    return value != NULL && value->type != CONFIG_VALUE_NULL;
}

/* In the words of the Go collector, by which people search; key is the one that is wrong, or that
 * is missing. */
static bool __attribute__((format(printf, 3, 4)))
refuse(const struct draft *draft, const char *key, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return error_set(draft->error,
                     "error with key \"%s\" (%zu-th action): error creating AttrProc%s",
                     draft->config->key, draft->index, text) ||
           error_at(draft->error, key);
}

static unsigned count_sources(const struct attribute_action_config *config)
{
    return (unsigned)has(config->value) + is_set(config->from_attribute) +
           is_set(config->from_context);
}

static const char *first_source(const struct attribute_action_config *config)
{
    return has(config->value)               ? "value"
           : is_set(config->from_attribute) ? "from_attribute"
                                            : "from_context";
}

/* Of several. */
static const char *second_source(const struct attribute_action_config *config)
{
    assert(count_sources(config) > 1);
    bool is_first = has(config->value) && is_set(config->from_attribute);
    return is_first ? "from_attribute" : "from_context";
}

static bool refuse_converted_type(const struct draft *draft)
{
    assert(draft->verb[0] != '\0' || draft->action->verb == ACTION_VERBS);
    if (!is_set(draft->config->converted_type))
        return true;
    return refuse(draft, "converted_type",
                  ". Action \"%s\" does not use the \"converted_type\" field. This must not be "
                  "specified",
                  draft->verb);
}

static bool compile_pattern(const struct draft *draft)
{
    assert(draft->action->pattern == NULL);
    struct error cause;
    draft->action->pattern = pattern_create(draft->config->pattern, &cause);
    if (draft->action->pattern != NULL)
        return true;
    return refuse(draft, "pattern", ". Field \"pattern\" has invalid pattern: \"%s\" (%s)",
                  draft->config->pattern, cause.text);
}

static bool compile_source(const struct draft *draft)
{
    assert(draft->action->verb <= ACTION_UPSERT);
    const struct attribute_action_config *config = draft->config;
    struct action *action = draft->action;
    unsigned sources = count_sources(config);
    if (sources == 0 && !has(config->default_value))
        return refuse(draft, "value",
                      ". Either field \"value\", \"from_attribute\", \"from_context\", or "
                      "\"default_value\" must be specified");
    if (sources > 1)
        return refuse(draft, second_source(config), " due to multiple value sources being set");
    if (is_set(config->pattern))
        return refuse(draft, "pattern",
                      ". Action \"%s\" does not use the \"pattern\" field. This must not be "
                      "specified",
                      draft->verb);
    if (!refuse_converted_type(draft))
        return false;
    action->has_value = has(config->value);
    if (action->has_value)
        action->value = value_from_config(config->value);
    action->has_default_value = has(config->default_value);
    if (action->has_default_value)
        action->default_value = value_from_config(config->default_value);
    if (is_set(config->from_attribute))
        action->from_attribute = slice_of_text(config->from_attribute);
    action->from_context = is_set(config->from_context) ? config->from_context : NULL;
    return true;
}

static bool compile_match(const struct draft *draft)
{
    assert(draft->action->verb == ACTION_DELETE || draft->action->verb == ACTION_HASH);
    if (has(draft->config->value) || is_set(draft->config->from_attribute))
        return refuse(draft, first_source(draft->config),
                      ". Action \"%s\" does not use \"value\" or \"from_attribute\" field. These "
                      "must not be specified",
                      draft->verb);
    if (is_set(draft->config->pattern) && !compile_pattern(draft))
        return false;
    return refuse_converted_type(draft);
}

static bool check_groups(const struct draft *draft)
{
    size_t count = pattern_groups(draft->action->pattern);
    if (count == 0)
        return refuse(draft, "pattern", ". Field \"pattern\" contains no named matcher groups");
    if (count > ACTION_GROUPS_MAX)
        return refuse(draft, "pattern", ". Field \"pattern\" contains more than %u matcher groups",
                      ACTION_GROUPS_MAX);
    for (size_t i = 1; i <= count; i++)
        if (pattern_group_name(draft->action->pattern, i) == NULL)
            return refuse(draft, "pattern",
                          ". Field \"pattern\" contains at least one unnamed matcher group");
    return true;
}

static bool compile_extract(const struct draft *draft)
{
    assert(draft->action->verb == ACTION_EXTRACT);
    if (count_sources(draft->config) > 0)
        return refuse(draft, first_source(draft->config),
                      ". Action \"%s\" does not use a value source field. These must not be "
                      "specified",
                      draft->verb);
    if (!is_set(draft->config->pattern))
        return refuse(draft, "pattern",
                      " due to missing required field \"pattern\" for action \"%s\"", draft->verb);
    return refuse_converted_type(draft) && compile_pattern(draft) && check_groups(draft);
}

static bool compile_convert(const struct draft *draft)
{
    assert(draft->action->verb == ACTION_CONVERT);
    const char *type = draft->config->converted_type;
    if (count_sources(draft->config) > 0 || is_set(draft->config->pattern))
        return refuse(draft,
                      is_set(draft->config->pattern) ? "pattern" : first_source(draft->config),
                      ". Action \"%s\" does not use value sources or \"pattern\" field. These must "
                      "not be specified",
                      draft->verb);
    if (!is_set(type))
        return refuse(draft, "converted_type",
                      " due to missing required field \"converted_type\" for action \"%s\"",
                      draft->verb);
    if (strcmp(type, "string") == 0)
        draft->action->converted_type = VALUE_TEXT;
    else if (strcmp(type, "int") == 0)
        draft->action->converted_type = VALUE_INT;
    else if (strcmp(type, "double") == 0)
        draft->action->converted_type = VALUE_DOUBLE;
    else
        return refuse(draft, "converted_type",
                      " due to invalid value \"%s\" in field \"converted_type\" for action \"%s\"",
                      type, draft->verb);
    return true;
}

static enum action_verb verb_of(const struct draft *draft)
{
    enum action_verb verb = 0;
    while (verb < ACTION_VERBS && strcmp(verbs[verb], draft->verb) != 0)
        verb++;
    return verb;
}

static bool check_key(const struct draft *draft)
{
    bool is_match = draft->action->verb == ACTION_DELETE || draft->action->verb == ACTION_HASH;
    if (is_set(draft->config->key) || (is_match && is_set(draft->config->pattern)))
        return true;
    if (is_match)
        return error_set(draft->error,
                         "error creating AttrProc due to missing required field (at least one of "
                         "\"key\" and \"pattern\" have to be used) at the %zu-th action",
                         draft->index) ||
               error_at(draft->error, "key");
    return error_set(draft->error,
                     "error creating AttrProc due to missing required field \"key\" at the %zu-th "
                     "action",
                     draft->index) ||
           error_at(draft->error, "key");
}

static bool compile(struct draft *draft)
{
    snprintf(draft->verb, sizeof(draft->verb), "%s", draft->config->action);
    for (char *at = draft->verb; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    draft->action->verb = verb_of(draft);
    draft->action->key = slice_of_text(draft->config->key);
    if (!check_key(draft))
        return false;
    switch (draft->action->verb) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        return compile_source(draft);
    case ACTION_DELETE:
        return compile_match(draft);
    case ACTION_HASH:
        return digest_prepare(draft->error) && compile_match(draft);
    case ACTION_EXTRACT:
        return compile_extract(draft);
    case ACTION_CONVERT:
        return compile_convert(draft);
    case ACTION_VERBS:
    default:
        return refuse(draft, "action", " due to unsupported action \"%s\"", draft->verb);
    }
}

struct attribute_actions *attribute_actions_create(const struct attribute_action_config *configs,
                                                   size_t count, struct error *error)
{
    assert(configs != NULL || count == 0);
    struct attribute_actions *actions =
        mem_zalloc(sizeof(*actions) + count * sizeof(actions->items[0]));
    for (size_t i = 0; i < count; i++) {
        struct draft draft = {
            .config = &configs[i], .index = i, .error = error, .action = &actions->items[i]};
        actions->count++;
        if (!compile(&draft)) {
            error_at_index(error, i);
            attribute_actions_destroy(actions);
            return NULL;
        }
    }
    return actions;
}

void attribute_actions_destroy(struct attribute_actions *actions)
{
    if (actions == NULL)
        return;
    for (size_t i = 0; i < actions->count; i++) {
        pattern_destroy(actions->items[i].pattern);
        mem_free((void *)(uintptr_t)actions->items[i].value.data);
        mem_free((void *)(uintptr_t)actions->items[i].default_value.data);
    }
    mem_free(actions);
}
