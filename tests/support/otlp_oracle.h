/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf-c as the oracle: decodes a request with the generated code and lists every item together
 * with all that encloses it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"

struct oracle_items {
    size_t count;
    char **texts; /* one per item: encoded resource, schema_url, scope, metric header, item */
};

/* True when protobuf-c can decode it. */
bool oracle_decodes(enum signal_kind signal, struct slice request);
/* True when a value comes twice in one place and is empty both times, which protobuf allows and
 * protobuf-c cannot merge: then oracle_decodes says false of a sound request. The request has
 * passed the walker, which bounds its depth. */
bool oracle_repeats_empty_value(enum signal_kind signal, struct slice request);
/* Appends the request's items in order. */
void oracle_list(struct oracle_items *items, enum signal_kind signal, struct slice request);
void oracle_clear(struct oracle_items *items);
