/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of what the explore page costs: what a lane and the worker take for each span and
 * for each byte of profiles while nobody looks, how many spans of the rig's payload are kept in
 * 64 MiB and what memory that really is, and how long answers take: the list of 100 000 traces with
 * and without filters, a trace of 100 000 and of 1 000 000 spans. Times are processor time, the
 * best of several runs; the first answer about a trace also builds its tree and is measured once.
 * Argument: part of a row's name, for those alone. */
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/explore/explore_api.h"
#include "src/explore/explore_hub.h"
#include "tests/bench/payload.h"
#include "tests/unit/explore/span_request.h"

enum {
    RUNS = 5,
    SPAN_BYTES = 672,
    SPANS = 1000, /* of a request */
    KEPT_REQUESTS = 600,
    TRACES_MANY = 100000,
    SPANS_PER_TRACE = 4,
    FILL_OFFERS = 2000,
    OFFERS = 20000,
};

static const char *only = "";

static bool is_wanted(const char *name)
{
    return strstr(name, only) != NULL;
}

static uint64_t spent_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void report(const char *name, double value, const char *unit, double most)
{
    printf("%-52s %9.2f %s", name, value, unit);
    if (most > 0)
        printf(", %s %.2f", value <= most ? "within" : "MISSED:", most);
    printf("\n");
    fflush(stdout);
}

static uint64_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- what is kept --- */

static void keep(const struct payload *payload, struct trace_store *store, uint64_t *ns)
{
    uint64_t begin = spent_ns(CLOCK_THREAD_CPUTIME_ID);
    bool is_kept =
        trace_store_add(store, slice_of(payload->body.data, payload->body.size), clock_wall_ns());
    assert(is_kept);
    while (trace_store_bytes(store) > 64 * MIB && trace_store_evict(store))
        ;
    *ns += spent_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    (void)is_kept;
}

static void measure_room(void)
{
    struct trace_store store;
    uint64_t ns = 0;
    if (!is_wanted("room"))
        return;
    uint64_t before = resident_bytes();
    trace_store_init(&store, CODEC_ZSTD);
    for (uint64_t i = 0; i < KEPT_REQUESTS; i++) {
        struct payload payload = payload_make(SPANS, SPAN_BYTES, 1 + i * SPANS);
        keep(&payload, &store, &ns);
        payload_free(&payload);
    }
    report("room: worker, to keep a span", (double)ns / (KEPT_REQUESTS * SPANS), "ns", 0);
    printf("%-52s %9.0f spans, at least 400000\n", "room: of 672 bytes in 64 MiB",
           (double)store.spans);
    report("room: memory that is counted", (double)trace_store_bytes(&store) / MIB, "MiB", 64);
    report("room: memory that the process has for it", (double)(resident_bytes() - before) / MIB,
           "MiB", 64 * 1.15);
    trace_store_fini(&store);
}

/* --- answers --- */

static struct budget budget;
static const struct explore_settings settings = {
    .max_bytes = 1024 * MIB, .budget = &budget, .version = "1"};

static double ask(struct explore_data *data, const char *path, const char *query, unsigned runs,
                  size_t *ret_bytes)
{
    double best = 1e9;
    for (unsigned run = 0; run < runs; run++) {
        struct explore_job job = {.path = (char *)(uintptr_t)path,
                                  .query = (char *)(uintptr_t)query};
        uint64_t begin = spent_ns(CLOCK_THREAD_CPUTIME_ID);
        explore_answer(data, &job);
        double ms = (double)(spent_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6;
        best = ms < best ? ms : best;
        if (job.status != 200)
            printf("%s?%s: status %u: %.*s\n", path, query, job.status, (int)job.body->size,
                   (const char *)job.body->data);
        *ret_bytes = job.body->size;
        buffer_unref(job.body);
    }
    return best;
}

static void ask_and_report(struct explore_data *data, const char *name, const char *path,
                           const char *query, unsigned runs, double most)
{
    size_t bytes = 0;
    char text[128];
    double ms = ask(data, path, query, runs, &bytes);
    snprintf(text, sizeof(text), "%s (%zu KB)", name, (bytes + 999) / 1000);
    report(text, ms, "ms", most);
}

static void add(struct explore_data *data, const struct test_span *spans, size_t count)
{
    struct buffer *request = span_request(spans, count);
    bool is_kept = trace_store_add(&data->traces, buffer_slice(request), clock_wall_ns());
    assert(is_kept);
    (void)is_kept;
    buffer_unref(request);
}

static void measure_lists(void)
{
    static const char *const names[] = {"GET /cart", "query", "render", "GET /checkout"};
    static const char *const services[] = {"front", "cart", "shop", "db", "mail"};
    struct explore_data data;
    if (!is_wanted("list"))
        return;
    explore_data_init(&data, CODEC_ZSTD);
    data.settings = &settings;
    for (uint64_t i = 0; i < TRACES_MANY;) {
        struct test_span spans[100 * SPANS_PER_TRACE];
        char texts[100 * SPANS_PER_TRACE][32];
        size_t count = 0;
        for (; count < 100 * SPANS_PER_TRACE; i++)
            for (uint64_t j = 0; j < SPANS_PER_TRACE; j++, count++) {
                snprintf(texts[count], sizeof(texts[count]), "user-%u", (unsigned)(i % 50021));
                spans[count] = (struct test_span){.trace = 1 + i,
                                                  .span = 1 + i * SPANS_PER_TRACE + j,
                                                  .parent = j > 0 ? 1 + i * SPANS_PER_TRACE : 0,
                                                  .service = services[(i + j) % 5],
                                                  .name = names[j],
                                                  .start_ns = NS_PER_S * i / 100 + j * 1000,
                                                  .duration_ns = 1000000 + i % 977 * 100000,
                                                  .status = i % 50 == 0 && j == 1 ? 2 : 0,
                                                  .attribute = texts[count],
                                                  .padding = 200};
            }
        add(&data, spans, count);
    }
    ask_and_report(&data, "list: 100 000 traces", "traces", "limit=50", RUNS, 150);
    ask_and_report(&data, "list: of one service", "traces", "service=db", RUNS, 150);
    ask_and_report(&data, "list: of one name", "traces", "name=query", RUNS, 150);
    ask_and_report(&data, "list: with errors, slow", "traces", "error=1&min=50ms", RUNS, 150);
    ask_and_report(&data, "list: of a rare attribute", "traces", "attr=key%3Duser-4711", RUNS, 150);
    ask_and_report(&data, "list: of an attribute that is not there", "traces", "attr=key%3Dnobody",
                   RUNS, 150);
    ask_and_report(&data, "list: of a resource's attribute", "traces", "attr=service.name%3Ddb",
                   RUNS, 150);
    ask_and_report(&data, "list: scatter", "scatter", "", RUNS, 150);
    ask_and_report(&data, "list: services", "services", "", RUNS, 150);
    ask_and_report(&data, "list: spans by name", "spans", "", RUNS, 0);
    explore_data_fini(&data);
}

static void measure_trace(uint64_t spans_count, double most)
{
    static const char *const services[] = {"front", "cart", "shop", "db", "mail"};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    enum { AT_ONCE = 5000 };
    static struct test_span spans[AT_ONCE];
    struct explore_data data;
    char path[128], name[128];
    uint8_t id[16];
    char hex[33] = "";
    snprintf(name, sizeof(name), "trace of %u spans", (unsigned)spans_count);
    if (!is_wanted(name))
        return;
    explore_data_init(&data, CODEC_ZSTD);
    data.settings = &settings;
    trace_id_of(1, id);
    for (unsigned i = 0; i < sizeof(id); i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    for (uint64_t i = 0; i < spans_count;) {
        for (uint64_t j = 0; j < AT_ONCE; j++, i++)
            spans[j] = (struct test_span){.trace = 1,
                                          .span = 1 + i,
                                          .parent = i > 0 ? 1 + (i - 1) / 8 : 0,
                                          .service = services[i / 1000 % 5],
                                          .name = names[i % 7],
                                          .start_ns = 1000 + i * 1000,
                                          .duration_ns = 2 * spans_count * 1000 - i * 1000,
                                          .events = i % 97 == 0,
                                          .padding = 100};
        add(&data, spans, AT_ONCE);
    }
    snprintf(path, sizeof(path), "traces/%s", hex);
    snprintf(name, sizeof(name), "trace of %u spans: its head, first", (unsigned)spans_count);
    ask_and_report(&data, name, path, "", 1, most);
    snprintf(name, sizeof(name), "trace of %u spans: its head, again", (unsigned)spans_count);
    ask_and_report(&data, name, path, "", RUNS, 0);
    snprintf(path, sizeof(path), "traces/%s/rows", hex);
    snprintf(name, sizeof(name), "trace of %u spans: the first rows", (unsigned)spans_count);
    ask_and_report(&data, name, path, "from=0&count=500", RUNS, 0);
    snprintf(name, sizeof(name), "trace of %u spans: rows far below", (unsigned)spans_count);
    ask_and_report(&data, name, path, "from=77500&count=500", RUNS, 0);
    explore_data_fini(&data);
}

/* --- while nobody looks --- */

struct lane_cost {
    uint64_t work_ns;
    uint64_t offer_ns;
};

/* As a lane does: bytes come, are read once, are offered, go on and are freed. */
static void relay(struct explore_hub *hub, struct budget *own, const struct payload *payload,
                  struct lane_cost *cost)
{
    uint64_t sum = 0;
    size_t size = payload->body.size;
    uint64_t begin = spent_ns(CLOCK_THREAD_CPUTIME_ID);
    struct buffer *request = buffer_create(own, size);
    memcpy(request->data, payload->body.data, size);
    request->size = size;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, request, buffer_slice(request));
    batch->items = SPANS;
    buffer_unref(request);
    for (size_t at = 0; at < size; at += 8)
        sum += request->data[at];
    __asm__ volatile("" : : "r"(sum)); /* they are read, though nothing needs their sum */
    uint64_t offered = spent_ns(CLOCK_THREAD_CPUTIME_ID);
    explore_hub_offer(hub, 0, batch);
    cost->work_ns += offered - begin;
    cost->offer_ns += spent_ns(CLOCK_THREAD_CPUTIME_ID) - offered;
    batch_unref(batch);
}

static uint64_t lost_of(const struct explore_figures *figures)
{
    return figures->lost[EXPLORE_LOST_RAW] + figures->lost[EXPLORE_LOST_RING] +
           figures->lost[EXPLORE_LOST_MEMORY];
}

static void measure_unwatched(void)
{
    struct error error;
    struct logger logger = {.component_id = "explore"};
    const char *name = "unwatched";
    if (!is_wanted(name))
        return;
    struct budget own;
    budget_init(&own, UINT64_MAX);
    struct explore_hub *hub = explore_hub_get(&own, "explore");
    struct explore_settings ours = {
        .max_bytes = 64 * MIB, .budget = &own, .version = "1", .logger = &logger};
    bool is_started = explore_hub_start(hub, &ours, &error);
    assert(is_started);
    (void)is_started;
    struct lane_cost cost = {.work_ns = 0};
    /* Until the store is full the worker takes what it needs: that happens once. */
    struct explore_figures full = explore_hub_figures(hub);
    for (unsigned i = 0; i < FILL_OFFERS && full.used_bytes < ours.max_bytes / 16 * 15; i++) {
        struct payload fill = payload_make(SPANS, SPAN_BYTES, 1 + i * SPANS);
        struct explore_figures before = full;
        relay(hub, &own, &fill, &cost);
        payload_free(&fill);
        while (full.newest == before.newest && lost_of(&full) == lost_of(&before)) {
            sched_yield();
            full = explore_hub_figures(hub);
        }
    }
    printf("%-52s %9" PRIu64 " spans, %" PRIu64 " MiB\n", "unwatched: full", full.spans,
           full.used_bytes / MIB);
    cost = (struct lane_cost){.work_ns = 0};
    struct payload payload = payload_make(SPANS, SPAN_BYTES, 1 + FILL_OFFERS * SPANS);
    uint64_t begin_wall = clock_now_ns();
    uint64_t begin = spent_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < OFFERS; i++)
        relay(hub, &own, &payload, &cost);
    uint64_t lane_ns = cost.offer_ns;
    uint64_t work_ns = cost.work_ns;
    uint64_t bytes = OFFERS * payload.body.size;
    uint64_t all_ns = spent_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    uint64_t wall_ns = clock_now_ns() - begin_wall;
    struct explore_figures figures = explore_hub_figures(hub);
    uint64_t worker_ns = all_ns > lane_ns + work_ns ? all_ns - lane_ns - work_ns : 0;
    double spans = (double)OFFERS * SPANS;
    report("unwatched: lane", (double)lane_ns / spans, "ns/span", 0);
    report("unwatched: lane and worker", (double)(lane_ns + worker_ns) / spans, "ns/span", 30);
    /* Of profiles, too: the lane does not look at the bytes, and the worker's share is the same. */
    report("unwatched: lane and worker", (double)(lane_ns + worker_ns) / (double)bytes, "ns/B",
           0.2);
    printf("%-52s %9.2f %% of a core, %.0f %% of the items kept\n", name,
           100.0 * (double)worker_ns / (double)wall_ns,
           100.0 - 100.0 * (double)(lost_of(&figures) - lost_of(&full)) / spans);
    payload_free(&payload);
    explore_hub_stop(hub);
    explore_hub_release(hub);
    budget_fini(&own);
}

int main(int count, char **arguments)
{
    only = count > 1 ? arguments[1] : "";
    budget_init(&budget, UINT64_MAX);
    measure_unwatched();
    measure_room();
    measure_lists();
    measure_trace(100000, 300);
    measure_trace(1000000, 3000);
    budget_fini(&budget);
    return 0;
}
