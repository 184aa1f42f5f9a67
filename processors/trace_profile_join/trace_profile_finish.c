/* SPDX-License-Identifier: Apache-2.0 */
/* Each step looks up anew what the one before has changed. Runs on the owner's lane. */
#include "processors/trace_profile_join/trace_profile_finish.h"

#include <assert.h>

#include "processors/trace_profile_join/trace_profile_join_counters.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/join/index/join_store.h"
#include "src/join/profiles/profile_copies.h"
#include "src/join/profiles/profile_enrich.h"
#include "src/join/profiles/profile_keep.h"

bool trace_profile_look_up(struct profile_enricher *enricher, const struct batch *batch,
                           uint32_t *ret_missing)
{
    assert(batch->parts_count == 1);
    if (!profile_links_open(&enricher->links, batch->parts[0].bytes, clock_now_ns()))
        return false;
    uint32_t missing = profile_links_resolve(&enricher->links);
    *ret_missing = missing + profile_keep_unsettled(&enricher->links);
    return true;
}

static void count_enriched(const struct component *owner, const struct enrich_figures *figures)
{
    struct join_counters *counters = owner->counters;
    assert(counters != NULL);
    counter_add(&counters->hits, figures->hits);
    counter_add(&counters->absent, figures->absent);
    counter_add(&counters->unknown_services, figures->unknown_services);
    counter_add(&counters->ambiguous, figures->ambiguous);
    counter_add(&counters->enriched, figures->enriched_samples);
    counter_add(&counters->other_values, figures->other_values);
    counter_add(&counters->repaired, figures->repaired);
    counter_add(&counters->labelled, figures->labelled);
}

/* The batch, looked up, with all that is known by now. Takes the caller's reference, and gives
 * one. */
static struct batch *enrich(const struct component *owner, struct profile_enricher *enricher,
                            struct batch *batch)
{
    struct join_counters *counters = owner->counters;
    struct enrich_figures figures;
    struct batch *enriched = profile_enrich(enricher, batch, clock_now_ns(), &figures);
    assert(enriched->items == batch->items);
    count_enriched(owner, &figures);
    counter_add(&counters->timed, enricher->links.timed_found);
    counter_add(&counters->outgoing[PROFILES], enriched->items);
    batch_unref(batch);
    return enriched;
}

/* A batch of that many items only, for the books; NULL: nothing. */
static struct batch *only_items(const struct batch *model, uint64_t items)
{
    assert(model->signal == PROFILES);
    if (items == 0)
        return NULL;
    struct batch *batch = batch_create_like(model, 1);
    batch->items = items;
    return batch;
}

/* The same with copies, which enter the books here. Takes and gives a reference. */
static struct batch *add_copies(const struct component *owner, struct profile_links *links,
                                struct batch *batch, struct batch **ret_copies)
{
    struct join_counters *counters = owner->counters;
    struct copies_figures figures;
    struct batch *copied = profile_copies_add(links, batch, owner->budget, &figures);
    struct batch *whole = batch_in_one_part(copied, owner->budget);
    assert(whole->items == batch->items + figures.made);
    counter_add(&counters->copied, figures.made);
    counter_add(&counters->uncopied, figures.left_out);
    *ret_copies = only_items(batch, figures.made);
    if (*ret_copies != NULL)
        ledger_receive(owner->ledger, *ret_copies, owner->exporters);
    batch_unref(copied);
    batch_unref(batch);
    return whole;
}

struct finished trace_profile_finish(const struct component *owner,
                                     struct profile_enricher *enricher, struct batch *batch)
{
    struct join_store *store = enricher->links.store;
    struct keep_rules rules = keep_switch_read(&store->keep);
    struct batch *kept = profile_keep(&enricher->links, batch, &rules, owner->budget);
    struct finished finished = {.lost = only_items(batch, batch->items - kept->items)};
    bool is_looked_up = true;
    uint32_t missing;
    assert(kept->items <= batch->items);
    if (kept != batch)
        is_looked_up = kept->items > 0 && trace_profile_look_up(enricher, kept, &missing);
    if (is_looked_up && profile_copies_are_on(&store->settings)) {
        kept = add_copies(owner, &enricher->links, kept, &finished.copies);
        is_looked_up = trace_profile_look_up(enricher, kept, &missing);
    }
    finished.batch = is_looked_up ? enrich(owner, enricher, kept) : kept;
    return finished;
}

struct finished trace_profile_finish_anew(const struct component *owner, struct join_store *store,
                                          struct batch *batch)
{
    struct profile_enricher enricher;
    struct finished finished = {.batch = NULL};
    uint32_t missing;
    assert(store != NULL);
    profile_enricher_init(&enricher, store, owner->budget);
    if (trace_profile_look_up(&enricher, batch, &missing))
        finished = trace_profile_finish(owner, &enricher, batch);
    else
        finished.batch = batch_ref(batch);
    profile_enricher_fini(&enricher);
    return finished;
}
