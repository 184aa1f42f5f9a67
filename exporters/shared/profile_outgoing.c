/* SPDX-License-Identifier: Apache-2.0 */
/* Converts profiles for OTLP back-ends. Runs on the exporter's lane. */
#include "exporters/shared/profile_outgoing.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/log.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/otlp/profile_transcode.h"

/* Replaces what part refers to. False: no memory. */
static bool replace(struct batch_part *part, struct buffer *buffer)
{
    buffer_unref(part->owner);
    *part = (struct batch_part){.owner = buffer};
    if (buffer != NULL)
        part->bytes = buffer_slice(buffer);
    return buffer != NULL;
}

void profile_outgoing_count(const struct profile_outgoing *outgoing, uint64_t left_out)
{
    if (left_out > 0 && outgoing->unconvertible != NULL)
        counter_add(outgoing->unconvertible, left_out);
}

/* NULL: *ret_outcome says why. */
static struct batch *convert(struct profile_outgoing *outgoing, const struct batch *batch,
                             struct outcome *ret_outcome)
{
    struct budget *budget = outgoing->exporter->budget;
    struct batch_part part = {.owner = NULL};
    *ret_outcome = outcome_no_memory("no memory left in the budget to convert profiles");
    if (!batch_join(batch, budget, &part))
        return NULL;
    uint64_t removed = opaque_profiles_count(part.bytes);
    if (removed > 0 && !outgoing->has_logged) {
        outgoing->has_logged = true;
        log_warn(&outgoing->exporter->logger,
                 "JFR files cannot be sent as OTLP: they are left out and counted; a pyroscope "
                 "exporter in the same pipeline passes them on",
                 log_int("files", (int64_t)removed));
    }
    bool is_converted =
        (removed == 0 || replace(&part, opaque_profiles_remove(part.bytes, budget))) &&
        (outgoing->layout == LAYOUT_1_10 ||
         replace(&part, profile_transcode_back(part.bytes, budget)));
    struct batch *converted = NULL;
    if (is_converted && part.bytes.size > 0) {
        converted = batch_create_like(batch, 1);
        converted->items = batch->items - removed;
        batch_append(converted, part.owner, part.bytes);
    } else if (is_converted) { /* nothing is left */
        profile_outgoing_count(outgoing, removed);
        *ret_outcome = outcome_accepted;
        ret_outcome->rejected_items = batch->items;
        ret_outcome->invalid_items = batch->items;
    }
    buffer_unref(part.owner);
    return converted;
}

struct batch *profile_outgoing_batch(struct profile_outgoing *outgoing, struct batch *batch,
                                     struct receipt *receipt)
{
    struct outcome outcome;
    if (batch->signal != PROFILES)
        return batch_ref(batch);
    budget_begin_export();
    struct batch *converted = convert(outgoing, batch, &outcome);
    budget_end_export();
    if (converted == NULL)
        receipt_resolve(receipt, &outcome);
    return converted;
}
