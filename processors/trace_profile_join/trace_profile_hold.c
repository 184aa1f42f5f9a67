/* SPDX-License-Identifier: Apache-2.0 */
/* A list in the order of arrival, which is also that of the deadlines. Runs on the instance's lane.
 */
#include "processors/trace_profile_join/trace_profile_hold.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_keep.h"

void trace_profile_hold_init(struct trace_profile_hold *hold, struct join_store *store,
                             struct budget *budget)
{
    *hold = (struct trace_profile_hold){.store = store, .budget = budget};
    hold->end = &hold->first;
    hold->next = &hold->first;
}

void trace_profile_hold_fini(struct trace_profile_hold *hold)
{
    assert(hold->first == NULL);
    assert(hold->bytes == 0);
    hold->store = NULL;
}

static bool try_take_of(struct trace_profile_hold *hold, uint64_t bytes, uint64_t most)
{
    _Atomic uint64_t *held = &hold->store->held_bytes;
    uint64_t before = atomic_load_explicit(held, memory_order_relaxed);
    assert(bytes <= UINT64_MAX / 2);
    do {
        if (bytes > most || before > most - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(held, &before, before + bytes));
    hold->bytes += bytes;
    return true;
}

bool trace_profile_hold_try_take(struct trace_profile_hold *hold, uint64_t bytes)
{
    return try_take_of(hold, bytes, hold->store->settings.hold_bytes);
}

bool trace_profile_hold_try_take_spare(struct trace_profile_hold *hold, uint64_t bytes)
{
    return try_take_of(hold, bytes, hold->store->settings.hold_bytes / JOIN_PENDING_SHARE);
}

void trace_profile_hold_return(struct trace_profile_hold *hold, uint64_t bytes)
{
    assert(bytes <= hold->bytes);
    hold->bytes -= bytes;
    atomic_fetch_sub(&hold->store->held_bytes, bytes);
}

static bool is_missing(const struct join_link *link)
{
    return link->found == SPAN_MISSED || link->is_unsettled;
}

void trace_profile_hold_add(struct trace_profile_hold *hold, struct held_request request,
                            struct profile_links *links, struct pending_processes *pending,
                            uint64_t deadline_ns)
{
    struct held *held = mem_zalloc(sizeof(*held));
    held->request = request;
    held->request.spans = profile_links_detach(links);
    held->next_span = 1;
    held->pending = *pending;
    *pending = (struct pending_processes){.items = NULL};
    held->deadline_ns = deadline_ns;
    held->waits_for_all = links->timed_count > 0;
    held->overhead = sizeof(*held) + sizeof(*request.batch) + sizeof(request.batch->parts[0]) +
                     held->pending.count * sizeof(held->pending.items[0]);
    budget_take(hold->budget, held->overhead);
    if (hold->first == NULL)
        hold->arrivals = UINT64_MAX; /* spans may have arrived since links were resolved */
    *hold->end = held;
    hold->end = &held->next;
    hold->count++;
}

/* Removes *at from the list. */
static struct held_request pop_at(struct trace_profile_hold *hold, struct held **at)
{
    struct held *held = *at;
    struct held_request request = held->request;
    assert(hold->count > 0);
    *at = held->next;
    if (hold->end == &held->next)
        hold->end = at;
    if (hold->next == &held->next)
        hold->next = at;
    hold->count--;
    budget_return(hold->budget, held->overhead);
    pending_processes_fini(&held->pending);
    mem_free(held);
    return request;
}

struct held_request trace_profile_hold_pop(struct trace_profile_hold *hold)
{
    assert(hold->first != NULL);
    return pop_at(hold, &hold->first);
}

/* Looks up spans that are missing. True: the batch no longer waits for anything. */
static bool is_complete(const struct trace_profile_hold *hold, struct held *held)
{
    struct link_set *spans = &held->request.spans;
    if (held->waits_for_all)
        return false;
    for (; held->next_span < spans->count; held->next_span++) {
        struct join_link *span = &spans->items[held->next_span];
        if (!is_missing(span))
            continue;
        join_link_resolve(span, hold->store);
        if (span->found == SPAN_MISSED ||
            (span->found == SPAN_FOUND && !profile_keep_is_settled(hold->store, &span->facts)))
            return false;
    }
    return pending_processes_are_over(&held->pending, hold->store, clock_now_ns());
}

/* A round continues where the last call ended, so that not all are checked again for each that is
 * released. */
struct held_request trace_profile_hold_pop_complete(struct trace_profile_hold *hold,
                                                    unsigned *looks)
{
    if (hold->next == &hold->first) {
        uint64_t arrivals = join_store_changes(hold->store);
        if (arrivals == hold->arrivals)
            return (struct held_request){.batch = NULL};
        hold->round_arrivals = arrivals;
    }
    for (; *hold->next != NULL; hold->next = &(*hold->next)->next) {
        if (*looks == 0)
            return (struct held_request){.batch = NULL};
        --*looks;
        if (is_complete(hold, *hold->next))
            return pop_at(hold, hold->next);
    }
    hold->next = &hold->first;
    hold->arrivals = hold->round_arrivals;
    return (struct held_request){.batch = NULL};
}
