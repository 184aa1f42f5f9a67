/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded spans that wait for a decision, copied once into slabs of memory as the pieces of the
 * message that will go on: a fragment is what one Resource… message of a request has of a trace.
 * Bytes that many fragments have in common, as a large Resource, are stored once. A slab is freed
 * with its last fragment. Charged to the budget, beyond its limit if need be. Runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/slice.h"

struct batch;
struct budget;
struct buffer;
struct tail_request;

struct tail_place {
    uint32_t slab; /* 0: nowhere */
    uint32_t offset;
};

/* The fragments of a trace, in order of arrival. */
struct tail_spans {
    struct tail_place last; /* whose successor is the first */
};

struct tail_slab {
    struct buffer *buffer; /* NULL: free */
    uint32_t uses;         /* by fragments, also of its bytes alone; and as the current one */
    uint32_t next_free;
};

/* A message that spans are moved into. */
struct tail_message {
    struct batch *batch; /* NULL: there is none */
    /* References that its parts need, and do not have yet: for all parts of an owner at once, when
     * the message ends or a slab is freed. */
    struct {
        struct buffer *owner;
        unsigned parts;
    } lacking[2];
};

struct tail_slabs {
    struct budget *budget;
    bool has_requests; /* fragments know their request */
    uint32_t count;    /* of slabs, the first of which is not used */
    uint32_t capacity;
    uint32_t free;
    uint32_t current;
    struct tail_slab *items;
    struct tail_message message;
};

/* Writes a message into a fragment, or into any memory. */
struct tail_writer {
    uint8_t *at;
    uint8_t *run; /* the size of the bytes at hand goes there, before shared bytes; NULL: nowhere,
                     there are none */
};

struct tail_fragment {
    struct slice body; /* encoded pieces */
    bool is_plain;     /* or the bytes of one */
    uint32_t slab;
    uint32_t items;
    struct tail_request *request; /* NULL without has_requests */
};

void tail_slabs_init(struct tail_slabs *slabs, struct budget *budget, bool has_requests);
/* Nothing may be stored. */
void tail_slabs_fini(struct tail_slabs *slabs);

/* Stores bytes that fragments share, until tail_slabs_unshare and the last of them. */
struct tail_place tail_slabs_share(struct tail_slabs *slabs, struct slice bytes);
void tail_slabs_unshare(struct tail_slabs *slabs, struct tail_place place);
/* Appends a fragment of so many bytes, which the caller writes, without those that are shared, and
 * so many shared pieces, none of which is its end. */
struct tail_writer tail_spans_add(struct tail_slabs *slabs, struct tail_spans *spans, size_t bytes,
                                  size_t shared_pieces, uint32_t items,
                                  struct tail_request *request);
static inline void tail_write(struct tail_writer *writer, struct slice bytes)
{
    memcpy(writer->at, bytes.data, bytes.size);
    writer->at += bytes.size;
}
/* Bytes that were stored with tail_slabs_share. */
void tail_write_shared(struct tail_slabs *slabs, struct tail_writer *writer,
                       struct tail_place place, size_t size);
/* All is written. */
void tail_write_end(struct tail_writer *writer);

static inline bool tail_spans_are_none(const struct tail_spans *spans)
{
    return spans->last.slab == 0;
}
/* Fetches what the others look at first, of spans that are needed soon. */
void tail_spans_expect(const struct tail_slabs *slabs, const struct tail_spans *spans);
/* Calls fn for each fragment, in order. */
void tail_spans_each(const struct tail_slabs *slabs, const struct tail_spans *spans,
                     void (*fn)(const struct tail_slabs *slabs,
                                const struct tail_fragment *fragment, void *arg),
                     void *arg);
/* A message of one trace ends with the fragment that brings it to so many parts or bytes; what is
 * left of the trace goes on in further ones. */
enum { TAIL_MESSAGE_PARTS = 4096, TAIL_MESSAGE_BYTES = 4 << 20 };
/* Moves the first fragments, as many as a message has, out of the spans. */
struct tail_spans tail_spans_cut(struct tail_slabs *slabs, struct tail_spans *spans);
/* Parts of a batch that the bytes of a fragment become. */
size_t tail_fragment_parts(const struct tail_fragment *fragment);
/* Appends the bytes of a fragment, not its items, to a batch, which takes references. */
void tail_fragment_append(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                          struct batch *batch);
/* Frees all fragments. Returns their items. */
uint64_t tail_spans_clear(struct tail_slabs *slabs, struct tail_spans *spans);

/* Begins a message to the next stage: spans are moved to the end of the batch, until the end. */
void tail_message_begin(struct tail_slabs *slabs, struct batch *batch);
/* What is left of the spans, if anything, begins the next message. */
void tail_message_take(struct tail_slabs *slabs, struct tail_spans *spans);
/* Returns the batch. */
struct batch *tail_message_end(struct tail_slabs *slabs);

/* Lets go of memory that nothing uses. */
void tail_slabs_rest(struct tail_slabs *slabs);
