/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the exceptions in a batch of traces: events of that name
 * (opentelemetry.io/docs/specs/semconv /exceptions/exceptions-spans). Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/shared/wanted_attributes.h"
#include "src/base/arena.h"
#include "src/base/slice.h"

struct batch;
struct budget;

/* What the configuration wants. Constant; borrows its texts. */
struct exception_keys {
    struct wanted_names wanted;
    uint8_t service;    /* service.name */
    uint8_t stacktrace; /* exception.stacktrace */
    size_t dimensions_count;
    struct exception_dimension {
        struct slice name;
        uint8_t place;
        struct slice standard; /* no data: none */
    } dimensions[WANTED_NAMES_MAX];
};

/* With what every configuration wants. */
void exception_keys_init(struct exception_keys *keys);
/* standard: the value where the attribute is absent; NULL: none. False: there are too many. */
bool exception_keys_add(struct exception_keys *keys, const char *name, const char *standard);

/* An event and what is around it. Borrows all of it from the batch. */
struct exception {
    struct slice service;    /* empty if it is no string */
    struct slice attributes; /* of the span: encoded fields of type KeyValue, one after the other */
    struct slice span_name;
    const char *kind;      /* "SPAN_KIND_SERVER"; "" for numbers of a later version */
    const char *status;    /* "STATUS_CODE_ERROR" */
    struct slice trace_id; /* 16 bytes, or none */
    struct slice span_id;  /* 8 bytes, or none */
    uint64_t time_ns;
    /* Which one of the reader's, from 1; 0: not known. */
    uint64_t resource_number;
    uint64_t span_number;
    const struct wanted_values *resource_values;
    const struct wanted_values *span_values;
    const struct wanted_values *event_values;
};

enum exception_value {
    EXCEPTION_ABSENT,
    EXCEPTION_STANDARD,
    EXCEPTION_OF_SPAN,
    EXCEPTION_OF_EVENT,
    EXCEPTION_OF_RESOURCE,
};

/* The value of a dimension: of the span, else of the event, else of the resource, else the standard
 * one. ret_value: an encoded AnyValue; of the standard one its text. */
enum exception_value exception_dimension_value(const struct exception_keys *keys,
                                               const struct exception *exception, size_t dimension,
                                               struct slice *ret_value);

struct exception_reader {
    const struct exception_keys *keys;
    /* Before the exceptions of a scope: the content of its ScopeSpans message. May be NULL. */
    void (*scope)(void *arg, struct slice content);
    void (*take)(void *arg, const struct exception *exception);
    void *arg;
    struct arena copies;
    struct arena scattered; /* attributes of the span at hand, if they were between other fields */
    uint64_t unread;
    uint64_t resources; /* so far */
    uint64_t spans;
    struct wanted_values resource;
    struct wanted_values span;
    struct wanted_values event;
    struct slice service;
};

void exception_reader_init(struct exception_reader *reader, const struct exception_keys *keys,
                           struct budget *budget);
/* The bytes have passed otlp_check. Returns how often a resource, scope or span was left out for
 * want of memory. */
uint64_t exception_reader_read(struct exception_reader *reader, const struct batch *batch);
