/* SPDX-License-Identifier: Apache-2.0 */
/* A merge of one: it takes along what samples refer to, and hands tables out without a copy. Any
 * thread. */
#include "src/join/profiles/profile_orphans.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/unknown.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"

static struct batch *hand_out(struct profile_merge *merge, struct batch *batch)
{
    struct batch *merged = batch_create_like(batch, 1);
    bool has_any = profile_merge_hand_out(merge, NULL, merged);
    assert(has_any);
    (void)has_any;
    merged->items = batch->items;
    batch_unref(batch);
    return merged;
}

struct batch *profile_without_orphans(struct batch *batch, struct budget *budget)
{
    struct profile_merge merge;
    struct profile_source source;
    if (batch->parts_count > 1 && !budget_has_room(budget, batch->bytes))
        return batch;
    struct batch *whole = batch_in_one_part(batch, budget);
    const struct otlp_limit limit = {.bytes_max = 2 * batch->bytes + PROFILE_MERGED_BYTES_MAX};
    struct batch *result = batch;
    profile_merge_init(&merge, budget);
    if (!otlp_has_unknown(PROFILES, whole->parts[0].bytes) &&
        profile_measure_fits(whole->parts[0].bytes, budget) &&
        profile_source_open(&source, whole->parts[0].bytes, &merge)) {
        bool is_whole = profile_merge_take(&merge, &source, limit) && merge.items == batch->items;
        if (is_whole)
            result = hand_out(&merge, batch);
        profile_source_close(&source);
    }
    profile_merge_fini(&merge);
    batch_unref(whole);
    return result;
}
