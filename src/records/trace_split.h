/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a request of spans into requests of one trace each: for each trace in each scope one, with
 * copies of the resource and the scope, in their order. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/content_table.h"
#include "src/base/scratch.h"

struct batch;
struct budget;
struct buffer;

enum { TRACE_ID_BYTES = 16 };

struct trace_fragment {
    uint8_t id[TRACE_ID_BYTES]; /* zeros: none */
    uint32_t scope;             /* private */
    uint32_t first_span;        /* private */
    uint32_t last_span;
    uint32_t items;
    size_t bytes;
    struct buffer *buffer; /* the request; the user's, once taken */
};

enum trace_split_result {
    TRACE_SPLIT_DONE,
    TRACE_SPLIT_NO_ROOM,   /* the budget has none now */
    TRACE_SPLIT_TOO_LARGE, /* the budget never will, or it would become many times larger */
    TRACE_SPLIT_LONG       /* it would write more than written_max */
};

struct trace_split {
    struct budget *budget;
    struct content_table table;
    struct scratch keys; /* of the table */
    size_t keys_bytes;
    struct scratch places; /* uint32_t by content: the fragment */
    struct scratch spans;  /* private */
    size_t spans_count;
    struct scratch scopes; /* private */
    size_t scopes_count;
    struct scratch fragments; /* struct trace_fragment */
    size_t fragments_count;
    struct scratch gathered; /* private */
    size_t gathered_bytes;
};

void trace_split_init(struct trace_split *split, struct budget *budget);
/* Releases the buffers that were not taken, too. */
void trace_split_fini(struct trace_split *split);
/* Once. Takes as much as batch_has_room. */
enum trace_split_result trace_split_run(struct trace_split *split, struct batch *batch,
                                        uint64_t written_max);
struct trace_fragment *trace_split_fragments(const struct trace_split *split);
