/* SPDX-License-Identifier: Apache-2.0 */
/* Offers what a connector has made of a request to pipelines, and tells the outcome that the
 * request's client gets. The request's items end in the connector: what the pipelines say of some
 * of the items made is not about them. But if they do not take them, the client may send the
 * request again. On the lane of the connector. */
#pragma once

#include <stddef.h>

#include "src/core/receipt.h"

struct batch;
struct outlet;

/* Embedded by what the connector keeps of the request. */
struct request_offer {
    struct receipt receipt;
    /* Called once, maybe before _make returns; may free the offer. */
    void (*done)(struct request_offer *offer, const struct outcome *outcome);
};

/* Takes over the array (mem_alloc) and a reference to each batch; without any the outcome is
 * accepted. */
void request_offer_make(struct request_offer *offer, struct outlet *outlet, struct batch **batches,
                        size_t count,
                        void (*done)(struct request_offer *offer, const struct outcome *outcome));
