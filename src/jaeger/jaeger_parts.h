/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: one request being read. A reader (jaeger_proto.c,
 * jaeger_thrift.c) fills the span, its tags and references; jaeger_span.c makes it a Span of OTLP;
 * jaeger_read.c puts spans of one process and scope together. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"
#include "src/jaeger/jaeger_types.h"
#include "src/otlp/converted_spans.h"
#include "src/otlp/nested_output.h"

enum { JAEGER_TRACE_ID_BYTES = 16, JAEGER_SPAN_ID_BYTES = 8 };

enum jaeger_value_type { JAEGER_STRING, JAEGER_BOOL, JAEGER_INT, JAEGER_DOUBLE, JAEGER_BYTES };

struct jaeger_tag {
    struct slice key;
    struct slice bytes; /* of STRING (valid UTF-8) and BYTES */
    int64_t integer;
    double real;
    bool boolean;
    bool is_unknown; /* the type is none of Jaeger's; the text says so */
    bool is_gone;    /* a later one has its key, or it has become something else */
    enum jaeger_value_type type;
};

enum jaeger_reference_type { JAEGER_CHILD_OF, JAEGER_FOLLOWS_FROM };

struct jaeger_reference {
    uint8_t trace_id[JAEGER_TRACE_ID_BYTES];
    uint8_t span_id[JAEGER_SPAN_ID_BYTES];
    int64_t type; /* enum jaeger_reference_type, or unknown */
};

/* Times in nanoseconds since 1970. */
struct jaeger_span {
    uint8_t trace_id[JAEGER_TRACE_ID_BYTES];
    uint8_t id[JAEGER_SPAN_ID_BYTES];
    uint8_t parent_id[JAEGER_SPAN_ID_BYTES]; /* zeros: that of a reference, if any */
    struct slice name;
    int64_t start_ns;
    int64_t end_ns;
    bool has_own_process; /* in own_process */
};

/* ResourceSpans being written. Spans with a process of their own have a group for themselves, so
 * that the batch's process, which may be large, is not written again after each of them. */
struct jaeger_group {
    struct nested_output output;
    /* The last ResourceSpans and its last ScopeSpans, and what they have. */
    bool is_open;
    struct nested_message resource_spans;
    struct nested_message scope_spans;
    struct scratch process; /* the Resource's content */
    size_t process_size;
    struct scratch scope; /* name and version, one after the other */
    size_t name_size;
    size_t version_size;
};

enum { JAEGER_OF_BATCH, JAEGER_OF_SPAN, JAEGER_GROUPS };

struct jaeger_request {
    enum jaeger_form form;
    struct slice body;
    struct budget *budget;
    enum conversion verdict; /* sticky */
    char *reason;            /* CONVERSION_REASON_BYTES_MAX */

    struct jaeger_span span;   /* being read, and what belongs to it: */
    struct scratch tags;       /* struct jaeger_tag: the span's, then those of an event */
    size_t tags_count;         /* all of them */
    struct scratch references; /* struct jaeger_reference */
    size_t references_count;
    struct scratch order;             /* struct jaeger_tag *, by key */
    struct arena texts;               /* strings that are in the body in another form */
    struct nested_output events;      /* Event messages as fields of a Span */
    struct nested_output process;     /* of the batch: a Resource's content */
    struct nested_output own_process; /* of the span */

    struct jaeger_group groups[JAEGER_GROUPS]; /* the result, by whose process it is */
    struct nested_output *output;              /* of the span's group */
    bool is_process_open; /* the batch's group has the batch's process: no need to compare them */

    uint64_t spans;
    uint64_t messages;
};

/* Reads the body. What is wrong is in the request's verdict. */
void jaeger_read_proto(struct jaeger_request *request);
void jaeger_read_thrift(struct jaeger_request *request);

/* ---- of the readers (jaeger_span.c); false: the verdict says why ---- */

/* The body is wrong at that place of it. expected: NULL when found says it all. */
bool jaeger_malformed(struct jaeger_request *request, const uint8_t *at, const char *place,
                      const char *found, const char *expected);
/* There is no room for that many bytes. */
bool jaeger_no_memory(struct jaeger_request *request, size_t bytes);
/* text with U+FFFD for each byte that is not UTF-8. */
bool jaeger_valid_text(struct jaeger_request *request, struct slice text, struct slice *ret_text);
void jaeger_span_begin(struct jaeger_request *request);
bool jaeger_add_tag(struct jaeger_request *request, const struct jaeger_tag *tag);
/* Adds a tag of a type that Jaeger does not have; type is its name. */
bool jaeger_add_unknown(struct jaeger_request *request, struct slice key, const char *type);
bool jaeger_add_reference(struct jaeger_request *request, const struct jaeger_reference *reference);
/* The tags from the first on are those of an event; they go. */
bool jaeger_add_event(struct jaeger_request *request, size_t first, int64_t time_ns);
/* The tags from the first on are those of a process; they go. Writes a Resource's content. */
bool jaeger_put_process(struct jaeger_request *request, struct nested_output *output, size_t first,
                        struct slice service);
/* The span is complete. */
bool jaeger_span_end(struct jaeger_request *request);

/* ---- between jaeger_span.c and jaeger_read.c ---- */

/* Opens a ResourceSpans and a ScopeSpans for the next span unless they are open already, and sets
 * the request's output. */
void jaeger_open_scope(struct jaeger_request *request, struct slice name, struct slice version);
