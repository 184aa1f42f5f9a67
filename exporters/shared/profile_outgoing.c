/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles on their way to an OTLP back-end. Runs on the exporter's lane. */
#include "exporters/shared/profile_outgoing.h"

#include "src/base/buffer.h"
#include "src/base/log.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/otlp/profile_transcode.h"

#include <assert.h>

static void note_uploads(struct profile_outgoing *outgoing, uint64_t count)
{
    assert(count > 0);
    if (outgoing->unconvertible != NULL)
        counter_add(outgoing->unconvertible, count);
    if (outgoing->has_told)
        return;
    outgoing->has_told = true;
    log_warn(&outgoing->exporter->logger,
             "Files of JFR cannot be sent as OTLP: they are left out and counted; a pyroscope "
             "exporter in the same pipeline passes them on",
             log_int("files", (int64_t)count));
}

/* Takes over the piece's reference. */
static struct batch *batch_of(const struct batch *model, struct batch_part *part, uint64_t items)
{
    struct batch *batch = batch_create_like(model, 1);
    assert(part->owner != NULL);
    batch->items = items;
    if (part->bytes.size > 0)
        batch_append(batch, part->owner, part->bytes);
    buffer_unref(part->owner);
    return batch;
}

/* Replaces what part refers to. False: no memory. */
static bool replace(struct batch_part *part, struct buffer *buffer)
{
    assert(part->owner != NULL);
    buffer_unref(part->owner);
    *part = (struct batch_part){.owner = buffer};
    if (buffer != NULL)
        part->bytes = buffer_slice(buffer);
    return buffer != NULL;
}

/* What is left of part, in the back-end's layout. False: no memory. */
static bool convert(const struct profile_outgoing *outgoing, uint64_t uploads,
                    struct batch_part *part)
{
    struct budget *budget = outgoing->exporter->budget;
    assert(outgoing->layout == LAYOUT_1_10 || outgoing->layout == LAYOUT_1_9);
    if (uploads > 0 && !replace(part, opaque_profiles_remove(part->bytes, budget)))
        return false;
    return outgoing->layout == LAYOUT_1_10 ||
           replace(part, profile_transcode_back(part->bytes, budget));
}

struct batch *profile_outgoing_batch(struct profile_outgoing *outgoing, struct batch *batch,
                                     struct receipt *receipt)
{
    struct outcome outcome = outcome_busy("no memory left in the budget to convert profiles");
    struct batch_part part = {.owner = NULL};
    struct batch *converted = NULL;
    assert(receipt != NULL);
    if (batch->signal != PROFILES)
        return batch_ref(batch);
    if (batch_join(batch, outgoing->exporter->budget, &part)) {
        uint64_t uploads = opaque_profiles_count(part.bytes);
        if (uploads > 0)
            note_uploads(outgoing, uploads);
        if (convert(outgoing, uploads, &part))
            converted = batch_of(batch, &part, batch->items - uploads);
    }
    if (converted != NULL && converted->parts_count > 0)
        return converted;
    if (converted != NULL) {
        outcome = outcome_accepted;
        outcome.rejected_items = batch->items;
        outcome.invalid_items = batch->items;
    }
    batch_unref(converted);
    receipt_resolve(receipt, &outcome);
    return NULL;
}
