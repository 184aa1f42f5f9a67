/* SPDX-License-Identifier: Apache-2.0 */
/* Sums for each span of the request, then tells the store. Runs on the owner's thread. */
#include "src/join/profiles/profile_costs.h"

#include <string.h>

#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_links.h"
#include "src/profiles/pprof/profile_amount.h"

static uint64_t add_up(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* costs: by place in the set of links. */
static void read_profile(const struct profile_links *links, struct named_reader *named,
                         const struct profile *profile, bool has_cpu_time, struct trace_cost *costs)
{
    const struct profile_type_texts texts = profile_type_texts_of(&links->from, profile);
    const struct profile_type type =
        profile_type_canonical(&texts, profile->period > 0, has_cpu_time);
    uint64_t factor = profile_cpu_factor(&type, profile->period);
    const struct named_sample *at;
    while ((at = named_reader_next(named, profile->bytes)) != NULL) {
        struct profile_sample sample;
        if (at->link == LINK_NONE)
            continue;
        struct trace_cost *cost = &costs[at->link];
        cost->samples++;
        if (factor == 0)
            continue;
        named_sample_read(links, at, &sample);
        cost->cpu_ns = add_up(cost->cpu_ns, profile_sample_total(&sample, factor));
    }
}

static void tell(struct join_store *store, const struct join_link *link, struct trace_cost cost,
                 uint64_t now_ns)
{
    const struct link_key *key = &link->key;
    struct span_facts facts;
    if (key->has_trace != 0) {
        trace_costs_add(&store->costs, key->trace, cost, now_ns);
    } else if (link->found == SPAN_FOUND) {
        trace_costs_add(&store->costs, link->facts.trace, cost, now_ns);
    } else if (link->found == SPAN_MISSED) {
        trace_costs_add_span(&store->costs, key->span, cost, now_ns);
        /* It may have arrived meanwhile, and have found nothing. */
        if (span_index_find(&store->index, NULL, key->span, &facts) == SPAN_FOUND)
            trace_costs_move_span(&store->costs, key->span, facts.trace, now_ns);
    }
}

bool profile_costs_tell(struct profile_links *links, uint64_t now_ns)
{
    uint32_t count = links->set.count;
    struct trace_cost *costs = arena_try_alloc(&links->arena, count * sizeof(*costs));
    struct named_reader named = {.links = links};
    if (costs == NULL)
        return false;
    memset(costs, 0, count * sizeof(*costs));
    struct wire_reader resources = wire_reader_of(links->from.request);
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (profile_next_scope(&scopes, &scope)) {
            bool has_cpu_time = profile_scope_has_cpu_time(&links->from, &scope);
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            while (profile_next_profile(&profiles, &profile))
                read_profile(links, &named, &profile, has_cpu_time, costs);
        }
    }
    for (uint32_t i = 1; i < count; i++)
        if (costs[i].samples > 0)
            tell(links->store, &links->set.items[i], costs[i], now_ns);
    return true;
}
