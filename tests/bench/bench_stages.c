/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of what two components do with each span: tail_sampling with ten policies, for
 * traces of one span and of ten, from the request to the decision and the spans' release; and
 * span_metrics with explicit buckets, without dimensions and with three, also with exemplars and
 * with exponential buckets; beside the check that every span passes. Spans of the rig's
 * payload. Nanoseconds of a span, the best of several runs of this thread's processor time; sockets
 * and lanes are not part of it. Arguments: part of a name, for those alone; how many runs (one is
 * enough to count instructions). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connectors/span_metrics/dimensions.h"
#include "connectors/span_metrics/span_aggregation.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "processors/tail_sampling/tail_split.h"
#include "processors/tail_sampling/tail_traces.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/bench/payload.h"
#include "tests/support/tail_fixture.h"

enum { SPANS = 1000, SPAN_BYTES = 672, REQUESTS = 20, RUNS = 60, BUCKETS = 16 };
enum { MESSAGE_SPANS = 256 }; /* as in tail_release.c */

static const char *only = ""; /* part of the names of what is measured */
static unsigned runs = RUNS;

static void report(const char *name, double best, double most)
{
    printf("%-44s %8.1f ns, %s %.0f\n", name, best, best <= most ? "within" : "MISSED:", most);
}

/* --- tail_sampling --- */

struct kept {
    struct tail_policies *policies;
    struct tail_traces traces;
    struct tail_list due;
    struct tail_slabs slabs;
    struct tail_policy_counters counters[TAIL_FIXTURE_POLICIES];
    uint64_t sampled;
};

static void expect(const uint8_t id[TAIL_TRACE_ID_BYTES], bool is_near, void *arg)
{
    struct kept *kept = arg;
    tail_traces_expect(&kept->traces, id, is_near);
}

static void begin(struct tail_group *group, uint64_t *bits, void *arg)
{
    struct kept *kept = arg;
    (void)bits;
    group->trace = tail_traces_find(&kept->traces, group->id);
}

static void take(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct kept *kept = arg;
    struct tail_trace *trace = group->trace;
    if (trace == NULL) {
        trace = tail_traces_add(&kept->traces, group->id);
        tail_policies_begin(kept->policies, group->id, trace->bits);
        tail_list_push(&kept->traces, &kept->due, trace);
    }
    for (size_t i = 0; i < kept->policies->words; i++)
        trace->bits[i] |= bits[i];
    trace->spans_count += group->spans;
    trace->bytes += tail_group_bytes(split, group);
    tail_group_store(split, group, &trace->spans, NULL);
}

static void decide_all(struct kept *kept)
{
    const struct tail_now now = {.ns = 1};
    tail_message_begin(&kept->slabs, batch_create(TRACES, 1));
    struct tail_ahead ahead = tail_ahead_of(&kept->traces, &kept->slabs, kept->due.first);
    while (kept->due.first != 0) {
        struct tail_trace *trace = tail_traces_at(&kept->traces, kept->due.first);
        tail_ahead_step(&kept->traces, &kept->slabs, &ahead);
        tail_list_take(&kept->traces, &kept->due, trace);
        const struct tail_facts facts = {
            .bits = trace->bits, .spans = trace->spans_count, .bytes = trace->bytes};
        struct tail_result result =
            tail_policies_decide(kept->policies, &facts, &now, kept->counters);
        if (result.decision == TAIL_SAMPLED) {
            kept->sampled++;
            tail_message_take(&kept->slabs, &trace->spans);
            if (kept->slabs.message.batch->items >= MESSAGE_SPANS) {
                batch_unref(tail_message_end(&kept->slabs));
                tail_message_begin(&kept->slabs, batch_create(TRACES, 1));
            }
        } else {
            tail_spans_clear(&kept->slabs, &trace->spans);
        }
        tail_traces_remove(&kept->traces, trace);
    }
    batch_unref(tail_message_end(&kept->slabs));
}

/* Gives the spans traces of so many. */
static void renumber(struct payload *payload, uint32_t spans, uint64_t salt)
{
    enum { ID_BYTES = 16, NEXT = ID_BYTES + 2 };
    for (uint32_t i = 0; i < payload->spans; i++) {
        const uint64_t trace = (i / spans + 1 + salt) * UINT64_C(0x9e3779b97f4a7c15);
        const uint64_t id[2] = {trace, trace ^ trace >> 29};
        memcpy(payload->body.data + payload->id_offsets[i] - NEXT, id, sizeof(id));
    }
}

static void measure_tail(const char *name, uint32_t spans)
{
    static struct kept kept;
    struct error error;
    struct budget budget;
    struct tail_split split;
    double best = 1e18;
    if (strstr(name, only) == NULL)
        return;
    budget_init(&budget, UINT64_MAX);
    /* OTTL has figures of its own. */
    static struct tail_policy_config policies[TAIL_FIXTURE_POLICIES];
    struct tail_sampling_config config = *tail_fixture_config();
    memcpy(policies, config.policies.items, sizeof(policies));
    policies[TAIL_FIXTURE_POLICIES - 1].shared = tail_fixture_shared("10", "span_count");
    policies[TAIL_FIXTURE_POLICIES - 1].shared.span_count.min_spans = 100;
    config.policies.items = policies;
    kept.policies = tail_policies_create(&config, NULL, &error);
    bool is_made = tail_traces_init(&kept.traces, kept.policies->words, 1 << 20, &budget);
    assert(is_made);
    tail_slabs_init(&kept.slabs, &budget, false);
    tail_split_init(&split, kept.policies, &kept.slabs, 1, &budget);
    const struct tail_taker taker = {.expect = expect, .begin = begin, .take = take, .arg = &kept};
    struct payload requests[REQUESTS];
    for (unsigned i = 0; i < REQUESTS; i++) {
        requests[i] = payload_make(SPANS, SPAN_BYTES, 1);
        renumber(&requests[i], spans, (uint64_t)i * SPANS);
    }
    for (unsigned run = 0; run < runs; run++) {
        uint64_t start = cpu_ns();
        for (unsigned i = 0; i < REQUESTS; i++) {
            tail_split_begin(&split, slice_of(requests[i].body.data, requests[i].body.size));
            while (!tail_split_step(&split, &taker))
                continue;
        }
        decide_all(&kept);
        double ns = (double)(cpu_ns() - start) / REQUESTS / SPANS;
        best = ns < best ? ns : best;
    }
    report(name, best, 350);
    for (unsigned i = 0; i < REQUESTS; i++)
        payload_free(&requests[i]);
    tail_split_fini(&split);
    tail_slabs_fini(&kept.slabs);
    tail_traces_fini(&kept.traces);
    tail_policies_destroy(kept.policies);
    budget_fini(&budget);
}

/* --- span_metrics --- */

struct metrics_case {
    const char *name;
    size_t dimensions;
    bool has_exemplars;
    bool is_exponential;
};

static void measure_metrics(const struct metrics_case *row, const struct payload *payload)
{
    const char *name = row->name;
    static struct dimension_config items[] = {
        {.name = "http.request.method", .glob = ""},
        {.name = "http.response.status_code", .glob = ""},
        {.name = "http.route", .glob = ""},
    };
    static const struct config_texts none;
    const struct span_metrics_config config = {
        .dimensions = {.count = row->dimensions, .items = items}};
    double bounds[BUCKETS - 1];
    double best = 1e18;
    if (strstr(name, only) == NULL)
        return;
    for (unsigned i = 0; i < BUCKETS - 1; i++)
        bounds[i] = 2 << i;
    struct dimensions *dimensions = dimensions_create(&config);
    struct series_settings series = {.histogram = row->is_exponential ? HISTOGRAM_EXPONENTIAL
                                                                      : HISTOGRAM_EXPLICIT,
                                     .max_size = EXPONENTIAL_SIZE_DEFAULT,
                                     .exemplars_max = row->has_exemplars ? 5 : 0,
                                     .has_common_labels = true,
                                     .bounds = bounds,
                                     .bounds_count = BUCKETS - 1,
                                     .resources_max = 1000,
                                     .series_max = 10000,
                                     .bytes_max = UINT64_MAX};
    const struct aggregation_settings settings = {.dimensions = dimensions,
                                                  .key_attributes = &none,
                                                  .scopes = &none,
                                                  .has_service = true,
                                                  .has_name = true,
                                                  .has_kind = true,
                                                  .has_status = true,
                                                  .has_histogram = true,
                                                  .has_common_labels = true,
                                                  .has_exemplars = row->has_exemplars,
                                                  .unit_ns = 1e6};
    struct series_store store;
    struct span_aggregation aggregation;
    span_series_store_init(&store, &series);
    store.is_main = true;
    span_aggregation_init(&aggregation, &settings, &store, NULL);
    for (unsigned run = 0; run < runs; run++) {
        uint64_t start = cpu_ns();
        for (unsigned i = 0; i < REQUESTS; i++) {
            span_aggregation_begin(&aggregation, slice_of(payload->body.data, payload->body.size),
                                   (struct series_time){1000, 1000});
            while (span_aggregation_go_on(&aggregation))
                continue;
        }
        double ns = (double)(cpu_ns() - start) / REQUESTS / SPANS;
        best = ns < best ? ns : best;
    }
    report(name, best, 100);
    span_aggregation_fini(&aggregation);
    span_series_store_fini(&store);
    dimensions_destroy(dimensions);
}

/* What a span costs that passes through, for comparison. */
static void measure_check(const char *name, const struct payload *payload)
{
    double best = 1e18;
    if (strstr(name, only) == NULL)
        return;
    for (unsigned run = 0; run < runs; run++) {
        uint64_t start = cpu_ns();
        for (unsigned i = 0; i < REQUESTS; i++) {
            struct otlp_figures figures;
            const char *reason;
            bool is_valid = otlp_check(TRACES, slice_of(payload->body.data, payload->body.size),
                                       &figures, &reason);
            assert(is_valid);
        }
        double ns = (double)(cpu_ns() - start) / REQUESTS / SPANS;
        best = ns < best ? ns : best;
    }
    printf("%-44s %8.1f ns\n", name, best);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : only;
    runs = argc > 2 ? (unsigned)atoi(argv[2]) : runs;
    struct payload payload = payload_make(SPANS, SPAN_BYTES, 1);
    printf("%d spans of %d bytes\n", SPANS, SPAN_BYTES);
    measure_tail("tail_sampling, traces of ten spans", 10);
    measure_tail("tail_sampling, traces of one span", 1);
    measure_check("the check of a span, beside span_metrics", &payload);
    static const struct metrics_case rows[] = {
        {.name = "span_metrics, no dimensions"},
        {.name = "span_metrics, three dimensions", .dimensions = 3},
        {.name = "span_metrics, three, with exemplars", .dimensions = 3, .has_exemplars = true},
        {.name = "span_metrics, three, exponential", .dimensions = 3, .is_exponential = true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        measure_metrics(&rows[i], &payload);
    payload_free(&payload);
    return 0;
}
