/* SPDX-License-Identifier: Apache-2.0 */
/* Takes requests apart by trace, or by the lane that owns it: the spans of each become a message of
 * their own, with copies of the Resource and scopes, schema URLs and unknown fields included. A
 * large request is read in steps. The bytes have passed otlp_check. Runs on its lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "processors/tail_sampling/tail_hash.h"
#include "processors/tail_sampling/tail_policies.h"
#include "processors/tail_sampling/tail_spans.h"
#include "src/base/scratch.h"
#include "src/otlp/wire.h"

struct batch;
struct budget;
struct buffer;
struct tail_split;

/* Spans of one Resource… message that are read before their groups are handed over; and the same of
 * scopes and Resource… messages, which may be empty, in one step. */
enum { TAIL_STEP_SPANS_MAX = 16384 };
/* What conditions read of records around theirs, such as the Resource of each span, in bytes, all
 * conditions together. A step ends with the span after which they have read so many; for a single
 * span, they fail when they read more. With OTTL_OUTER_… for the request. A byte takes about 2 ns
 * at most. For a step, spans and resources of TAIL_LARGE_BYTES count, too, for each condition and
 * each pattern that may read all of them. */
enum { TAIL_STEP_OUTER_BYTES_MAX = 4 << 20, TAIL_SPAN_OUTER_BYTES_MAX = 8 << 20 };
enum { TAIL_LARGE_BYTES = 16 * 1024 };

/* The spans that one Resource… message has of a trace. */
struct tail_group {
    uint8_t id[TAIL_TRACE_ID_BYTES];
    uint32_t first_span;
    uint32_t last_span;
    uint32_t spans;
    uint32_t scope; /* of all of them; UINT32_MAX: they have several */
    bool has_root;
    uint64_t bytes;         /* of its spans with their headers */
    uint64_t counted_bytes; /* the same as the Go collector counts them */
    void *trace;            /* of whoever takes the groups */
    uint64_t min_ns;        /* of tail_policies_time; set by begin */
    uint64_t max_ns;
};

/* What becomes of the groups. */
struct tail_taker {
    /* The id of a span that is not read yet, when two and, is_near, when one is ahead of it: what
     * `begin` will look at may be fetched. NULL: nothing is. */
    void (*expect)(const uint8_t id[TAIL_TRACE_ID_BYTES], bool is_near, void *arg);
    /* A new group: may set its trace, and begin its times and bits. */
    void (*begin)(struct tail_group *group, uint64_t *bits, void *arg);
    /* The group is complete. */
    void (*take)(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg);
    void *arg;
};

/* How far a request has been read. */
struct tail_walk {
    struct wire_reader resources;
    struct wire_reader scopes;
    struct wire_reader spans;
    struct slice whole; /* the Resource… message with its tag */
    struct slice scope; /* the content of the scope's message */
    bool is_in_resource;
    bool is_in_scope;
    bool has_others; /* all fields of the scope but the spans are known; else, those so far */
};

/* Where fields that groups have in common are kept for all of them, once one of them needs it. */
struct tail_common {
    struct tail_place place;
    struct buffer *copy; /* by lane, of fields that lie in several pieces in the request; or NULL */
};

/* One for small requests, which are read in one go, and one for each large one under way. May be
 * moved between steps. */
struct tail_split {
    struct budget *budget;
    const struct tail_policies *policies;
    unsigned lanes; /* more than 1: by the lane that owns the trace, whose number is the id */
    struct tail_slabs *slabs;
    struct tail_walk walk;
    /* Of the Resource… message at hand. */
    struct slice others;       /* all its fields but the scopes */
    uint64_t resource_bytes;   /* of the Resource as the Go collector counts it */
    struct tail_common common; /* others */
    bool is_whole;             /* nothing of it was handed over yet */
    struct scratch gathered;   /* others that lie in several pieces */
    size_t gathered_bytes;
    /* What conditions have seen of the spans at hand, at this place of gathered. */
    const void *seen_at;
    bool has_seen_resource;
    bool has_seen_scope;
    uint64_t outer_left;      /* that they may read of outer records, for this request */
    uint64_t step_outer_left; /* before the step ends */
    uint32_t step_heads;      /* scopes and Resource… messages that it has read */
    struct scratch spans;     /* struct span_entry */
    uint32_t spans_count;
    struct scratch scopes; /* struct scope_entry */
    uint32_t scopes_count;
    struct scratch groups;     /* struct tail_group */
    struct scratch group_bits; /* policies->words for each */
    uint32_t groups_count;
    struct tail_seed seed;
    struct scratch places; /* struct place_entry: groups by id */
    uint32_t places_count; /* a power of two */
    uint32_t stamp;        /* of places that are in use */
    uint64_t resource_bits[TAIL_WORDS_MAX];
    const uint8_t *ahead;   /* where the spans end that were fetched and told of; NULL: none were */
    const uint8_t *near_id; /* of the last of them */
};

void tail_split_init(struct tail_split *split, const struct tail_policies *policies,
                     struct tail_slabs *slabs, unsigned lanes, struct budget *budget);
void tail_split_fini(struct tail_split *split);
/* The lane that owns a trace. */
unsigned tail_split_owner(const uint8_t id[TAIL_TRACE_ID_BYTES], unsigned lanes);

/* Begins with a request, whose bytes it borrows until it is read. */
void tail_split_begin(struct tail_split *split, struct slice request);
/* Reads on, about TAIL_STEP_SPANS_MAX spans, or fewer whose conditions read much, and hands over
 * all groups of what it has read. True: the request is read. */
bool tail_split_step(struct tail_split *split, const struct tail_taker *taker);

/* For take: the size of the group's message as the Go collector counts it, without its header. */
uint64_t tail_group_bytes(const struct tail_split *split, const struct tail_group *group);
/* For take: stores its message. */
void tail_group_store(struct tail_split *split, const struct tail_group *group,
                      struct tail_spans *spans, struct tail_request *request);
/* For take: appends its message, not its items, to a batch. Spans are copied, beyond the budget's
 * limit if need be; a long Resource or scope, of which each group would need a copy, stays in the
 * request, all of which `request` holds. */
void tail_group_append(struct tail_split *split, const struct tail_group *group,
                       struct buffer *request, struct batch *batch);
