/* SPDX-License-Identifier: Apache-2.0 */
/* Random traffic, results and pauses through many shapes of pipelines. Whatever happens, the ledger
 * adds up after every turn (the harness checks it), nothing is delivered twice, and every result
 * that a client got is true. */
#include "tests/support/harness.h"

#include "src/core/client_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 100, STEPS = 250, LANES = 2 };

#define ONE(processors)                                                                            \
    "service: {pipelines: {traces: {receivers: [test], processors: [" processors                   \
    "], exporters: [test/a]}}}\n"
#define BOTH                                                                                       \
    "service: {pipelines: {traces: {receivers: [test], processors: [batch], "                      \
    "exporters: [test/a, test/b]}, traces/2: {receivers: [test], exporters: [test/b]}}}\n"
/* One pipeline behind another. */
#define BEHIND(processors, more)                                                                   \
    "connectors: {forward: }\n"                                                                    \
    "service: {pipelines: {traces: {receivers: [test], processors: [" processors                   \
    "], exporters: [forward]}, traces/out: {receivers: [forward], processors: [" more              \
    "], exporters: [test/a]}}}\n"
/* Two pipelines behind one, one behind those, and a way past them. */
#define DIAMOND                                                                                    \
    "connectors: {forward/x: , forward/y: }\n"                                                     \
    "service: {pipelines: {traces/d: {receivers: [forward/y], exporters: [test/b]}, "              \
    "traces/c: {receivers: [forward/x], processors: [batch], exporters: [forward/y, test/a]}, "    \
    "traces/b: {receivers: [forward/x], exporters: [forward/y]}, "                                 \
    "traces: {receivers: [test], processors: [batch], exporters: [forward/x, test/b, "             \
    "forward/y]}}}\n"
#define RETRY                                                                                      \
    "retry_on_failure: {initial_interval: 30ms, max_interval: 100ms, max_elapsed_time: 1s}"

static const char *const shapes[] = {
    "exporters: {test/a: {sending_queue: {queue_size: 6, num_consumers: 2}, " RETRY "}}\n" ONE(""),
    "exporters: {test/a: {sending_queue: {enabled: false}, " RETRY "}}\n" ONE(""),
    "exporters: {test/a: {sending_queue: {queue_size: 40, sizer: items, block_on_overflow: "
    "true}, " RETRY "}}\n" ONE(""),
    "exporters: {test/a: {sending_queue: {queue_size: 9, wait_for_result: true, "
    "batch: {min_size: 10, max_size: 12, flush_timeout: 50ms}}, " RETRY "}}\n" ONE(""),
    "exporters: {test/a: {sending_queue: {queue_size: 900, sizer: bytes, num_consumers: 3, "
    "batch: {min_size: 100, max_size: 150, flush_timeout: 20ms, partition: {metadata_keys: "
    "[k]}}}, " RETRY "}}\n" ONE(""),
    "processors: {batch: {timeout: 40ms, send_batch_size: 15, send_batch_max_size: 15, "
    "metadata_keys: [k], metadata_cardinality_limit: 2}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 2, num_consumers: 1}, " RETRY
    "}}\n" ONE("batch"),
    "processors: {batch: {timeout: 40ms, send_batch_size: 15, wait_for_result: true}}\n"
    "exporters: {test/a: {sending_queue: {enabled: false}, " RETRY "}}\n" ONE("batch"),
    "processors: {batch: {timeout: 0s}, memory_limiter: {check_interval: 1s, limit_mib: 1}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 3, sizer: items}, " RETRY
    "}}\n" ONE("memory_limiter, batch"),
    "processors: {batch: {timeout: 10ms}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 4, num_consumers: 1}, " RETRY "}, "
    "test/b: {sending_queue: {queue_size: 5, block_on_overflow: true}, " RETRY "}}\n" BOTH,
    "exporters: {test/a: {sending_queue: {enabled: false}, " RETRY "}}\n" BEHIND("", ""),
    "processors: {batch: {timeout: 10ms, send_batch_size: 15, wait_for_result: true}, batch/2: "
    "{timeout: 30ms, send_batch_size: 40, wait_for_result: true}}\n"
    "exporters: {test/a: {sending_queue: {enabled: false}, " RETRY
    "}}\n" BEHIND("batch", "batch/2"),
    "processors: {batch: {timeout: 0s}, batch/2: {timeout: 10ms}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 3, num_consumers: 1}, " RETRY
    "}}\n" BEHIND("batch", "batch/2"),
    "exporters: {test/a: {sending_queue: {queue_size: 4, block_on_overflow: true}, " RETRY
    "}}\n" BEHIND("", ""),
    "processors: {batch: {timeout: 10ms}}\n"
    "exporters: {test/a: {sending_queue: {queue_size: 4, num_consumers: 1}, " RETRY "}, "
    "test/b: {sending_queue: {queue_size: 5, block_on_overflow: true}, " RETRY "}}\n" DIAMOND,
    "processors: {batch: {timeout: 0s}}\n"
    "exporters: {test/a: {sending_queue: {enabled: false}, " RETRY "}, "
    "test/b: {sending_queue: {queue_size: 2}, " RETRY "}}\n" DIAMOND,
};

static void send_one(struct harness *h)
{
    static const char *const values[] = {"a", "b", "c"};
    struct client_metadata row = {"k", values[random() % 3]};
    struct client_info *client = client_info_create("", &row, 1);
    harness_offer(h, (struct harness_offer){.lane = (unsigned)(random() % LANES),
                                            .items = (uint64_t)(random() % 9),
                                            .client = client});
    client_info_unref(client);
}

static void change_results(struct harness *h, bool has_both)
{
    static const enum test_result results[] = {RESULT_OK,   RESULT_OK,        RESULT_BUSY,
                                               RESULT_HOLD, RESULT_PERMANENT, RESULT_PARTIAL};
    for (unsigned lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 1 + has_both; i++) {
            struct test_exporter *exporter =
                harness_exporter_on(h, i == 0 ? "test/a" : "test/b", lane, TRACES);
            exporter->result = results[random() % 6];
            if (random() % 2 == 0)
                test_exporter_release(exporter, results[random() % 3]);
        }
}

/* What a single exporter without a queue, or a pipeline of one, delivered of a request. */
static uint64_t delivered_of(const struct harness *h, const struct test_request *request)
{
    uint64_t items = 0;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (uint64_t i = 0; i < request->items; i++)
            items += harness_exporter_on(h, "test/a", lane, TRACES)->seen[request->first_item + i];
    return items;
}

/* A refused request reached no exporter; one whose client waited and got OK arrived whole. */
static void check_results(const struct harness *h, bool has_both, bool waits)
{
    for (size_t i = 0; i < h->requests_count; i++) {
        const struct test_request *request = h->requests[i];
        assert_true(request->is_resolved);
        if (has_both)
            continue;
        if (request->outcome.verdict == REFUSED)
            assert_int_equal(delivered_of(h, request), 0);
        if (waits && request->outcome.verdict == ACCEPTED)
            assert_int_equal(delivered_of(h, request), request->items);
    }
}

static void run(const char *yaml, unsigned seed)
{
    bool has_both = strstr(yaml, "test/b") != NULL;
    bool waits = strstr(yaml, "wait_for_result") != NULL || strstr(yaml, "enabled: false") != NULL;
    srandom(seed);
    struct harness *h = harness_create_on(yaml, LANES);
    for (unsigned step = 0; step < STEPS; step++) {
        long what = random() % 10;
        if (what < 6)
            send_one(h);
        else if (what < 9)
            harness_advance(h, (uint64_t)(random() % 60) * MS);
        else
            change_results(h, has_both);
    }
    if (random() % 2 == 0)
        harness_turn(h); /* else the rings still hold what came last */
    harness_stop(h);
    harness_let_go(h);
    harness_advance(h, 1 * S);
    assert_true(h->has_stopped);
    check_results(h, has_both, waits);
    for (unsigned lane = 0; lane < LANES && !has_both; lane++)
        assert_int_equal(harness_exporter_on(h, "test/a", lane, TRACES)->doubled_items, 0);
    harness_destroy(h);
}

static void nothing_is_lost_doubled_or_misreported(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (unsigned seed = 1; seed <= SEEDS; seed++)
            run(shapes[i], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_doubled_or_misreported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
