/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions on any request that passes the walker: byte 0 has the settings, byte 1 is where the
 * body is cut into two parts. As many exceptions are counted as are logged, what comes out is
 * well-formed, and nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/exceptions/exception_logs.h"
#include "connectors/exceptions/exception_reader.h"
#include "connectors/exceptions/exception_series.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct counted {
    struct exception_store store;
    struct exception_keys keys;
    struct exception_bench bench;
    uint64_t exceptions;
    uint64_t uncounted;
};

static void count(void *arg, const struct exception *exception)
{
    struct counted *counted = arg;
    struct exception_point point;
    counted->exceptions++;
    counted->uncounted += !exception_point_make(&counted->store, &counted->keys, exception,
                                                &counted->bench, &point) ||
                          !exception_store_add(&counted->store, &point);
}

static uint64_t checked(enum signal_kind signal, struct batch *batch)
{
    struct otlp_figures figures;
    const char *reason;
    struct slice bytes = joined_parts(batch);
    bool is_sound = otlp_check(signal, bytes, &figures, &reason);
    assert(is_sound);
    assert(figures.items == batch->items);
    mem_free((void *)(uintptr_t)bytes.data);
    return figures.items;
}

static void check_metrics(struct counted *counted)
{
    struct batch *batch;
    size_t at = 0;
    uint64_t points = 0;
    while (exception_store_write(&counted->store, 1, &at, &batch) == PIECE_WRITTEN) {
        points += checked(METRICS, batch);
        batch_unref(batch);
    }
    assert(points <= counted->store.count);
}

static void check_logs(const struct counted *counted, const struct batch *batch,
                       struct budget *budget)
{
    struct exception_logs logs;
    uint64_t records = 0;
    exception_logs_make(&logs, &counted->keys, batch, budget);
    for (size_t i = 0; i < logs.batches_count; i++)
        records += checked(LOGS, logs.batches[i]);
    assert(logs.has_failed || records + logs.dropped == counted->exceptions);
    assert(!logs.has_failed || atomic_load(&budget->limit) < UINT64_MAX);
    exception_logs_fini(&logs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exception_reader reader;
    struct counted counted = {.exceptions = 0};
    struct otlp_figures figures;
    struct budget budget;
    const char *reason;
    if (size < HEADER_BYTES + 1)
        return 0;
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(TRACES, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    budget_init(&budget, (data[0] & 1) != 0 ? 3000 : UINT64_MAX);
    exception_store_init(&counted.store, (data[0] & 2) != 0 ? 2 : 0, (data[0] & 4) != 0, &budget);
    exception_keys_init(&counted.keys);
    if ((data[0] & 8) != 0)
        counted.keys.wanted.names[counted.keys.service] = slice_of_text("a");
    bool is_added = exception_keys_add(&counted.keys, "a", NULL) &&
                    exception_keys_add(&counted.keys, "exception.type", "standard") &&
                    exception_keys_add(&counted.keys, "exception.stacktrace", NULL);
    assert(is_added);
    exception_bench_init(&counted.bench, &budget);
    exception_reader_init(&reader, &counted.keys, &budget);
    reader.take = count;
    reader.arg = &counted;
    struct batch *batch = two_parts(TRACES, body, data[1] % body.size);
    batch->items = figures.items;
    uint64_t unread = exception_reader_read(&reader, batch);
    assert(unread == 0 || (data[0] & 1) != 0);
    assert(counted.uncounted == 0 || (data[0] & 1) != 0);
    check_metrics(&counted);
    if (unread == 0)
        check_logs(&counted, batch, &budget);
    batch_unref(batch);
    exception_bench_fini(&counted.bench);
    exception_store_clear(&counted.store);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
