/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a span is of interest is found out once per link; then samples are left out one by one,
 * neighbours together. Runs on the owner's thread. */
#include "src/join/profiles/profile_keep.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_links.h"
#include "src/join/profiles/profile_walk.h"
#include "src/join/splice.h"
#include "src/otlp/unknown.h"
#include "src/profiles/otlp/profile_shape.h"

enum { CHILDREN = 2 /* profiles, samples */ };

struct keep {
    struct profile_links *links;
    const struct keep_rules *rules;
    bool *is_wanted; /* by place in set */
    struct named_reader named;
    struct splice_list splices;
    uint64_t run_at; /* samples side by side that are left out */
    uint64_t run_bytes;
    uint64_t dropped;
};

/* The span that samples name, where they get its local root instead. */
static bool is_received_wanted(const struct keep *keep, const struct join_link *link)
{
    const struct join_store *store = keep->links->store;
    const struct link_key *key = &link->key;
    struct span_facts received;
    assert(link->found == SPAN_FOUND);
    return store->settings.takes_root &&
           span_index_find(&store->index, key->has_trace ? key->trace : NULL, key->span,
                           &received) == SPAN_FOUND &&
           keep_rules_want(keep->rules, &received);
}

/* A request is slow or failed as a whole: its samples are of interest whichever of its spans they
 * name. */
static bool is_link_wanted(const struct keep *keep, const struct join_link *link)
{
    struct span_facts root = link->facts;
    assert(keep->rules != NULL);
    if (link->found != SPAN_FOUND)
        return keep->rules->keeps_unlinked;
    return keep_rules_want(keep->rules, &link->facts) || is_received_wanted(keep, link) ||
           (span_index_root(&keep->links->store->index, &root) != SPAN_ROOT_UNKNOWN &&
            keep_rules_want(keep->rules, &root));
}

bool profile_keep_is_settled(const struct join_store *store, const struct span_facts *facts)
{
    struct keep_rules rules = keep_switch_read(&store->keep);
    struct span_facts root = *facts;
    bool needs_root = store->settings.takes_root || profile_copies_are_on(&store->settings) ||
                      (keep_rules_are_on(&rules) && !keep_rules_want(&rules, facts));
    assert(facts->span != 0);
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
        link->is_unsettled =
            link->found == SPAN_FOUND && !profile_keep_is_settled(store, &link->facts);
        unsettled += link->is_unsettled;
    }
    return unsettled;
}

static bool find_wanted(struct keep *keep)
{
    struct profile_links *links = keep->links;
    assert(links->set.count > 0);
    keep->is_wanted = arena_try_alloc(&links->arena, links->set.count * sizeof(bool));
    for (uint32_t i = 1; keep->is_wanted != NULL && i < links->set.count; i++)
        keep->is_wanted[i] = is_link_wanted(keep, &links->set.items[i]);
    return keep->is_wanted != NULL;
}

static bool is_sample_wanted(struct keep *keep, struct slice whole)
{
    const struct named_sample *named = named_reader_next(&keep->named, whole);
    assert(keep->is_wanted != NULL);
    if (named == NULL || named->link == LINK_NONE)
        return keep->rules->keeps_unlinked;
    return keep->is_wanted[named->link];
}

static void end_run(struct keep *keep)
{
    assert(keep->run_bytes == 0 || keep->dropped > 0);
    if (keep->run_bytes > 0)
        splice_add_from(&keep->splices, keep->run_at, keep->run_bytes, keep->splices.inserts.size);
    keep->run_bytes = 0;
}

static void leave_out(struct keep *keep, uint64_t at, uint64_t bytes)
{
    assert(bytes > 0);
    keep->dropped++;
    if (keep->run_bytes > 0 && keep->run_at + keep->run_bytes == at) {
        keep->run_bytes += bytes;
        return;
    }
    end_run(keep);
    keep->run_at = at;
    keep->run_bytes = bytes;
}

/* `at` is where content begins in the batch. Returns how many samples stay. */
static uint64_t filter_samples(struct keep *keep, struct slice content, uint64_t at)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint64_t kept = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.number != CHILDREN || field.type != WIRE_BYTES)
            continue;
        if (is_sample_wanted(keep, field.whole))
            kept++;
        else
            leave_out(keep, at + (uint64_t)(field.whole.data - content.data), field.whole.size);
    }
    end_run(keep);
    assert(reader.failure == NULL);
    return kept;
}

/* A profile without samples says nothing; one that came so stays. */
static void filter_profile(void *arg, const struct wire_field *field, uint64_t at)
{
    struct keep *keep = arg;
    uint64_t body = at + (uint64_t)(field->bytes.data - field->whole.data);
    uint64_t dropped = keep->dropped;
    size_t opened = splice_open(&keep->splices, at, body);
    uint64_t kept = filter_samples(keep, field->bytes, body);
    assert(keep->run_bytes == 0);
    if (kept > 0 || keep->dropped == dropped) {
        splice_close(&keep->splices, opened, CHILDREN, field->bytes.size);
        return;
    }
    splice_rewind(&keep->splices, opened);
    splice_add_from(&keep->splices, at, field->whole.size, keep->splices.inserts.size);
}

/* The batch without what only dropped samples referred to, which is most of it; all of it when it
 * has fields of later versions, which would be lost. */
static struct batch *shrink(struct batch *batch, struct budget *budget)
{
    static const struct profile_shape_rules no_limits = {.depth_max = 0};
    struct profile_shape_figures figures;
    struct batch *whole = batch_in_one_part(batch, budget);
    struct buffer *shaped = NULL;
    if (!otlp_has_unknown(PROFILES, whole->parts[0].bytes))
        shaped = profile_shape(&no_limits, whole->parts[0].bytes, budget, &figures);
    batch_unref(batch);
    if (shaped == NULL)
        return whole;
    struct batch *shrunk = batch_create_like(whole, 1);
    assert(figures.samples == whole->items);
    batch_append(shrunk, shaped, buffer_slice(shaped));
    shrunk->items = whole->items;
    buffer_unref(shaped);
    batch_unref(whole);
    return shrunk;
}

struct batch *profile_keep(struct profile_links *links, struct batch *batch,
                           const struct keep_rules *rules, struct budget *budget)
{
    struct keep keep = {.links = links, .rules = rules, .named = {.links = links}};
    assert(batch->parts_count == 1);
    if (!keep_rules_are_on(rules) || !find_wanted(&keep))
        return batch_ref(batch);
    splice_list_init(&keep.splices, budget);
    struct profile_walk walk = {
        .splices = &keep.splices, .on_profile = filter_profile, .arg = &keep};
    profile_walk_request(&walk, links->from.request);
    struct batch *kept = batch;
    if (keep.dropped == 0) {
        batch_ref(batch);
    } else {
        kept = splice_apply(&keep.splices, batch, budget);
        kept->items = batch->items - keep.dropped;
        if (kept->items > 0)
            kept = shrink(kept, budget);
    }
    splice_list_fini(&keep.splices);
    return kept;
}
