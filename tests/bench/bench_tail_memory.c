/* SPDX-License-Identifier: Apache-2.0 */
/* What tail_sampling takes of the machine's memory, beside what it may take: a whole service on the
 * fake clock, whose traces wait a minute. Spans arrive during most of it, so that nearly all wait
 * at once. Reports the resident memory at its highest, requests that were refused, traces that were
 * decided before their time, and how much of the budget was in use then; each trace is decided in
 * the end. Options: --traces, --trace-spans, --span-bytes, --budget-mib. */
#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "processors/tail_sampling/tail_instance.h"
#include "src/base/budget.h"
#include "src/service/service_parts.h"
#include "tests/bench/payload.h"
#include "tests/support/harness.h"

enum {
    REQUESTS = 2000, /* the harness keeps a record of each */
    WAIT_S = 60,
    ARRIVAL_S = 50,
    ID_BYTES = 16,
    SPAN_ID_HEADER = 2,
};

struct run {
    uint64_t traces;
    uint64_t trace_spans;
    uint64_t span_bytes;
    uint64_t budget_mib;
    struct harness *harness;
    struct tail_counters *counters;
    uint64_t limit;
    uint64_t rss_before;
    uint64_t rss_most;
    uint64_t used_most;
    uint64_t refused;       /* requests */
    uint64_t early;         /* traces, so far */
    uint64_t early_at_used; /* the least that was in use when a trace was decided early */
};

/* Bytes. */
static uint64_t resident(void)
{
    unsigned long total;
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &total, &pages) != 2)
        die("/proc/self/statm cannot be read");
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void look(struct run *run, uint64_t used_before)
{
    const uint64_t rss = resident();
    const uint64_t used = harness_budget_used(run->harness);
    uint64_t early = 0;
    for (unsigned i = 0; i < TAIL_EARLIES; i++)
        early += counter_read(&run->counters->earlies[i]);
    if (early > run->early && used_before < run->early_at_used)
        run->early_at_used = used_before;
    run->early = early;
    run->rss_most = rss > run->rss_most ? rss : run->rss_most;
    run->used_most = used > run->used_most ? used : run->used_most;
}

/* Gives the spans of a request, the first of which is number `first`, the ids of their traces. */
static void renumber(const struct run *run, struct payload *payload, uint64_t first)
{
    for (uint32_t i = 0; i < payload->spans; i++) {
        const uint64_t trace = (first + i) / run->trace_spans + 1;
        const uint64_t id[2] = {trace * UINT64_C(0x9e3779b97f4a7c15), trace};
        memcpy(payload->body.data + payload->id_offsets[i] - SPAN_ID_HEADER - ID_BYTES, id,
               sizeof(id));
    }
}

static void send_all(struct run *run)
{
    const uint64_t spans = run->traces * run->trace_spans;
    const uint32_t each = (uint32_t)((spans + REQUESTS - 1) / REQUESTS);
    struct payload payload = payload_make(each, (uint32_t)run->span_bytes, 1);
    run->rss_before = resident();
    for (uint64_t i = 0; i < REQUESTS; i++) {
        renumber(run, &payload, i * each);
        const uint64_t used = harness_budget_used(run->harness);
        const struct test_request *request = harness_offer_bytes(
            run->harness, 0, TRACES, slice_of(payload.body.data, payload.body.size), each);
        run->refused += request->is_resolved && request->outcome.verdict != ACCEPTED;
        look(run, used);
        if (i % (REQUESTS / ARRIVAL_S) == 0)
            harness_advance(run->harness, S);
    }
    payload_free(&payload);
}

static void report(const struct run *run, uint64_t decided)
{
    const double mib = 1 << 20;
    printf("%" PRIu64 " traces of %" PRIu64 " spans of %" PRIu64 " bytes, %d s, %" PRIu64
           " MiB: resident %+.1f MiB (%.2f of them), charged %.1f MiB; %" PRIu64
           " decided, %" PRIu64 " of them early (num_traces %" PRIu64 ", memory %" PRIu64
           "), at %.2f of the budget or more; %" PRIu64 " requests refused\n",
           run->traces, run->trace_spans, run->span_bytes, WAIT_S, run->budget_mib,
           (double)(run->rss_most - run->rss_before) / mib,
           (double)(run->rss_most - run->rss_before) / (double)run->limit,
           (double)run->used_most / mib, decided, run->early,
           (uint64_t)counter_read(&run->counters->earlies[TAIL_EARLY_OVERFLOW]),
           (uint64_t)counter_read(&run->counters->earlies[TAIL_EARLY_MEMORY]),
           run->early > 0 ? (double)run->early_at_used / (double)run->limit : 1.0, run->refused);
}

static void measure(struct run *run)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             "processors: {tail_sampling: {decision_wait: %ds, num_traces: %" PRIu64
             ", policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}},"
             " {name: slow, type: latency, latency: {threshold_ms: 100000}}]}}\n"
             "exporters: {test: {sending_queue: {enabled: false}}}\n"
             "service: {budget_mib: %" PRIu64
             ", pipelines: {traces: {receivers: [test], processors: [tail_sampling], exporters: "
             "[test]}}}\n",
             WAIT_S, run->traces, run->budget_mib);
    run->harness = harness_create(yaml);
    run->counters = harness_processor(run->harness, "tail_sampling", TRACES)->counters;
    run->limit = budget_limit(&run->harness->service->budget);
    run->early_at_used = UINT64_MAX;
    send_all(run);
    for (unsigned i = 0; i <= WAIT_S; i++) {
        const uint64_t used = harness_budget_used(run->harness);
        harness_advance(run->harness, S);
        look(run, used);
    }
    uint64_t decided = 0;
    for (unsigned i = 0; i < TAIL_DECISIONS; i++)
        decided += counter_read(&run->counters->decisions[i]);
    report(run, decided);
    harness_destroy(run->harness);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"traces", required_argument, NULL, 't'},
                                            {"trace-spans", required_argument, NULL, 's'},
                                            {"span-bytes", required_argument, NULL, 'b'},
                                            {"budget-mib", required_argument, NULL, 'm'},
                                            {NULL, 0, NULL, 0}};
    struct run run = {.traces = 10000000, .trace_spans = 1, .span_bytes = 250, .budget_mib = 1024};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint64_t *value = option == 't'   ? &run.traces
                          : option == 's' ? &run.trace_spans
                          : option == 'b' ? &run.span_bytes
                          : option == 'm' ? &run.budget_mib
                                          : NULL;
        if (value == NULL)
            return 2;
        *value = number_option("a number", optarg, 1, UINT32_MAX);
    }
    measure(&run);
    return 0;
}
