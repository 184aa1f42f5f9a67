/* SPDX-License-Identifier: Apache-2.0 */
/* Applying attribute actions. Any thread; the list has one owner. */
#include "src/otlp/attributes/attribute_actions.h"

#include <assert.h>
#include <strings.h>

#include "src/base/digest.h"
#include "src/base/hex.h"
#include "src/base/pattern.h"
#include "src/core/client_info.h"
#include "src/otlp/attributes/action.h"
#include "src/otlp/attributes/attribute_list.h"
#include "src/otlp/json/value_text.h"
#include "src/otlp/value.h"

/* Values of one metadata key, joined by ";" as Go does. */
static bool metadata_value(const struct client_info *client, const char *key, struct arena *arena,
                           struct slice *ret_value)
{
    size_t size = 0;
    size_t used = 0;
    bool is_first = true;
    for (size_t i = 0; i < client->metadata_count; i++)
        if (strcasecmp(client->metadata[i].key, key) == 0)
            size += strlen(client->metadata[i].value) + 1;
    char *joined = size > 0 ? arena_try_alloc(arena, size) : NULL;
    if (joined == NULL)
        return false;
    for (size_t i = 0; i < client->metadata_count; i++) {
        if (strcasecmp(client->metadata[i].key, key) != 0)
            continue;
        if (!is_first)
            joined[used++] = ';';
        is_first = false;
        size_t length = strlen(client->metadata[i].value);
        memcpy(joined + used, client->metadata[i].value, length);
        used += length;
    }
    return value_write_text(arena, slice_of(joined, used), ret_value);
}

static bool auth_value(const struct client_info *client, const char *name, struct arena *arena,
                       struct slice *ret_value)
{
    for (size_t i = 0; i < client->auth_count; i++)
        if (strcmp(client->auth[i].key, name) == 0)
            return value_write_text(arena, slice_of_text(client->auth[i].value), ret_value);
    return false;
}

/* client.address, metadata.<key>, auth.<attribute>, or a bare metadata key. */
static bool context_value(const struct client_info *client, const char *name, struct arena *arena,
                          struct slice *ret_value)
{
    static const char metadata[] = "metadata.";
    static const char auth[] = "auth.";
    if (strcmp(name, "client.address") == 0) {
        const char *address = client != NULL && client->address != NULL ? client->address : "";
        return value_write_text(arena, slice_of_text(address), ret_value);
    }
    if (client == NULL)
        return false;
    if (strncmp(name, auth, strlen(auth)) == 0)
        return auth_value(client, name + strlen(auth), arena, ret_value);
    if (strncmp(name, metadata, strlen(metadata)) == 0)
        name += strlen(metadata);
    return metadata_value(client, name, arena, ret_value);
}

static bool source_value(const struct action *action, const struct client_info *client,
                         struct attribute_list *list, struct slice *ret_value)
{
    assert(action->verb <= ACTION_UPSERT);
    if (action->has_value) {
        *ret_value = action->value;
        return true;
    }
    if (action->from_context != NULL &&
        context_value(client, action->from_context, &list->arena, ret_value))
        return true;
    if (action->from_attribute.data != NULL) {
        const struct attribute *source = attribute_list_find(list, action->from_attribute);
        if (source != NULL) {
            *ret_value = source->value;
            return true;
        }
    }
    *ret_value = action->default_value;
    return action->has_default_value;
}

static void set_from_source(const struct action *action, const struct client_info *client,
                            struct attribute_list *list)
{
    assert(action->verb <= ACTION_UPSERT);
    struct slice value;
    if (!source_value(action, client, list, &value))
        return;
    bool is_present = attribute_list_find(list, action->key) != NULL;
    if (action->verb == ACTION_INSERT && is_present)
        return;
    if (action->verb == ACTION_UPDATE && !is_present)
        return;
    attribute_list_put(list, action->key, value);
}

static struct slice little_endian(uint64_t number, uint8_t bytes[8])
{
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    return slice_of(bytes, 8);
}

/* The bytes that are hashed: text as it is, a bool as one byte, numbers as eight, little endian.
 * False for everything else, which becomes the empty text. */
static bool hashed_bytes(const struct value *value, uint8_t room[8], struct slice *ret_bytes)
{
    uint64_t bits;
    switch (value->type) {
    case VALUE_TEXT:
        *ret_bytes = value->bytes;
        return true;
    case VALUE_BOOL:
        room[0] = value->boolean;
        *ret_bytes = slice_of(room, 1);
        return true;
    case VALUE_INT:
        *ret_bytes = little_endian((uint64_t)value->integer, room);
        return true;
    case VALUE_DOUBLE:
        memcpy(&bits, &value->real, sizeof(bits));
        *ret_bytes = little_endian(bits, room);
        return true;
    case VALUE_EMPTY:
    case VALUE_LIST:
    case VALUE_MAP:
    case VALUE_BYTES:
    default:
        return false;
    }
}

static void hash(struct attribute_list *list, struct attribute *attribute)
{
    assert(attribute >= list->items && attribute < list->items + list->count);
    uint8_t room[8];
    uint8_t sum[DIGEST_SHA256_BYTES];
    char text[2 * DIGEST_SHA256_BYTES];
    struct slice input;
    struct slice hashed;
    struct slice digits = slice_of_text("");
    struct value value = value_read(attribute->value);
    if (hashed_bytes(&value, room, &input)) {
        digest_sha256(input, sum);
        digits = hex_write(sum, sizeof(sum), text);
    }
    if (value_write_text(&list->arena, digits, &hashed))
        attribute_list_set(list, attribute, hashed);
}

static void hash_matching(const struct action *action, struct attribute_list *list)
{
    assert(action->verb == ACTION_HASH);
    struct attribute *first = attribute_list_find(list, action->key);
    if (first != NULL)
        hash(list, first);
    for (size_t i = 0; action->pattern != NULL && i < list->count; i++)
        if (pattern_matches(action->pattern, list->items[i].key))
            hash(list, &list->items[i]);
}

static void delete_matching(const struct action *action, struct attribute_list *list)
{
    assert(action->verb == ACTION_DELETE);
    attribute_list_remove(list, action->key);
    if (action->pattern != NULL)
        attribute_list_remove_matching(list, action->pattern);
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
    if (value.type != VALUE_TEXT || !pattern_find(action->pattern, value.bytes, groups, count))
        return;
    for (size_t i = 0; i < count; i++) {
        struct slice encoded;
        if (value_write_text(&list->arena, groups[i], &encoded))
            attribute_list_put(list, slice_of_text(pattern_group_name(action->pattern, i + 1)),
                               encoded);
    }
}

/* What Go's conversion gives on amd64 when the number is out of range or none. */
static int64_t truncated(double real)
{
    bool is_in_range = real >= -0x1p63 && real < 0x1p63;
    return is_in_range ? (int64_t)real : INT64_MIN;
}

static bool to_int(const struct value *value, struct value *ret_converted)
{
    struct value converted = {.type = VALUE_INT, .integer = value->boolean};
    if (value->type == VALUE_DOUBLE)
        converted.integer = truncated(value->real);
    else if (value->type == VALUE_TEXT && !text_to_int(value->bytes, &converted.integer))
        return false;
    else if (value->type != VALUE_TEXT && value->type != VALUE_BOOL)
        return false;
    *ret_converted = converted;
    return true;
}

static bool to_double(const struct value *value, struct value *ret_converted)
{
    struct value converted = {.type = VALUE_DOUBLE, .real = value->boolean};
    if (value->type == VALUE_INT)
        converted.real = (double)value->integer;
    else if (value->type == VALUE_TEXT && !text_to_double(value->bytes, &converted.real))
        return false;
    else if (value->type != VALUE_TEXT && value->type != VALUE_BOOL)
        return false;
    *ret_converted = converted;
    return true;
}

/* What cannot be converted stays as it is. */
static void convert(const struct action *action, struct attribute_list *list)
{
    assert(action->verb == ACTION_CONVERT);
    struct attribute *attribute = attribute_list_find(list, action->key);
    if (attribute == NULL)
        return;
    struct value value = value_read(attribute->value);
    struct value converted = {.type = VALUE_TEXT};
    struct slice encoded;
    bool is_convertible = value.type != action->converted_type;
    if (is_convertible && action->converted_type == VALUE_TEXT)
        is_convertible = value_to_text(&list->arena, attribute->value, &converted.bytes);
    else if (is_convertible && action->converted_type == VALUE_INT)
        is_convertible = to_int(&value, &converted);
    else if (is_convertible)
        is_convertible = to_double(&value, &converted);
    if (is_convertible && value_write(&list->arena, &converted, &encoded))
        attribute_list_set(list, attribute, encoded);
}

void attribute_actions_apply(const struct attribute_actions *actions,
                             const struct client_info *client, struct attribute_list *list)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct action *action = &actions->items[i];
        switch (action->verb) {
        case ACTION_INSERT:
        case ACTION_UPDATE:
        case ACTION_UPSERT:
            set_from_source(action, client, list);
            break;
        case ACTION_DELETE:
            delete_matching(action, list);
            break;
        case ACTION_HASH:
            hash_matching(action, list);
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
