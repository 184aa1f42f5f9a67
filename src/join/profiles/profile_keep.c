/* SPDX-License-Identifier: Apache-2.0 */
/* Each link is judged once; then samples are removed, neighbours in one splice. Runs on the owner's
 * thread. */
#include "src/join/profiles/profile_keep.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_walk.h"
#include "src/join/splice.h"
#include "src/otlp/unknown.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_measure.h"

enum { CHILDREN = 2 /* profiles, samples */ };

struct keep {
    struct profile_links *links;
    const struct keep_rules *rules;
    bool *is_wanted; /* by place in set */
    struct named_reader named;
    struct splice_list splices;
    uint64_t dropped;
};

/* The rules that look at spans alone. */
static struct keep_rules rules_for_spans(const struct keep_rules *rules)
{
    struct keep_rules others = *rules;
    others.keeps_sampled = false;
    return others;
}

bool profile_keep_is_settled(const struct join_store *store, const struct span_facts *facts)
{
    const struct keep_rules rules = keep_switch_read(&store->keep);
    const struct keep_rules others = rules_for_spans(&rules);
    struct span_facts root = *facts;
    bool needs_root = store->settings.takes_root || profile_copies_are_on(&store->settings);
    if (keep_rules_are_on(&rules) && !keep_rules_want(&others, facts)) {
        enum trace_verdict verdict = TRACE_DROPPED;
        if (rules.keeps_sampled)
            verdict = join_store_verdict(store, facts->trace);
        if (verdict == TRACE_UNKNOWN)
            return false;
        needs_root |= verdict == TRACE_DROPPED && keep_rules_are_on(&others);
    }
    return !needs_root || span_index_root(&store->index, &root) == SPAN_ROOT_FOUND;
}

uint32_t profile_keep_unsettled(struct profile_links *links)
{
    const struct join_store *store = links->store;
    const struct keep_rules rules = keep_switch_read(&store->keep);
    uint32_t unsettled = 0;
    if (!keep_rules_are_on(&rules) && !profile_copies_are_on(&store->settings))
        return 0;
    for (uint32_t i = 1; i < links->set.count; i++) {
        struct join_link *link = &links->set.items[i];
        link->is_unsettled = !link->is_unused && link->found == SPAN_FOUND &&
                             !profile_keep_is_settled(store, &link->facts);
        unsettled += link->is_unsettled;
    }
    return unsettled;
}

/* The span did not arrive, but maybe what became of its trace is known. */
static bool is_missed_link_wanted(const struct keep *keep, const struct link_key *key)
{
    const struct join_store *store = keep->links->store;
    bool is_dropped = keep->rules->keeps_sampled && key->has_trace != 0 &&
                      join_store_verdict(store, key->trace) == TRACE_DROPPED;
    return keep->rules->keeps_unlinked && !is_dropped;
}

/* A slow or failed request is of interest as a whole: samples are kept for the span that they name,
 * for the root that they get instead, and for the root of either. A trace that is not decided yet
 * may be sampled. */
static bool is_link_wanted(const struct keep *keep, const struct join_link *link)
{
    const struct join_store *store = keep->links->store;
    const struct link_key *key = &link->key;
    const struct keep_rules others = rules_for_spans(keep->rules);
    struct span_facts received;
    struct span_facts root = link->facts;
    if (link->found != SPAN_FOUND)
        return is_missed_link_wanted(keep, key);
    if (keep_rules_want(&others, &link->facts) ||
        (keep->rules->keeps_sampled &&
         join_store_verdict(store, link->facts.trace) != TRACE_DROPPED))
        return true;
    if (!keep_rules_are_on(&others))
        return false;
    if (store->settings.takes_root &&
        span_index_find(&store->index, key->has_trace ? key->trace : NULL, key->span, &received) ==
            SPAN_FOUND &&
        keep_rules_want(&others, &received))
        return true;
    return span_index_root(&store->index, &root) != SPAN_ROOT_UNKNOWN &&
           keep_rules_want(&others, &root);
}

/* Removes samples of the Profile that the walk has reached, and the Profile when none is left; one
 * that arrived without samples stays. */
static void filter_profile(struct keep *keep, const struct profile_walk *walk)
{
    struct splice_list *splices = &keep->splices;
    struct slice content = walk->field.bytes;
    uint64_t body = walk->at + (uint64_t)(content.data - walk->field.whole.data);
    size_t opened = splice_open(splices, walk->at, body);
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint64_t kept = 0;
    uint64_t dropped = 0;
    uint64_t run_at = 0; /* adjacent samples that are removed */
    uint64_t run_bytes = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number != CHILDREN || field.type != WIRE_BYTES)
            continue;
        const struct named_sample *named = named_reader_next(&keep->named, field.whole);
        bool is_linked = named != NULL && named->link != LINK_NONE;
        if (is_linked ? keep->is_wanted[named->link] : keep->rules->keeps_unlinked) {
            kept++;
            continue;
        }
        uint64_t at = body + (uint64_t)(field.whole.data - content.data);
        dropped++;
        if (run_bytes > 0 && run_at + run_bytes != at) {
            splice_add_from(splices, run_at, run_bytes, splices->inserts.size);
            run_bytes = 0;
        }
        if (run_bytes == 0)
            run_at = at;
        run_bytes += field.whole.size;
    }
    assert(reader.failure == NULL);
    if (run_bytes > 0)
        splice_add_from(splices, run_at, run_bytes, splices->inserts.size);
    if (kept > 0 || dropped == 0) {
        splice_close(splices, opened, CHILDREN, content.size);
    } else {
        splice_rewind(splices, opened);
        splice_add_from(splices, walk->at, walk->field.whole.size, splices->inserts.size);
    }
    keep->dropped += dropped;
}

struct batch *profile_keep(struct profile_links *links, struct batch *batch,
                           const struct keep_rules *rules, struct budget *budget)
{
    static const struct profile_limit_rules no_limits = {.depth_max = 0};
    struct keep keep = {.links = links, .rules = rules, .named = {.links = links}};
    assert(batch->parts_count == 1);
    if (keep_rules_are_on(rules))
        keep.is_wanted = arena_try_alloc(&links->arena, links->set.count * sizeof(bool));
    if (keep.is_wanted == NULL)
        return batch_ref(batch);
    for (uint32_t i = 1; i < links->set.count; i++)
        keep.is_wanted[i] =
            !links->set.items[i].is_unused && is_link_wanted(&keep, &links->set.items[i]);
    splice_list_init(&keep.splices, budget);
    struct profile_walk walk = profile_walk_of(&keep.splices, links->from.request, NULL);
    while (profile_walk_next(&walk))
        if (!walk.is_resource)
            filter_profile(&keep, &walk);
    struct batch *kept = NULL;
    if (keep.dropped > 0) {
        kept = splice_apply(&keep.splices, batch, budget);
        kept->items = batch->items - keep.dropped;
    }
    splice_list_fini(&keep.splices);
    if (kept == NULL)
        return batch_ref(batch);
    if (kept->items == 0)
        return kept;
    if (kept->parts_count > 1 && !budget_has_room(budget, kept->bytes)) {
        batch_unref(kept);
        return batch_ref(batch);
    }
    /* Removes the entries of the dictionary that nothing refers to any longer, which are most of
     * it; not when the batch has fields of later versions, which would be lost, or when the budget
     * has no room for the work. */
    struct batch *whole = batch_in_one_part(kept, budget);
    struct slice request = whole->parts[0].bytes;
    struct profile_limit_figures figures;
    struct budget_reserve reserve;
    struct buffer *shrunk = NULL;
    batch_unref(kept);
    if (!otlp_has_unknown(PROFILES, request) &&
        profile_measure_reserve(request, profile_limit_bytes(request), budget, &reserve) ==
            BUDGET_GIVEN) {
        shrunk = profile_limit(&no_limits, request, NULL, budget, &figures);
        budget_release(&reserve);
    }
    if (shrunk == NULL)
        return whole;
    assert(figures.samples == whole->items);
    kept = batch_create_like(whole, 1);
    kept->items = whole->items;
    batch_append(kept, shrunk, buffer_slice(shrunk));
    buffer_unref(shrunk);
    batch_unref(whole);
    return kept;
}
