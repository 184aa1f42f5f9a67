/* SPDX-License-Identifier: Apache-2.0 */
/* trace_profile_join in a harness: spans and profiles from a few words, and what became of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/harness.h"
#include "tests/support/profile_sketch.h"

/* The join in a pipeline of traces and one of profiles. */
#define JOIN_BOTH_PIPELINES                                                                        \
    "service: {pipelines: {"                                                                       \
    "traces: {receivers: [test], processors: [trace_profile_join], exporters: [test]}, "           \
    "profiles: {receivers: [test], processors: [trace_profile_join], exporters: [test]}}}\n"
#define JOIN_PIPELINES                                                                             \
    "exporters: {test: {sending_queue: {enabled: false}, retry_on_failure: {enabled: "             \
    "false}}}\n" JOIN_BOTH_PIPELINES
#define JOIN(keys) "processors: {trace_profile_join: {" keys "}}\n" JOIN_PIPELINES

#define JOIN_METRIC "otelcol_processor_trace_profile_join_"

#define TRACE_A "AAAAAAAAAAAAAAAA"
#define TRACE_B "BBBBBBBBBBBBBBBB"

enum { JOIN_ROOM = 4096 }; /* bytes of a request of spans */

struct oracle_items;
struct wire_writer;

enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };

struct sketch_span {
    const char *trace_id;
    const char *span_id;
    const char *parent_id; /* NULL: none */
    const char *name;
    unsigned kind;
    uint64_t start_ns;
    uint64_t end_ns;
    const char *attributes[4]; /* key, text, … */
    unsigned status;
    uint32_t flags;
};

/* Of a service: key, text, …, NULL. */
extern const char *const join_shop[];
/* One of its spans, of 250 ms, and a sample taken in it. */
extern const struct sketch_span join_checkout;
extern const struct sketch_sample join_work;

struct harness *join_start_on(const char *yaml, unsigned lanes);
struct harness *join_start(const char *yaml);
/* With these keys of the processor, on one lane. */
struct harness *join_start_with(const char *keys);
/* Appends a field 1 for each attribute, and a field 2 that is the span. */
void join_put_resource(struct wire_writer *out, const char *const *resource);
void join_put_span(struct wire_writer *out, const struct sketch_span *span);
/* A request of one resource and scope, in JOIN_ROOM bytes. */
struct slice join_spans_request(void *room, const char *const *resource,
                                const struct sketch_span *spans, size_t count);
struct test_request *join_offer_spans(struct harness *h, unsigned lane, const char *const *resource,
                                      const struct sketch_span *spans, size_t count);
/* The samples of all its profiles are its items. */
struct test_request *join_offer_sketch(struct harness *h, unsigned lane,
                                       const struct sketch *sketch);
/* A request with these samples of one profile; resource: "key=text". */
struct test_request *join_offer_samples(struct harness *h, unsigned lane, const char *resource,
                                        const struct sketch_sample *samples, size_t count);
/* Where profiles end on lane 0, which gives this result. */
struct test_exporter *join_profiles_sink(struct harness *h, enum test_result result);
/* Whether sample `index` of the held batch says text, plainly or in a value. */
bool join_says(const struct test_exporter *exporter, size_t held, size_t index, const char *text);
/* How often the first held batch, a valid one, says so, as its bytes stand. */
unsigned join_count(const struct test_exporter *exporter, const char *text);
/* No result to profiles yet, on all lanes. */
void join_hold_profiles(struct harness *h, unsigned lanes);
/* The same while a tick goes by, of that many ns; then the oracle spells out what there is, sample
 * by sample, and it gets its result. */
void join_list_tick(struct harness *h, unsigned lanes, uint64_t tick_ns,
                    struct oracle_items *ret_items);
/* Accepts what it holds and all that follows. */
void join_let_go(struct test_exporter *exporter);
/* The series' value; UINT64_MAX: there is none. */
uint64_t join_metric(const struct harness *h, const char *series);
