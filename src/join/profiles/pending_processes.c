/* SPDX-License-Identifier: Apache-2.0 */
/* A service that has never had spans is waited for from its first profile on; a process of a
 * service that has them, from the process's own first profile on. So the processes of a fleet
 * without traces, which come and go, are not waited for. Runs on the owner's thread. */
#include "src/join/profiles/pending_processes.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_resource.h"

/* Whether a span that arrives may still decide which trace the process has. */
static bool is_open(struct join_store *store, const struct pending_process *pending,
                    uint64_t now_ns)
{
    struct single_trace trace;
    enum process_state state = single_traces_state(&store->single_traces, &pending->names, now_ns);
    if (state != PROCESS_HAS_TRACE)
        return state != PROCESS_SHARED;
    return single_traces_find(&store->single_traces, &pending->names, pending->from_ns,
                              pending->until_ns, &trace) == SINGLE_TRACE_UNDECIDED;
}

void pending_processes_collect(struct pending_processes *pending, const struct profile_links *links,
                               uint64_t now_ns)
{
    struct join_store *store = links->store;
    struct wire_reader reader = wire_reader_of(links->from.request);
    struct profile_resource resource;
    assert(pending->items == NULL);
    if (!store->settings.finds_single_traces || store->settings.hold_ns == 0)
        return;
    while (pending->count < JOIN_PENDING_PROCESSES_MAX &&
           profile_next_resource(&reader, &resource)) {
        struct resource_facts facts = {.service = 0};
        if (resource.resource.data != NULL)
            facts = resource_facts_of(resource.resource);
        /* Without a service it cannot be said to be new: an agent that profiles a whole machine
         * sees such processes come and go. */
        if (facts.service == 0 || service_set_is_linked(&store->services, facts.service))
            continue;
        struct pending_process process = {.names = process_names_of(&facts)};
        enum process_state state =
            single_traces_state(&store->single_traces, &process.names, now_ns);
        if (state == PROCESS_SHARED)
            continue;
        uint64_t key = facts.service;
        for (unsigned i = PROCESS_NAMES_MAX; state != PROCESS_UNKNOWN && i > 0; i--)
            if (process.names.keys[i - 1] != 0)
                key = process.names.keys[i - 1]; /* the most certain name */
        if (!pending_services_has(&store->pending_services, key, now_ns) ||
            !profile_resource_may_get_trace(resource.resource) ||
            !profile_resource_window(resource.bytes, &process.from_ns, &process.until_ns) ||
            !is_open(store, &process, now_ns))
            continue;
        pending->items = mem_resize(pending->items, (pending->count + 1) * sizeof(process));
        pending->items[pending->count++] = process;
    }
    assert(reader.failure == NULL);
}

bool pending_processes_are_over(struct pending_processes *pending, struct join_store *store,
                                uint64_t now_ns)
{
    while (pending->count > 0 && !is_open(store, &pending->items[pending->count - 1], now_ns))
        pending->count--;
    return pending->count == 0;
}

void pending_processes_fini(struct pending_processes *pending)
{
    mem_free(pending->items);
    *pending = (struct pending_processes){.items = NULL};
}
