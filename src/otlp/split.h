/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts batches at item boundaries, copying the Resource and scope headers around borrowed bytes.
 * Not profiles: profile_queue.h. Input has passed otlp_check. Pure functions over immutable
 * batches; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct batch;
struct budget;

struct otlp_limit {
    uint64_t items_max; /* 0: none */
    uint64_t bytes_max; /* 0: none */
    /* bytes_max also cuts before the first item, so a part may have none; otherwise messages
     * without items go with the next item. */
    bool cuts_anywhere;
    /* bytes_max does not count what both sides get: Resource, scope and the like. */
    bool repeats_freely;
};

/* Splits off the first part of batch that keeps the limit, *ret_head; *ret_tail is the rest (NULL:
 * none). Both are new references. A single item above bytes_max becomes a head of its own. New
 * bytes are charged to budget, beyond its limit if need be: they finish what was accepted. */
void otlp_split(struct batch *batch, struct otlp_limit limit, struct budget *budget,
                struct batch **ret_head, struct batch **ret_tail);
