/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: one request being read. A reader (zipkin_json.c,
 * zipkin_proto.c, zipkin_thrift.c) fills the span, its tags and events; zipkin_span.c makes it a
 * Span of OTLP; zipkin_read.c gathers the spans of a resource. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/content_table.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"
#include "src/otlp/converted_spans.h"
#include "src/otlp/nested_output.h"
#include "src/zipkin/zipkin_keys.h"
#include "src/zipkin/zipkin_types.h"

enum { ZIPKIN_TRACE_ID_BYTES = 16, ZIPKIN_SPAN_ID_BYTES = 8, ZIPKIN_NS_PER_US = 1000 };

/* Fields of OTLP's messages that several of these files write. */
enum {
    FIELD_ATTRIBUTES_OF_RESOURCE = 1,
    FIELD_ATTRIBUTES_OF_SPAN = 9,
    FIELD_ATTRIBUTES_OF_EVENT = 3,
    FIELD_ATTRIBUTES_OF_LINK = 4,
};

enum zipkin_value_type { ZIPKIN_STRING, ZIPKIN_BOOL, ZIPKIN_INT, ZIPKIN_DOUBLE };

struct zipkin_tag {
    struct slice key;
    union {
        struct slice text;
        bool boolean;
        int64_t integer;
        double real;
    };
    enum zipkin_value_type type;
    enum zipkin_role role; /* v2, of what is not gone when the span ends */
    bool is_gone;          /* a later one has its key, or it has become something else */
};

struct zipkin_event {
    uint64_t time_ns;
    struct slice text;
};

/* Zeroed: nothing is known. */
struct zipkin_endpoint {
    struct slice service;
    struct slice ipv4; /* as text */
    struct slice ipv6;
    int32_t port;
};

/* Strings are valid UTF-8 and lie in the body or in the request's texts. */
struct zipkin_span {
    uint8_t trace_id[ZIPKIN_TRACE_ID_BYTES];
    uint8_t id[ZIPKIN_SPAN_ID_BYTES];
    uint8_t parent_id[ZIPKIN_SPAN_ID_BYTES]; /* zeros: none */
    struct slice name;
    unsigned kind; /* OTLP's SpanKind; 0: not known */
    bool has_start;
    uint64_t start_ns;
    uint64_t end_ns;
    struct zipkin_endpoint local;
    struct zipkin_endpoint remote;
};

/* What annotations and binary annotations of a span of v1 say of it. Times in microseconds. */
struct zipkin_v1_facts {
    bool has_endpoint;      /* the span's local is that of an annotation */
    bool has_annotation;    /* the next two are set */
    int64_t first;          /* time of the earliest annotation */
    int64_t last;           /* and of the latest */
    struct slice service;   /* of the last binary annotation that has one */
    struct slice component; /* the value of "lc" */
    bool has_timestamp;     /* start and end are */
    int64_t timestamp;
    int64_t duration;
};

/* One resource with one scope. */
struct zipkin_group {
    size_t offset;   /* of its parts, one after the other, in request->parts */
    size_t sizes[4]; /* of service, resource (its attributes), name and version of the scope */
    uint64_t bytes;  /* of its spans */
    size_t at;       /* where the next one of them goes in the result */
};

/* A span in request->output, in order. */
struct zipkin_place {
    uint32_t group;
    uint32_t bytes;
};

struct zipkin_request {
    const struct zipkin_source *source;
    struct slice body;
    struct budget *budget;
    enum conversion verdict; /* sticky */
    char *reason;            /* CONVERSION_REASON_BYTES_MAX */

    struct zipkin_span span; /* being read, and what belongs to it: */
    struct zipkin_v1_facts facts;
    struct scratch tags; /* struct zipkin_tag */
    size_t tags_count;
    struct scratch events; /* struct zipkin_event */
    size_t events_count;
    struct scratch order; /* struct zipkin_tag *, by key */
    struct arena texts;   /* strings that are in the body in another form */

    struct nested_output output; /* Span messages as fields of a ScopeSpans */
    struct nested_output head;   /* of the span: the parts of its group */
    struct scratch places;       /* struct zipkin_place */
    uint64_t spans;
    uint64_t messages;
    struct scratch groups; /* struct zipkin_group */
    size_t groups_count;
    struct content_table known; /* groups, by their parts */
    struct scratch parts;       /* of the groups */
    size_t parts_bytes;
};

/* Reads the body. What is wrong is in the request's verdict. */
void zipkin_read_json(struct zipkin_request *request, bool is_v1);
void zipkin_read_proto(struct zipkin_request *request);
void zipkin_read_thrift(struct zipkin_request *request);

/* ---- of the readers (zipkin_span.c); false: the verdict says why ---- */

/* The body is wrong at that place of it. expected: NULL when found says it all. */
bool zipkin_malformed(struct zipkin_request *request, const uint8_t *at, const char *place,
                      const char *found, const char *expected);
/* There is no room for that many bytes. */
bool zipkin_no_memory(struct zipkin_request *request, size_t bytes);

void zipkin_span_begin(struct zipkin_request *request);
/* Adds a tag with that string. */
bool zipkin_add_string(struct zipkin_request *request, struct slice key, struct slice text);
bool zipkin_add_tag(struct zipkin_request *request, const struct zipkin_tag *tag);
bool zipkin_add_event(struct zipkin_request *request, uint64_t time_ns, struct slice text);
/* Of v1. endpoint may be NULL. */
bool zipkin_v1_annotation(struct zipkin_request *request, int64_t timestamp, struct slice value,
                          const struct zipkin_endpoint *endpoint);
/* Another list of them follows, which replaces the one before. */
void zipkin_v1_forget_annotations(struct zipkin_request *request);
void zipkin_v1_forget_tags(struct zipkin_request *request);
/* tag has an annotation's key, which may change, and its value, which is also given as text.
 * endpoint may be NULL; it is the span's remote one when the annotation is an address: "sa", "ca"
 * or "ma" with the value true. */
bool zipkin_v1_binary(struct zipkin_request *request, struct zipkin_tag *tag, struct slice value,
                      const struct zipkin_endpoint *endpoint);
/* A string that is a number, true or false becomes that (zipkin_tags.c). Not for others. */
void zipkin_tag_parse(struct zipkin_tag *tag);
/* In nanoseconds; times before 1970 are 0. */
uint64_t zipkin_v1_time(int64_t microseconds);
/* The span is complete. */
bool zipkin_v2_end(struct zipkin_request *request);
bool zipkin_v1_end(struct zipkin_request *request);

/* text with U+FFFD for each byte that is not UTF-8. */
bool zipkin_valid_text(struct zipkin_request *request, struct slice text, struct slice *ret_text);
/* An address of any size: "?" and digits unless it has 4 or 16 bytes, as net.IP prints it. */
bool zipkin_print_address(struct zipkin_request *request, struct slice address,
                          struct slice *ret_text);

/* ---- between zipkin_span.c and others ---- */

/* Marks all tags but the last of those with equal keys (zipkin_tags.c). False: no memory. */
bool zipkin_tags_settle(struct zipkin_request *request, struct zipkin_tag *tags, size_t count);
/* Writes a KeyValue. */
void zipkin_put_tag(struct nested_output *output, uint32_t number, const struct zipkin_tag *tag);
/* Writes the members of a JSON object as attributes: what the exporter made of those of a link or
 * an event. False, with nothing written: it is none, or nested too deep (zipkin_attributes.c). */
bool zipkin_put_json(struct zipkin_request *request, uint32_t number, struct slice json);

/* Files the span that was written from that size of the output on; the parts of its group are in
 * request->head, with these sizes (zipkin_read.c). */
bool zipkin_file_span(struct zipkin_request *request, size_t begin, const size_t sizes[4]);
