/* SPDX-License-Identifier: Apache-2.0 */
/* A service that has never had spans is waited for from its first profile on, a process of one that
 * has them from its own first: so a fleet without traces, whose processes come and go, is not. Runs
 * on the owner's thread. */
#include "src/join/profiles/profile_awaits.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_resource.h"

static uint64_t surest_of(const struct lone_names *names)
{
    unsigned i = 0;
    while (names->keys[i] == 0)
        i++;
    assert(i < LONE_KEYS_MAX);
    return names->keys[i];
}

/* Whether spans of such a one are to come, as far as one can tell. */
static bool is_new(struct join_store *store, const struct resource_facts *facts, uint64_t now_ns)
{
    const struct lone_names names = lone_names_of(facts);
    enum lone_state state = lone_traces_state(&store->lone, &names, now_ns);
    assert(facts->service != 0);
    return state != LONE_SHARED &&
           patience_lasts(&store->patience,
                          state == LONE_STRANGER ? facts->service : surest_of(&names), now_ns);
}

/* Whether a span that comes may still say which trace it has. */
static bool is_open(struct join_store *store, const struct awaited *awaited, uint64_t now_ns)
{
    struct lone_trace trace;
    assert(store->settings.finds_lone_traces);
    enum lone_state state = lone_traces_state(&store->lone, &awaited->names, now_ns);
    if (state != LONE_HAS_TRACE)
        return state != LONE_SHARED;
    return lone_traces_find(&store->lone, &awaited->names, awaited->from_ns, awaited->until_ns,
                            &trace) == LONE_UNDECIDED;
}

/* Of a process whose service is not known nobody can say that it is new: an agent that profiles all
 * of a machine sees such ones come and go. */
static bool is_awaited(struct join_store *store, const struct profile_resource *resource,
                       uint64_t now_ns, struct awaited *ret_awaited)
{
    struct awaited awaited;
    assert(resource->resource.data != NULL);
    struct resource_facts facts = resource_facts_of(resource->resource);
    if (facts.service == 0 || service_set_is_linked(&store->services, facts.service) ||
        !is_new(store, &facts, now_ns) || !profile_resource_may_get_trace(resource->resource) ||
        !profile_resource_window(resource->bytes, &awaited.from_ns, &awaited.until_ns))
        return false;
    awaited.names = lone_names_of(&facts);
    *ret_awaited = awaited;
    return is_open(store, &awaited, now_ns);
}

void profile_awaits_collect(struct profile_awaits *awaits, const struct profile_links *links,
                            uint64_t now_ns)
{
    struct join_store *store = links->store;
    struct wire_reader reader = wire_reader_of(links->from.request);
    struct profile_resource resource;
    struct awaited found;
    assert(awaits->items == NULL);
    if (!store->settings.finds_lone_traces || store->settings.hold_ns == 0)
        return;
    while (awaits->count < JOIN_AWAITED_MAX && profile_next_resource(&reader, &resource)) {
        if (resource.resource.data == NULL || !is_awaited(store, &resource, now_ns, &found))
            continue;
        awaits->items = mem_resize(awaits->items, (awaits->count + 1) * sizeof(found));
        awaits->items[awaits->count++] = found;
    }
    assert(reader.failure == NULL);
}

bool profile_awaits_are_over(struct profile_awaits *awaits, struct join_store *store,
                             uint64_t now_ns)
{
    assert(awaits->count == 0 || awaits->items != NULL);
    while (awaits->count > 0 && !is_open(store, &awaits->items[awaits->count - 1], now_ns))
        awaits->count--;
    return awaits->count == 0;
}

void profile_awaits_fini(struct profile_awaits *awaits)
{
    assert(awaits != NULL);
    mem_free(awaits->items);
    *awaits = (struct profile_awaits){.items = NULL};
}
