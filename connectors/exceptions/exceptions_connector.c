/* SPDX-License-Identifier: Apache-2.0 */
/* exceptions: counts the exceptions that spans have as events, and makes log records of them. One
 * instance per lane and kind of output, on its lane.
 *
 * Metrics: the instances of all lanes count in one store under a lock, which is taken once for each
 * exception. Lane 0 sends all counts on, once a second while requests of traces come in.
 *
 * Logs: each request becomes log records, whose outcome is that of the request.
 *
 * Large requests are read by the lane's helper. */
#include <assert.h>
#include <stdatomic.h>

#include <pthread.h>

#include "connectors/exceptions/exception_logs.h"
#include "connectors/exceptions/exception_reader.h"
#include "connectors/exceptions/exception_series.h"
#include "connectors/shared/metric_flush.h"
#include "connectors/shared/request_offer.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

#define FLUSH_NS ((uint64_t)1 * NS_PER_S)

/* Less than elsewhere: for each exception, of a dozen bytes, values of its span and resource of up
 * to EXCEPTION_TEXT_BYTES_MAX are copied and hashed. */
enum { EXCEPTIONS_HELPED_BYTES_MIN = HELPED_BYTES_MIN / 4 };

struct dimension_config {
    const char *name;
    const struct config_value *standard; /* NULL: none */
};

struct exceptions_config {
    struct config_sections dimensions;
    struct exemplars_config {
        bool enabled;
    } exemplars;
    uint64_t aggregation_cardinality_limit;
};

static const struct config_field dimension_fields[] = {
    CONFIG_TEXT(struct dimension_config, name, "name", NULL,
                "The attribute: of the span, else of the exception, else of the resource."),
    CONFIG_VALUE(struct dimension_config, standard, "default",
                 "Its value, a string, where it is absent; without it the attribute is left out."),
    CONFIG_END,
};

static const struct config_field exemplars_fields[] = {
    CONFIG_BOOL(struct exemplars_config, enabled, "enabled", "false",
                "Add the span's ids to the metrics, at most 8 for each series and second."),
    CONFIG_END,
};

static const struct config_field exceptions_fields[] = {
    {CONFIG_ROW(struct exceptions_config, dimensions, struct config_sections, CONFIG_TYPE_SECTIONS,
                "dimensions", "[{name: exception.type}, {name: exception.message}]",
                "Attributes beside service.name, span.name, span.kind and status.code."),
     .fields = dimension_fields, .section_size = sizeof(struct dimension_config)},
    CONFIG_SECTION(struct exceptions_config, exemplars, struct exemplars_config, "exemplars",
                   exemplars_fields, NULL, "Exemplars of the metrics."),
    CONFIG_COUNT(struct exceptions_config, aggregation_cardinality_limit,
                 "aggregation_cardinality_limit", "10000", 0, UINT32_MAX,
                 "Series of the metrics. What lies beyond is counted in one series with the "
                 "attribute otel.metric.overflow. 0: no limit."),
    CONFIG_END,
};

struct exceptions_counters {
    counter consumed[SIGNAL_KINDS]; /* first: tests read it */
    counter uncounted;
    counter unlogged;
};

static const struct counter_row exceptions_counters[] = {
    COUNTER_BY_SIGNAL(struct exceptions_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", SIGNAL_TRACES, NULL, NULL,
                      "Items passed to the connector, without refused ones."),
    COUNTER(struct exceptions_counters, uncounted, COUNTER_SUM, "spanflame_exceptions_uncounted",
            "Exceptions that were not counted, for want of memory."),
    COUNTER(struct exceptions_counters, unlogged, COUNTER_SUM, "spanflame_exceptions_unlogged",
            "Exceptions without a log record, since those of the request took 16 times its bytes."),
    COUNTER_END,
};

struct exceptions;

/* What all instances share. */
struct exceptions_shared {
    struct exception_keys keys; /* constant */
    _Atomic bool has_requests;  /* some came since the last flush */
    struct exceptions *flusher; /* of metrics, on lane 0; constant once it is created */
    /* Under the lock. */
    pthread_mutex_t lock;
    struct exception_store store;
    unsigned helped;  /* requests that helpers count in */
    bool is_stopping; /* the flusher is: it waits for them */
    bool is_waking;   /* wake is on its way to lane 0 */
    struct lane_task wake;
};

struct exceptions {
    struct component base;
    bool is_stopping;
    unsigned helped; /* requests that are with the helper */
    /* Of metrics, on lane 0. */
    struct timer flush_timer;
    struct metric_flush flush;
    size_t flush_at;
};

/* A request that is read, or whose log records are on their way. Has a reference to the batch. */
struct exceptions_request {
    struct helper_work work; /* first */
    struct exceptions *owner;
    struct batch *batch;
    struct receipt *outer;
    /* Metrics. */
    struct exception_reader reader;
    struct exception_bench bench;
    uint64_t uncounted;
    /* Logs. */
    struct exception_logs logs;
    struct request_offer offer;
};

extern const struct component_factory exceptions_connector_factory;

static struct exceptions *exceptions_of(struct component *component)
{
    assert(component->factory == &exceptions_connector_factory);
    return (struct exceptions *)component;
}

static struct exceptions_shared *shared_of(const struct exceptions *self)
{
    assert(self->base.shared != NULL);
    return self->base.shared;
}

static bool read_keys(const struct exceptions_config *config, struct exception_keys *keys,
                      struct error *error)
{
    static const char *const reserved[] = {"service.name", "span.kind", "span.name", "status.code"};
    const struct dimension_config *rows = config->dimensions.items;
    exception_keys_init(keys);
    for (size_t i = 0; i < config->dimensions.count; i++) {
        const struct config_value *standard = rows[i].standard;
        bool has_standard = standard != NULL && standard->type != CONFIG_VALUE_NULL;
        bool is_double = false;
        for (size_t k = 0; k < sizeof(reserved) / sizeof(reserved[0]); k++)
            is_double |= strcmp(rows[i].name, reserved[k]) == 0;
        for (size_t k = 0; k < i; k++)
            is_double |= strcmp(rows[i].name, rows[k].name) == 0;
        if (is_double)
            return error_set(error, "duplicate dimension name \"%s\"", rows[i].name) ||
                   error_at(error, "name") || error_at_index(error, i) ||
                   error_at(error, "dimensions");
        if (has_standard && standard->type != CONFIG_VALUE_TEXT)
            return error_set(error, "expected a string; write it in quotes") ||
                   error_at(error, "default") || error_at_index(error, i) ||
                   error_at(error, "dimensions");
        if (!exception_keys_add(keys, rows[i].name, has_standard ? standard->text : NULL))
            return error_set(error, "found more than %d dimensions; name fewer",
                             (int)WANTED_NAMES_MAX - 2) ||
                   error_at_index(error, i) || error_at(error, "dimensions");
    }
    return true;
}

static bool exceptions_check(const void *section, struct error *error)
{
    struct exception_keys keys;
    return read_keys(section, &keys, error);
}

static void *exceptions_share(const struct component *first, unsigned lanes, struct error *error)
{
    const struct exceptions_config *config = first->config;
    struct exceptions_shared *shared = mem_zalloc(sizeof(*shared));
    (void)lanes;
    bool is_valid = read_keys(config, &shared->keys, error);
    assert(is_valid); /* checked before */
    pthread_mutex_init(&shared->lock, NULL);
    exception_store_init(&shared->store, config->aggregation_cardinality_limit,
                         config->exemplars.enabled, first->budget);
    return shared;
}

static void exceptions_unshare(void *arg)
{
    struct exceptions_shared *shared = arg;
    exception_store_clear(&shared->store);
    pthread_mutex_destroy(&shared->lock);
    mem_free(shared);
}

/* Metrics */

static enum metric_piece write_piece(struct component *component, uint64_t wall_ns, bool is_first,
                                     struct batch **ret_batch)
{
    struct exceptions *self = exceptions_of(component);
    struct exceptions_shared *shared = shared_of(self);
    if (is_first) {
        self->flush_at = 0;
        atomic_store(&shared->has_requests, false);
    }
    pthread_mutex_lock(&shared->lock);
    enum metric_piece piece =
        exception_store_write(&shared->store, wall_ns, &self->flush_at, ret_batch);
    pthread_mutex_unlock(&shared->lock);
    return piece;
}

/* While it stops: if a helper still has a request, of this lane or of another, the flush after that
 * one ends here again. */
static void on_idle(struct component *component)
{
    struct exceptions *self = exceptions_of(component);
    struct exceptions_shared *shared = shared_of(self);
    if (!self->is_stopping)
        return;
    pthread_mutex_lock(&shared->lock);
    bool is_over = !shared->is_waking && shared->helped == 0;
    if (is_over)
        exception_store_clear(&shared->store);
    pthread_mutex_unlock(&shared->lock);
    if (is_over)
        component_stopped(component);
}

/* While lane 0 stops: the helper of another lane has counted in its request. */
static void on_wake(struct lane_task *task)
{
    struct exceptions_shared *shared =
        (struct exceptions_shared *)((char *)task - offsetof(struct exceptions_shared, wake));
    pthread_mutex_lock(&shared->lock);
    shared->is_waking = false;
    pthread_mutex_unlock(&shared->lock);
    metric_flush_ask(&shared->flusher->flush);
}

static void on_flush_time(struct timer *timer, void *arg)
{
    struct exceptions *self = arg;
    lane_timer_start(self->base.lane, timer, FLUSH_NS);
    if (atomic_load(&shared_of(self)->has_requests))
        metric_flush_ask(&self->flush);
}

static void count_exception(void *arg, const struct exception *exception)
{
    struct exceptions_request *request = arg;
    struct exceptions_shared *shared = shared_of(request->owner);
    struct exception_point point;
    bool is_counted =
        exception_point_make(&shared->store, &shared->keys, exception, &request->bench, &point);
    if (is_counted) {
        pthread_mutex_lock(&shared->lock);
        is_counted = exception_store_add(&shared->store, &point);
        pthread_mutex_unlock(&shared->lock);
    }
    request->uncounted += !is_counted;
}

/* May run on the helper's thread. What cannot be refused any more may use the margin. */
static void count_exceptions(struct exceptions_request *request)
{
    struct exceptions_shared *shared = shared_of(request->owner);
    struct budget *budget = request->owner->base.budget;
    batch_begin_work(request->batch);
    exception_reader_init(&request->reader, &shared->keys, budget);
    exception_bench_init(&request->bench, budget);
    request->reader.take = count_exception;
    request->reader.arg = request;
    request->uncounted += exception_reader_read(&request->reader, request->batch);
    exception_bench_fini(&request->bench);
    batch_end_work(request->batch);
    atomic_store(&shared->has_requests, true);
}

/* Requests */

static void end_request(struct exceptions_request *request, const struct outcome *outcome)
{
    struct exceptions_counters *counters = request->owner->base.counters;
    if (outcome->verdict == ACCEPTED)
        counter_add(&counters->consumed[TRACES], request->batch->items);
    receipt_resolve(request->outer, outcome);
    batch_unref(request->batch);
    exception_logs_fini(&request->logs);
    mem_free(request);
}

static void on_offered(struct request_offer *offer, const struct outcome *outcome)
{
    end_request(
        (struct exceptions_request *)((char *)offer - offsetof(struct exceptions_request, offer)),
        outcome);
}

static void give_logs(struct exceptions_request *request)
{
    struct exceptions *self = request->owner;
    struct exceptions_counters *counters = self->base.counters;
    struct exception_logs *logs = &request->logs;
    if (logs->has_failed) {
        struct outcome outcome = outcome_busy("the memory budget has no room for log records");
        outcome.reason = LOSS_MEMORY;
        if (logs->never_fits)
            outcome = outcome_too_large("its log records would exceed the entire memory budget "
                                        "(service::budget_mib); send less at a time");
        end_request(request, &outcome);
        return;
    }
    counter_add(&counters->unlogged, logs->dropped);
    size_t count = logs->batches_count;
    struct batch **batches = logs->batches;
    logs->batches = NULL;
    logs->batches_count = 0;
    request_offer_make(&request->offer, self->base.outlets[LOGS], batches, count, on_offered);
}

static void read_request(struct helper_work *work)
{
    struct exceptions_request *request = (struct exceptions_request *)work;
    struct exceptions *self = request->owner;
    if (self->base.output == METRICS)
        count_exceptions(request);
    else
        exception_logs_make(&request->logs, &shared_of(self)->keys, request->batch,
                            self->base.budget);
}

static void conclude(struct exceptions_request *request)
{
    struct exceptions_counters *counters = request->owner->base.counters;
    if (request->owner->base.output == LOGS) {
        give_logs(request);
        return;
    }
    counter_add(&counters->uncounted, request->uncounted);
    end_request(request, &outcome_accepted);
}

/* A request of metrics is with a helper, or no more. */
static void count_helped(struct exceptions *self, bool begins)
{
    struct exceptions_shared *shared = shared_of(self);
    if (self->base.output != METRICS)
        return;
    pthread_mutex_lock(&shared->lock);
    assert(begins || shared->helped > 0);
    if (begins)
        shared->helped++;
    else
        shared->helped--;
    bool wakes = !begins && shared->is_stopping && !shared->is_waking && shared->flusher != self;
    shared->is_waking |= wakes;
    pthread_mutex_unlock(&shared->lock);
    if (wakes)
        lane_post(shared->flusher->base.lane, &shared->wake);
}

static void finish(struct exceptions *self);

static void on_read(struct helper_work *work)
{
    struct exceptions_request *request = (struct exceptions_request *)work;
    struct exceptions *self = request->owner;
    conclude(request);
    count_helped(self, false);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        finish(self);
}

/* Life */

/* Whether it sends the metrics on. */
static bool is_flusher(const struct exceptions *self)
{
    return self->base.output == METRICS && lane_index(self->base.lane) == 0;
}

static bool exceptions_create(struct component *component, struct error *error)
{
    struct exceptions *self = exceptions_of(component);
    (void)error;
    timer_init(&self->flush_timer, on_flush_time, self);
    metric_flush_init(&self->flush, component, write_piece, on_idle);
    shared_of(self)->wake.fn = on_wake;
    if (is_flusher(self))
        shared_of(self)->flusher = self;
    return true;
}

static bool exceptions_start(struct component *component, struct error *error)
{
    struct exceptions *self = exceptions_of(component);
    (void)error;
    if (is_flusher(self))
        lane_timer_start(component->lane, &self->flush_timer, FLUSH_NS);
    return true;
}

static void exceptions_consume(struct component *component, struct batch *batch,
                               struct receipt *receipt)
{
    struct exceptions *self = exceptions_of(component);
    assert(batch->signal == TRACES);
    if (batch->parts_count > 1 && !batch_has_room(batch, component->budget, batch->bytes)) {
        struct outcome outcome = outcome_busy("the memory budget has no room to read spans");
        outcome.reason = LOSS_MEMORY;
        if (batch_never_fits(batch, component->budget, batch->bytes))
            outcome = outcome_too_large("reading the spans takes more than the whole memory budget "
                                        "(service::budget_mib); send less at a time");
        receipt_resolve(receipt, &outcome);
        return;
    }
    struct exceptions_request *request = mem_zalloc(sizeof(*request));
    request->work = (struct helper_work){.run = read_request, .done = on_read};
    request->owner = self;
    request->batch = batch_ref(batch);
    request->outer = receipt;
    if (batch->bytes >= EXCEPTIONS_HELPED_BYTES_MIN) {
        assert(!self->is_stopping);
        self->helped++;
        count_helped(self, true);
        lane_help(component->lane, &request->work);
        return;
    }
    read_request(&request->work);
    conclude(request);
}

/* Nothing comes any more, and nothing is with the helper. The last counts go on before the
 * pipelines downstream stop. */
static void finish(struct exceptions *self)
{
    struct exceptions_shared *shared = shared_of(self);
    if (!is_flusher(self)) {
        component_stopped(&self->base);
        return;
    }
    pthread_mutex_lock(&shared->lock);
    shared->is_stopping = true;
    pthread_mutex_unlock(&shared->lock);
    if (atomic_load(&shared->has_requests))
        metric_flush_ask(&self->flush);
    else
        metric_flush_finish(&self->flush);
}

static void exceptions_stop(struct component *component)
{
    struct exceptions *self = exceptions_of(component);
    lane_timer_stop(component->lane, &self->flush_timer);
    self->is_stopping = true;
    if (self->helped == 0)
        finish(self);
}

const struct component_factory exceptions_connector_factory = {
    .type = "exceptions",
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_METRICS | SIGNAL_LOGS},
    .instance_size = sizeof(struct exceptions),
    .config_size = sizeof(struct exceptions_config),
    .fields = exceptions_fields,
    .counters_size = sizeof(struct exceptions_counters),
    .counters = exceptions_counters,
    .check = exceptions_check,
    .share = exceptions_share,
    .unshare = exceptions_unshare,
    .create = exceptions_create,
    .start = exceptions_start,
    .consume = exceptions_consume,
    .stop = exceptions_stop,
};
