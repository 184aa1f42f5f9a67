/* SPDX-License-Identifier: Apache-2.0 */
/* service_graph: pairs the client and the server span of each request, or those of a producer and a
 * consumer, and counts and times the requests between services. The halves of an edge may arrive on
 * different lanes, so all instances share one store under a lock, which is held for a run of at
 * most GRAPH_RUN_MAX spans or while a piece of the series is written. Each lane reads the spans of
 * its requests without the lock, and its helper those of large ones. The timers run on lane 0: it
 * ends edges that waited too long, forgets old series and gives all series to the pipelines
 * downstream, in pieces of one request each, one a turn, one flush at a time. One instance per
 * lane, on its lane. */
#include <assert.h>

#include <pthread.h>

#include "connectors/service_graph/graph_metrics.h"
#include "connectors/service_graph/graph_reader.h"
#include "connectors/service_graph/graph_store.h"
#include "connectors/shared/metric_flush.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/duration.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

enum {
    BOUNDS_MAX = 1024,            /* of latency_histogram_buckets */
    EXPIRED_PER_TURN_MAX = 4096,  /* edges */
    EXPIRED_AT_ONCE_MAX = 64,     /* while the lock is held */
    CLEANED_PER_TURN_MAX = 16384, /* series */
    CLEANED_AT_ONCE_MAX = 1024,
};

struct service_graph_config {
    const struct config_value *latency_histogram_buckets; /* a list of durations, or NULL */
    int64_t exponential_histogram_max_size;
    struct config_texts dimensions;
    struct service_graph_store_config {
        uint64_t ttl_ns;
        int64_t max_items;
    } store;
    uint64_t cache_loop_ns;
    uint64_t store_expiration_loop_ns;
    struct config_texts virtual_node_peer_attributes;
    bool virtual_node_extra_label;
    uint64_t metrics_flush_interval_ns;
    struct config_texts database_name_attributes;
    uint64_t metrics_timestamp_offset_ns;
    uint64_t aggregation_cardinality_limit;
};

static const struct config_field store_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(struct service_graph_store_config, ttl_ns, "ttl", "2s",
                                "How long a span waits for the other one of its request."),
    CONFIG_INT(struct service_graph_store_config, max_items, "max_items", "1000", INT64_MIN,
               INT64_MAX, "Requests of which one span is known. Spans beyond it are not counted."),
    CONFIG_END,
};

static const struct config_field service_graph_fields[] = {
    CONFIG_VALUE(struct service_graph_config, latency_histogram_buckets,
                 "latency_histogram_buckets",
                 "Upper bounds of the histograms' buckets, as durations; at most 1024. Unset: 2ms, "
                 "4ms, 6ms, 8ms, 10ms, 50ms, 100ms, 200ms, 400ms, 800ms, 1s, 1400ms, 2s, 5s, 10s, "
                 "15s."),
    CONFIG_INT(struct service_graph_config, exponential_histogram_max_size,
               "exponential_histogram_max_size", "0", INT32_MIN, INT32_MAX,
               "Buckets of exponential histograms, which are written instead, from 2 to 16384. 0: "
               "histograms have explicit buckets."),
    CONFIG_TEXTS(struct service_graph_config, dimensions, "dimensions", NULL,
                 "Attributes of resources or spans that are added to the metrics, with client_ or "
                 "server_ before their names."),
    CONFIG_SECTION(struct service_graph_config, store, struct service_graph_store_config, "store",
                   store_fields, NULL, "Requests of which one span is known."),
    CONFIG_DURATION_OR_NEGATIVE(struct service_graph_config, cache_loop_ns, "cache_loop", "1m",
                                "How often series are forgotten that were not updated for 15 "
                                "minutes. 0: every minute."),
    CONFIG_DURATION_OR_NEGATIVE(struct service_graph_config, store_expiration_loop_ns,
                                "store_expiration_loop", "2s",
                                "How often spans that waited too long are looked for. 0: every 2 "
                                "seconds."),
    CONFIG_TEXTS(struct service_graph_config, virtual_node_peer_attributes,
                 "virtual_node_peer_attributes", "[peer.service, db.name, db.system]",
                 "Attributes of a client span that name a server which sends no spans; the first "
                 "that is present counts. An empty list leaves out requests with one span only."),
    CONFIG_BOOL(struct service_graph_config, virtual_node_extra_label, "virtual_node_extra_label",
                "false",
                "Adds the attribute virtual_node, which tells whether the client or the server "
                "sends no spans."),
    CONFIG_DURATION_OR_NEGATIVE(struct service_graph_config, metrics_flush_interval_ns,
                                "metrics_flush_interval", "60s",
                                "How often the metrics are sent on. 0: after every request."),
    CONFIG_TEXTS(struct service_graph_config, database_name_attributes, "database_name_attributes",
                 "[db.name]",
                 "Attributes that name the database which a client span calls; the first that is "
                 "present counts. Empty: db.name."),
    CONFIG_DURATION(struct service_graph_config, metrics_timestamp_offset_ns,
                    "metrics_timestamp_offset", "0s", 0, INT64_MAX,
                    "By how much the metrics' times lie in the past."),
    CONFIG_COUNT(struct service_graph_config, aggregation_cardinality_limit,
                 "aggregation_cardinality_limit", "10000", 0, UINT32_MAX,
                 "Series, each with its four metrics. What lies beyond is counted in one series "
                 "with the attribute otel.metric.overflow. 0: no limit."),
    CONFIG_END,
};

struct service_graph_counters {
    counter consumed[SIGNAL_KINDS];
    counter dropped_spans;
    counter expired_edges;
    counter total_edges;
};

static const struct counter_row service_graph_counters[] = {
    COUNTER_BY_SIGNAL(struct service_graph_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", SIGNAL_TRACES, NULL, NULL,
                      "Items passed to the connector, without refused ones."),
    COUNTER(struct service_graph_counters, dropped_spans, COUNTER_SUM,
            "otelcol_connector_servicegraph_dropped_spans",
            "Number of spans dropped when trying to add edges"),
    COUNTER(struct service_graph_counters, expired_edges, COUNTER_SUM,
            "otelcol_connector_servicegraph_expired_edges",
            "Number of edges that expired before finding its matching span"),
    COUNTER(struct service_graph_counters, total_edges, COUNTER_SUM,
            "otelcol_connector_servicegraph_total_edges", "Total number of unique edges"),
    COUNTER_END,
};

struct service_graph;

/* What the instances of all lanes share. */
struct service_graph_shared {
    /* Constant. */
    struct graph_keys keys;
    struct graph_page page;
    double bounds[BOUNDS_MAX];
    struct slice labels[GRAPH_SIDES][WANTED_NAMES_MAX]; /* in label_bytes */
    uint8_t *label_bytes;
    /* Under the lock. */
    pthread_mutex_t lock;
    struct graph_store store;
    bool has_news;    /* something was counted since the last flush began */
    unsigned helped;  /* requests that are with helpers */
    bool is_stopping; /* lane 0 is: it waits for them */
    bool is_waking;   /* wake is on its way to lane 0 */
    struct lane_task wake;
    struct service_graph *flusher; /* of lane 0; constant once it is created */
};

/* The reading of a request. */
struct graph_reading {
    struct service_graph *owner;
    struct graph_reader reader;
    struct graph_figures figures;
    uint64_t unread;
    uint64_t now_ns;
};

/* A large request, which the lane's helper reads. Has a reference to the batch. */
struct graph_request {
    struct helper_work work; /* first */
    struct batch *batch;
    struct receipt *receipt;
    struct graph_reading reading;
};

struct service_graph {
    struct component base;
    struct graph_reading reading; /* of small requests */
    unsigned helped;              /* requests that are with the helper */
    bool is_stopping;
    /* Of lane 0. */
    struct timer flush_timer;
    struct timer expire_timer;
    struct timer clean_timer;
    struct lane_job expire_job;
    struct lane_job clean_job;
    struct metric_flush flush;
    size_t flush_at;
    size_t clean_at;
};

extern const struct component_factory service_graph_connector_factory;

static struct service_graph *service_graph_of(struct component *component)
{
    assert(component->factory == &service_graph_connector_factory);
    return (struct service_graph *)component;
}

static struct service_graph_shared *shared_of(const struct service_graph *self)
{
    assert(self->base.shared != NULL);
    return self->base.shared;
}

/* Configuration */

/* Go's Duration.Seconds, whose rounding decides into which bucket a value on a bound goes. */
static double seconds_of(int64_t duration_ns)
{
    return (double)(duration_ns / NS_PER_S) + (double)(duration_ns % NS_PER_S) / 1e9;
}

static bool has_buckets(const struct service_graph_config *config)
{
    const struct config_value *buckets = config->latency_histogram_buckets;
    return buckets != NULL && buckets->type != CONFIG_VALUE_NULL;
}

/* Returns their number; 0 with an error: they are wrong. */
static size_t read_bounds(const struct service_graph_config *config, double *bounds,
                          struct error *error)
{
    const struct config_value *list = config->latency_histogram_buckets;
    if (!has_buckets(config))
        return 0;
    if (list->type != CONFIG_VALUE_LIST || list->count > BOUNDS_MAX) {
        error_set(error, "expected a list of at most %d durations, such as [100ms, 1s]",
                  (int)BOUNDS_MAX);
        return 0;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct config_value *item = &list->items[i];
        int64_t duration_ns = item->type == CONFIG_VALUE_INT ? item->integer : 0;
        const char *problem = item->type == CONFIG_VALUE_INT ? NULL
                                                             : "it is neither text nor "
                                                               "whole nanoseconds";
        if (item->type == CONFIG_VALUE_TEXT)
            problem = text_to_duration_ns(item->text, &duration_ns);
        if (problem != NULL) {
            error_set(error, "expected a duration such as \"200ms\" or \"1m30s\" (%s)", problem);
            error_at_index(error, i);
            return 0;
        }
        bounds[i] = seconds_of(duration_ns);
    }
    return list->count;
}

static bool add_names(struct graph_keys *keys, struct graph_names *list,
                      const struct config_texts *names, const char *key, struct error *error)
{
    for (size_t i = 0; i < names->count; i++)
        if (!graph_keys_add(keys, list, names->texts[i]))
            return error_set(error,
                             "dimensions, virtual_node_peer_attributes and "
                             "database_name_attributes name more than %d different attributes; "
                             "name fewer",
                             (int)WANTED_NAMES_MAX - 1) ||
                   error_at_index(error, i) || error_at(error, key);
    return true;
}

static bool read_keys(const struct service_graph_config *config, struct graph_keys *keys,
                      struct error *error)
{
    static const char *const databases[] = {"db.name"};
    static const struct config_texts standard = {.count = 1, .texts = databases};
    const struct config_texts *given = &config->database_name_attributes;
    graph_keys_init(keys);
    return add_names(keys, &keys->dimensions, &config->dimensions, "dimensions", error) &&
           add_names(keys, &keys->peers, &config->virtual_node_peer_attributes,
                     "virtual_node_peer_attributes", error) &&
           add_names(keys, &keys->databases, given->count > 0 ? given : &standard,
                     "database_name_attributes", error);
}

static bool service_graph_check(const void *section, struct error *error)
{
    const struct service_graph_config *config = section;
    double bounds[BOUNDS_MAX];
    struct graph_keys keys;
    int64_t size = config->exponential_histogram_max_size;
    if (read_bounds(config, bounds, error) == 0 && error->text[0] != '\0')
        return error_at(error, "latency_histogram_buckets");
    if (!has_buckets(config) && size < 0)
        return error_set(error, "`exponential_histogram_max_size` can not be negative") ||
               error_at(error, "exponential_histogram_max_size");
    if (has_buckets(config) && size > 0)
        return error_set(error, "use either `latency_histogram_buckets` or "
                                "`exponential_histogram_max_size`") ||
               error_at(error, "exponential_histogram_max_size");
    return read_keys(config, &keys, error);
}

/* As many buckets as Go's histograms take for that number. */
static uint32_t exponential_size(int64_t size)
{
    if (size < 0)
        return EXPONENTIAL_SIZE_DEFAULT;
    if (size > EXPONENTIAL_SIZE_MAX)
        return EXPONENTIAL_SIZE_MAX;
    return size == 1 ? EXPONENTIAL_SIZE_MIN : (uint32_t)size;
}

/* Names of the dimensions' attributes. */
static void make_labels(struct service_graph_shared *shared)
{
    static const char *const prefixes[] = {[GRAPH_SERVER] = "server_", [GRAPH_CLIENT] = "client_"};
    enum { PREFIX_BYTES = 7 };
    const struct graph_keys *keys = &shared->keys;
    const struct graph_names *dimensions = &keys->dimensions;
    size_t size = 0;
    for (size_t i = 0; i < dimensions->count; i++)
        size += PREFIX_BYTES + keys->wanted.names[dimensions->places[i]].size;
    shared->label_bytes = mem_alloc(GRAPH_SIDES * size);
    uint8_t *at = shared->label_bytes;
    for (unsigned side = 0; side < GRAPH_SIDES; side++) {
        for (size_t i = 0; i < dimensions->count; i++) {
            struct slice name = keys->wanted.names[dimensions->places[i]];
            memcpy(at, prefixes[side], PREFIX_BYTES);
            if (name.size > 0)
                memcpy(at + PREFIX_BYTES, name.data, name.size);
            shared->labels[side][i] = slice_of(at, PREFIX_BYTES + name.size);
            at += PREFIX_BYTES + name.size;
        }
        shared->page.labels[side] = shared->labels[side];
    }
}

static void service_graph_unshare(void *arg)
{
    struct service_graph_shared *shared = arg;
    graph_store_clear(&shared->store);
    mem_free(shared->label_bytes);
    pthread_mutex_destroy(&shared->lock);
    mem_free(shared);
}

static void *service_graph_share(const struct component *first, unsigned lanes, struct error *error)
{
    static const double standard_bounds[] = {0.002, 0.004, 0.006, 0.008, 0.01, 0.05, 0.1, 0.2,
                                             0.4,   0.8,   1,     1.4,   2,    5,    10,  15};
    const struct service_graph_config *config = first->config;
    struct service_graph_shared *shared = mem_zalloc(sizeof(*shared));
    (void)lanes;
    size_t bounds = read_bounds(config, shared->bounds, error);
    bool is_valid = read_keys(config, &shared->keys, error);
    assert(is_valid); /* checked before */
    if (!has_buckets(config)) {
        memcpy(shared->bounds, standard_bounds, sizeof(standard_bounds));
        bounds = sizeof(standard_bounds) / sizeof(standard_bounds[0]);
    }
    make_labels(shared);
    shared->page.has_virtual_label = config->virtual_node_extra_label;
    shared->page.offset_ns = config->metrics_timestamp_offset_ns;
    const struct graph_settings settings = {
        .dimensions_count = shared->keys.dimensions.count,
        .bounds = shared->bounds,
        .bounds_count = bounds,
        .exponential_max = exponential_size(config->exponential_histogram_max_size),
        .has_virtual_nodes = shared->keys.peers.count > 0,
        .ttl_ns = config->store.ttl_ns,
        .edges_max = config->store.max_items > 0 ? (uint64_t)config->store.max_items : 0,
        .series_max = config->aggregation_cardinality_limit,
    };
    pthread_mutex_init(&shared->lock, NULL);
    graph_store_init(&shared->store, &settings, first->budget);
    return shared;
}

/* Flushing, on lane 0 */

static enum metric_piece write_piece(struct component *component, uint64_t wall_ns, bool is_first,
                                     struct batch **ret_batch)
{
    struct service_graph *self = service_graph_of(component);
    struct service_graph_shared *shared = shared_of(self);
    pthread_mutex_lock(&shared->lock);
    if (is_first) {
        self->flush_at = 0;
        shared->has_news = false;
    }
    enum metric_piece piece = graph_metrics_write(&shared->store, &shared->page, wall_ns,
                                                  component->budget, &self->flush_at, ret_batch);
    pthread_mutex_unlock(&shared->lock);
    return piece;
}

/* While it stops: frees what is charged to the budget. If another lane has just asked for a flush,
 * or has a request with its helper, that one ends here again. */
static void on_idle(struct component *component)
{
    struct service_graph *self = service_graph_of(component);
    struct service_graph_shared *shared = shared_of(self);
    if (!self->is_stopping || self->helped > 0)
        return;
    pthread_mutex_lock(&shared->lock);
    bool is_over = !shared->is_waking && shared->helped == 0;
    if (is_over)
        graph_store_clear(&shared->store);
    pthread_mutex_unlock(&shared->lock);
    if (is_over)
        component_stopped(component);
}

static void on_flush_time(struct timer *timer, void *arg)
{
    struct service_graph *self = arg;
    const struct service_graph_config *config = self->base.config;
    assert(timer == &self->flush_timer);
    lane_timer_start(self->base.lane, timer, config->metrics_flush_interval_ns);
    metric_flush_ask(&self->flush);
}

/* Another lane has had a request, and metrics are sent on after each. */
static void on_wake(struct lane_task *task)
{
    struct service_graph_shared *shared =
        (struct service_graph_shared *)((char *)task - offsetof(struct service_graph_shared, wake));
    pthread_mutex_lock(&shared->lock);
    shared->is_waking = false;
    pthread_mutex_unlock(&shared->lock);
    metric_flush_ask(&shared->flusher->flush);
}

static void flush_now(struct service_graph *self)
{
    struct service_graph_shared *shared = shared_of(self);
    if (shared->flusher == self) {
        metric_flush_ask(&self->flush);
        return;
    }
    pthread_mutex_lock(&shared->lock);
    bool wakes = !shared->is_waking;
    shared->is_waking = true;
    pthread_mutex_unlock(&shared->lock);
    if (wakes)
        lane_post(shared->flusher->base.lane, &shared->wake);
}

/* The other timers */

static void expire(void *arg)
{
    struct service_graph *self = arg;
    struct service_graph_shared *shared = shared_of(self);
    struct service_graph_counters *counters = self->base.counters;
    struct graph_figures figures = {.expired = 0};
    uint64_t now_ns = clock_now_ns();
    bool is_more = true;
    for (unsigned i = 0; i < EXPIRED_PER_TURN_MAX / EXPIRED_AT_ONCE_MAX && is_more; i++) {
        pthread_mutex_lock(&shared->lock);
        is_more = graph_store_expire(&shared->store, now_ns, EXPIRED_AT_ONCE_MAX, &figures);
        shared->has_news |= figures.expired > 0;
        pthread_mutex_unlock(&shared->lock);
    }
    counter_add(&counters->expired_edges, figures.expired);
    counter_add(&counters->dropped_spans, figures.dropped);
    if (!is_more)
        return;
    lane_rest(self->base.lane);
    lane_defer(self->base.lane, &self->expire_job);
}

static uint64_t or_standard(uint64_t interval_ns, uint64_t standard_ns)
{
    return interval_ns > 0 ? interval_ns : standard_ns;
}

static void on_expire_time(struct timer *timer, void *arg)
{
    struct service_graph *self = arg;
    const struct service_graph_config *config = self->base.config;
    lane_timer_start(self->base.lane, timer,
                     or_standard(config->store_expiration_loop_ns, (uint64_t)2 * NS_PER_S));
    expire(self);
}

static void clean(void *arg)
{
    struct service_graph *self = arg;
    struct service_graph_shared *shared = shared_of(self);
    uint64_t now_ns = clock_now_ns();
    uint64_t wall_ns = clock_wall_ns();
    bool is_more = true;
    for (unsigned i = 0; i < CLEANED_PER_TURN_MAX / CLEANED_AT_ONCE_MAX && is_more; i++) {
        pthread_mutex_lock(&shared->lock);
        is_more = graph_store_clean(&shared->store, now_ns, wall_ns, &self->clean_at,
                                    CLEANED_AT_ONCE_MAX);
        pthread_mutex_unlock(&shared->lock);
    }
    if (!is_more)
        return;
    lane_rest(self->base.lane);
    lane_defer(self->base.lane, &self->clean_job);
}

static void on_clean_time(struct timer *timer, void *arg)
{
    struct service_graph *self = arg;
    const struct service_graph_config *config = self->base.config;
    lane_timer_start(self->base.lane, timer,
                     or_standard(config->cache_loop_ns, (uint64_t)60 * NS_PER_S));
    self->clean_at = 0;
    clean(self);
}

/* Life */

static void take_halves(void *arg, const struct graph_half *halves, size_t count)
{
    struct graph_reading *reading = arg;
    struct service_graph_shared *shared = shared_of(reading->owner);
    pthread_mutex_lock(&shared->lock);
    graph_store_add(&shared->store, halves, count, reading->now_ns, &reading->figures);
    shared->has_news = true;
    pthread_mutex_unlock(&shared->lock);
}

static void reading_init(struct graph_reading *reading, struct service_graph *self)
{
    struct service_graph_shared *shared = shared_of(self);
    reading->owner = self;
    graph_reader_init(&reading->reader, &shared->keys, &shared->store, self->base.budget);
    reading->reader.take = take_halves;
    reading->reader.arg = reading;
}

/* May run on the helper's thread. What cannot be refused any more may use the margin. */
static void read_batch(struct graph_reading *reading, const struct batch *batch)
{
    reading->figures = (struct graph_figures){.edges = 0};
    reading->now_ns = clock_now_ns();
    batch_begin_work(batch);
    reading->unread = graph_reader_read(&reading->reader, batch);
    batch_end_work(batch);
}

static void conclude(const struct graph_reading *reading, const struct batch *batch,
                     struct receipt *receipt)
{
    struct service_graph *self = reading->owner;
    const struct service_graph_config *config = self->base.config;
    struct service_graph_counters *counters = self->base.counters;
    counter_add(&counters->consumed[TRACES], batch->items);
    counter_add(&counters->total_edges, reading->figures.edges);
    counter_add(&counters->expired_edges, reading->figures.expired);
    counter_add(&counters->dropped_spans, reading->figures.dropped + reading->unread);
    if (config->metrics_flush_interval_ns == 0)
        flush_now(self);
    receipt_resolve(receipt, &outcome_accepted);
}

static void read_request(struct helper_work *work)
{
    struct graph_request *request = (struct graph_request *)work;
    read_batch(&request->reading, request->batch);
}

static void finish(struct service_graph *self);

static void on_read(struct helper_work *work)
{
    struct graph_request *request = (struct graph_request *)work;
    struct service_graph *self = request->reading.owner;
    struct service_graph_shared *shared = shared_of(self);
    conclude(&request->reading, request->batch, request->receipt);
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

static void give_to_helper(struct service_graph *self, struct batch *batch, struct receipt *receipt)
{
    struct service_graph_shared *shared = shared_of(self);
    struct graph_request *request = mem_zalloc(sizeof(*request));
    assert(!self->is_stopping);
    request->work = (struct helper_work){.run = read_request, .done = on_read};
    request->batch = batch_ref(batch);
    request->receipt = receipt;
    reading_init(&request->reading, self);
    self->helped++;
    pthread_mutex_lock(&shared->lock);
    shared->helped++;
    pthread_mutex_unlock(&shared->lock);
    lane_help(self->base.lane, &request->work);
}

static bool service_graph_create(struct component *component, struct error *error)
{
    struct service_graph *self = service_graph_of(component);
    struct service_graph_shared *shared = shared_of(self);
    (void)error;
    reading_init(&self->reading, self);
    timer_init(&self->flush_timer, on_flush_time, self);
    timer_init(&self->expire_timer, on_expire_time, self);
    timer_init(&self->clean_timer, on_clean_time, self);
    metric_flush_init(&self->flush, component, write_piece, on_idle);
    self->expire_job = (struct lane_job){.fn = expire, .arg = self};
    self->clean_job = (struct lane_job){.fn = clean, .arg = self};
    shared->wake.fn = on_wake;
    if (lane_index(component->lane) == 0)
        shared->flusher = self;
    return true;
}

static bool service_graph_start(struct component *component, struct error *error)
{
    struct service_graph *self = service_graph_of(component);
    const struct service_graph_config *config = component->config;
    struct lane *lane = component->lane;
    (void)error;
    if (shared_of(self)->flusher != self)
        return true;
    if (config->metrics_flush_interval_ns > 0)
        lane_timer_start(lane, &self->flush_timer, config->metrics_flush_interval_ns);
    else
        log_warn(&component->logger, "metrics_flush_interval is 0: metrics are sent on after every "
                                     "request of traces");
    lane_timer_start(lane, &self->expire_timer,
                     or_standard(config->store_expiration_loop_ns, (uint64_t)2 * NS_PER_S));
    lane_timer_start(lane, &self->clean_timer,
                     or_standard(config->cache_loop_ns, (uint64_t)60 * NS_PER_S));
    return true;
}

static void service_graph_consume(struct component *component, struct batch *batch,
                                  struct receipt *receipt)
{
    struct service_graph *self = service_graph_of(component);
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
    if (batch->bytes >= HELPED_BYTES_MIN) {
        give_to_helper(self, batch, receipt);
        return;
    }
    read_batch(&self->reading, batch);
    conclude(&self->reading, batch, receipt);
}

/* Nothing comes any more, and nothing is with the helper. The last values go on before the
 * pipelines downstream stop. */
static void finish(struct service_graph *self)
{
    struct service_graph_shared *shared = shared_of(self);
    if (shared->flusher != self) {
        component_stopped(&self->base);
        return;
    }
    pthread_mutex_lock(&shared->lock);
    shared->is_stopping = true;
    bool has_news = shared->has_news;
    pthread_mutex_unlock(&shared->lock);
    if (has_news)
        metric_flush_ask(&self->flush);
    else
        metric_flush_finish(&self->flush);
}

static void service_graph_stop(struct component *component)
{
    struct service_graph *self = service_graph_of(component);
    struct lane *lane = component->lane;
    lane_timer_stop(lane, &self->flush_timer);
    lane_timer_stop(lane, &self->expire_timer);
    lane_timer_stop(lane, &self->clean_timer);
    lane_defer_cancel(lane, &self->expire_job);
    lane_defer_cancel(lane, &self->clean_job);
    self->is_stopping = true;
    if (self->helped == 0)
        finish(self);
}

static const char *const service_graph_aliases[] = {"servicegraph", NULL};

const struct component_factory service_graph_connector_factory = {
    .type = "service_graph",
    .aliases = service_graph_aliases,
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_METRICS},
    .instance_size = sizeof(struct service_graph),
    .config_size = sizeof(struct service_graph_config),
    .fields = service_graph_fields,
    .counters_size = sizeof(struct service_graph_counters),
    .counters = service_graph_counters,
    .check = service_graph_check,
    .share = service_graph_share,
    .unshare = service_graph_unshare,
    .create = service_graph_create,
    .start = service_graph_start,
    .consume = service_graph_consume,
    .stop = service_graph_stop,
};
