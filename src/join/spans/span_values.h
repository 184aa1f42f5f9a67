/* SPDX-License-Identifier: Apache-2.0 */
/* What a span of the index has for each attribute that samples get, one after the other in the
 * order of the configuration. Large: 8 KiB of texts. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/index/string_ring.h"

struct join_settings;
struct span_facts;
struct span_index;

enum { BUCKET_TEXT_MAX = 64 };

struct span_values {
    const struct join_settings *settings; /* borrowed, as facts */
    const struct span_facts *facts;
    struct string_record span;
    struct string_record resource;
    struct record_reader span_reader;
    struct record_reader resource_reader;
    struct slice name;
    uint64_t service; /* a hash; 0: it has no name */
    size_t next;      /* attribute */
    char bucket[BUCKET_TEXT_MAX];
};

/* False: the texts are gone by now. */
bool span_values_open(struct span_values *values, const struct join_settings *settings,
                      const struct span_index *index, const struct span_facts *facts);
/* Of the next attribute, to be called once for each; the bytes are those of values. False: the span
 * has none. */
bool span_values_next(struct span_values *values, struct slice *ret_value);
