/* SPDX-License-Identifier: Apache-2.0 */
/* span_metrics: counts spans and their durations by service, name, kind and status, and sends these
 * metrics on at an interval.
 *
 * Each lane adds the spans of its requests to a store of its own, without locks. With one lane that
 * store is the one that is flushed. With several, lane 0 has another store, the main one: at each
 * flush it asks every lane (also itself) for its store, gets it once the request at hand is done,
 * and merges it into the main one. So each series is one, whichever lane its spans come through,
 * and is sent once. Merging and flushing are done a piece per turn of the loop. */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "connectors/span_metrics/series_export.h"
#include "connectors/span_metrics/span_aggregation.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/feature_gates.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

enum {
    MERGE_AT_ONCE = 4096, /* series */
    DELIVERIES_MAX = 64,  /* refused requests of delta metrics that are kept */
    EXEMPLARS_MAX = 1000, /* of a data point, whatever max_per_data_point says */
};
#define RETRY_NS ((uint64_t)1 * NS_PER_S)

struct span_metrics_counters {
    counter consumed;
    counter series;
    counter resources;
    counter bytes;
    counter lost;
};

static const struct counter_row span_metrics_counter_rows[] = {
    COUNTER(struct span_metrics_counters, consumed, COUNTER_SUM, "spanflame_span_metrics_spans",
            "Spans that were counted."),
    COUNTER(struct span_metrics_counters, series, COUNTER_GAUGE, "spanflame_span_metrics_series",
            "Series that are kept."),
    COUNTER(struct span_metrics_counters, resources, COUNTER_GAUGE,
            "spanflame_span_metrics_resources", "Resources whose series are kept."),
    COUNTER(struct span_metrics_counters, bytes, COUNTER_GAUGE, "spanflame_span_metrics_bytes",
            "Bytes of the budget that they take."),
    COUNTER(struct span_metrics_counters, lost, COUNTER_SUM,
            "spanflame_span_metrics_uncounted_spans",
            "Spans that were not counted, for want of memory."),
    COUNTER_END,
};

struct span_metrics;

/* What the instances of all lanes share. Everything but the settings' count of bytes is constant
 * once the lanes run. */
struct span_metrics_shared {
    unsigned lanes;
    struct dimensions *dimensions;
    double *bounds;
    struct series_settings series;
    struct aggregation_settings aggregation;
    struct export_settings export;
    char names[3][NAMESPACE_BYTES_MAX + 32];
};

/* A request of spans that is being added, or waits for those before it. */
struct addition {
    struct addition *next;
    struct buffer *owner;
    struct slice bytes;
    uint64_t items;
    struct receipt *receipt;
    bool is_late; /* nobody would send it again: it may use the margin */
    bool has_begun;
};

/* A request of metrics on its way into one pipeline. */
struct delivery {
    struct receipt receipt;
    struct span_metrics *owner;
    struct delivery *next; /* refused ones, oldest first */
    struct batch *batch;
    size_t place;
    uint32_t flush;
};

enum flush_stage { FLUSH_IDLE, FLUSH_COLLECTING, FLUSH_MERGING, FLUSH_WRITING };

struct span_metrics {
    struct component base;
    struct series_store *store; /* of this lane */
    struct span_aggregation aggregation;
    struct addition *additions; /* in the order in which they came */
    struct addition *last;      /* of them */
    struct lane_job add_job;
    /* The way of this lane's store to lane 0. */
    struct lane_task request_task;
    struct lane_task reply_task;
    struct series_store *handed;
    bool is_wanted;  /* lane 0 waits for it */
    bool has_handed; /* the last one: the lane stops */
    /* Lane 0. */
    struct series_store *main; /* the same as store when there is one lane */
    struct series_export export;
    struct delta_times times;
    struct timer timer;
    struct timer retry;
    struct lane_job flush_job;
    enum flush_stage stage;
    unsigned awaited; /* stores */
    struct delivery *refused;
    size_t refused_count;
    size_t deliveries; /* unresolved, refused ones included */
    bool is_stopping;  /* any lane */
    bool is_last;      /* the flush under way began after the stop */
    bool has_flushed_last;
};

extern const struct component_factory span_metrics_connector_factory;

static struct span_metrics *span_metrics_of(struct component *base)
{
    assert(base->factory == &span_metrics_connector_factory);
    return (struct span_metrics *)base;
}

static struct span_metrics *first_of(struct span_metrics *self)
{
    return span_metrics_of(self->base.first);
}

static const struct span_metrics_shared *shared_of(const struct span_metrics *self)
{
    return self->base.shared;
}

static void count_series(struct span_metrics *self)
{
    struct span_metrics_counters *counters = self->base.counters;
    const struct span_metrics_shared *shared = shared_of(self);
    counter_set(&counters->series, self->main->series);
    counter_set(&counters->resources, self->main->kept + self->main->evicted);
    counter_set(&counters->bytes,
                atomic_load_explicit(&shared->series.bytes, memory_order_relaxed));
}

static struct series_store *create_store(const struct span_metrics *self)
{
    struct span_metrics_shared *shared = self->base.shared;
    struct series_store *store = mem_alloc(sizeof(*store));
    span_series_store_init(store, &shared->series);
    return store;
}

static void destroy_store(struct series_store *store)
{
    if (store == NULL)
        return;
    span_series_store_fini(store);
    mem_free(store);
}

/* Metrics on their way. */

static void stop_if_done(struct span_metrics *self);

static void delivery_end(struct delivery *delivery)
{
    struct span_metrics *self = delivery->owner;
    batch_unref(delivery->batch);
    mem_free(delivery);
    self->deliveries--;
    stop_if_done(self);
}

static void give_up(struct delivery *delivery, enum loss_reason reason)
{
    struct span_metrics *self = delivery->owner;
    outlet_give_up(self->base.outlets[METRICS], delivery->place, delivery->batch, reason);
    delivery_end(delivery);
}

static void on_delivered(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct delivery *delivery = arg;
    struct span_metrics *self = delivery->owner;
    assert(receipt == &delivery->receipt);
    if (!outcome_may_change(outcome)) {
        if (outcome->verdict != ACCEPTED)
            self->export.refused_flush = delivery->flush;
        delivery_end(delivery);
        return;
    }
    log_warn(&self->base.logger, "metrics of spans were refused downstream",
             log_text("error", outcome->message),
             log_int("data_points", (int64_t)delivery->batch->items));
    /* Cumulative metrics come again with the next flush; of delta metrics nothing else has them. */
    bool is_kept = shared_of(self)->export.is_delta && !self->is_stopping &&
                   self->refused_count < DELIVERIES_MAX;
    if (!is_kept) {
        self->export.refused_flush = delivery->flush;
        give_up(delivery, outcome->reason);
        return;
    }
    struct delivery **end = &self->refused;
    while (*end != NULL)
        end = &(*end)->next;
    *end = delivery;
    delivery->next = NULL;
    if (self->refused_count++ == 0)
        lane_timer_start(self->base.lane, &self->retry, RETRY_NS);
}

static void offer(struct span_metrics *self, struct delivery *delivery, bool is_again)
{
    receipt_init(&delivery->receipt, on_delivered, delivery);
    outlet_offer_deferred(self->base.outlets[METRICS], delivery->place, delivery->batch,
                          &delivery->receipt, is_again);
}

static void offer_refused(struct span_metrics *self)
{
    struct delivery *delivery = self->refused;
    self->refused = NULL;
    self->refused_count = 0;
    while (delivery != NULL) {
        struct delivery *next = delivery->next;
        offer(self, delivery, true);
        delivery = next;
    }
}

static void on_retry(struct timer *timer, void *arg)
{
    (void)timer;
    offer_refused(arg);
}

/* Takes the reference. */
static void deliver(struct span_metrics *self, struct batch *batch)
{
    struct outlet *outlet = self->base.outlets[METRICS];
    size_t count = outlet_pipelines(outlet);
    for (size_t i = 0; i < count; i++) {
        struct delivery *delivery = mem_alloc(sizeof(*delivery));
        *delivery = (struct delivery){
            .owner = self, .batch = batch_ref(batch), .place = i, .flush = self->main->flush};
        self->deliveries++;
        offer(self, delivery, false);
    }
    batch_unref(batch);
}

/* Flushes. */

static void flush_on(struct span_metrics *self, enum flush_stage stage)
{
    self->stage = stage;
    lane_defer(self->base.lane, &self->flush_job);
}

static void flush_end(struct span_metrics *self)
{
    self->stage = FLUSH_IDLE;
    count_series(self);
    self->has_flushed_last = self->is_last;
    stop_if_done(self);
}

static void write_next(struct span_metrics *self)
{
    struct batch *batch = series_export_next(&self->export);
    if (batch != NULL) {
        deliver(self, batch);
        lane_rest(self->base.lane);
        flush_on(self, FLUSH_WRITING);
        return;
    }
    if (self->export.has_failed)
        log_warn(&self->base.logger, "no memory left in the budget to send metrics of spans; they "
                                     "will be sent with the next flush");
    flush_end(self);
}

/* Merges a piece of a lane's store. False: all are merged. */
static bool merge_next(struct span_metrics *self)
{
    struct span_metrics_counters *counters = self->base.counters;
    uint64_t lost = 0;
    for (struct component *at = &self->base; at != NULL; at = at->next_lane) {
        struct span_metrics *lane = span_metrics_of(at);
        if (lane->handed == NULL)
            continue;
        bool is_left = span_series_store_merge(self->main, lane->handed, MERGE_AT_ONCE, &lost);
        counter_add(&counters->lost, lost);
        if (!is_left) {
            destroy_store(lane->handed);
            lane->handed = NULL;
        }
        return true;
    }
    return false;
}

static void flush_next(void *arg)
{
    struct span_metrics *self = arg;
    if (self->stage == FLUSH_MERGING) {
        if (merge_next(self)) {
            lane_rest(self->base.lane);
            flush_on(self, FLUSH_MERGING);
            return;
        }
        series_export_begin(&self->export, clock_wall_ns(), clock_now_ns());
    }
    write_next(self);
}

static void on_reply(struct lane_task *task)
{
    struct span_metrics *lane =
        (struct span_metrics *)((char *)task - offsetof(struct span_metrics, reply_task));
    struct span_metrics *self = first_of(lane);
    assert(self->stage == FLUSH_COLLECTING && self->awaited > 0);
    if (--self->awaited == 0)
        flush_on(self, FLUSH_MERGING);
}

/* Gives the store to lane 0, between two requests, and when stopping after the last one. */
static void hand_over(struct span_metrics *self)
{
    const struct addition *next = self->additions;
    if (!self->is_wanted || (next != NULL && (next->has_begun || self->is_stopping)))
        return;
    self->is_wanted = false;
    self->handed = self->store;
    self->store = create_store(self);
    self->aggregation.store = self->store;
    self->has_handed = self->is_stopping;
    lane_post(first_of(self)->base.lane, &self->reply_task);
}

static void on_request(struct lane_task *task)
{
    struct span_metrics *self =
        (struct span_metrics *)((char *)task - offsetof(struct span_metrics, request_task));
    self->is_wanted = true;
    hand_over(self);
    stop_if_done(self);
}

/* On lane 0. A flush that is still under way goes on instead. */
static void flush(struct span_metrics *self)
{
    if (self->stage != FLUSH_IDLE)
        return;
    self->is_last = self->is_stopping;
    if (shared_of(self)->lanes == 1) {
        self->stage = FLUSH_WRITING; /* what is refused at once begins no other flush */
        series_export_begin(&self->export, clock_wall_ns(), clock_now_ns());
        write_next(self);
        return;
    }
    self->stage = FLUSH_COLLECTING;
    self->awaited = shared_of(self)->lanes;
    for (struct component *at = &self->base; at != NULL; at = at->next_lane)
        lane_post(at->lane, &span_metrics_of(at)->request_task);
}

static void on_timer(struct timer *timer, void *arg)
{
    struct span_metrics *self = arg;
    const struct span_metrics_config *config = self->base.config;
    lane_timer_start(self->base.lane, timer, config->metrics_flush_interval_ns);
    flush(self);
}

/* Spans. */

/* Adds a piece. False: all are added. */
static bool add_piece(struct span_metrics *self, const struct addition *addition)
{
    if (addition->is_late)
        budget_begin_late();
    bool has_more = span_aggregation_go_on(&self->aggregation);
    if (addition->is_late)
        budget_end_late();
    return has_more;
}

static void add_next(void *arg)
{
    struct span_metrics *self = arg;
    struct span_metrics_counters *counters = self->base.counters;
    struct addition *addition;
    bool is_turn_over = false;
    while ((addition = self->additions) != NULL) {
        if (!addition->has_begun && !is_turn_over) {
            span_aggregation_begin(&self->aggregation, addition->bytes,
                                   (struct series_time){clock_wall_ns(), clock_now_ns()});
            addition->has_begun = true;
        }
        if (is_turn_over || add_piece(self, addition)) {
            lane_rest(self->base.lane);
            lane_defer(self->base.lane, &self->add_job);
            return;
        }
        counter_add(&counters->consumed, addition->items);
        counter_add(&counters->lost, self->aggregation.lost);
        self->aggregation.lost = 0;
        self->additions = addition->next;
        buffer_unref(addition->owner);
        receipt_resolve(addition->receipt, &outcome_accepted);
        mem_free(addition);
        /* Lane 0 waits for the end of the request only. */
        hand_over(self);
        is_turn_over = lane_held_ns(self->base.lane) >= LANE_JOB_NS;
    }
    stop_if_done(self);
    if (self->main == self->store && self->main != NULL)
        count_series(self);
}

static void span_metrics_consume(struct component *base, struct batch *batch,
                                 struct receipt *receipt)
{
    struct span_metrics *self = span_metrics_of(base);
    struct batch_part whole;
    if (!batch_join_owed(batch, base->budget, &whole)) {
        struct outcome outcome = outcome_busy("no memory left in the budget to count spans");
        outcome.reason = LOSS_MEMORY;
        if (batch_never_fits(batch, base->budget, batch->bytes))
            outcome = outcome_too_large("counting the spans takes more than the whole memory "
                                        "budget (service::budget_mib); send less at a time");
        receipt_resolve(receipt, &outcome);
        return;
    }
    struct addition *addition = mem_alloc(sizeof(*addition));
    *addition = (struct addition){.owner = whole.owner,
                                  .bytes = whole.bytes,
                                  .items = batch->items,
                                  .receipt = receipt,
                                  .is_late = batch_may_exceed(batch)};
    bool is_only = self->additions == NULL;
    *(is_only ? &self->additions : &self->last->next) = addition;
    self->last = addition;
    if (is_only)
        add_next(self);
}

/* What all lanes share. */

static bool is_excluded(const struct span_metrics_config *config, const char *label)
{
    for (size_t i = 0; i < config->exclude_dimensions.count; i++)
        if (strcmp(config->exclude_dimensions.texts[i], label) == 0)
            return true;
    return false;
}

static bool has_gate(const struct component *component, enum feature_gate gate)
{
    return feature_gate_is_enabled(component->service != NULL ? component->service->gates : NULL,
                                   gate);
}

static void set_names(struct span_metrics_shared *shared, const struct component *first)
{
    static const char *const names[] = {"calls", "duration", "events"};
    const struct span_metrics_config *config = first->config;
    bool is_tempo = config->naming == NAMING_TEMPO;
    bool is_legacy = has_gate(first, GATE_SPAN_METRICS_LEGACY_NAMES) &&
                     strcmp(config->name_space, SPAN_METRICS_NAMESPACE) == 0;
    const char *name_space = is_tempo ? "traces_spanmetrics" : is_legacy ? "" : config->name_space;
    const char *separator = is_tempo ? "_" : name_space[0] != '\0' ? "." : "";
    for (unsigned i = 0; i < 3; i++)
        snprintf(shared->names[i], sizeof(shared->names[i]), "%s%s%s", name_space, separator,
                 is_tempo && i == 1 ? "latency" : names[i]);
    shared->export.calls = shared->names[0];
    shared->export.duration = shared->names[1];
    shared->export.events = shared->names[2];
}

static void set_export(struct span_metrics_shared *shared, const struct component *first)
{
    const struct span_metrics_config *config = first->config;
    bool is_tempo = config->naming == NAMING_TEMPO;
    bool is_otel = has_gate(first, GATE_SPAN_METRICS_OTEL_STATUS);
    bool has_instance = has_gate(first, GATE_SPAN_METRICS_INSTANCE) &&
                        !is_excluded(config, "collector.instance.id");
    shared->export = (struct export_settings){
        .is_delta = span_metrics_is_delta(config),
        .has_events = config->events.enabled,
        .has_resource =
            !has_gate(first, GATE_SPAN_METRICS_NO_RESOURCE) || config->add_resource_attributes,
        .has_service = !is_excluded(config, "service.name"),
        .has_name = !is_excluded(config, "span.name"),
        .has_kind = !is_excluded(config, "span.kind"),
        .has_status = !is_excluded(config, is_otel ? "otel.status_code" : "status.code"),
        .has_otel_status = is_otel,
        .service_key = is_tempo ? "service" : "service.name",
        .instance = !has_instance            ? NULL
                    : first->service != NULL ? first->service->instance_id
                                             : "",
        .metrics_expiration_ns = config->metrics_expiration_ns,
        .series_expiration_ns = config->series_expiration_ns,
        /* Tempo's name has no unit, which Prometheus would append. */
        .unit = is_tempo                           ? ""
                : config->histogram.unit == UNIT_S ? "s"
                                                   : "ms",
    };
    set_names(shared, first);
}

static size_t exemplars_max(const struct span_metrics_config *config)
{
    int64_t most = config->exemplars.enabled ? config->exemplars.max_per_data_point : 0;
    return (size_t)(most < EXEMPLARS_MAX ? most : EXEMPLARS_MAX);
}

static uint32_t buckets_max(const struct span_metrics_config *config)
{
    int64_t size = config->histogram.exponential.max_size;
    return (uint32_t)(size <= 0                     ? EXPONENTIAL_SIZE_DEFAULT
                      : size < EXPONENTIAL_SIZE_MIN ? EXPONENTIAL_SIZE_MIN
                      : size > EXPONENTIAL_SIZE_MAX ? EXPONENTIAL_SIZE_MAX
                                                    : size);
}

static void *span_metrics_share(const struct component *first, unsigned lanes, struct error *error)
{
    enum { BUDGET_UNKNOWN = 64 << 20 };
    const struct span_metrics_config *config = first->config;
    const struct histogram_config *histogram = &config->histogram;
    struct span_metrics_shared *shared = mem_zalloc(sizeof(*shared));
    bool is_seconds = histogram->unit == UNIT_S || config->naming == NAMING_TEMPO;
    (void)error;
    shared->lanes = lanes;
    shared->dimensions = dimensions_create(config);
    bool is_common = dimensions_are_none(shared->dimensions, DIMENSIONS_CALLS) &&
                     dimensions_are_none(shared->dimensions, DIMENSIONS_DURATION);
    size_t bounds_count = 0;
    shared->bounds = span_metrics_bounds(config, &bounds_count);
    shared->series = (struct series_settings){
        .histogram = histogram->disable           ? HISTOGRAM_NONE
                     : histogram->has_exponential ? HISTOGRAM_EXPONENTIAL
                                                  : HISTOGRAM_EXPLICIT,
        .has_common_labels = is_common,
        .bounds = shared->bounds,
        .bounds_count = bounds_count,
        .max_size = buckets_max(config),
        .exemplars_max = exemplars_max(config),
        .series_max = (uint64_t)config->aggregation_cardinality_limit,
        .resources_max = (uint64_t)config->resource_metrics_cache_size,
        .bytes_max = first->budget != NULL ? budget_limit(first->budget) / SERIES_BUDGET_PART
                                           : (uint64_t)BUDGET_UNKNOWN,
        .budget = first->budget,
    };
    set_export(shared, first);
    if (lanes > 1 && shared->series.series_max > 0 && !shared->export.is_delta)
        shared->series.known = mem_zalloc(sizeof(struct series_known));
    shared->aggregation = (struct aggregation_settings){
        .dimensions = shared->dimensions,
        .key_attributes = &config->resource_metrics_key_attributes,
        .scopes = &config->include_instrumentation_scope,
        .has_service = shared->export.has_service,
        .has_name = shared->export.has_name,
        .has_kind = shared->export.has_kind,
        .has_status = shared->export.has_status,
        .has_histogram = !histogram->disable,
        .has_common_labels = is_common,
        .has_events = config->events.enabled,
        .has_exemplars = config->exemplars.enabled,
        .has_sampling_method = config->enable_metrics_sampling_method,
        .unit_ns = is_seconds ? NS_PER_S : NS_PER_MS,
    };
    return shared;
}

static void span_metrics_unshare(void *shared_arg)
{
    struct span_metrics_shared *shared = shared_arg;
    dimensions_destroy(shared->dimensions);
    mem_free(shared->bounds);
    mem_free(shared->series.known);
    mem_free(shared);
}

/* Life. */

static bool span_metrics_create(struct component *base, struct error *error)
{
    struct span_metrics *self = span_metrics_of(base);
    const struct span_metrics_shared *shared = base->shared;
    const struct span_metrics_config *config = base->config;
    (void)error;
    self->store = create_store(self);
    span_aggregation_init(&self->aggregation, &shared->aggregation, self->store, base->budget);
    self->add_job = (struct lane_job){.fn = add_next, .arg = self};
    self->flush_job = (struct lane_job){.fn = flush_next, .arg = self};
    self->request_task.fn = on_request;
    self->reply_task.fn = on_reply;
    timer_init(&self->timer, on_timer, self);
    timer_init(&self->retry, on_retry, self);
    if (lane_index(base->lane) != 0)
        return true;
    self->main = shared->lanes == 1 ? self->store : create_store(self);
    self->main->is_main = true;
    delta_times_init(&self->times, (uint64_t)config->metric_timestamp_cache_size, base->budget);
    series_export_init(&self->export, &shared->export, self->main, &self->times, base->budget);
    return true;
}

static bool span_metrics_start(struct component *base, struct error *error)
{
    struct span_metrics *self = span_metrics_of(base);
    const struct span_metrics_config *config = base->config;
    (void)error;
    if (lane_index(base->lane) == 0)
        lane_timer_start(base->lane, &self->timer, config->metrics_flush_interval_ns);
    return true;
}

/* Gives all memory back. */
static void release(struct span_metrics *self)
{
    nested_output_fini(&self->aggregation.others);
    span_series_store_fini(self->store);
    if (self->main == NULL)
        return;
    span_series_store_fini(self->main);
    series_export_fini(&self->export);
    delta_times_fini(&self->times);
}

/* Once the last request of spans is counted, a last flush sends what came since the one before. */
static void stop_if_done(struct span_metrics *self)
{
    bool is_first = lane_index(self->base.lane) == 0;
    if (self->base.stopping == NULL || self->additions != NULL || self->stage != FLUSH_IDLE ||
        (!is_first && !self->has_handed))
        return;
    if (is_first && !self->has_flushed_last) {
        flush(self);
    } else if (self->deliveries == 0) {
        release(self);
        component_stopped(&self->base);
    }
}

static void span_metrics_stop(struct component *base)
{
    struct span_metrics *self = span_metrics_of(base);
    self->is_stopping = true;
    lane_timer_stop(base->lane, &self->timer);
    lane_timer_stop(base->lane, &self->retry);
    offer_refused(self);
    stop_if_done(self);
}

static void span_metrics_destroy(struct component *base)
{
    struct span_metrics *self = span_metrics_of(base);
    assert(self->additions == NULL);
    lane_defer_cancel(base->lane, &self->add_job);
    lane_defer_cancel(base->lane, &self->flush_job);
    lane_timer_stop(base->lane, &self->timer);
    lane_timer_stop(base->lane, &self->retry);
    if (self->store != NULL)
        span_aggregation_fini(&self->aggregation);
    destroy_store(self->handed);
    if (self->main != NULL) {
        series_export_fini(&self->export);
        delta_times_fini(&self->times);
    }
    if (self->main != self->store)
        destroy_store(self->main);
    destroy_store(self->store);
}

static const char *const span_metrics_aliases[] = {"spanmetrics", NULL};

const struct component_factory span_metrics_connector_factory = {
    .type = "span_metrics",
    .aliases = span_metrics_aliases,
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_METRICS},
    .instance_size = sizeof(struct span_metrics),
    .config_size = sizeof(struct span_metrics_config),
    .fields = span_metrics_fields,
    .counters_size = sizeof(struct span_metrics_counters),
    .counters = span_metrics_counter_rows,
    .check = span_metrics_check,
    .share = span_metrics_share,
    .unshare = span_metrics_unshare,
    .create = span_metrics_create,
    .start = span_metrics_start,
    .consume = span_metrics_consume,
    .stop = span_metrics_stop,
    .destroy = span_metrics_destroy,
};
