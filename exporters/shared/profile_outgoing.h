/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares profiles for OTLP back-ends: removes files that are passed on unchanged
 * (opaque_profile.h), which no OTLP back-end reads, and converts the rest to the layout that the
 * back-end knows. Embedded by the exporter, on its lane. */
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
            "JFR files, which have no form in OTLP; they are not sent.")

struct profile_outgoing {
    const struct component *exporter;
    enum profile_layout layout; /* LAYOUT_1_10 or LAYOUT_1_9 */
    counter *unconvertible;     /* counts what is removed; NULL: not counted */
    bool has_logged;            /* that something was removed */
};

/* Returns a reference to the batch to be sent instead, which for other signals is this one. Items
 * that it lacks were removed. NULL: nothing is left, or no memory; the receipt was resolved. */
struct batch *profile_outgoing_batch(struct profile_outgoing *outgoing, struct batch *batch,
                                     struct receipt *receipt) __attribute__((warn_unused_result));
/* Counts what was left out of a batch, once the batch is done: each attempt leaves it out anew. */
void profile_outgoing_count(const struct profile_outgoing *outgoing, uint64_t left_out);
