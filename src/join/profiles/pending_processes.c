/* SPDX-License-Identifier: Apache-2.0 */
/* A service that has never had spans is waited for from its first profile on, a process of one that
 * has them from its own first: so a fleet without traces, whose processes come and go, is not. Runs
 * on the owner's thread. */
#include "src/join/profiles/pending_processes.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_resource.h"

static uint64_t surest_of(const struct process_names *names)
{
    unsigned i = 0;
    while (names->keys[i] == 0)
        i++;
    assert(i < PROCESS_NAMES_MAX);
    return names->keys[i];
}

/* Whether spans of such a one are to come, as far as one can tell. */
static bool is_new(struct join_store *store, const struct resource_facts *facts, uint64_t now_ns)
{
    const struct process_names names = process_names_of(facts);
    enum process_state state = single_traces_state(&store->single_traces, &names, now_ns);
    assert(facts->service != 0);
    return state != PROCESS_SHARED &&
           pending_services_has(&store->pending_services,
                                state == PROCESS_UNKNOWN ? facts->service : surest_of(&names),
                                now_ns);
}

/* Whether a span that comes may still say which trace it has. */
static bool is_open(struct join_store *store, const struct pending_process *awaited,
                    uint64_t now_ns)
{
    struct single_trace trace;
    assert(store->settings.finds_single_traces);
    enum process_state state = single_traces_state(&store->single_traces, &awaited->names, now_ns);
    if (state != PROCESS_HAS_TRACE)
        return state != PROCESS_SHARED;
    return single_traces_find(&store->single_traces, &awaited->names, awaited->from_ns,
                              awaited->until_ns, &trace) == SINGLE_TRACE_UNDECIDED;
}

/* Of a process whose service is not known nobody can say that it is new: an agent that profiles all
 * of a machine sees such ones come and go. */
static bool is_awaited(struct join_store *store, const struct profile_resource *resource,
                       uint64_t now_ns, struct pending_process *ret_awaited)
{
    struct pending_process awaited;
    assert(resource->resource.data != NULL);
    struct resource_facts facts = resource_facts_of(resource->resource);
    if (facts.service == 0 || service_set_is_linked(&store->services, facts.service) ||
        !is_new(store, &facts, now_ns) || !profile_resource_may_get_trace(resource->resource) ||
        !profile_resource_window(resource->bytes, &awaited.from_ns, &awaited.until_ns))
        return false;
    awaited.names = process_names_of(&facts);
    *ret_awaited = awaited;
    return is_open(store, &awaited, now_ns);
}

void pending_processes_collect(struct pending_processes *pending, const struct profile_links *links,
                               uint64_t now_ns)
{
    struct join_store *store = links->store;
    struct wire_reader reader = wire_reader_of(links->from.request);
    struct profile_resource resource;
    struct pending_process found;
    assert(pending->items == NULL);
    if (!store->settings.finds_single_traces || store->settings.hold_ns == 0)
        return;
    while (pending->count < JOIN_AWAITED_MAX && profile_next_resource(&reader, &resource)) {
        if (resource.resource.data == NULL || !is_awaited(store, &resource, now_ns, &found))
            continue;
        pending->items = mem_resize(pending->items, (pending->count + 1) * sizeof(found));
        pending->items[pending->count++] = found;
    }
    assert(reader.failure == NULL);
}

bool pending_processes_are_over(struct pending_processes *pending, struct join_store *store,
                                uint64_t now_ns)
{
    assert(pending->count == 0 || pending->items != NULL);
    while (pending->count > 0 && !is_open(store, &pending->items[pending->count - 1], now_ns))
        pending->count--;
    return pending->count == 0;
}

void pending_processes_fini(struct pending_processes *pending)
{
    assert(pending != NULL);
    mem_free(pending->items);
    *pending = (struct pending_processes){.items = NULL};
}
