/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions by metadata values, in a search tree. Runs on its owner's lane. */
#include "src/partition.h"

#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/client_info.h"
#include "src/mem.h"

void partitions_init(struct partitions *partitions, enum signal_kind signal, struct budget *budget,
                     struct config_texts keys, size_t count_max)
{
    assert(partitions != NULL);
    assert(signal < SIGNAL_KINDS);
    *partitions = (struct partitions){
        .signal = signal, .budget = budget, .keys = keys, .count_max = count_max};
}

void partitions_owned_by(struct partitions *partitions, timer_fn on_timer, void *owner)
{
    assert(partitions != NULL);
    assert(partitions->count == 0);
    assert(on_timer != NULL);
    partitions->on_timer = on_timer;
    partitions->owner = owner;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct partition *)a)->key, ((const struct partition *)b)->key);
}

void partitions_fini(struct partitions *partitions)
{
    assert(partitions != NULL);
    while (partitions->first != NULL) {
        struct partition *partition = partitions->first;
        assert(!timer_is_running(&partition->timer));
        partitions->first = partition->next;
        tdelete(partition, &partitions->tree, compare);
        gather_fini(&partition->gather);
        mem_free(partition->key);
        mem_free(partition);
    }
}

static bool is_wanted(const struct partitions *partitions, size_t key,
                      const struct client_metadata *row)
{
    assert(key < partitions->keys.count);
    return strcasecmp(partitions->keys.texts[key], row->key) == 0;
}

/* Profiles are sent on for the tenant that they came from, and so never merged with another's. */
static const char *tenant_of(const struct partitions *partitions, const struct client_info *client)
{
    assert(partitions != NULL);
    return partitions->signal == PROFILES ? client_info_tenant(client) : NULL;
}

/* "3:abc" for each value, ";" behind the keys, then the tenant: no two sets of values give the same
 * text. */
static char *key_of(const struct partitions *partitions, const struct client_info *client)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out != NULL);
    for (size_t key = 0; key < partitions->keys.count; key++) {
        for (size_t i = 0; client != NULL && i < client->metadata_count; i++)
            if (is_wanted(partitions, key, &client->metadata[i]))
                fprintf(out, "%zu:%s", strlen(client->metadata[i].value),
                        client->metadata[i].value);
        fputc(';', out);
    }
    const char *tenant = tenant_of(partitions, client);
    if (tenant != NULL)
        fputs(tenant, out);
    fclose(out);
    return text;
}

/* Only the tenant and the configured keys travel on with the merged request. */
static struct client_info *client_of(const struct partitions *partitions,
                                     const struct client_info *client)
{
    assert(partitions != NULL);
    size_t count = 0;
    const char *tenant = tenant_of(partitions, client);
    if (client == NULL || (partitions->keys.count == 0 && tenant == NULL))
        return NULL;
    struct client_metadata *rows =
        mem_alloc((client->metadata_count * partitions->keys.count + 1) * sizeof(*rows));
    /* First, where it is found before those that the keys may bring along. */
    if (tenant != NULL)
        rows[count++] = (struct client_metadata){.key = CLIENT_TENANT_HEADER, .value = tenant};
    for (size_t key = 0; key < partitions->keys.count; key++)
        for (size_t i = 0; i < client->metadata_count; i++)
            if (is_wanted(partitions, key, &client->metadata[i]) &&
                (tenant == NULL || strcmp(client->metadata[i].key, CLIENT_TENANT_HEADER) != 0))
                rows[count++] = client->metadata[i];
    struct client_info *merged = client_info_create("", rows, count);
    mem_free(rows);
    return merged;
}

static struct partition *create(struct partitions *partitions, char *key,
                                const struct client_info *client)
{
    assert(key != NULL);
    struct client_info *merged = client_of(partitions, client);
    struct partition *partition = mem_zalloc(sizeof(*partition));
    assert(partitions->on_timer != NULL);
    gather_init(&partition->gather, partitions->signal, partitions->budget, merged);
    client_info_unref(merged);
    timer_init(&partition->timer, partitions->on_timer, partition);
    partition->owner = partitions->owner;
    partition->key = key;
    partition->next = partitions->first;
    partitions->first = partition;
    if (strcmp(key, "") == 0)
        partitions->plain = partition;
    partitions->count++;
    tsearch(partition, &partitions->tree, compare);
    return partition;
}

struct partition *partitions_of(struct partitions *partitions, const struct client_info *client)
{
    assert(partitions != NULL);
    bool is_plain = partitions->keys.count == 0 && tenant_of(partitions, client) == NULL;
    if (is_plain && partitions->plain != NULL)
        return partitions->plain;
    char *key = key_of(partitions, client);
    struct partition wanted = {.key = key};
    void *found = tfind(&wanted, &partitions->tree, compare);
    bool is_full = partitions->count_max > 0 && partitions->count >= partitions->count_max;
    if (found == NULL && (is_plain || !is_full))
        return create(partitions, key, client);
    mem_free(key);
    return found != NULL ? *(struct partition **)found : NULL;
}
