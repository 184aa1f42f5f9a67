/* SPDX-License-Identifier: Apache-2.0 */
/* Making and unmaking the shared parts. Main thread. */
#include "src/join/join_store.h"

#include <assert.h>

#include "src/mem.h"

uint64_t join_store_bytes(const struct join_settings *settings, unsigned lanes)
{
    assert(lanes > 0);
    return settings->index_bytes +
           (settings->uses_window ? span_window_bytes(lanes, settings->index_entries) : 0);
}

struct join_store *join_store_create(const struct join_settings *settings, unsigned lanes)
{
    assert(settings->attributes_count <= JOIN_ATTRIBUTES_MAX);
    assert(lanes > 0);
    struct join_store *store = mem_zalloc(sizeof(*store));
    store->settings = *settings;
    keep_switch_init(&store->keep, &settings->keep);
    bool is_made =
        span_index_init(&store->index, lanes, settings->index_entries, settings->index_bytes) &&
        (!settings->uses_window ||
         span_window_init(&store->window, lanes, settings->index_entries)) &&
        process_table_init(&store->processes, &store->index) &&
        id_set_init(&store->observed, JOIN_SEEN_IDS_MAX) &&
        id_set_init(&store->missed, JOIN_SEEN_IDS_MAX);
    if (settings->finds_lone_traces)
        is_made = is_made && lone_traces_init(&store->lone);
    for (size_t i = 0; is_made && i < settings->attributes_count; i++)
        is_made = value_cap_init(&store->caps[i], settings->values_max);
    if (is_made)
        return store;
    join_store_destroy(store);
    return NULL;
}

void join_store_destroy(struct join_store *store)
{
    if (store == NULL)
        return;
    assert(atomic_load(&store->held_bytes) == 0);
    for (size_t i = 0; i < store->settings.attributes_count; i++)
        value_cap_fini(&store->caps[i]);
    lone_traces_fini(&store->lone);
    id_set_fini(&store->observed);
    id_set_fini(&store->missed);
    process_table_fini(&store->processes);
    span_window_fini(&store->window);
    span_index_fini(&store->index);
    mem_free(store);
}
