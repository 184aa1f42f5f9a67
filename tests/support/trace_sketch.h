/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests of traces from a few words, and what came out of a pipeline as a few words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct batch;
struct harness;
struct test_exporter;
struct test_request;

enum { TRACE_SKETCH_ATTRIBUTES = 8 };

struct trace_span {
    uint64_t trace; /* the last 8 bytes of the id */
    uint64_t span;
    uint64_t parent;
    uint64_t start_ms;
    uint64_t end_ms;
    unsigned status; /* OTLP's code */
    uint32_t flags;
    const char *state;
    const char *attributes[TRACE_SKETCH_ATTRIBUTES]; /* "key=text", "key=#5", "key=?true" */
    const char *scope; /* name; spans of the same one next to each other share it */
};

struct trace_resource {
    const char *attributes[TRACE_SKETCH_ATTRIBUTES];
    const char *schema; /* URL, also of the scopes */
};

/* The caller frees its data with mem_free. resource may be NULL. */
struct slice trace_sketch(const struct trace_resource *resource, const struct trace_span *spans,
                          size_t count);
/* Offers a request of them on that lane. */
struct test_request *trace_offer(struct harness *harness, unsigned lane,
                                 const struct trace_resource *resource,
                                 const struct trace_span *spans, size_t count);
/* The spans of a batch as "trace:span", blanks between, "/" between Resource… messages. The caller
 * frees it with free. */
char *trace_words(const struct batch *batch);
/* The same of all that an exporter holds (RESULT_HOLD), sorted, "|" between batches. */
char *trace_held(const struct test_exporter *exporter);
