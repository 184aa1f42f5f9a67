/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions by metadata values, in a balanced search tree, and in one list for each state.
 *
 * Clients can send any number of different values and tenants. Partitions with something pending
 * are charged to the budget. Idle ones only save the work of making them again: PARTITIONS_IDLE_MAX
 * small ones are kept, and at the limit on combinations the longest idle are replaced. Runs on its
 * owner's lane. */
#include "src/pipeline/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/client_info.h"
#include "src/pipeline/pipeline_limits.h"

/* One set of values of the keys. */
struct combination {
    char *values; /* the start of its partitions' keys */
    size_t partitions;
    bool is_none; /* all values are missing */
};

void partitions_init(struct partitions *partitions, enum signal_kind signal, struct budget *budget,
                     struct config_texts keys, size_t combinations_max)
{
    assert(signal < SIGNAL_KINDS);
    *partitions = (struct partitions){
        .signal = signal, .budget = budget, .keys = keys, .combinations_max = combinations_max};
}

void partitions_owned_by(struct partitions *partitions, timer_fn on_timer, void *owner)
{
    assert(partitions->tree == NULL);
    partitions->on_timer = on_timer;
    partitions->owner = owner;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct partition *)a)->key, ((const struct partition *)b)->key);
}

static int compare_values(const void *a, const void *b)
{
    return strcmp(((const struct combination *)a)->values, ((const struct combination *)b)->values);
}

static void unlist(struct partition *partition)
{
    struct partition_list *list = &partition->partitions->lists[partition->state];
    assert(list->count > 0);
    *(partition->previous != NULL ? &partition->previous->next : &list->first) = partition->next;
    *(partition->next != NULL ? &partition->next->previous : &list->last) = partition->previous;
    list->count--;
}

static void enlist(struct partition *partition, enum partition_state state)
{
    struct partition_list *list = &partition->partitions->lists[state];
    partition->state = state;
    partition->previous = list->last;
    partition->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = partition;
    list->last = partition;
    list->count++;
}

static struct combination *find_combination(const struct partitions *partitions, char *values)
{
    struct combination wanted = {.values = values};
    void *found = tfind(&wanted, &partitions->combinations, compare_values);
    return found != NULL ? *(struct combination **)found : NULL;
}

static void destroy(struct partition *partition)
{
    struct partitions *partitions = partition->partitions;
    assert(!timer_is_running(&partition->timer));
    if (partitions->plain == partition)
        partitions->plain = NULL;
    unlist(partition);
    tdelete(partition, &partitions->tree, compare);
    struct combination *combination = partition->combination;
    assert(combination->partitions > 0);
    if (--combination->partitions == 0) {
        if (combination->is_none)
            partitions->has_none = false;
        tdelete(combination, &partitions->combinations, compare_values);
        partitions->combinations_count--;
        mem_free(combination->values);
        mem_free(combination);
    }
    batcher_fini(&partition->batcher);
    if (partition->state != PARTITION_IDLE)
        budget_return(partitions->budget, partition->bytes);
    mem_free(partition->key);
    mem_free(partition);
}

void partitions_fini(struct partitions *partitions)
{
    for (unsigned state = 0; state < PARTITION_STATES; state++)
        while (partitions->lists[state].first != NULL)
            destroy(partitions->lists[state].first);
    assert(partitions->tree == NULL && partitions->combinations == NULL);
}

static bool is_wanted(const struct partitions *partitions, size_t key,
                      const struct client_metadata *row)
{
    assert(key < partitions->keys.count);
    return strcasecmp(partitions->keys.texts[key], row->key) == 0;
}

/* Profiles are exported for the tenant that they came from, so never merged with another's. */
static const char *tenant_of(const struct partitions *partitions, const struct client_info *client)
{
    return partitions->signal == PROFILES ? client_info_tenant(client) : NULL;
}

/* Identifies a client's partition. */
struct partition_key {
    char *values; /* "3:abc" for each value and ";" after each key: unambiguous */
    bool is_none; /* there are no values */
    char *text;   /* the values, then the tenant */
};

static struct partition_key key_of(const struct partitions *partitions,
                                   const struct client_info *client, uint32_t skips)
{
    struct partition_key key = {.is_none = true};
    const char *tenant = tenant_of(partitions, client);
    size_t size = 0;
    FILE *out = open_memstream(&key.values, &size);
    for (size_t i = 0; i < partitions->keys.count; i++) {
        for (size_t row = 0; client != NULL && row < client->metadata_count; row++) {
            if (!is_wanted(partitions, i, &client->metadata[row]))
                continue;
            const char *value = client->metadata[row].value;
            fprintf(out, "%zu:%s", strlen(value), value);
            key.is_none = false;
        }
        fputc(';', out);
    }
    fclose(out);
    size_t tenant_bytes = tenant != NULL ? strlen(tenant) : 0;
    enum { SKIPS_BYTES = 10 }; /* "80000000/", in front of the rest */
    key.text = mem_alloc(SKIPS_BYTES + size + tenant_bytes + 1);
    size_t skips_bytes = skips != 0 ? (size_t)sprintf(key.text, "%" PRIx32 "/", skips) : 0;
    memcpy(key.text + skips_bytes, key.values, size);
    size += skips_bytes;
    if (tenant_bytes > 0)
        memcpy(key.text + size, tenant, tenant_bytes);
    key.text[size + tenant_bytes] = '\0';
    return key;
}

/* Whether one more combination of values is within the limit. Destroys the longest idle ones if
 * necessary. */
static bool admits(struct partitions *partitions, const struct partition_key *key)
{
    const struct partition_list *idle = &partitions->lists[PARTITION_IDLE];
    if (partitions->combinations_max == 0 || key->is_none ||
        find_combination(partitions, key->values) != NULL)
        return true;
    while (partitions->combinations_count - partitions->has_none >= partitions->combinations_max) {
        if (idle->first == NULL ||
            clock_now_ns() - idle->first->idle_since_ns < PARTITION_IDLE_MIN_NS)
            return false;
        destroy(idle->first);
    }
    return true;
}

/* Takes the key's text. The merged requests keep only the tenant and the configured keys. */
static struct partition *create(struct partitions *partitions, struct partition_key *key,
                                const struct client_info *client)
{
    struct client_info *merged = NULL;
    const char *tenant = tenant_of(partitions, client);
    if (client != NULL && (partitions->keys.count > 0 || tenant != NULL)) {
        struct client_metadata *rows =
            mem_alloc((client->metadata_count * partitions->keys.count + 1) * sizeof(*rows));
        size_t count = 0;
        /* The tenant comes first, so that it is found before any that the keys add. */
        if (tenant != NULL)
            rows[count++] = (struct client_metadata){.key = CLIENT_TENANT_HEADER, .value = tenant};
        for (size_t i = 0; i < partitions->keys.count; i++)
            for (size_t row = 0; row < client->metadata_count; row++)
                if (is_wanted(partitions, i, &client->metadata[row]) &&
                    (tenant == NULL ||
                     strcmp(client->metadata[row].key, CLIENT_TENANT_HEADER) != 0))
                    rows[count++] = client->metadata[row];
        merged = client_info_create("", rows, count);
        mem_free(rows);
    }
    struct partition *partition = mem_zalloc(sizeof(*partition));
    batcher_init(&partition->batcher, partitions->signal, partitions->budget, merged);
    client_info_unref(merged);
    timer_init(&partition->timer, partitions->on_timer, partition);
    partition->owner = partitions->owner;
    partition->partitions = partitions;
    partition->key = key->text;
    key->text = NULL;
    struct combination *combination = find_combination(partitions, key->values);
    if (combination == NULL) {
        size_t bytes = strlen(key->values) + 1;
        combination = mem_alloc(sizeof(*combination));
        *combination = (struct combination){.values = mem_alloc(bytes), .is_none = key->is_none};
        memcpy(combination->values, key->values, bytes);
        tsearch(combination, &partitions->combinations, compare_values);
        partitions->combinations_count++;
        partitions->has_none |= key->is_none;
    }
    combination->partitions++;
    partition->combination = combination;
    /* The key, the combination's values, and about as much for the merged client. */
    partition->bytes = sizeof(*partition) + 3 * strlen(partition->key);
    budget_take(partitions->budget, partition->bytes);
    tsearch(partition, &partitions->tree, compare);
    enlist(partition, PARTITION_BUSY);
    return partition;
}

static struct partition *wake(struct partition *partition)
{
    if (partition->state == PARTITION_IDLE) {
        unlist(partition);
        enlist(partition, PARTITION_BUSY);
        budget_take(partition->partitions->budget, partition->bytes);
    }
    return partition;
}

struct partition *partitions_of(struct partitions *partitions, const struct client_info *client,
                                uint32_t skips)
{
    bool is_plain =
        partitions->keys.count == 0 && tenant_of(partitions, client) == NULL && skips == 0;
    if (is_plain && partitions->plain != NULL)
        return wake(partitions->plain);
    struct partition_key key = key_of(partitions, client, skips);
    void *found = tfind(&(struct partition){.key = key.text}, &partitions->tree, compare);
    struct partition *partition = found != NULL ? *(struct partition **)found : NULL;
    if (partition != NULL)
        wake(partition);
    else if (admits(partitions, &key))
        partition = create(partitions, &key, client);
    if (is_plain)
        partitions->plain = partition;
    mem_free(key.values);
    mem_free(key.text);
    return partition;
}

void partition_settle(struct partition *partition, bool is_due)
{
    struct partitions *partitions = partition->partitions;
    const struct partition_list *idle = &partitions->lists[PARTITION_IDLE];
    enum partition_state state = is_due ? PARTITION_DUE : PARTITION_BUSY;
    if (partition->batcher.pending == NULL)
        state = PARTITION_IDLE;
    if (partition->state == state)
        return;
    unlist(partition);
    enlist(partition, state);
    if (state != PARTITION_IDLE)
        return;
    assert(!timer_is_running(&partition->timer));
    budget_return(partitions->budget, partition->bytes);
    partition->idle_since_ns = clock_now_ns();
    if (partition->bytes > PARTITION_IDLE_BYTES_MAX)
        destroy(partition);
    else if (idle->count > PARTITIONS_IDLE_MAX)
        destroy(idle->first);
}

struct partition *partitions_due(const struct partitions *partitions)
{
    return partitions->lists[PARTITION_DUE].first;
}

void partitions_all_due(struct partitions *partitions)
{
    const struct partition_list *busy = &partitions->lists[PARTITION_BUSY];
    while (busy->first != NULL) {
        partition_settle(busy->first, true);
    }
}

bool partitions_have_pending(const struct partitions *partitions)
{
    return partitions->lists[PARTITION_BUSY].count + partitions->lists[PARTITION_DUE].count > 0;
}
