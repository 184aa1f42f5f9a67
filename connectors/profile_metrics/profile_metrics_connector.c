/* SPDX-License-Identifier: Apache-2.0 */
/* profile_metrics: sums what the samples of profiles measure (CPU time, bytes allocated, waits for
 * locks) by service, span name and route, and sends the sums on as metrics at an interval. Behind
 * the join, which adds those names to samples, "CPU per request of /checkout" becomes a query of
 * Prometheus.
 *
 * Each lane reads the samples of its requests, and its helper those of large ones; the series are
 * shared under a lock, which is held for a run of sums or while a piece of the series is written.
 * Lane 0 sends them on. One instance per lane, on its lane. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "connectors/profile_metrics/sample_sums.h"
#include "connectors/profile_metrics/sum_store.h"
#include "connectors/shared/metric_flush.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

enum { ADDED_AT_ONCE = 256, NAME_BYTES_MAX = 1024 };
/* Requests of more bytes are read by the helper: the slowest take 40 ns for each. */
enum { LANE_BYTES_MAX = 128 * 1024 };

struct profile_metrics_config {
    const char *name_space;
    struct config_texts dimensions;
    struct config_texts resource_attributes;
    uint64_t metrics_flush_interval_ns;
    uint64_t metrics_expiration_ns;
    uint64_t aggregation_cardinality_limit;
};

static const struct config_field profile_metrics_fields[] = {
    CONFIG_TEXT(struct profile_metrics_config, name_space, "namespace", "profile",
                "Put in front of each metric's name, with a dot. Empty: nothing is."),
    CONFIG_TEXTS(struct profile_metrics_config, dimensions, "dimensions", "[span_name, http.route]",
                 "Attributes of samples, profiles or resources, in this order of precedence, that "
                 "the metrics get."),
    CONFIG_TEXTS(struct profile_metrics_config, resource_attributes, "resource_attributes",
                 "[service.name, service.namespace]",
                 "Attributes of the profiles' resources that the metrics' resources get."),
    CONFIG_DURATION(struct profile_metrics_config, metrics_flush_interval_ns,
                    "metrics_flush_interval", "60s", 1, INT64_MAX,
                    "How often the metrics are sent on."),
    CONFIG_DURATION(struct profile_metrics_config, metrics_expiration_ns, "metrics_expiration",
                    "15m", 0, INT64_MAX,
                    "Series without samples for so long are forgotten. 0: never."),
    CONFIG_COUNT(
        struct profile_metrics_config, aggregation_cardinality_limit,
        "aggregation_cardinality_limit", "10000", 0, UINT32_MAX,
        "Series, each with its metrics, which take a quarter of the memory budget at most. "
        "What lies beyond is counted in one series with the attribute "
        "otel.metric.overflow. 0: no limit by number."),
    CONFIG_END,
};

struct profile_metrics_counters {
    counter consumed[SIGNAL_KINDS]; /* first: tests read it */
    counter samples;
    counter series;
};

static const struct counter_row profile_metrics_counters[] = {
    COUNTER(struct profile_metrics_counters, samples, COUNTER_SUM,
            "spanflame_profile_metrics_samples", "Samples whose requests were read."),
    COUNTER_BY_SIGNAL(struct profile_metrics_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", SIGNAL_PROFILES, NULL, NULL,
                      "Items passed to the connector, without refused ones."),
    COUNTER(struct profile_metrics_counters, series, COUNTER_GAUGE,
            "spanflame_profile_metrics_series", "Series that are kept."),
    COUNTER_END,
};

struct profile_metrics;

/* What the instances of all lanes share. */
struct profile_metrics_shared {
    /* Constant. */
    struct sum_names names;
    char metrics[MEASURES][NAME_BYTES_MAX];
    struct profile_metrics *flusher; /* of lane 0; constant once it is created */
    /* Under the lock. */
    pthread_mutex_t lock;
    struct sum_store store;
    unsigned helped;  /* requests that are with helpers */
    bool is_stopping; /* lane 0 is: it waits for them */
    bool is_waking;   /* wake is on its way to lane 0 */
    struct lane_task wake;
};

/* A large request, which the lane's helper reads. */
struct helped_request {
    struct helper_work work; /* first */
    struct profile_metrics *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    bool is_read;
};

struct profile_metrics {
    struct component base;
    struct sample_sums sums;
    struct sample_sums helper_sums;
    unsigned helped; /* requests that are with the helper */
    bool is_stopping;
    /* Of lane 0. */
    struct metric_flush flush;
    struct timer timer;
};

extern const struct component_factory profile_metrics_connector_factory;

static struct profile_metrics *profile_metrics_of(struct component *component)
{
    assert(component->factory == &profile_metrics_connector_factory);
    return (struct profile_metrics *)component;
}

static struct profile_metrics_shared *shared_of(const struct profile_metrics *self)
{
    assert(self->base.shared != NULL);
    return self->base.shared;
}

/* ---- Configuration ---- */

static bool check_names(const struct config_texts *names, const char *key, struct error *error)
{
    if (names->count <= SUM_NAMES_MAX)
        return true;
    error_set(error, "found %zu names, expected at most %d", names->count, (int)SUM_NAMES_MAX);
    return error_at(error, key);
}

static bool profile_metrics_check(const void *section, struct error *error)
{
    const struct profile_metrics_config *config = section;
    if (strlen(config->name_space) > NAME_BYTES_MAX / 2) {
        error_set(error, "expected at most %d bytes", NAME_BYTES_MAX / 2);
        return error_at(error, "namespace");
    }
    return check_names(&config->dimensions, "dimensions", error) &&
           check_names(&config->resource_attributes, "resource_attributes", error);
}

/* Of equal names the first counts. Returns their number. */
static size_t set_names(struct slice *to, const struct config_texts *from)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        struct slice name = slice_of_text(from->texts[i]);
        size_t k = 0;
        while (k < count && !slice_equal(to[k], name))
            k++;
        to[k] = name;
        count += k == count;
    }
    return count;
}

static void *profile_metrics_share(const struct component *first, unsigned lanes,
                                   struct error *error)
{
    static const char *const stems[MEASURES] = {
        [MEASURE_CPU] = "cpu.time",
        [MEASURE_ALLOCATED] = "memory.allocated",
        [MEASURE_LOCK] = "lock.wait",
        [MEASURE_BLOCKED] = "block.wait",
    };
    const struct profile_metrics_config *config = first->config;
    struct profile_metrics_shared *shared = mem_zalloc(sizeof(*shared));
    (void)lanes;
    (void)error;
    shared->names.dimensions_count = set_names(shared->names.dimensions, &config->dimensions);
    shared->names.resources_count =
        set_names(shared->names.resources, &config->resource_attributes);
    pthread_mutex_init(&shared->lock, NULL);
    sum_store_init(&shared->store, first->budget);
    shared->store.series_max = config->aggregation_cardinality_limit;
    shared->store.expiration_ns = config->metrics_expiration_ns;
    for (size_t i = 0; i < MEASURES; i++) {
        snprintf(shared->metrics[i], NAME_BYTES_MAX, "%s%s%s", config->name_space,
                 config->name_space[0] != '\0' ? "." : "", stems[i]);
        shared->store.names[i] = shared->metrics[i];
    }
    return shared;
}

static void profile_metrics_unshare(void *arg)
{
    struct profile_metrics_shared *shared = arg;
    sum_store_clear(&shared->store);
    pthread_mutex_destroy(&shared->lock);
    mem_free(shared);
}

/* ---- Flushing, on lane 0 ---- */

static enum metric_piece write_piece(struct component *component, uint64_t wall_ns, bool is_first,
                                     struct batch **ret_batch)
{
    struct profile_metrics *self = profile_metrics_of(component);
    struct profile_metrics_shared *shared = shared_of(self);
    struct profile_metrics_counters *counters = component->counters;
    pthread_mutex_lock(&shared->lock);
    enum metric_piece piece =
        sum_store_write(&shared->store, is_first, clock_now_ns(), wall_ns, ret_batch);
    counter_set(&counters->series, shared->store.count);
    pthread_mutex_unlock(&shared->lock);
    return piece;
}

/* While it stops: frees what is charged to the budget. If a helper still has a request, the flush
 * after that one ends here again. */
static void on_idle(struct component *component)
{
    struct profile_metrics *self = profile_metrics_of(component);
    struct profile_metrics_shared *shared = shared_of(self);
    if (!self->is_stopping)
        return;
    pthread_mutex_lock(&shared->lock);
    bool is_over = !shared->is_waking && shared->helped == 0;
    if (is_over)
        sum_store_clear(&shared->store);
    pthread_mutex_unlock(&shared->lock);
    if (is_over)
        component_stopped(component);
}

/* While lane 0 stops: the helper of another lane has read its request. */
static void on_wake(struct lane_task *task)
{
    struct profile_metrics_shared *shared =
        (struct profile_metrics_shared *)((char *)task -
                                          offsetof(struct profile_metrics_shared, wake));
    pthread_mutex_lock(&shared->lock);
    shared->is_waking = false;
    pthread_mutex_unlock(&shared->lock);
    metric_flush_ask(&shared->flusher->flush);
}

static void on_time(struct timer *timer, void *arg)
{
    struct profile_metrics *self = arg;
    const struct profile_metrics_config *config = self->base.config;
    lane_timer_start(self->base.lane, timer, config->metrics_flush_interval_ns);
    metric_flush_ask(&self->flush);
}

/* ---- Life ---- */

static bool profile_metrics_create(struct component *component, struct error *error)
{
    struct profile_metrics *self = profile_metrics_of(component);
    struct profile_metrics_shared *shared = shared_of(self);
    (void)error;
    sample_sums_init(&self->sums, &shared->names, component->budget);
    sample_sums_init(&self->helper_sums, &shared->names, component->budget);
    shared->wake.fn = on_wake;
    if (lane_index(component->lane) == 0)
        shared->flusher = self;
    timer_init(&self->timer, on_time, self);
    metric_flush_init(&self->flush, component, write_piece, on_idle);
    return true;
}

static bool profile_metrics_start(struct component *component, struct error *error)
{
    struct profile_metrics *self = profile_metrics_of(component);
    const struct profile_metrics_config *config = component->config;
    (void)error;
    if (lane_index(component->lane) == 0)
        lane_timer_start(component->lane, &self->timer, config->metrics_flush_interval_ns);
    return true;
}

static void refuse(struct receipt *receipt)
{
    struct outcome outcome = outcome_busy("the memory budget has no room to read samples");
    outcome.reason = LOSS_MEMORY;
    receipt_resolve(receipt, &outcome);
}

static void add_sums(struct profile_metrics_shared *shared, const struct sample_sums *sums)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t wall_ns = clock_wall_ns();
    for (size_t i = 0; i < sums->count;) {
        pthread_mutex_lock(&shared->lock);
        sum_store_begin(&shared->store);
        for (size_t end = i + ADDED_AT_ONCE; i < end && i < sums->count; i++) {
            struct sample_sum sum = sample_sums_at(sums, i);
            sum_store_add(&shared->store, &sum, now_ns, wall_ns);
        }
        pthread_mutex_unlock(&shared->lock);
    }
}

/* On the lane or on its helper, each with sums of its own. False: no memory, and nothing is added.
 */
static bool read_batch(struct profile_metrics *self, struct sample_sums *sums,
                       const struct batch *batch)
{
    struct batch_part whole;
    if (!batch_join_owed(batch, self->base.budget, &whole))
        return false;
    /* What cannot be refused any more may use the margin. */
    batch_begin_work(batch);
    bool is_read = sample_sums_read(sums, whole.bytes);
    batch_end_work(batch);
    buffer_unref(whole.owner);
    if (is_read)
        add_sums(shared_of(self), sums);
    sample_sums_clear(sums);
    return is_read;
}

static void conclude(struct profile_metrics *self, const struct batch *batch, bool is_read,
                     struct receipt *receipt)
{
    struct profile_metrics_counters *counters = self->base.counters;
    if (!is_read) {
        refuse(receipt);
        return;
    }
    counter_add(&counters->consumed[PROFILES], batch->items);
    counter_add(&counters->samples, batch->items);
    receipt_resolve(receipt, &outcome_accepted);
}

/* Nothing comes any more, and nothing is with the helper. The last values go on before the
 * pipelines downstream stop. */
static void finish(struct profile_metrics *self)
{
    struct profile_metrics_shared *shared = shared_of(self);
    sample_sums_fini(&self->sums);
    sample_sums_fini(&self->helper_sums);
    if (shared->flusher != self) {
        component_stopped(&self->base);
        return;
    }
    pthread_mutex_lock(&shared->lock);
    shared->is_stopping = true;
    pthread_mutex_unlock(&shared->lock);
    metric_flush_ask(&self->flush);
}

static void on_help(struct helper_work *work)
{
    struct helped_request *request = (struct helped_request *)work;
    request->is_read = read_batch(request->self, &request->self->helper_sums, request->batch);
}

static void on_helped(struct helper_work *work)
{
    struct helped_request *request = (struct helped_request *)work;
    struct profile_metrics *self = request->self;
    struct profile_metrics_shared *shared = shared_of(self);
    conclude(self, request->batch, request->is_read, request->receipt);
    batch_unref(request->batch);
    mem_free(request);
    pthread_mutex_lock(&shared->lock);
    assert(shared->helped > 0);
    shared->helped--;
    bool wakes = shared->is_stopping && !shared->is_waking && shared->flusher != self;
    shared->is_waking |= wakes;
    pthread_mutex_unlock(&shared->lock);
    if (wakes)
        lane_post(shared->flusher->base.lane, &shared->wake);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        finish(self);
}

static void give_to_helper(struct profile_metrics *self, struct batch *batch,
                           struct receipt *receipt)
{
    struct profile_metrics_shared *shared = shared_of(self);
    struct helped_request *request = mem_zalloc(sizeof(*request));
    assert(!self->is_stopping);
    request->work = (struct helper_work){.run = on_help, .done = on_helped};
    request->self = self;
    request->batch = batch_ref(batch);
    request->receipt = receipt;
    self->helped++;
    pthread_mutex_lock(&shared->lock);
    shared->helped++;
    pthread_mutex_unlock(&shared->lock);
    lane_help(self->base.lane, &request->work);
}

static void profile_metrics_consume(struct component *component, struct batch *batch,
                                    struct receipt *receipt)
{
    struct profile_metrics *self = profile_metrics_of(component);
    assert(batch->signal == PROFILES);
    if (batch->bytes > LANE_BYTES_MAX)
        give_to_helper(self, batch, receipt);
    else
        conclude(self, batch, read_batch(self, &self->sums, batch), receipt);
}

static void profile_metrics_stop(struct component *component)
{
    struct profile_metrics *self = profile_metrics_of(component);
    lane_timer_stop(component->lane, &self->timer);
    self->is_stopping = true;
    if (self->helped == 0)
        finish(self);
}

static void profile_metrics_destroy(struct component *component)
{
    struct profile_metrics *self = profile_metrics_of(component);
    assert(self->helped == 0);
    sample_sums_fini(&self->sums);
    sample_sums_fini(&self->helper_sums);
}

const struct component_factory profile_metrics_connector_factory = {
    .type = "profile_metrics",
    .kind = CONNECTOR,
    .stability = "development",
    .connects = {[PROFILES] = SIGNAL_METRICS},
    .instance_size = sizeof(struct profile_metrics),
    .config_size = sizeof(struct profile_metrics_config),
    .fields = profile_metrics_fields,
    .counters_size = sizeof(struct profile_metrics_counters),
    .counters = profile_metrics_counters,
    .check = profile_metrics_check,
    .share = profile_metrics_share,
    .unshare = profile_metrics_unshare,
    .create = profile_metrics_create,
    .start = profile_metrics_start,
    .consume = profile_metrics_consume,
    .stop = profile_metrics_stop,
    .destroy = profile_metrics_destroy,
};
