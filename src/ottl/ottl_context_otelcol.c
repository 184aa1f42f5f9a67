/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the request's client (contrib 0.155, pkg/ottl/contexts/ottlotelcol): its address, its
 * headers, what its authenticator said. They are read-only, and nil where nobody knows the client
 * any more. Runs on the processor's thread. */
#include "src/ottl/ottl_context_otelcol.h"

#include <strings.h>

#include "src/core/client_info.h"
#include "src/ottl/ottl_node.h"

static bool fail_set(struct ottl_run *run, const struct ottl_path *path,
                     const struct ottl_value *value)
{
    (void)value;
    return ottl_run_fail(run, "\"otelcol.%s\" is read-only and cannot be modified",
                         path->row->name);
}

static bool get_address(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    (void)path;
    *ret = run->client != NULL && run->client->address[0] != '\0' ? ottl_text(run->client->address)
                                                                  : ottl_nil();
    return true;
}

/* Whether the row has the key, in any case. */
static bool has_key(const struct client_metadata *row, struct slice key)
{
    return strlen(row->key) == key.size &&
           strncasecmp(row->key, (const char *)key.data, key.size) == 0;
}

/* All values of a key. NULL: no memory. */
static struct ottl_list *values_of(struct ottl_run *run, struct slice key)
{
    struct ottl_list *list = ottl_list_create(run->memory);
    for (size_t i = 0; list != NULL && i < run->client->metadata_count; i++) {
        const struct client_metadata *row = &run->client->metadata[i];
        const struct ottl_value value = ottl_text(row->value);
        if (has_key(row, key) && !ottl_list_append(list, &value))
            list = NULL;
    }
    if (list == NULL)
        ottl_run_no_memory(run);
    return list;
}

static bool all_metadata(struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_map *map = ottl_map_create(run->memory);
    const size_t count = run->client != NULL ? run->client->metadata_count : 0;
    if (map == NULL)
        return ottl_run_no_memory(run);
    *ret = ottl_map_value(map);
    for (size_t i = 0; i < count; i++) {
        const struct client_metadata *row = &run->client->metadata[i];
        const struct ottl_value text = ottl_text(row->value);
        struct ottl_entry *entry = ottl_map_find(map, slice_of_text(row->key));
        struct ottl_value value;
        if (entry == NULL) {
            struct ottl_list *list = ottl_list_create(run->memory);
            if (list == NULL || (entry = ottl_map_append(map, slice_of_text(row->key))) == NULL)
                return ottl_run_no_memory(run);
            value = ottl_list_value(list, OTTL_FORM_PDATA);
            ottl_map_adopt(map, entry, &value);
        }
        if (!ottl_map_read(map, entry, &value) || !ottl_list_append(value.list, &text))
            return ottl_run_no_memory(run);
    }
    return true;
}

/* A list of strings takes one index more. */
static bool get_metadata(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct slice key;
    if (path->keys_count == 0)
        return all_metadata(run, ret);
    if (!ottl_key_text(run, &path->keys[0], &key))
        return false;
    *ret = ottl_nil();
    if (run->client == NULL)
        return true;
    struct ottl_list *list = values_of(run, key);
    if (list == NULL)
        return false;
    if (list->count == 0)
        return true;
    const struct ottl_value values = ottl_list_value(list, OTTL_FORM_PDATA);
    if (path->keys_count > 2)
        return ottl_run_fail(run, "cannot index into string slice more than once");
    return ottl_select(run, &values, path->keys + 1, path->keys_count - 1, ret);
}

/* Only requests by gRPC have it. */
static bool is_grpc(const struct client_info *client)
{
    for (size_t i = 0; i < client->metadata_count; i++)
        if (strcmp(client->metadata[i].key, ":authority") == 0)
            return true;
    return false;
}

static bool get_grpc_metadata(struct ottl_run *run, const struct ottl_path *path,
                              struct ottl_value *ret)
{
    const struct client_info *client = run->client;
    if (client != NULL && !is_grpc(client))
        run->client = NULL;
    bool is_fine = get_metadata(run, path, ret);
    run->client = client;
    return is_fine;
}

static bool all_auth(struct ottl_run *run, struct ottl_value *ret)
{
    struct ottl_map *map = ottl_map_create(run->memory);
    if (map == NULL)
        return ottl_run_no_memory(run);
    *ret = ottl_map_value(map);
    for (size_t i = 0; run->client != NULL && i < run->client->auth_count; i++) {
        const struct ottl_value value = ottl_text(run->client->auth[i].value);
        if (!ottl_map_put(map, slice_of_text(run->client->auth[i].key), &value))
            return ottl_run_no_memory(run);
    }
    return true;
}

static bool get_auth(struct ottl_run *run, const struct ottl_path *path, struct ottl_value *ret)
{
    struct slice key;
    if (path->keys_count == 0)
        return all_auth(run, ret);
    if (!ottl_key_text(run, &path->keys[0], &key))
        return false;
    *ret = ottl_nil();
    if (run->client == NULL || run->client->auth_count == 0)
        return true;
    for (size_t i = 0; i < run->client->auth_count && ret->type == OTTL_NIL; i++)
        if (slice_equal_text(key, run->client->auth[i].key))
            *ret = ottl_text(run->client->auth[i].value);
    return path->keys_count == 1 ||
           ottl_run_fail(run, "attribute \"%.*s\" value is not indexable: %s", (int)key.size,
                         (const char *)key.data, ret->type == OTTL_NIL ? "Empty" : "Str");
}

static const struct ottl_path_row otelcol_rows[] = {
    {"client.addr", get_address, fail_set, OTTL_NO_FIELD, false},
    {"client.metadata", get_metadata, fail_set, OTTL_NO_FIELD, true | OTTL_COPY},
    {"client.auth.attributes", get_auth, fail_set, OTTL_NO_FIELD, true | OTTL_COPY},
    {"grpc.metadata", get_grpc_metadata, fail_set, OTTL_NO_FIELD, true | OTTL_COPY},
    {.name = NULL},
};

const struct ottl_context_type ottl_otelcol_type = {
    .name = "otelcol",
    .reaches = OTTL_CONTEXT_BIT(OTTL_OTELCOL),
    .rows = otelcol_rows,
};
