/* SPDX-License-Identifier: Apache-2.0 */
/* The traces side of the join: copies what profiles may need of passing spans into the index, and
 * marks spans that lead to a profile. One per lane and pipeline; runs on its lane. */
#pragma once

#include <stdint.h>

#include "src/join/index/resource_facts.h"
#include "src/join/index/single_trace.h"
#include "src/join/index/string_ring.h"
#include "src/join/spans/span_view.h"
#include "src/join/splice.h"
#include "src/join/url_template.h"
#include "src/otlp/rope.h"

struct batch;
struct budget;
struct join_store;

/* Attributes of marked spans. */
#define SPAN_MARK_ID_KEY  "pyroscope.profile.id"
#define SPAN_MARK_URL_KEY "pyroscope.profile.url"

struct span_figures {
    uint64_t indexed;
    uint64_t skipped; /* of services without profiles */
    uint64_t marked;
    uint64_t unmarked; /* the budget had no room */
    uint64_t late;     /* a profile had looked for it before */
};

/* Spans that are read before the first of them is indexed, while the index prefetches memory. */
enum { SPAN_RUN_MAX = 8 };

struct span_in_run {
    struct span_view view;
    uint64_t begin;   /* of its tag in the batch */
    uint64_t content; /* of its content in the batch */
    uint64_t content_bytes;
};

/* How far a batch has been read. */
struct span_walk {
    struct batch *batch; /* a reference */
    struct rope resources;
    struct rope_field resource;
    struct slice resource_content;
    struct rope scopes; /* of the resource */
    struct rope_field scope;
    struct slice scope_content;
    struct wire_reader spans; /* of the scope */
    size_t opened[2];         /* splices of the resource and of the scope */
    bool is_in_resource;
    bool is_in_scope;
};

struct span_reader {
    struct join_store *store;
    struct budget *budget;
    unsigned shard;
    struct profile_bytes gathered[2]; /* a resource and a scope that a batch has in several parts */
    struct splice_list splices;
    struct span_keys keys; /* wanted attributes of spans */
    struct span_in_run run[SPAN_RUN_MAX];
    unsigned run_count;
    uint64_t now_ns; /* of the step */
    struct span_walk walk;
    struct span_figures figures; /* of the batch */
    uint64_t batch_bytes;
    struct string_record record; /* of the resource or span at hand */

    /* The resource at hand. */
    struct resource_facts resource;
    struct url_values url_values;     /* those of the resource; with profile_url */
    struct process_keys process_keys; /* names of its process that may have one trace */
    uint32_t resource_place;          /* of its record in the string ring */
    bool is_indexed;
    bool is_marked;
};

void span_reader_init(struct span_reader *reader, struct join_store *store, unsigned shard,
                      struct budget *budget);
void span_reader_fini(struct span_reader *reader);
/* Reads a batch in one go. Returns a new reference: to the batch, or to one with marks that shares
 * all other bytes. */
struct batch *span_reader_read(struct span_reader *reader, struct batch *batch, uint64_t now_ns,
                               struct span_figures *ret_figures);

/* The same in steps, between which the lane may do other work, also with other readers: begin once,
 * step until the batch is read, then end. */
void span_reader_begin(struct span_reader *reader, struct batch *batch);
/* Reads about spans_max spans. now_ns: of this step, as the store keeps what others did since the
 * last one. True: the whole batch is read. */
bool span_reader_step(struct span_reader *reader, uint64_t spans_max, uint64_t now_ns);
struct batch *span_reader_end(struct span_reader *reader, struct span_figures *ret_figures);
