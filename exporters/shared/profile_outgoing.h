/* SPDX-License-Identifier: Apache-2.0 */
/* What OTLP exporters do to profiles before they send them: files that are passed on as they came
 * (opaque_profile.h) are taken out, for no OTLP back-end reads them, and the rest is brought into
 * the layout that the back-end knows. Embedded by the exporter, on its lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/profiles/otlp/profile_layout.h"

struct batch;
struct component;
struct receipt;

#define PROFILE_OUTGOING_COUNTER(owner, field)                                                     \
    COUNTER(owner, field, COUNTER_SUM, "spanflame_exporter_unconvertible_profiles",                \
            "Files of JFR, which have no form in OTLP; they are not sent.")

struct profile_outgoing {
    const struct component *exporter;
    enum profile_layout layout; /* LAYOUT_1_10 or LAYOUT_1_9 */
    counter *unconvertible;     /* counts what is taken out; NULL: nobody does */
    bool has_told;
};

/* A reference to the batch to be sent instead of this one, which it may be itself, and is for other
 * signals. What it has fewer items was taken out. NULL: the receipt was resolved, because nothing
 * is left or there is no memory. */
struct batch *profile_outgoing_batch(struct profile_outgoing *outgoing, struct batch *batch,
                                     struct receipt *receipt) __attribute__((warn_unused_result));
