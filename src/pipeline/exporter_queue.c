/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of one exporter on one lane: admission, the ring, batching, consumer slots, attempts
 * and retries, the final count in the ledger, drain. Runs on the exporter's lane. */
#include "src/pipeline/exporter_queue.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/pipeline/batcher.h"
#include "src/pipeline/partition.h"
#include "src/pipeline/pipeline_limits.h"
#include "src/pipeline/retry.h"

enum { ERROR_MAX = 1024, INTERVAL_MAX = 64, ADVICE_MAX = 256 };

/* mark_ns of a partition is 0, or 1 once its flush_timeout is over. */
enum { NOT_TIMED_OUT, TIMED_OUT };

/* A batch on its way to the back-end: attempts and back-off. */
struct export
{
    struct exporter_queue *queue;
    struct export *next;
    struct export *prev;
    struct export_batch cut;
    struct receipt attempt;
    struct retry retry;
    struct timer timer; /* running: waits for its next attempt */
    uint64_t since;     /* the place of its last failure among the queue's results, UINT64_MAX
                           before it. Without retries, of the last result before its attempt */
    unsigned alone;     /* its last failures in a row, before each of which others were taken that
                           came after the failures of all */
    unsigned passed_by; /* the same, after its own failure */
    bool is_retrying;   /* waits for its next attempt, and is counted so */
    bool is_scout;      /* tried although others wait for a retry, and is counted so */
    bool is_embedded;   /* in the one request that it carries */
    bool lacked_memory; /* at its last attempt: the next one is alone */
};

/* A request in the queue. Its receipt joins the results of the exports that carry its items. */
struct request {
    struct receipt receipt;
    struct receipt *upstream; /* waits for the result; NULL: resolved already */
    struct exporter_queue *queue;
    struct batch *batch;  /* until an export or a batcher holds its bytes */
    uint64_t units;       /* of the queue's capacity, held until the request is done */
    uint64_t held_bytes;  /* charged for the request itself; 0 without a queue */
    uint64_t bytes;       /* noted as leaving the budget until then */
    struct export export; /* absent with sending_queue::batch */
};

struct exporter_queue {
    struct component *exporter;
    const struct exporter_queue_config *config;
    struct exporter_queue_shared *shared;
    struct ring *ring;            /* NULL without a queue */
    bool has_batch;               /* sending_queue::batch */
    struct partitions partitions; /* with it: a batcher for each client of metadata_keys */
    struct export *exports;       /* under way */
    uint64_t exports_count;
    uint64_t retrying_count; /* of them: wait for their next attempt */
    uint64_t requests_count; /* taken and not done */
    /* Results of attempts are counted. The places of the last delivery, of the last failure that is
     * not permanent, and of the last one before it of another export: 0, there was none. */
    uint64_t results;
    uint64_t delivered_at;
    uint64_t failed_at;
    uint64_t others_failed_at;
    const struct export *failed; /* whose was the last failure; NULL: of one that has ended */
    struct lane_job job;
    struct budget_waiter slot_waiter;
    struct timer memory_timer; /* looks again whether memory is short */
    counter refused_requests;
    bool is_failing;        /* the back-end took nothing since an attempt failed */
    bool is_out_of_retries; /* shutting down: a failed attempt is the last */
    bool is_stopping;
    void (*done)(void *arg);
    void *done_arg;
    struct exporter_queue_counters counters;
};

#define ALL_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

const struct counter_row exporter_queue_sent_rows[] = {
    COUNTER_BY_SIGNAL(struct exporter_queue_counters, sent, COUNTER_SUM, "otelcol_exporter_sent_%s",
                      ALL_SIGNALS, NULL, NULL, "Items delivered to the destination."),
    COUNTER_END,
};

const struct counter_row exporter_queue_failed_rows[] = {
    COUNTER_BY_SIGNAL(struct exporter_queue_counters, send_failed, COUNTER_SUM,
                      "otelcol_exporter_send_failed_%s", ALL_SIGNALS, NULL, NULL,
                      "Items that could not be delivered, after all retries."),
    COUNTER_END,
};

const struct counter_row exporter_queue_enqueue_rows[] = {
    COUNTER_BY_SIGNAL(struct exporter_queue_counters, enqueue_failed, COUNTER_SUM,
                      "otelcol_exporter_enqueue_failed_%s", ALL_SIGNALS, NULL, NULL,
                      "Items that the sending queue had no room for."),
    COUNTER_END,
};

static const uint64_t item_bounds[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                       1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                       9000, 10000, 20000, 30000, 50000, 100000};
static const uint64_t byte_bounds[] = {10,  25,   50,   75,   100,  250,  500,
                                       750, 1000, 2000, 3000, 4000, 5000, 6000};

const struct counter_row exporter_queue_offer_rows[] = {
    COUNTER_HISTOGRAM_ROW(struct exporter_queue_counters, offered_items,
                          "otelcol_exporter_queue_batch_send_size", item_bounds, METRICS_DETAILED,
                          "Items of each request that came to the sending queue."),
    COUNTER_HISTOGRAM_ROW(struct exporter_queue_counters, offered_bytes,
                          "otelcol_exporter_queue_batch_send_size_bytes", byte_bounds,
                          METRICS_DETAILED,
                          "Bytes of each request that came to the sending queue."),
    COUNTER_END,
};

const struct counter_row exporter_queue_progress_rows[] = {
    COUNTER(struct exporter_queue_counters, retries, COUNTER_SUM, "spanflame_exporter_retries",
            "Attempts that failed and were put off."),
    COUNTER(struct exporter_queue_counters, in_flight, COUNTER_GAUGE,
            "otelcol_exporter_in_flight_requests",
            "Exports under way, those that wait for a retry included."),
    COUNTER_END,
};

const char *export_failure_name(size_t failure)
{
    static const char *const others[] = {"_OTHER", "Deadline_Exceeded", "Shutdown"};
    assert(failure < EXPORT_FAILURES);
    return failure < EXPORT_STATUSES ? status_code_name((enum status_code)failure)
                                     : others[failure - EXPORT_STATUSES];
}

/* As in the Go collector, refused requests count too. */
static void count_offer(struct exporter_queue *queue, const struct batch *batch)
{
    if (queue->ring == NULL)
        return;
    histogram_record(&queue->counters.offered_items, item_bounds,
                     sizeof(item_bounds) / sizeof(item_bounds[0]), batch->items);
    histogram_record(&queue->counters.offered_bytes, byte_bounds,
                     sizeof(byte_bounds) / sizeof(byte_bounds[0]), batch->bytes);
}

void exporter_queue_shared_init(struct exporter_queue_shared *shared, const void *config)
{
    const struct exporter_queue_config *queue = config;
    budget_init(&shared->capacity, queue->has_queue ? queue->queue.queue_size : UINT64_MAX);
    uint64_t consumers = queue->queue.num_consumers > 0 ? queue->queue.num_consumers : 1;
    budget_init(&shared->consumers, exporter_queue_is_on(queue) ? consumers : UINT64_MAX);
    atomic_init(&shared->retrying, 0);
    atomic_init(&shared->scouts, 0);
    atomic_init(&shared->scout_ns, 0);
}

void exporter_queue_shared_fini(struct exporter_queue_shared *shared)
{
    budget_fini(&shared->capacity);
    budget_fini(&shared->consumers);
}

static uint64_t units_of(const struct exporter_queue *queue, const struct batch *batch)
{
    switch (sending_queue_sizer(&queue->config->queue)) {
    case QUEUE_ITEMS:
        return batch->items;
    case QUEUE_BYTES:
        return batch->bytes;
    case QUEUE_REQUESTS:
    case QUEUE_SIZER_UNSET:
    default:
        return 1;
    }
}

static bool is_drained(const struct exporter_queue *queue)
{
    return queue->requests_count == 0 && queue->exports_count == 0;
}

/* The client has its OK already, from the queue or from an earlier stage. */
static bool is_acknowledged(const struct exporter_queue *queue, const struct batch *batch)
{
    return batch->is_acknowledged ||
           (exporter_queue_is_on(queue->config) && !queue->config->queue.wait_for_result);
}

/* The end of "Exporting failed. Dropping data.", as in the Go collector: which option would help;
 * "" when queue and retries are on. */
static const char *advice(const struct exporter_queue_config *config)
{
#define TRY_RETRY " Try enabling retry_on_failure config option to retry on retryable errors."
#define TRY_QUEUE " Try enabling sending_queue to survive temporary failures."
    static const char *const texts[2][2] = {{"", TRY_QUEUE}, {TRY_RETRY, TRY_RETRY TRY_QUEUE}};
    return texts[!config->has_retry][!exporter_queue_is_on(config)];
}

static void count_delivery(struct exporter_queue *queue, const struct batch *batch, uint64_t items)
{
    assert(items <= batch->items);
    counter_add(&queue->counters.sent[batch->signal], items);
    ledger_deliver(queue->exporter->ledger, batch->signal, items);
}

static void count_loss(struct exporter_queue *queue, const struct batch *batch, uint64_t items,
                       const struct outcome *outcome)
{
    assert(items <= batch->items);
    struct exporter_queue_counters *counters = &queue->counters;
    size_t failure = outcome->cause == FAILURE_STATUS
                         ? (size_t)outcome->code
                         : EXPORT_STATUSES + (size_t)outcome->cause - 1;
    counter_add(&counters->send_failed[batch->signal], items);
    counter_add(&counters->failures[failure][outcome->is_permanent], items);
    ledger_lose(queue->exporter->ledger, batch->signal, items, outcome->reason,
                !is_acknowledged(queue, batch));
}

/* Counts and logs a batch that will not be exported any more, and resolves its receipts. Takes over
 * the cut. */
static void lose(struct exporter_queue *queue, struct export_batch *cut, const char *why,
                 const struct outcome *outcome)
{
    const struct exporter_queue_config *config = queue->config;
    struct outcome lost = *outcome;
    assert(outcome->delivered_items <= cut->batch->items);
    uint64_t items = cut->batch->items - outcome->delivered_items;
    lost.verdict = LOST;
    /* As in the Go collector, clients get the hint of a gRPC back-end only; others are for our own
     * back-off. */
    if (!outcome->is_hint_for_all)
        lost.retry_after_ns = 0;
    char error[ERROR_MAX];
    char message[ADVICE_MAX];
    snprintf(error, sizeof(error), "%s%s", why, outcome->message != NULL ? outcome->message : "");
    snprintf(message, sizeof(message), "Exporting failed. %s data.%s",
             exporter_queue_is_on(config) ? "Dropping" : "Rejecting", advice(config));
    log_error(
        &queue->exporter->logger, message, log_text("error", error),
        log_int(exporter_queue_is_on(config) ? "dropped_items" : "rejected_items", (int64_t)items));
    count_delivery(queue, cut->batch, outcome->delivered_items);
    count_loss(queue, cut->batch, items, outcome);
    export_batch_resolve(cut, &lost);
}

bool exporter_queue_holds(const struct exporter_queue *queue)
{
    return queue->ring != NULL;
}

uint64_t exporter_queue_bytes(const struct batch *batch)
{
    enum { PLACE_BYTES = 2 * sizeof(void *) }; /* in the ring, of which half may be empty */
    return mem_taken(sizeof(struct request)) + PLACE_BYTES + batch_uncharged_bytes(batch);
}

bool exporter_queue_stores(const struct exporter_queue *queue)
{
    return exporter_queue_is_stored(queue->config);
}

/* The journal keeps the batch and gives it again. Takes over the cut. */
static void give_back(struct exporter_queue *queue, struct export_batch *cut, const char *why,
                      const struct outcome *outcome)
{
    struct outcome refused = outcome_busy(outcome->message);
    refused.is_kept = true;
    log_info(&queue->exporter->logger, "Exporting failed. The data stays in the journal.",
             log_text("error", outcome->message != NULL ? outcome->message : why),
             log_int("items", (int64_t)cut->batch->items));
    count_delivery(queue, cut->batch, outcome->delivered_items);
    ledger_defer(queue->exporter->ledger, cut->batch->signal,
                 cut->batch->items - outcome->delivered_items);
    export_batch_resolve(cut, &refused);
}

/* Frees the export and returns its batch. Resolve the receipts only then: that may free the request
 * that embeds the export. */
static struct export_batch end(struct export *export)
{
    struct exporter_queue *queue = export->queue;
    struct export_batch cut = export->cut;
    assert(queue->exports_count > 0);
    assert(!export->is_retrying);
    if (queue->failed == export)
        queue->failed = NULL;
    if (export->prev != NULL)
        export->prev->next = export->next;
    else
        queue->exports = export->next;
    if (export->next != NULL)
        export->next->prev = export->prev;
    queue->exports_count--;
    counter_set(&queue->counters.in_flight, queue->exports_count);
    if (export->is_scout)
        atomic_fetch_sub(&queue->shared->scouts, 1);
    if (!export->is_embedded)
        mem_free(export);
    if (exporter_queue_is_on(queue->config))
        budget_return(&queue->shared->consumers, 1);
    lane_defer(queue->exporter->lane, &queue->job);
    return cut;
}

/* As Go prints a duration: "684.93ms", "4.5s", "1m2.5s", "1h0m0s". */
static void print_interval(char text[static INTERVAL_MAX], uint64_t interval_ns)
{
    uint64_t minutes = interval_ns / NS_PER_S / 60;
    double seconds = (double)(interval_ns % (60 * (uint64_t)NS_PER_S)) / NS_PER_S;
    if (interval_ns > 0 && interval_ns < NS_PER_S)
        snprintf(text, INTERVAL_MAX, "%.9gms", (double)interval_ns / NS_PER_MS);
    else if (minutes == 0)
        snprintf(text, INTERVAL_MAX, "%.11gs", seconds);
    else if (minutes < 60)
        snprintf(text, INTERVAL_MAX, "%" PRIu64 "m%.11gs", minutes, seconds);
    else
        snprintf(text, INTERVAL_MAX, "%" PRIu64 "h%" PRIu64 "m%.11gs", minutes / 60, minutes % 60,
                 seconds);
}

static void deliver(struct export *export, const struct outcome *outcome)
{
    struct exporter_queue *queue = export->queue;
    struct export_batch cut = end(export);
    const struct batch *batch = cut.batch;
    queue->delivered_at = ++queue->results;
    queue->is_failing = false;
    uint64_t known = outcome->invalid_items + outcome->too_large_items;
    assert(known <= outcome->rejected_items);
    assert(outcome->rejected_items <= batch->items);
    count_delivery(queue, batch, batch->items - outcome->rejected_items);
    /* Items of a delivered batch that the back-end left out, without a status of their own. */
    const struct {
        uint64_t items;
        enum loss_reason reason;
    } left_out[] = {{outcome->invalid_items, LOSS_INVALID},
                    {outcome->too_large_items, LOSS_TOO_LARGE},
                    {outcome->rejected_items - known, LOSS_PERMANENT}};
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
        if (left_out[i].items > 0)
            count_loss(queue, batch, left_out[i].items,
                       &(struct outcome){.verdict = LOST,
                                         .cause = FAILURE_OTHER,
                                         .reason = left_out[i].reason,
                                         .is_permanent = true});
    export_batch_resolve(&cut, outcome);
}

static bool may_yield(const struct exporter_queue *queue)
{
    return exporter_queue_stores(queue) && !queue->is_out_of_retries;
}

/* Other destinations are not to wait for this exporter's retries, nor is memory to be held for
 * them: the journal gives it the batch again, alone. A few probe the back-end. */
static bool has_to_yield(const struct exporter_queue *queue, const struct batch *batch)
{
    return may_yield(queue) &&
           (batch->is_joint || atomic_load(&queue->shared->retrying) >= EXPORTER_PROBES_MAX);
}

/* No consumer is left for what waits in the queue, for as long as the back-end is away. */
static bool is_held_up(const struct exporter_queue *queue)
{
    return may_yield(queue) &&
           atomic_load(&queue->shared->retrying) >= budget_limit(&queue->shared->consumers);
}

/* Whether another may be tried although others wait for a retry: as many at once as there are
 * consumers, and only from time to time while nothing is taken. Then it is counted. */
static bool may_scout(struct exporter_queue *queue)
{
    struct exporter_queue_shared *shared = queue->shared;
    uint64_t now_ns = clock_now_ns();
    uint64_t last_ns = atomic_load(&shared->scout_ns);
    if (queue->is_failing && (now_ns - last_ns < EXPORTER_SCOUT_NS ||
                              !atomic_compare_exchange_strong(&shared->scout_ns, &last_ns, now_ns)))
        return false;
    if (atomic_fetch_add(&shared->scouts, 1) < budget_limit(&shared->consumers))
        return true;
    atomic_fetch_sub(&shared->scouts, 1);
    return false;
}

static void begin_retrying(struct export *export)
{
    struct exporter_queue_shared *shared = export->queue->shared;
    assert(!export->is_retrying);
    export->is_retrying = true;
    export->queue->retrying_count++;
    uint64_t retrying = atomic_fetch_add(&shared->retrying, 1) + 1;
    if (retrying >= budget_limit(&shared->consumers))
        budget_return(&shared->consumers, 0); /* wakes what is held up now, on every lane */
}

static void end_retrying(struct export *export)
{
    if (!export->is_retrying)
        return;
    atomic_fetch_sub(&export->queue->shared->retrying, 1);
    export->queue->retrying_count--;
    export->is_retrying = false;
}

/* To the journal, without an attempt. Takes over the cut. */
static void yield_cut(struct exporter_queue *queue, struct export_batch *cut)
{
    ledger_defer(queue->exporter->ledger, cut->batch->signal, cut->batch->items);
    export_batch_resolve(cut, &(struct outcome){.verdict = REFUSED, .is_kept = true});
}

static void note_failure(struct export *export)
{
    struct exporter_queue *queue = export->queue;
    if (queue->failed != export)
        queue->others_failed_at = queue->failed_at;
    bool others_passed =
        queue->delivered_at > export->since && queue->delivered_at > queue->others_failed_at;
    export->alone = others_passed ? export->alone + 1 : 0;
    export->passed_by = queue->delivered_at > export->since ? export->passed_by + 1 : 0;
    queue->failed = export;
    queue->failed_at = ++queue->results;
    export->since = queue->failed_at;
}

/* The back-end will not take this batch: others passed before each of its last failures. One such
 * failure tells nothing, the back-end may just have gone: it takes the batch later. More are needed
 * where several are refused in turn. Without retries there is only one, of which a status tells. */
static bool is_refused_alone(const struct export *export, const struct outcome *outcome)
{
    enum { FAILURES_MIN = 2, PASSED_BY_MIN = 5 };
    if (export->queue->config->has_retry)
        return export->alone >= FAILURES_MIN || export->passed_by >= PASSED_BY_MIN;
    return export->alone > 0 && outcome->cause == FAILURE_STATUS;
}

/* The batch is delivered, lost, or waits for its next attempt. */
static void on_attempt_done(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct export *export = arg;
    struct exporter_queue *queue = export->queue;
    const struct exporter_queue_config *config = queue->config;
    uint64_t delay_ns = 0;
    assert(receipt == &export->attempt);
    if (outcome->verdict == ACCEPTED) {
        deliver(export, outcome);
        return;
    }
    const char *why;
    struct outcome last = *outcome;
    last.reason = LOSS_RETRIES_OVER;
    queue->is_failing = !outcome->is_permanent;
    export->lacked_memory = outcome->reason == LOSS_MEMORY;
    if (queue->is_failing)
        note_failure(export);
    if (queue->is_failing && config->has_retry &&
        (export->is_scout || has_to_yield(queue, export->cut.batch))) {
        struct export_batch yielded = end(export);
        give_back(queue, &yielded, "", &last);
        return;
    }
    if (outcome->is_permanent) {
        why = "not retryable error: ";
        last.reason = outcome->reason == LOSS_BUSY ? LOSS_PERMANENT : outcome->reason;
    } else if (queue->is_out_of_retries) {
        why = "interrupted due to shutdown: ";
        last.reason = LOSS_SHUTDOWN;
    } else if (!config->has_retry) {
        why = "";
    } else if (!retry_next(&export->retry, &config->retry, clock_now_ns(), outcome->retry_after_ns,
                           random_uniform(), &delay_ns)) {
        why = "no more retries left: ";
    } else {
        char interval[INTERVAL_MAX];
        counter_add(&queue->counters.retries, 1);
        print_interval(interval, delay_ns);
        log_info(&queue->exporter->logger,
                 "Exporting failed. Will retry the request after interval.",
                 log_text("error", outcome->message != NULL ? outcome->message : ""),
                 log_text("interval", interval));
        lane_timer_start(queue->exporter->lane, &export->timer, delay_ns);
        begin_retrying(export);
        if (!export->lacked_memory)
            budget_note_put_off(queue->exporter->budget, clock_now_ns() + delay_ns);
        return;
    }
    if (last.reason == LOSS_SHUTDOWN)
        last.cause = FAILURE_SHUTDOWN;
    bool stays = exporter_queue_stores(queue) && !outcome->is_permanent &&
                 (last.reason == LOSS_SHUTDOWN || !is_refused_alone(export, outcome));
    struct export_batch cut = end(export);
    if (stays)
        give_back(queue, &cut, why, &last);
    else
        lose(queue, &cut, why, &last);
}

/* Several exports that each have a part of the memory they need would fail together for ever. */
static bool waits_for_memory(const struct export *export)
{
    const struct exporter_queue *queue = export->queue;
    assert(queue->retrying_count <= queue->exports_count);
    return export->lacked_memory && !queue->is_out_of_retries &&
           queue->exports_count - queue->retrying_count > 0;
}

static void attempt(struct timer *timer, void *arg)
{
    struct export *export = arg;
    struct component *exporter = export->queue->exporter;
    assert(timer == &export->timer);
    if (export->is_retrying && waits_for_memory(export)) {
        lane_timer_start(exporter->lane, timer, SHORT_OF_MEMORY_NS);
        return;
    }
    end_retrying(export);
    struct exporter_queue *queue = export->queue;
    bool yields = queue->is_failing && !export->is_scout && has_to_yield(queue, export->cut.batch);
    if (yields)
        export->is_scout = may_scout(queue);
    if (yields && !export->is_scout) {
        struct export_batch cut = end(export);
        yield_cut(queue, &cut);
        return;
    }
    receipt_init(&export->attempt, on_attempt_done, export);
    if (export->cut.batch->bytes >= LANE_REST_BYTES_MIN)
        lane_rest(exporter->lane);
    exporter->factory->consume(exporter, export->cut.batch, &export->attempt);
}

/* Begins the first attempt. Takes over the cut. */
static void start_export(struct exporter_queue *queue, struct export *export,
                         const struct export_batch *cut, bool is_scout)
{
    export->queue = queue;
    export->is_scout = is_scout;
    export->cut = *cut;
    export->since = queue->config->has_retry ? UINT64_MAX : queue->results;
    export->next = queue->exports;
    if (export->next != NULL)
        export->next->prev = export;
    queue->exports = export;
    queue->exports_count++;
    counter_set(&queue->counters.in_flight, queue->exports_count);
    retry_init(&export->retry, clock_now_ns());
    timer_init(&export->timer, attempt, export);
    attempt(&export->timer, export);
}

/* Every export that carries items of the request has ended: its room in the queue is free again. */
static void on_request_done(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct request *request = arg;
    struct exporter_queue *queue = request->queue;
    assert(receipt == &request->receipt);
    assert(queue->requests_count > 0);
    queue->requests_count--;
    if (queue->ring != NULL) {
        budget_return(&queue->shared->capacity, request->units);
        budget_return(queue->exporter->budget, request->held_bytes);
    }
    budget_note_left(queue->exporter->budget, request->bytes);
    receipt_resolve(request->upstream, outcome);
    mem_free(request);
    lane_defer(queue->exporter->lane, &queue->job);
}

/* The request as an export of its own, which it embeds. */
static struct export_batch export_of(struct request *request)
{
    struct export_batch cut = export_batch_of(request->batch, &request->receipt);
    request->batch = NULL;
    request->export = (struct export){.is_embedded = true};
    return cut;
}

static void start_flush_timer(struct exporter_queue *queue, struct partition *partition)
{
    lane_timer_start(queue->exporter->lane, &partition->timer,
                     queue->config->queue.batch.flush_timeout_ns);
}

static void on_flush_timeout(struct timer *timer, void *arg)
{
    struct partition *partition = arg;
    struct exporter_queue *queue = partition->owner;
    assert(timer == &partition->timer);
    partition->mark_ns = TIMED_OUT;
    partition_settle(partition, true);
    lane_defer(queue->exporter->lane, &queue->job);
}

static bool is_due(const struct exporter_queue *queue, const struct partition *partition)
{
    const struct sending_queue_config *config = &queue->config->queue;
    const struct batcher *batcher = &partition->batcher;
    if (batcher->pending == NULL)
        return false;
    uint64_t size =
        queue_batch_sizer(config) == QUEUE_BYTES ? batcher_bytes(batcher) : batcher_items(batcher);
    return queue->is_out_of_retries || partition->mark_ns == TIMED_OUT ||
           size >= config->batch.min_size ||
           (batcher->signal == PROFILES && batcher_bytes(batcher) >= PROFILES_PENDING_BYTES_MAX);
}

/* Merges requests of the ring until a batch is due, and cuts it off. False: nothing is due. */
static bool cut_next(struct exporter_queue *queue, struct export_batch *ret_cut)
{
    const struct sending_queue_config *config = &queue->config->queue;
    struct partition *partition;
    while ((partition = partitions_due(&queue->partitions)) == NULL) {
        struct request *request = ring_pop(queue->ring);
        if (request == NULL)
            return false;
        partition =
            partitions_of(&queue->partitions, request->batch->client, request->batch->skips);
        if (partition->batcher.pending == NULL)
            start_flush_timer(queue, partition);
        batcher_add(&partition->batcher, request->batch, &request->receipt);
        partition_settle(partition, is_due(queue, partition));
        batch_unref(request->batch);
        request->batch = NULL;
    }
    bool is_bytes = queue_batch_sizer(config) == QUEUE_BYTES;
    uint64_t max_size = config->batch.max_size;
    *ret_cut =
        batcher_cut(&partition->batcher, (struct otlp_limit){.items_max = is_bytes ? 0 : max_size,
                                                             .bytes_max = is_bytes ? max_size : 0});
    if (partition->batcher.pending == NULL) {
        partition->mark_ns = NOT_TIMED_OUT;
        lane_timer_stop(queue->exporter->lane, &partition->timer);
    } else if (partition->mark_ns == NOT_TIMED_OUT) {
        /* The rest is a new batch with a flush_timeout of its own. */
        start_flush_timer(queue, partition);
    }
    partition_settle(partition, is_due(queue, partition));
    return true;
}

/* Each cut of profiles has a copy of its resources and of its part of the dictionary, so cutting a
 * request may take many times its bytes. Once the budget is used up, the cuts are exported one at a
 * time: the end of the one before goes on, or a timer once others have given memory back. */
static bool is_short_of_memory(const struct exporter_queue *queue)
{
    const struct component *exporter = queue->exporter;
    return queue->has_batch && exporter->signal == PROFILES && queue->exports_count > 0 &&
           budget_used(exporter->budget) >= budget_limit(exporter->budget);
}

static bool is_too_large(const struct exporter_queue *queue, const struct batch *batch)
{
    const struct sending_queue_config *config = &queue->config->queue;
    return queue_batch_sizer(config) == QUEUE_BYTES && config->batch.max_size > 0 &&
           batch->bytes > config->batch.max_size && batch->items <= 1;
}

static void give_up_consumer(struct exporter_queue *queue, bool has_consumer, bool is_scout)
{
    if (is_scout)
        atomic_fetch_sub(&queue->shared->scouts, 1);
    if (has_consumer)
        budget_return(&queue->shared->consumers, 1);
}

/* Exports what is next, or yields it without a consumer. False: nothing is due. */
static bool take_next(struct exporter_queue *queue, bool has_consumer, bool is_scout)
{
    struct export_batch cut;
    struct export *export = NULL;
    if (queue->has_batch) {
        if (!cut_next(queue, &cut))
            return false;
    } else {
        struct request *request = ring_pop(queue->ring);
        cut = export_of(request);
        export = &request->export;
    }
    if (queue->has_batch && is_too_large(queue, cut.batch)) {
        struct outcome too_large = outcome_refused(
            STATUS_INVALID_ARGUMENT, "one item is larger than sending_queue::batch::max_size");
        too_large.reason = LOSS_TOO_LARGE;
        lose(queue, &cut, "", &too_large);
        give_up_consumer(queue, has_consumer, is_scout);
    } else if (!has_consumer) {
        yield_cut(queue, &cut);
    } else {
        start_export(queue, export != NULL ? export : mem_zalloc(sizeof(*export)), &cut, is_scout);
    }
    return true;
}

/* Takes what waits while there is a free consumer, or no use in waiting for one. A large export
 * ends the turn, so that others get theirs, and so do many: a piece of a profile can be as large as
 * the whole dictionary, and what an exporter sends at once, or what is too large for it, holds no
 * consumer. */
static void dispatch(void *arg)
{
    struct exporter_queue *queue = arg;
    uint64_t until_ns = clock_now_ns() + EXPORTER_TURN_NS;
    while (queue->ring != NULL &&
           (ring_depth(queue->ring) > 0 ||
            (queue->has_batch && partitions_due(&queue->partitions) != NULL))) {
        if (is_short_of_memory(queue)) {
            lane_timer_start(queue->exporter->lane, &queue->memory_timer, SHORT_OF_MEMORY_NS);
            break;
        }
        bool has_consumer = budget_try_take(&queue->shared->consumers, 1);
        bool is_scout = !has_consumer && is_held_up(queue) && may_scout(queue);
        if (is_scout) {
            /* Those that wait for a retry leave their consumers to others meanwhile. */
            budget_take(&queue->shared->consumers, 1);
            has_consumer = true;
        }
        if (!has_consumer && !(is_held_up(queue) && queue->is_failing)) {
            budget_wait(&queue->shared->consumers, &queue->slot_waiter, 1);
            if (!is_held_up(queue) || !queue->is_failing)
                break;
        }
        if (!take_next(queue, has_consumer, is_scout)) {
            give_up_consumer(queue, has_consumer, is_scout);
            break;
        }
        if (clock_now_ns() >= until_ns)
            lane_rest(queue->exporter->lane);
        if (lane_is_resting(queue->exporter->lane)) {
            lane_defer(queue->exporter->lane, &queue->job);
            return;
        }
    }
    if (!queue->is_stopping || queue->done == NULL || !is_drained(queue))
        return;
    void (*done)(void *) = queue->done;
    queue->done = NULL;
    done(queue->done_arg);
}

static void wake(void *arg)
{
    struct exporter_queue *queue = arg;
    lane_defer(queue->exporter->lane, &queue->job);
}

static void on_memory_timer(struct timer *timer, void *arg)
{
    assert(!timer_is_running(timer));
    wake(arg);
}

struct exporter_queue *exporter_queue_create(struct component *exporter,
                                             struct exporter_queue_shared *shared)
{
    struct exporter_queue *queue = mem_zalloc(sizeof(*queue));
    queue->exporter = exporter;
    queue->config = exporter->config;
    queue->shared = shared;
    queue->job = (struct lane_job){.fn = dispatch, .arg = queue};
    timer_init(&queue->memory_timer, on_memory_timer, queue);
    queue->slot_waiter = (struct budget_waiter){.lane = exporter->lane, .fn = wake, .arg = queue};
    if (exporter_queue_is_on(queue->config))
        queue->ring = ring_create();
    if (queue->config->has_queue && queue->config->queue.has_batch) {
        queue->has_batch = true;
        /* No limit: a partition with something pending holds at least one request of the queue. */
        partitions_init(&queue->partitions, exporter->signal, exporter->budget,
                        queue->config->queue.batch.partition.metadata_keys, 0);
        partitions_owned_by(&queue->partitions, on_flush_timeout, queue);
    }
    return queue;
}

void exporter_queue_destroy(struct exporter_queue *queue)
{
    if (queue == NULL)
        return;
    assert(is_drained(queue));
    lane_defer_cancel(queue->exporter->lane, &queue->job);
    lane_timer_stop(queue->exporter->lane, &queue->memory_timer);
    budget_wait_cancel(&queue->shared->consumers, &queue->slot_waiter);
    if (queue->has_batch)
        partitions_fini(&queue->partitions);
    ring_destroy(queue->ring);
    mem_free(queue);
}

void exporter_queue_note_refusal(struct exporter_queue *queue, const struct batch *batch,
                                 const struct outcome *refusal)
{
    assert(refusal->verdict == REFUSED);
    char message[ADVICE_MAX];
    if (queue->is_stopping)
        return;
    counter_add(&queue->refused_requests, 1);
    count_offer(queue, batch);
    /* The stage that acknowledged the batch keeps it and offers it again: nothing is rejected. */
    if (batch->is_acknowledged)
        return;
    counter_add(&queue->counters.enqueue_failed[batch->signal], batch->items);
    snprintf(message, sizeof(message), "Exporting failed. Rejecting data.%s",
             advice(queue->config));
    log_error(&queue->exporter->logger, message, log_text("error", refusal->message),
              log_int("rejected_items", (int64_t)batch->items));
}

bool exporter_queue_admit(struct exporter_queue *queue, const struct batch *batch,
                          struct outcome *ret_outcome)
{
    assert(batch->signal == queue->exporter->signal);
    if (queue->is_stopping) {
        *ret_outcome = outcome_busy("the exporter is shutting down");
        return false;
    }
    if (queue->ring == NULL)
        return true;
    uint64_t units = units_of(queue, batch);
    if (exporter_queue_stores(queue)) {
        budget_take(&queue->shared->capacity, units);
        return true;
    }
    if (budget_try_take(&queue->shared->capacity, units))
        return true;
    *ret_outcome = outcome_busy("sending queue is full");
    if (units > budget_limit(&queue->shared->capacity)) {
        /* The status of a full queue, as in the Go collector, but a retry can never succeed. */
        ret_outcome->message = "element size too large";
        ret_outcome->reason = LOSS_TOO_LARGE;
        ret_outcome->is_permanent = true;
        ret_outcome->retry_after_ns = 0;
    }
    return false;
}

void exporter_queue_cancel(struct exporter_queue *queue, const struct batch *batch)
{
    if (queue->ring != NULL)
        budget_return(&queue->shared->capacity, units_of(queue, batch));
}

void exporter_queue_take(struct exporter_queue *queue, struct batch *batch, struct receipt *receipt)
{
    assert(!queue->is_stopping);
    bool waits =
        queue->ring == NULL || queue->config->queue.wait_for_result || exporter_queue_stores(queue);
    struct request *request =
        mem_alloc(queue->has_batch ? offsetof(struct request, export) : sizeof(struct request));
    receipt_init(&request->receipt, on_request_done, request);
    request->queue = queue;
    request->upstream = waits ? receipt : NULL;
    request->batch = batch_ref(batch);
    request->units = 0;
    request->held_bytes = queue->ring != NULL ? exporter_queue_bytes(batch) : 0;
    request->bytes = batch->bytes + request->held_bytes;
    budget_note_leaving(queue->exporter->budget, request->bytes);
    queue->requests_count++;
    if (queue->ring == NULL) {
        struct export_batch cut = export_of(request);
        start_export(queue, &request->export, &cut, false);
        return;
    }
    request->units = units_of(queue, batch);
    budget_take(queue->exporter->budget, request->held_bytes);
    count_offer(queue, batch);
    ring_push(queue->ring, request);
    if (!waits)
        receipt_resolve(receipt, &outcome_accepted);
    lane_defer(queue->exporter->lane, &queue->job);
}

void exporter_queue_lose(struct exporter_queue *queue, const struct batch *batch,
                         struct receipt *receipt, const struct outcome *refusal)
{
    struct outcome lost = *refusal;
    struct ledger *ledger = queue->exporter->ledger;
    assert(refusal->verdict == REFUSED);
    lost.verdict = LOST;
    if (batch->is_acknowledged) {
        counter_add(&queue->counters.enqueue_failed[batch->signal], batch->items);
        ledger_drop(ledger, batch, refusal->reason, 1);
    } else {
        ledger_reject(ledger, batch, refusal->reason, 1);
    }
    receipt_resolve(receipt, &lost);
}

bool exporter_queue_blocks(const struct exporter_queue *queue, const struct batch *batch)
{
    return queue->config->has_queue && queue->config->queue.block_on_overflow &&
           !queue->is_stopping && units_of(queue, batch) <= budget_limit(&queue->shared->capacity);
}

bool exporter_queue_has_room(const struct exporter_queue *queue, const struct batch *batch)
{
    return queue->ring == NULL || exporter_queue_stores(queue) ||
           budget_has_room(&queue->shared->capacity, units_of(queue, batch));
}

void exporter_queue_wait(struct exporter_queue *queue, const struct batch *batch,
                         struct budget_waiter *waiter)
{
    budget_wait(&queue->shared->capacity, waiter, units_of(queue, batch));
}

void exporter_queue_flush_retries(struct exporter_queue *queue)
{
    queue->is_out_of_retries = true;
    for (struct export *export = queue->exports; export != NULL; export = export->next)
        if (timer_is_running(&export->timer))
            lane_timer_start(queue->exporter->lane, &export->timer, 0);
    if (queue->has_batch)
        partitions_all_due(&queue->partitions);
    lane_defer(queue->exporter->lane, &queue->job);
}

void exporter_queue_stop(struct exporter_queue *queue, void (*done)(void *arg), void *arg)
{
    assert(!queue->is_stopping);
    queue->is_stopping = true;
    queue->done = done;
    queue->done_arg = arg;
    exporter_queue_flush_retries(queue);
}

struct ring_figures exporter_queue_ring_figures(const struct exporter_queue *queue)
{
    if (queue->ring == NULL)
        return (struct ring_figures){0};
    struct ring_figures figures = ring_figures(queue->ring);
    figures.refusals = counter_read(&queue->refused_requests);
    return figures;
}

struct exporter_queue_counters *exporter_queue_counters(struct exporter_queue *queue)
{
    return &queue->counters;
}
