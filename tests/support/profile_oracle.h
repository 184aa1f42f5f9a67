/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf-c as the oracle of profiles: decodes a request of layout 1.10 and spells every sample
 * out, so that two requests say the same when their lists are equal as multisets. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "tests/support/otlp_oracle.h"

enum profile_detail {
    PROFILE_PIECES, /* without profile_id and payload, which pieces of a profile lose */
    PROFILE_WHOLE,
};

/* Appends a text per sample, and one per profile without samples: resource, scope, profile, stack
 * (function, file, line, address, mapping), attributes, link, values, times. References are looked
 * up. Fails the test on an index outside of its table. */
void profile_oracle_list(struct oracle_items *items, struct slice request,
                         enum profile_detail detail);
/* NULL, or what is wrong with the dictionary: no zero element, an entry twice, an entry that nobody
 * refers to, a reference instead of a text. */
const char *profile_oracle_complaint(struct slice request);
/* How many indices, of all that the request holds, lead outside of their tables: in samples and in
 * entries that nobody refers to as well, and with all bits of their varints. Reads the wire format
 * by itself. */
size_t profile_oracle_strays(struct slice request);
void profile_oracle_sort(struct oracle_items *items);
/* What profile_fast_check says. If it is yes, the careful steps must agree that the request has
 * layout 1.10, is well-formed, has no index that leads nowhere, and needs nothing: else aborts. */
bool profile_oracle_fast_check(struct slice request);
