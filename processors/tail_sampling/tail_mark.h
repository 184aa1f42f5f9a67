/* SPDX-License-Identifier: Apache-2.0 */
/* Writes into messages which policy sampled them, as attributes of their scopes (the feature gate
 * processor.tailsamplingprocessor.recordpolicy). Pure function; any thread. */
#pragma once

#include <stdbool.h>

struct batch;
struct budget;

struct tail_mark {
    const char *policy;    /* NULL: none is written */
    const char *composite; /* sub-policy of a composite; NULL: none */
    bool is_cached;        /* the decision was remembered */
};

/* Returns a new reference: to a marked copy, or to the batch itself when the budget has no room. */
struct batch *tail_mark_write(struct batch *batch, const struct tail_mark *mark,
                              struct budget *budget);
