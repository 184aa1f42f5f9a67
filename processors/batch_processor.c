/* SPDX-License-Identifier: Apache-2.0 */
/* batch: merges the requests of one pipeline into larger ones, by size and time. It accepts
 * requests at once (unless wait_for_result is set), so it keeps a batch that the next stage refuses
 * for now, offers it again, and refuses new requests once a full batch is waiting. While exports
 * are merely slow, requests wait without a response, as in the Go collector, bounded by the budget.
 * Runs on its pipeline's lane. */
#include <assert.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/config/field.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/pipeline/downstream_retry.h"
#include "src/pipeline/partition.h"
#include "src/pipeline/pipeline_limits.h"

struct batch_processor_config {
    uint64_t timeout_ns;
    uint64_t send_batch_size;
    uint64_t send_batch_max_size;
    struct config_texts metadata_keys;
    uint64_t metadata_cardinality_limit;
    bool wait_for_result;
};

static const struct config_field batch_processor_fields[] = {
    CONFIG_DURATION(struct batch_processor_config, timeout_ns, "timeout", "200ms", 0, INT64_MAX,
                    "Send a batch after this long, whatever its size. 0: at once."),
    CONFIG_COUNT(struct batch_processor_config, send_batch_size, "send_batch_size", "8192", 0,
                 UINT32_MAX, "Send a batch as soon as it has this many items. 0: at once."),
    CONFIG_COUNT(struct batch_processor_config, send_batch_max_size, "send_batch_max_size", "0", 0,
                 UINT32_MAX, "Split larger batches; 0: never split."),
    CONFIG_TEXTS(struct batch_processor_config, metadata_keys, "metadata_keys", NULL,
                 "Batch separately by the values of these client metadata keys."),
    CONFIG_COUNT(struct batch_processor_config, metadata_cardinality_limit,
                 "metadata_cardinality_limit", "1000", 0, UINT32_MAX,
                 "Limit on combinations of metadata values at a time; more are refused with "
                 "UNAVAILABLE. 0: no limit."),
    CONFIG_BOOL(struct batch_processor_config, wait_for_result, "wait_for_result", "false",
                "Respond to the client with the result of the next stage instead of at once. Not a "
                "key of the Go collector."),
    CONFIG_END,
};

static const uint64_t size_bounds[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                       1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                       9000, 10000, 20000, 30000, 50000, 100000};

static const uint64_t byte_bounds[] = {
    10,      25,      50,      75,      100,     250,     500,     750,     1000,   2000,
    3000,    4000,    5000,    6000,    7000,    8000,    9000,    10000,   20000,  30000,
    50000,   100000,  200000,  300000,  400000,  500000,  600000,  700000,  800000, 900000,
    1000000, 2000000, 3000000, 4000000, 5000000, 6000000, 7000000, 8000000, 9000000};

struct batch_processor_counters {
    struct histogram sizes;
    struct histogram byte_sizes;
    counter size_triggers;
    counter timeout_triggers;
    counter cardinality;
};

static const struct counter_row batch_processor_counters[] = {
    COUNTER_HISTOGRAM_ROW(struct batch_processor_counters, sizes,
                          "otelcol_processor_batch_batch_send_size", size_bounds, METRICS_NORMAL,
                          "Number of units in the batch"),
    COUNTER_HISTOGRAM_ROW(struct batch_processor_counters, byte_sizes,
                          "otelcol_processor_batch_batch_send_size_bytes", byte_bounds,
                          METRICS_DETAILED, "Number of bytes in the batch"),
    COUNTER_FROM(struct batch_processor_counters, size_triggers, COUNTER_SUM,
                 "otelcol_processor_batch_batch_size_trigger_send", METRICS_NORMAL,
                 "Number of times the batch was sent due to a size trigger"),
    COUNTER_FROM(struct batch_processor_counters, timeout_triggers, COUNTER_SUM,
                 "otelcol_processor_batch_timeout_trigger_send", METRICS_NORMAL,
                 "Number of times the batch was sent due to a timeout trigger"),
    COUNTER_FROM(struct batch_processor_counters, cardinality, COUNTER_GAUGE,
                 "otelcol_processor_batch_metadata_cardinality", METRICS_NORMAL,
                 "Number of distinct metadata value combinations being processed"),
    COUNTER_END,
};

struct batch_processor {
    struct component base;
    const struct batch_processor_config *config;
    struct partitions partitions;
    struct downstream_retry downstream;
    struct ring *waiting; /* struct waiting, oldest first */
    struct batch *last;   /* the last one sent, if memory was short and more follow; else NULL */
    uint64_t bytes_max;   /* a batch that has as many is sent */
    uint64_t items_max;   /* of one batch, when send_batch_max_size sets no limit */
    bool is_releasing;    /* a stop begins: clients that wait get their result */
    bool is_stopping;
};

/* Later stages copy and edit batches whose clients have their OK, beyond the budget if need be. So
 * a batch has an eighth of it at most before the last request is added, and an item for each 4 KiB:
 * with what edits add to each, that is an eighth, too. */
enum { BATCH_BUDGET_PART = 8, BATCH_ITEM_BUDGET_BYTES = 4096 };

/* How long a request waits while the next stage refuses what is before it. Clients give up soon
 * after. */
#define WAITING_NS_MAX ((uint64_t)5 * NS_PER_S)

/* A request that is not batched yet, since a full batch is waiting. */
struct waiting {
    struct batch *batch;
    struct receipt *receipt;
    uint64_t since_ns;
};

/* A batch on its way to the next stage. */
struct output {
    struct downstream_batch offered;
    struct export_batch cut;
};

extern const struct component_factory batch_processor_factory;

static struct batch_processor *batch_processor_of(struct component *component)
{
    assert(component->factory == &batch_processor_factory);
    return (struct batch_processor *)component;
}

static void on_output_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    struct output *output = (struct output *)offered;
    assert(outcome->verdict != REFUSED);
    export_batch_resolve(&output->cut, outcome);
    mem_free(output);
}

/* Each batch of profiles has a copy of its resources and of its part of the dictionary, so
 * splitting a request may take many times its bytes. Once the budget is used up, the batches are
 * sent one at a time. */
static bool is_short_of_memory(const struct batch_processor *self)
{
    return self->last != NULL && batch_is_shared(self->last) &&
           budget_used(self->base.budget) >= budget_limit(self->base.budget);
}

static void send_on(struct batch_processor *self, struct partition *partition)
{
    struct batch_processor_counters *counters = self->base.counters;
    struct output *output = mem_zalloc(sizeof(*output));
    struct otlp_limit limit = {.items_max = self->config->send_batch_max_size};
    if (limit.items_max == 0 && self->base.signal != PROFILES)
        limit.items_max = self->items_max;
    output->cut = batcher_cut(&partition->batcher, limit);
    partition->mark_ns = clock_now_ns();
    partition->is_overdue &= partition->batcher.pending != NULL;
    lane_timer_stop(self->base.lane, &partition->timer);
    struct batch *batch = output->cut.batch;
    bool is_short = batch->signal == PROFILES && partition->batcher.pending != NULL &&
                    budget_used(self->base.budget) >= budget_limit(self->base.budget);
    batch_unref(self->last);
    self->last = is_short ? batch_ref(batch) : NULL;
    output->offered.batch = batch;
    histogram_record(&counters->sizes, size_bounds, sizeof(size_bounds) / sizeof(size_bounds[0]),
                     batch->items);
    histogram_record(&counters->byte_sizes, byte_bounds,
                     sizeof(byte_bounds) / sizeof(byte_bounds[0]), batch->bytes);
    downstream_offer(&self->downstream, &output->offered);
}

/* Whether batches are sent without waiting for more. */
static bool sends_at_once(const struct batch_processor *self)
{
    return self->config->timeout_ns == 0 || self->config->send_batch_size == 0 ||
           self->is_releasing || self->is_stopping;
}

static bool is_full(const struct batch_processor *self, const struct partition *partition)
{
    return partition->batcher.pending != NULL &&
           (sends_at_once(self) ||
            batcher_items(&partition->batcher) >= self->config->send_batch_size ||
            batcher_bytes(&partition->batcher) >= self->bytes_max);
}

/* Whether it waits for the next stage or for memory alone. */
static bool is_due(const struct batch_processor *self, const struct partition *partition)
{
    return is_full(self, partition) || partition->is_overdue;
}

/* The timer ticks every timeout since the last flush, as in the Go collector, but not while the
 * partition is empty. What only memory keeps back, whether or not there is some by now, is looked
 * at again soon. */
static void arm(struct batch_processor *self, struct partition *partition)
{
    uint64_t timeout_ns = self->config->timeout_ns;
    if (partition->batcher.pending == NULL)
        return;
    if (is_due(self, partition) && !downstream_is_blocked(&self->downstream)) {
        if (!timer_is_running(&partition->timer) ||
            partition->timer.deadline_ns > clock_now_ns() + SHORT_OF_MEMORY_NS)
            lane_timer_start(self->base.lane, &partition->timer, SHORT_OF_MEMORY_NS);
        return;
    }
    if (timeout_ns == 0 || timer_is_running(&partition->timer))
        return;
    uint64_t since_ns = clock_now_ns() - partition->mark_ns;
    lane_timer_start(self->base.lane, &partition->timer, timeout_ns - since_ns % timeout_ns);
}

static void flush_partition(struct batch_processor *self, struct partition *partition)
{
    struct batch_processor_counters *counters = self->base.counters;
    while (!downstream_is_blocked(&self->downstream) && is_due(self, partition) &&
           !is_short_of_memory(self)) {
        counter_add(partition->is_overdue ? &counters->timeout_triggers : &counters->size_triggers,
                    1);
        send_on(self, partition);
    }
    arm(self, partition);
    partition_settle(partition, is_due(self, partition));
}

/* While a batch waits for the next stage, only one more is filled. */
static bool has_room(const struct batch_processor *self, const struct partition *partition)
{
    return !downstream_is_blocked(&self->downstream) ||
           (!sends_at_once(self) && !is_full(self, partition));
}

/* Adds the request to a batch, keeps it waiting, or refuses it. */
static void take(struct batch_processor *self, struct batch *batch, struct receipt *receipt)
{
    struct batch_processor_counters *counters = self->base.counters;
    struct outcome outcome = outcome_accepted;
    struct partition *partition = partitions_of(&self->partitions, batch->client, batch->skips);
    if (partition == NULL) {
        outcome = outcome_busy("too many batcher metadata-value combinations");
    } else if (!has_room(self, partition)) {
        if (!downstream_is_refusing(&self->downstream)) {
            struct waiting *waiting = mem_alloc(sizeof(*waiting));
            *waiting = (struct waiting){
                .batch = batch_ref(batch), .receipt = receipt, .since_ns = clock_now_ns()};
            ring_push(self->waiting, waiting);
            partition_settle(partition, is_due(self, partition));
            return;
        }
        outcome = outcome_busy("batch is full: the next stage is busy");
    }
    if (outcome.verdict != ACCEPTED) {
        if (partition != NULL)
            partition_settle(partition, is_due(self, partition));
        receipt_resolve(receipt, &outcome);
        return;
    }
    if (partition->mark_ns == 0)
        partition->mark_ns = clock_now_ns();
    if (self->config->metadata_keys.count > 0)
        counter_set(&counters->cardinality, self->partitions.combinations_count);
    bool waits = self->config->wait_for_result || self->base.is_journaled;
    batcher_add(&partition->batcher, batch, waits ? receipt : NULL);
    flush_partition(self, partition);
    if (!waits)
        receipt_resolve(receipt, &outcome_accepted);
}

/* The next stage still refuses what is before them. */
static void refuse_late(struct batch_processor *self)
{
    const struct outcome busy = outcome_busy("batch is full: the next stage is busy");
    const uint64_t now_ns = clock_now_ns();
    struct waiting *waiting;
    while (downstream_is_refusing(&self->downstream) &&
           (waiting = ring_first(self->waiting)) != NULL &&
           now_ns - waiting->since_ns >= WAITING_NS_MAX) {
        ring_pop(self->waiting);
        receipt_resolve(waiting->receipt, &busy);
        batch_unref(waiting->batch);
        mem_free(waiting);
    }
}

static void flush_due(struct batch_processor *self)
{
    struct partition *partition;
    struct waiting *waiting;
    assert(lane_is_current(self->base.lane));
    while (!downstream_is_blocked(&self->downstream) && !is_short_of_memory(self) &&
           (partition = partitions_due(&self->partitions)) != NULL)
        flush_partition(self, partition);
    /* What memory keeps back is looked at again, even if nothing else happens here. */
    if (!downstream_is_blocked(&self->downstream) &&
        (partition = partitions_due(&self->partitions)) != NULL)
        arm(self, partition);
    /* Take waiting requests while there is room. */
    while (!downstream_is_refusing(&self->downstream) &&
           (waiting = ring_first(self->waiting)) != NULL) {
        partition = partitions_of(&self->partitions, waiting->batch->client, waiting->batch->skips);
        bool has_place = partition == NULL || has_room(self, partition);
        if (partition != NULL)
            partition_settle(partition, is_due(self, partition));
        if (!has_place)
            break;
        ring_pop(self->waiting);
        take(self, waiting->batch, waiting->receipt);
        batch_unref(waiting->batch);
        mem_free(waiting);
    }
    refuse_late(self);
    bool is_pending = ring_depth(self->waiting) > 0 || partitions_have_pending(&self->partitions);
    if (self->is_stopping && !is_pending && self->downstream.count == 0) {
        downstream_end(&self->downstream);
        component_stopped(&self->base);
    }
}

static void on_timeout(struct timer *timer, void *arg)
{
    struct partition *partition = arg;
    struct batch_processor *self = partition->owner;
    assert(timer == &partition->timer);
    partition->mark_ns = clock_now_ns();
    partition->is_overdue = true;
    flush_partition(self, partition);
    flush_due(self);
}

static void on_room(struct component *component)
{
    flush_due(batch_processor_of(component));
}

static bool batch_processor_check(const void *section, struct error *error)
{
    const struct batch_processor_config *config = section;
    if (config->send_batch_max_size > 0 && config->send_batch_max_size < config->send_batch_size)
        return error_set(error,
                         "send_batch_max_size must be greater or equal to send_batch_size") ||
               error_at(error, "send_batch_max_size");
    return metadata_keys_check(&config->metadata_keys, error);
}

static bool batch_processor_create(struct component *component, struct error *error)
{
    struct batch_processor *self = batch_processor_of(component);
    (void)error;
    self->config = component->config;
    partitions_init(&self->partitions, component->signal, component->budget,
                    self->config->metadata_keys, self->config->metadata_cardinality_limit);
    partitions_owned_by(&self->partitions, on_timeout, self);
    downstream_init(&self->downstream, component, on_output_end, on_room);
    self->waiting = ring_create();
    return true;
}

/* Without keys there is one combination from the start, on all lanes together. */
static bool batch_processor_start(struct component *component, struct error *error)
{
    struct batch_processor *self = batch_processor_of(component);
    struct batch_processor_counters *counters = component->counters;
    (void)error;
    self->bytes_max = budget_limit(component->budget) / BATCH_BUDGET_PART;
    if (component->signal == PROFILES && self->bytes_max > PROFILES_PENDING_BYTES_MAX)
        self->bytes_max = PROFILES_PENDING_BYTES_MAX;
    self->items_max = budget_limit(component->budget) / BATCH_ITEM_BUDGET_BYTES;
    if (self->items_max < self->config->send_batch_size)
        self->items_max = self->config->send_batch_size;
    if (self->config->metadata_keys.count == 0 && component->first == component)
        counter_set(&counters->cardinality, 1);
    return true;
}

static void batch_processor_consume(struct component *component, struct batch *batch,
                                    struct receipt *receipt)
{
    assert(batch->signal == component->signal);
    struct batch_processor *self = batch_processor_of(component);
    /* Profiles without samples may have a payload. */
    if (batch->items == 0 && batch->signal != PROFILES)
        receipt_resolve(receipt, &outcome_accepted);
    else
        take(self, batch, receipt);
}

static void batch_processor_release_senders(struct component *component)
{
    struct batch_processor *self = batch_processor_of(component);
    if (!self->config->wait_for_result)
        return;
    self->is_releasing = true;
    partitions_all_due(&self->partitions);
    flush_due(self);
}

static void batch_processor_stop(struct component *component)
{
    struct batch_processor *self = batch_processor_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    downstream_stop(&self->downstream);
    partitions_all_due(&self->partitions);
    flush_due(self);
}

static void batch_processor_destroy(struct component *component)
{
    struct batch_processor *self = batch_processor_of(component);
    assert(self->downstream.count == 0);
    ring_destroy(self->waiting);
    batch_unref(self->last);
    partitions_fini(&self->partitions);
}

const struct component_factory batch_processor_factory = {
    .type = "batch",
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct batch_processor),
    .config_size = sizeof(struct batch_processor_config),
    .fields = batch_processor_fields,
    .counters_size = sizeof(struct batch_processor_counters),
    .counters = batch_processor_counters,
    .check = batch_processor_check,
    .create = batch_processor_create,
    .start = batch_processor_start,
    .consume = batch_processor_consume,
    .release_senders = batch_processor_release_senders,
    .stop = batch_processor_stop,
    .destroy = batch_processor_destroy,
};
