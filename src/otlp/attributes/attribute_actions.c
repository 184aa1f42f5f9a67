/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute actions: compiles the configuration (main thread, at start), then applies the actions
 * to lists of attributes (any thread; a list has one owner). */
#include "src/otlp/attributes/attribute_actions.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <strings.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/core/client_info.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"

enum { ACTION_GROUPS_MAX = 64 };

enum action_verb {
    ACTION_INSERT,
    ACTION_UPDATE,
    ACTION_UPSERT,
    ACTION_DELETE,
    ACTION_HASH,
    ACTION_EXTRACT,
    ACTION_CONVERT,
    ACTION_VERBS,
};

/* A compiled action. Strings point into the configuration; values and the pattern are owned. */
struct action {
    enum action_verb verb;
    struct slice key;
    bool has_value;
    bool has_default_value;
    struct slice value;
    struct slice default_value;
    struct slice from_attribute; /* no data: not a source */
    const char *from_context;    /* NULL: not a source */
    struct pattern *pattern;
    enum value_type converted_type;
};

struct attribute_actions {
    size_t count;
    struct action items[];
};

/* ---- Compiling ---- */

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
                "insert, update, upsert: take the value of this attribute of the same list."),
    CONFIG_TEXT(struct attribute_action_config, from_context, "from_context", "",
                "insert, update, upsert: take it from the request: metadata.<key> (needs "
                "include_metadata), auth.<attribute>, client.address, or a bare metadata key."),
    CONFIG_TEXT(
        struct attribute_action_config, pattern, "pattern", "",
        "delete, hash: also the keys that match; extract: groups (?P<name>…) of the value."),
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

/* Uses the Go collector's words, which people search for. key is the wrong or missing one. */
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
    if (sources > 1) {
        bool is_second = has(config->value) && is_set(config->from_attribute);
        return refuse(draft, is_second ? "from_attribute" : "from_context",
                      " due to multiple value sources being set");
    }
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
    if (!refuse_converted_type(draft) || !compile_pattern(draft))
        return false;
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
        draft->action->converted_type = VALUE_STRING;
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

static bool compile(struct draft *draft)
{
    snprintf(draft->verb, sizeof(draft->verb), "%s", draft->config->action);
    for (char *at = draft->verb; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    enum action_verb verb = 0;
    while (verb < ACTION_VERBS && strcmp(verbs[verb], draft->verb) != 0)
        verb++;
    draft->action->verb = verb;
    draft->action->key = slice_of_text(draft->config->key);
    bool is_match = verb == ACTION_DELETE || verb == ACTION_HASH;
    if (!is_set(draft->config->key) && !(is_match && is_set(draft->config->pattern)))
        return error_set(draft->error,
                         is_match ? "error creating AttrProc due to missing required field (at "
                                    "least one of \"key\" and \"pattern\" have to be used) at the "
                                    "%zu-th action"
                                  : "error creating AttrProc due to missing required field "
                                    "\"key\" at the %zu-th action",
                         draft->index) ||
               error_at(draft->error, "key");
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

/* ---- Applying ---- */

/* client.address, metadata.<key>, auth.<attribute>, or a bare metadata key. */
static bool context_value(const struct client_info *client, const char *name, struct arena *arena,
                          struct slice *ret_value)
{
    static const char metadata[] = "metadata.";
    static const char auth[] = "auth.";
    if (strcmp(name, "client.address") == 0) {
        const char *address = client != NULL && client->address != NULL ? client->address : "";
        return value_write_string(arena, slice_of_text(address), ret_value);
    }
    if (client == NULL)
        return false;
    if (strncmp(name, auth, strlen(auth)) == 0) {
        for (size_t i = 0; i < client->auth_count; i++)
            if (strcmp(client->auth[i].key, name + strlen(auth)) == 0)
                return value_write_string(arena, slice_of_text(client->auth[i].value), ret_value);
        return false;
    }
    if (strncmp(name, metadata, strlen(metadata)) == 0)
        name += strlen(metadata);
    /* The values of one metadata key, joined by ";" as in Go. */
    size_t size = 0;
    size_t used = 0;
    for (size_t i = 0; i < client->metadata_count; i++)
        if (strcasecmp(client->metadata[i].key, name) == 0)
            size += strlen(client->metadata[i].value) + 1;
    char *joined = size > 0 ? arena_try_alloc(arena, size) : NULL;
    if (joined == NULL)
        return false;
    for (size_t i = 0; i < client->metadata_count; i++) {
        if (strcasecmp(client->metadata[i].key, name) != 0)
            continue;
        size_t length = strlen(client->metadata[i].value);
        memcpy(joined + used, client->metadata[i].value, length);
        used += length;
        joined[used++] = ';';
    }
    return value_write_string(arena, slice_of(joined, used - 1), ret_value);
}

static struct slice little_endian(uint64_t number, uint8_t bytes[8])
{
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    return slice_of(bytes, 8);
}

/* Hashes strings as they are, a bool as one byte, numbers as eight, little endian; all others
 * become the empty string. */
static void hash(struct attribute_list *list, struct attribute *attribute)
{
    assert(attribute >= list->items && attribute < list->items + list->count);
    uint8_t room[8];
    uint8_t sum[DIGEST_SHA256_BYTES];
    char text[2 * DIGEST_SHA256_BYTES];
    struct slice input = slice_of(NULL, 0);
    struct slice hashed;
    struct slice digits = slice_of_text("");
    uint64_t bits;
    struct value value = value_read(attribute->value);
    switch (value.type) {
    case VALUE_STRING:
        input = value.bytes;
        break;
    case VALUE_BOOL:
        room[0] = value.boolean;
        input = slice_of(room, 1);
        break;
    case VALUE_INT:
        input = little_endian((uint64_t)value.integer, room);
        break;
    case VALUE_DOUBLE:
        memcpy(&bits, &value.real, sizeof(bits));
        input = little_endian(bits, room);
        break;
    case VALUE_EMPTY:
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        break;
    }
    if (input.data != NULL) {
        digest_sha256(input, sum);
        digits = hex_write(sum, sizeof(sum), text);
    }
    if (value_write_string(&list->arena, digits, &hashed))
        attribute_list_set(list, attribute, hashed);
}

/* Each group becomes an attribute of its name. */
static void extract(const struct action *action, struct attribute_list *list)
{
    struct slice groups[ACTION_GROUPS_MAX];
    size_t count = pattern_groups(action->pattern);
    const struct attribute *source = attribute_list_find(list, action->key);
    if (source == NULL)
        return;
    struct value value = value_read(source->value);
    if (value.type != VALUE_STRING || !pattern_find(action->pattern, value.bytes, groups, count))
        return;
    for (size_t i = 0; i < count; i++) {
        struct slice encoded;
        if (value_write_string(&list->arena, groups[i], &encoded))
            attribute_list_put(list, slice_of_text(pattern_group_name(action->pattern, i + 1)),
                               encoded);
    }
}

/* A value that cannot be converted stays as it is. */
static void convert(const struct action *action, struct attribute_list *list)
{
    assert(action->verb == ACTION_CONVERT);
    struct attribute *attribute = attribute_list_find(list, action->key);
    if (attribute == NULL)
        return;
    struct value value = value_read(attribute->value);
    struct value converted = {.type = action->converted_type};
    if (value.type == converted.type)
        return;
    bool is_convertible = value.type == VALUE_BOOL;
    if (converted.type == VALUE_STRING) {
        is_convertible = value_to_string(&list->arena, attribute->value, &converted.bytes);
    } else if (converted.type == VALUE_INT) {
        converted.integer = value.boolean;
        if (value.type == VALUE_STRING)
            is_convertible = string_to_int(value.bytes, &converted.integer);
        if (value.type == VALUE_DOUBLE) {
            /* Out of range and NaN as in Go's conversion on amd64. */
            is_convertible = true;
            converted.integer =
                value.real >= -0x1p63 && value.real < 0x1p63 ? (int64_t)value.real : INT64_MIN;
        }
    } else {
        assert(converted.type == VALUE_DOUBLE);
        converted.real = value.boolean;
        if (value.type == VALUE_STRING)
            is_convertible = string_to_double(value.bytes, &converted.real);
        if (value.type == VALUE_INT) {
            is_convertible = true;
            converted.real = (double)value.integer;
        }
    }
    struct slice encoded;
    if (is_convertible && value_write(&list->arena, &converted, &encoded))
        attribute_list_set(list, attribute, encoded);
}

void attribute_actions_apply(const struct attribute_actions *actions,
                             const struct client_info *client, struct attribute_list *list)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct action *action = &actions->items[i];
        struct attribute *first;
        struct slice value;
        bool is_present;
        switch (action->verb) {
        case ACTION_INSERT:
        case ACTION_UPDATE:
        case ACTION_UPSERT:
            value = action->value;
            if (!action->has_value &&
                (action->from_context == NULL ||
                 !context_value(client, action->from_context, &list->arena, &value))) {
                const struct attribute *source = NULL;
                if (action->from_attribute.data != NULL)
                    source = attribute_list_find(list, action->from_attribute);
                if (source == NULL && !action->has_default_value)
                    break;
                value = source != NULL ? source->value : action->default_value;
            }
            is_present = attribute_list_find(list, action->key) != NULL;
            if (action->verb == ACTION_UPSERT || is_present == (action->verb == ACTION_UPDATE))
                attribute_list_put(list, action->key, value);
            break;
        case ACTION_DELETE:
            attribute_list_remove(list, action->key);
            if (action->pattern != NULL)
                attribute_list_remove_matching(list, action->pattern);
            break;
        case ACTION_HASH:
            first = attribute_list_find(list, action->key);
            if (first != NULL)
                hash(list, first);
            for (size_t k = 0; action->pattern != NULL && k < list->count; k++)
                if (pattern_matches(action->pattern, list->items[k].key))
                    hash(list, &list->items[k]);
            break;
        case ACTION_EXTRACT:
            extract(action, list);
            break;
        case ACTION_CONVERT:
            convert(action, list);
            break;
        case ACTION_VERBS:
        default:
            assert(false);
        }
    }
}
