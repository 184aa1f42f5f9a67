/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans the samples of a profiles request were taken in, and what the index knows of these
 * spans. A sample names its span by a Link or by labels; with uses_window, a sample that names none
 * gets the only span of its process and thread at its time. The request is normalized
 * (profile_normalize), is contiguous and must not move. One owner, one thread at a time. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/join/index/resource_facts.h"
#include "src/join/index/span_index.h"
#include "src/join/index/thread_facts.h"
#include "src/join/join_limits.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"

struct budget;
struct join_store;

/* How a span is named; equal bytes are the same span. */
struct link_key {
    uint64_t trace[2];
    uint64_t span;
    uint64_t has_trace;
};

/* No place. */
#define LINK_NONE UINT32_MAX

/* Three cache lines: what its samples want, what the index knows, what they get. */
struct join_link {
    struct link_key key;
    uint8_t found;           /* enum span_found */
    bool is_final;           /* FOUND, with its root if that is wanted: not looked up again */
    bool is_unused;          /* named by an earlier form of the request only */
    bool is_known;           /* some such samples are of a service whose spans have been seen */
    bool is_lifted;          /* some of its samples name it by labels */
    bool is_as_it_came;      /* samples that have a link keep it */
    bool lacks_room;         /* the dictionary cannot get what it would add */
    bool is_unsettled;       /* FOUND, but keep or count_for needs more (profile_keep_unsettled) */
    uint32_t wanted;         /* bits of the attributes that some of its samples lack */
    uint32_t given;          /* bits of those that the span has */
    uint32_t above;          /* place of its parent in the same process (profile_copies); 0: none */
    uint32_t index;          /* in the link table with the additions; 0: none */
    struct span_facts facts; /* FOUND: of the span, or of its local root */
    uint32_t attributes[JOIN_ATTRIBUTES_MAX]; /* in the attribute table, likewise */
};

/* The distinct spans that the request names. A place is a number that stays, while the links may
 * move.
 */
struct link_set {
    struct join_link *items; /* by place; the first is none */
    uint32_t count;          /* with that */
    uint32_t capacity;
    uint32_t *slots; /* places by key: open addressing, at most half full; 0: empty */
    uint32_t slots_count;
    uint64_t seed;
    uint64_t charged_bytes;
};

/* What an entry of the attribute table means to the join. */
struct attribute_role {
    uint16_t fills; /* bits of the configured attributes that have its key */
    bool names_span;
    struct thread_facts thread; /* with uses_window */
};

/* A sample that names a span, or is given one by its time. */
struct named_sample {
    uint32_t offset;   /* of its field in the request */
    uint32_t link;     /* place in set; LINK_NONE: no span is known for its time */
    uint16_t filled;   /* bits of the configured attributes that it already has */
    bool is_by_labels; /* else by the link table */
};

/* When and where a sample that names no span was taken. */
struct timed_sample {
    uint64_t from_ns; /* its first and its last timestamp */
    uint64_t until_ns;
    uint32_t named;    /* place in named */
    uint32_t resource; /* place in resources */
    struct thread_facts thread;
};

struct profile_links {
    struct join_store *store;
    struct budget *budget;
    struct arena arena;
    struct profile_dictionary from;
    struct attribute_role *roles; /* by attribute */
    bool has_roles;               /* some attributes have one */
    bool names_spans;             /* some attributes or links name a span */
    uint32_t *by_link;            /* by entry of the link table: place in set + 1; 0: not read */
    struct link_set set;
    bool is_short;              /* the budget had no memory for something */
    struct named_sample *named; /* in the order of the request */
    uint32_t named_count;
    uint32_t named_capacity;
    uint64_t charged_bytes; /* for named, timed and resources */
    uint64_t linked_samples;
    struct timed_sample *timed; /* in the order of the request; with uses_window */
    uint32_t timed_count;
    uint32_t timed_found;
    uint32_t timed_left_out; /* the same, that were not looked for: too many looks */
    uint32_t timed_capacity;
    struct resource_facts *resources; /* those with timed samples */
    uint32_t resources_count;
    uint32_t resources_capacity;
    struct resource_facts resource; /* the one being read; with uses_window */
    bool is_resource_kept;          /* it is the last of resources */
};

/* The field of a Profile that holds a sample. */
enum { PROFILE_SAMPLES = 2 };

void profile_links_init(struct profile_links *links, struct join_store *store,
                        struct budget *budget);
void profile_links_fini(struct profile_links *links);
/* Reads a request, or another form of the same one: spans that were found keep what was found.
 * Notes its services in the store. False: its index takes more memory than PROFILE_INDEX_BYTES_MAX
 * or than the budget has. */
bool profile_links_open(struct profile_links *links, struct slice request, uint64_t now_ns);
/* Looks up all spans that were not found yet. Returns how many are missing and may still arrive,
 * plus the samples whose span is found by time and may still change. */
uint32_t profile_links_resolve(struct profile_links *links);
/* The place of that span in set, looked up if it is new; LINK_NONE: the budget has no memory. */
uint32_t profile_links_place(struct profile_links *links, const struct link_key *key);
/* Looks up the span of a link, unless it was found already. */
void join_link_resolve(struct join_link *link, const struct join_store *store);
/* Takes the spans and what was found out of links, to be kept while the request waits. Their memory
 * stays charged to the budget of links; link_set_fini returns it. Places stay. */
struct link_set profile_links_detach(struct profile_links *links);
/* Gives them back, before _open. Empties set. */
void profile_links_attach(struct profile_links *links, struct link_set *set);
void link_set_fini(struct link_set *set, struct budget *budget);
/* The role of an attribute of the request. */
static inline const struct attribute_role *profile_links_role(const struct profile_links *links,
                                                              struct profile_index index)
{
    return &links->roles[profile_place(&links->from, PROFILE_ATTRIBUTES, index)];
}

/* Iterates over the named samples in the order of the request. */
struct named_reader {
    const struct profile_links *links;
    uint32_t next;
};

/* The next one inside `part`, a slice of the request; skips those before it. NULL: none is left. */
static inline const struct named_sample *named_reader_next(struct named_reader *reader,
                                                           struct slice part)
{
    const struct profile_links *links = reader->links;
    uint64_t begin = (uint64_t)(part.data - links->from.request.data);
    assert(begin + part.size <= links->from.request.size);
    while (reader->next < links->named_count && links->named[reader->next].offset < begin)
        reader->next++;
    if (reader->next == links->named_count ||
        links->named[reader->next].offset >= begin + part.size)
        return NULL;
    return &links->named[reader->next++];
}

/* Decodes the sample. Returns its whole field. */
static inline struct slice named_sample_read(const struct profile_links *links,
                                             const struct named_sample *named,
                                             struct profile_sample *ret_sample)
{
    struct slice request = links->from.request;
    struct wire_reader reader =
        wire_reader_of(slice_of(request.data + named->offset, request.size - named->offset));
    struct wire_field field;
    bool is_there = wire_next_field(&reader, &field);
    assert(is_there && field.number == PROFILE_SAMPLES);
    profile_read_sample(field.bytes, ret_sample);
    return field.whole;
}
