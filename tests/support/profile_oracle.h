/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes profiles requests of layout 1.10 with protobuf-c and writes every sample out as a string,
 * so that two requests say the same when their lists are equal as multisets. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "tests/support/otlp_oracle.h"

enum profile_detail {
    PROFILE_PIECES, /* without profile_id and payload, which pieces of a profile lose */
    PROFILE_WHOLE,
};

/* Appends a string per sample, and one per profile without samples: resource, scope, profile, stack
 * (function, file, line, address, mapping), attributes, link, values, times. Resolves references.
 * Fails the test on an index outside of its table. */
void profile_oracle_list(struct oracle_items *items, struct slice request,
                         enum profile_detail detail);
/* NULL, or what is wrong with the dictionary: a missing zero element, a duplicate or unused entry,
 * a reference instead of a string. */
const char *profile_oracle_complaint(struct slice request);
/* How many indices of the request, those of unused entries included, are outside of their tables;
 * all bits of their varints count. Has its own decoder. */
size_t profile_oracle_strays(struct slice request);
void profile_oracle_sort(struct oracle_items *items);
/* Returns what profile_fast_check does. If that is true, aborts unless the careful check agrees:
 * the request has layout 1.10, is well-formed, every index is inside its table, and it needs no
 * change. */
bool profile_oracle_fast_check(struct slice request);
