/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and destroying the shared parts. Main thread. */
#include "src/join/index/join_store.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/base/reload_state.h"

uint64_t join_store_bytes(const struct join_settings *settings, unsigned lanes)
{
    assert(lanes > 0);
    return settings->index_bytes +
           (settings->uses_window ? span_window_bytes(lanes, settings->index_entries) : 0);
}

/* Encodes the settings that the tables, and the strings in them, depend on. */
static void put_shape(struct profile_bytes *shape, const struct join_settings *settings,
                      unsigned lanes)
{
    const uint64_t numbers[] = {lanes,
                                settings->index_entries,
                                settings->index_bytes,
                                settings->values_max,
                                settings->uses_window,
                                settings->finds_single_traces,
                                settings->attributes_count};
    profile_bytes_add(shape, slice_of(numbers, sizeof(numbers)));
    for (size_t i = 0; i < settings->attributes_count; i++) {
        const struct join_attribute *attribute = &settings->attributes[i];
        const uint64_t head[] = {attribute->source, attribute->name.size};
        profile_bytes_add(shape, slice_of(head, sizeof(head)));
        profile_bytes_add(shape, attribute->name);
    }
}

struct join_store *join_store_create(const struct join_settings *settings, unsigned lanes)
{
    assert(settings->attributes_count <= JOIN_ATTRIBUTES_MAX);
    assert(lanes > 0);
    struct join_store *store = mem_zalloc(sizeof(*store));
    store->settings = *settings;
    keep_switch_init(&store->keep, &settings->keep);
    put_shape(&store->shape, settings, lanes);
    bool is_made =
        span_index_init(&store->index, lanes, settings->index_entries, settings->index_bytes) &&
        (!settings->uses_window ||
         span_window_init(&store->window, lanes, settings->index_entries)) &&
        process_table_init(&store->processes, &store->index) &&
        id_set_init(&store->observed, JOIN_SEEN_IDS_MAX) &&
        id_set_init(&store->missed, JOIN_SEEN_IDS_MAX);
    if (settings->finds_single_traces)
        is_made = is_made && single_traces_init(&store->single_traces) &&
                  pending_services_init(&store->pending_services);
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
    single_traces_fini(&store->single_traces);
    pending_services_fini(&store->pending_services);
    id_set_fini(&store->observed);
    id_set_fini(&store->missed);
    process_table_fini(&store->processes);
    span_window_fini(&store->window);
    trace_verdicts_fini(&store->verdicts);
    trace_costs_fini(&store->costs);
    span_index_fini(&store->index);
    profile_bytes_fini(&store->shape);
    mem_free(store->id);
    mem_free(store);
}

struct join_store *join_store_open(const char *id, const struct join_settings *settings,
                                   unsigned lanes)
{
    struct join_store *store = reload_state_take(id);
    struct profile_bytes shape = {.budget = NULL};
    put_shape(&shape, settings, lanes);
    bool is_same = store != NULL && slice_equal(slice_of(shape.data, shape.size),
                                                slice_of(store->shape.data, store->shape.size));
    profile_bytes_fini(&shape);
    if (is_same) {
        store->settings = *settings;
        keep_switch_init(&store->keep, &settings->keep);
        store->has_spans = false;
        store->has_profiles = false;
        store->has_sampler = false;
        store->passes_unsampled = false;
        store->wants_costs = false;
        store->has_control = false;
        return store;
    }
    join_store_destroy(store);
    store = join_store_create(settings, lanes);
    if (store != NULL)
        store->id = mem_copy_text(id);
    return store;
}

static void destroy_kept(void *object)
{
    join_store_destroy(object);
}

void join_store_close(struct join_store *store)
{
    assert(atomic_load(&store->held_bytes) == 0);
    if (!store->wants_costs)
        trace_costs_fini(&store->costs);
    if (!store->has_sampler)
        trace_verdicts_fini(&store->verdicts);
    if (store->id == NULL || !reload_state_put(store->id, store, destroy_kept))
        join_store_destroy(store);
}

bool join_store_meet_sampler(struct join_store *store, bool wants_costs, uint64_t *ret_bytes)
{
    uint64_t traces = store->settings.index_entries;
    bool makes_verdicts = !store->has_sampler;
    bool makes_costs = wants_costs && !store->wants_costs;
    *ret_bytes = 0;
    store->has_sampler = true;
    store->wants_costs |= wants_costs;
    if (makes_verdicts)
        *ret_bytes += trace_verdicts_bytes(traces);
    if (makes_costs)
        *ret_bytes += trace_costs_bytes(traces / JOIN_COSTS_SHARE);
    /* After a reload they are there already. */
    return (!makes_verdicts || store->verdicts.places != NULL ||
            trace_verdicts_init(&store->verdicts, traces)) &&
           (!makes_costs || trace_costs_are_on(&store->costs) ||
            trace_costs_init(&store->costs, traces / JOIN_COSTS_SHARE));
}

void join_store_judge(struct join_store *store, const uint64_t trace[2], bool is_sampled,
                      uint64_t now_ns)
{
    if (keep_switch_read(&store->keep).keeps_sampled)
        trace_verdicts_put(&store->verdicts, trace, is_sampled ? TRACE_SAMPLED : TRACE_DROPPED,
                           now_ns);
}

enum trace_verdict join_store_verdict(const struct join_store *store, const uint64_t trace[2])
{
    if (!store->has_sampler || store->passes_unsampled)
        return TRACE_SAMPLED;
    return trace_verdicts_get(&store->verdicts, trace);
}

uint64_t join_store_changes(const struct join_store *store)
{
    return span_index_arrivals(&store->index) +
           atomic_load_explicit(&store->verdicts.changes, memory_order_acquire);
}
