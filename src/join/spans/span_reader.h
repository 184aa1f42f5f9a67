/* SPDX-License-Identifier: Apache-2.0 */
/* The traces side of the join: copies what profiles may want to know of spans into the index while
 * they pass, and marks those that lead to a profile. One per lane and pipeline; runs on its lane.
 */
#pragma once

#include <stdint.h>

#include "src/join/index/resource_facts.h"
#include "src/join/index/single_trace.h"
#include "src/join/index/string_ring.h"
#include "src/join/spans/span_view.h"
#include "src/join/splice.h"

struct batch;
struct budget;
struct join_store;

struct span_figures {
    uint64_t indexed;
    uint64_t skipped; /* of services without profiles */
    uint64_t marked;
    uint64_t unmarked; /* for want of budget */
    uint64_t late;     /* a profile waited for it, but not long enough */
};

/* Spans that are read before any of them is indexed: the memory that the index has to look at is
 * fetched meanwhile. */
enum { SPAN_RUN_MAX = 8 };

struct span_in_run {
    struct span_view view;
    uint64_t begin; /* in the batch: of its tag, of its content */
    uint64_t content;
    uint64_t content_bytes;
};

struct span_reader {
    struct join_store *store;
    struct budget *budget;
    unsigned shard;
    struct profile_bytes gathered[2]; /* a resource, a scope, where a batch has them in pieces */
    struct splice_list splices;
    struct span_keys keys; /* attributes of spans that are wanted */
    struct span_in_run run[SPAN_RUN_MAX];
    unsigned run_count;
    struct span_figures figures; /* of the batch at hand */
    struct resource_facts resource;
    struct process_keys process_keys; /* names of its process that may have one trace */
    uint64_t now_ns;
    struct string_record text; /* of the span at hand */
    uint32_t resource_texts;   /* their place in the log */
    uint64_t batch_bytes;      /* of the batch at hand */
    bool is_indexed;           /* the resource at hand */
    bool is_marked;
};

void span_reader_init(struct span_reader *reader, struct join_store *store, unsigned shard,
                      struct budget *budget);
void span_reader_fini(struct span_reader *reader);
/* A new reference: to the batch itself, or to a copy with marks that shares all else. */
struct batch *span_reader_read(struct span_reader *reader, struct batch *batch, uint64_t now_ns,
                               struct span_figures *ret_figures);
