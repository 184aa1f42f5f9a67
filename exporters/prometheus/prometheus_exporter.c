/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus: keeps the last point of each series and shows them at /metrics to whoever scrapes.
 * Its server runs on lane 0; all lanes add to one store. What is long is written on the lane's
 * helper thread. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/prometheus/metric_store.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"
#include "src/prometheus/exposition.h"

/* So much text, of a thousand series as they usually are, is written at once on the lane: a
 * millisecond or two, and a few more if it is compressed. */
enum { BYTES_AT_ONCE = 256 << 10, NAME_LOG_BYTES_MAX = 200 };

/* Series may take one part in so many of the budget: invented values of labels shall leave room for
 * requests. */
enum { SERIES_BUDGET_PART = 4 };

enum strategy {
    STRATEGY_UNSET,
    STRATEGY_ESCAPED_WITH_SUFFIXES,
    STRATEGY_ESCAPED,
    STRATEGY_UTF8_WITH_SUFFIXES,
    STRATEGY_NONE,
};
static const char *const strategies[] = {"",
                                         "UnderscoreEscapingWithSuffixes",
                                         "UnderscoreEscapingWithoutSuffixes",
                                         "NoUTF8EscapingWithSuffixes",
                                         "NoTranslation",
                                         NULL};

struct resource_to_telemetry_config {
    bool enabled;
    bool exclude_service_attributes;
};

struct prometheus_exporter_config {
    struct exporter_queue_config exporter_queue;
    struct http_server_config server;
    const char *name_space;
    struct config_pairs const_labels;
    bool send_timestamps;
    uint64_t metric_expiration_ns;
    struct resource_to_telemetry_config resource;
    bool enable_open_metrics;
    bool without_scope_info;
    bool add_metric_suffixes;
    int translation_strategy;
};

static const struct config_field resource_to_telemetry_fields[] = {
    CONFIG_BOOL(struct resource_to_telemetry_config, enabled, "enabled", "false",
                "Make all resource attributes labels of every series."),
    CONFIG_BOOL(struct resource_to_telemetry_config, exclude_service_attributes,
                "exclude_service_attributes", "false",
                "But not those that job and instance are made of."),
    CONFIG_END,
};

#define OWNER struct prometheus_exporter_config
static const struct config_field prometheus_exporter_fields[] = {
    HTTP_RESPONDER_ROWS(OWNER, server, "", "true"),
    SENDING_QUEUE_ROW(OWNER, CONFIG_NULL_IS_OFF),
    CONFIG_TEXT(OWNER, name_space, "namespace", "", "Put in front of each metric's name, with _."),
    CONFIG_PAIRS(OWNER, const_labels, "const_labels", "Labels of every series."),
    CONFIG_BOOL(OWNER, send_timestamps, "send_timestamps", "false",
                "Show when each point was measured."),
    CONFIG_DURATION(OWNER, metric_expiration_ns, "metric_expiration", "5m", 0, INT64_MAX,
                    "Forget series that did not come for so long."),
    CONFIG_SECTION(OWNER, resource, struct resource_to_telemetry_config,
                   "resource_to_telemetry_conversion", resource_to_telemetry_fields, NULL,
                   "Resource attributes as labels; without it they are in target_info."),
    CONFIG_BOOL(OWNER, enable_open_metrics, "enable_open_metrics", "false",
                "Respond in OpenMetrics, with exemplars, to clients that prefer it."),
    CONFIG_BOOL(OWNER, without_scope_info, "without_scope_info", "false",
                "Leave out the labels otel_scope_…"),
    CONFIG_UNUSED_BOOL(OWNER, add_metric_suffixes, "add_metric_suffixes", "true",
                       "As in the Go collector, translation_strategy decides."),
    CONFIG_CHOICE(OWNER, translation_strategy, "translation_strategy", "", strategies,
                  "How names are translated."),
    CONFIG_END,
};
#undef OWNER

struct prometheus_counters {
    counter series;
    counter bytes;
    counter scrapes;
    counter unusable;
    counter no_room;
};

static const struct counter_row prometheus_counter_rows[] = {
    COUNTER(struct prometheus_counters, series, COUNTER_GAUGE, "spanflame_prometheus_series",
            "Number of series that a scrape shows."),
    COUNTER(struct prometheus_counters, bytes, COUNTER_GAUGE, "spanflame_prometheus_bytes",
            "Bytes of the budget that they take."),
    COUNTER(struct prometheus_counters, scrapes, COUNTER_SUM, "spanflame_prometheus_scrapes",
            "Number of scrapes."),
    COUNTER(struct prometheus_counters, unusable, COUNTER_SUM,
            "spanflame_prometheus_unusable_points",
            "Data points that Prometheus has no form for, or whose names or types clash."),
    COUNTER(struct prometheus_counters, no_room, COUNTER_SUM, "spanflame_prometheus_refused_points",
            "Data points of new series for which the budget had no room."),
    COUNTER_END,
};

struct prometheus_exporter {
    struct http_responder responder;
    struct metric_store *store; /* of lane 0 */
    struct timer expiry;
    struct lane_job expiry_job;
    size_t expiry_at;           /* 0: none is under way */
    struct scrape *scrapes;     /* in the order in which they came; the first one is at work */
    struct scrape *last_scrape; /* of them */
    struct lane_job scrape_job;
    bool is_stopping;
    struct addition *additions; /* in the order in which they came */
    struct addition *last;      /* of them */
    struct lane_job job;
};

extern const struct component_factory prometheus_exporter_factory;

static struct prometheus_exporter *prometheus_exporter_of(struct component *base)
{
    assert(base->factory == &prometheus_exporter_factory);
    return (struct prometheus_exporter *)base;
}

/* The one with the server and the store. */
static bool is_first(const struct component *self)
{
    return lane_index(self->lane) == 0;
}

static bool prometheus_exporter_check(const void *section, struct error *error)
{
    const struct prometheus_exporter_config *config = section;
    return http_responder_check(&config->server, "0.0.0.0:8889", error);
}

/* One response to a scrape. The snapshot is released before the response is sent; the text, which
 * the server reads while the client takes it, when it has ended. */
struct scrape {
    struct helper_work work;
    struct prometheus_exporter *exporter;
    struct scrape *next;
    struct http_request *request;
    enum { SCRAPE_WAITS, SCRAPE_TAKES, SCRAPE_RELEASES } state;
    struct metric_snapshot *snapshot;
    struct exposition_format format;
    struct exposition exposition;
    bool is_compressed;
    struct buffer *compressed; /* NULL: it is not, or it failed */
};

/* Whether the client prefers gzip to plain text: as the Go client, of equal ones plain text. */
static bool prefers_gzip(struct slice header)
{
    double plain = -1;
    double gzip = -1;
    while (header.size > 0) {
        const uint8_t *comma = memchr(header.data, ',', header.size);
        size_t size = comma != NULL ? (size_t)(comma - header.data) : header.size;
        struct slice part = slice_of(header.data, size);
        const uint8_t *semicolon = size > 0 ? memchr(part.data, ';', size) : NULL;
        double quality = 1;
        if (semicolon != NULL) {
            struct slice rest =
                slice_trim(slice_of(semicolon + 1, size - (size_t)(semicolon + 1 - part.data)));
            part.size = (size_t)(semicolon - part.data);
            if (slice_begins_with(rest, "q=0"))
                quality = rest.size > 4 && rest.data[3] == '.' ? (rest.data[4] - '0') / 10.0 : 0;
        }
        part = slice_trim(part);
        if (slice_equal_text(part, "gzip"))
            gzip = gzip > quality ? gzip : quality;
        else if (slice_equal_text(part, "identity") || slice_equal_text(part, "*"))
            plain = plain > quality ? plain : quality;
        header =
            slice_of(header.data + size + (comma != NULL), header.size - size - (comma != NULL));
    }
    return gzip > 0 && gzip > plain;
}

static void scrape_run(struct helper_work *work)
{
    struct scrape *scrape = (struct scrape *)work;
    struct exposition *exposition = &scrape->exposition;
    metric_snapshot_write(scrape->snapshot, exposition);
    if (exposition->has_failed || !scrape->is_compressed)
        return;
    struct codec_box *box = codec_box_create(exposition->budget);
    const struct batch_part part = {.bytes = slice_of(exposition->data, exposition->size)};
    const struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
    const bool is_done = codec_deflate(box, CODEC_GZIP, &input, &scrape->compressed) == CODEC_OK;
    codec_box_destroy(box);
    exposition_fini(exposition);
    exposition_init(exposition, &scrape->format, exposition->budget);
    exposition->has_failed = !is_done;
}

static void scrape_destroy(void *arg)
{
    struct scrape *scrape = arg;
    exposition_fini(&scrape->exposition);
    buffer_unref(scrape->compressed);
    mem_free(scrape);
}

static void scrape_end(struct scrape *scrape)
{
    struct component *base = &scrape->exporter->responder.base;
    char type[EXPOSITION_TYPE_BYTES_MAX];
    exposition_content_type(&scrape->format, type);
    if (scrape->exposition.has_failed) {
        http_responder_respond_text(base, scrape->request, 503,
                                    "no memory left in the budget for a scrape\n");
        scrape_destroy(scrape);
        return;
    }
    struct http_response response = {
        .status = 200,
        .headers = {{"content-type", type}},
        .body = slice_of(scrape->exposition.data, scrape->exposition.size),
        .release = scrape_destroy,
        .release_arg = scrape,
    };
    if (scrape->is_compressed) {
        response.headers[1] = (struct http_header){"content-encoding", "gzip"};
        response.body = buffer_slice(scrape->compressed);
    }
    http_responder_respond(base, scrape->request, &response);
}

static void scrape_later(struct prometheus_exporter *exporter)
{
    lane_rest(exporter->responder.base.lane);
    lane_defer(exporter->responder.base.lane, &exporter->scrape_job);
}

/* Takes the snapshot. False: later. */
static bool scrape_take(struct scrape *scrape)
{
    struct metric_store *store = scrape->exporter->store;
    struct exposition *exposition = &scrape->exposition;
    exposition->has_failed = scrape->exporter->is_stopping || http_request_is_gone(scrape->request);
    if (scrape->state == SCRAPE_WAITS && !exposition->has_failed) {
        scrape->snapshot = metric_store_snapshot(store, clock_now_ns());
        exposition->has_failed = scrape->snapshot == NULL;
    }
    scrape->state = SCRAPE_TAKES;
    return exposition->has_failed || !metric_store_take(store, scrape->snapshot);
}

static void count_series(struct prometheus_exporter *exporter)
{
    struct prometheus_counters *counters = exporter->responder.base.counters;
    struct metric_store_figures figures = metric_store_figures(exporter->store);
    counter_set(&counters->series, figures.series);
    counter_set(&counters->bytes, figures.bytes);
}

/* Large stores are gone through in several turns; the exporter stops in between. */
static void expire(void *arg)
{
    struct prometheus_exporter *exporter = arg;
    exporter->expiry_at = metric_store_expire(exporter->store, clock_now_ns(), exporter->expiry_at);
    count_series(exporter);
    if (exporter->expiry_at == 0)
        return;
    lane_rest(exporter->responder.base.lane);
    lane_defer(exporter->responder.base.lane, &exporter->expiry_job);
}

static void begin_expiry(struct prometheus_exporter *exporter)
{
    if (exporter->expiry_at != 0)
        return;
    exporter->expiry_at = METRIC_EXPIRY_ALL;
    expire(exporter);
}

/* One scrape after the other: they share the helper, and the order that a snapshot leaves for the
 * next one. Large ones are taken and released in several turns. */
static void scrape_go_on(void *arg)
{
    struct prometheus_exporter *exporter = arg;
    struct scrape *scrape = exporter->scrapes;
    if (scrape->state == SCRAPE_WAITS && !exporter->is_stopping)
        begin_expiry(exporter);
    if (scrape->state != SCRAPE_RELEASES) {
        if (!scrape_take(scrape)) {
            scrape_later(exporter);
            return;
        }
        scrape->state = SCRAPE_RELEASES;
        if (!scrape->exposition.has_failed) {
            if (metric_snapshot_bytes(scrape->snapshot) > BYTES_AT_ONCE) {
                lane_help(exporter->responder.base.lane, &scrape->work);
                return;
            }
            scrape_run(&scrape->work);
        }
    }
    if (metric_store_release(exporter->store, scrape->snapshot)) {
        scrape_later(exporter);
        return;
    }
    exporter->scrapes = scrape->next;
    scrape_end(scrape);
    if (exporter->scrapes != NULL)
        scrape_later(exporter);
    http_responder_end(&exporter->responder.base);
}

static void scrape_done(struct helper_work *work)
{
    struct scrape *scrape = (struct scrape *)work;
    scrape_go_on(scrape->exporter);
}

static void respond(struct component *base, struct http_request *request)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(base);
    const struct prometheus_exporter_config *config = base->config;
    struct prometheus_counters *counters = base->counters;
    if (!slice_equal_text(http_request_path(request), "/metrics")) {
        http_responder_respond_text(base, request, 404, "404 page not found\n");
        return;
    }
    counter_add(&counters->scrapes, 1);
    struct scrape *scrape = mem_alloc(sizeof(*scrape));
    *scrape = (struct scrape){
        .work = {.run = scrape_run, .done = scrape_done},
        .exporter = exporter,
        .request = request,
        .format = exposition_negotiate(http_request_header(request, "accept"),
                                       config->enable_open_metrics),
        .is_compressed = prefers_gzip(http_request_header(request, "accept-encoding")),
    };
    exposition_init(&scrape->exposition, &scrape->format, base->budget);
    bool is_only = exporter->scrapes == NULL;
    *(is_only ? &exporter->scrapes : &exporter->last_scrape->next) = scrape;
    exporter->last_scrape = scrape;
    http_responder_begin(base);
    /* At the end of the turn: many requests may come in it. */
    if (is_only)
        lane_defer(base->lane, &exporter->scrape_job);
}

/* A request whose points are being taken, or that waits for those before it. */
struct addition {
    struct addition *next;
    struct buffer *owner;
    struct slice bytes; /* in the owner */
    struct receipt *receipt;
    struct metric_addition *adding; /* NULL: not begun */
};

static void addition_end(struct prometheus_exporter *exporter, struct addition *addition)
{
    struct component *self = &exporter->responder.base;
    struct prometheus_counters *counters = self->counters;
    struct metric_store_losses losses = metric_addition_end(addition->adding);
    struct outcome outcome = outcome_accepted;
    outcome.rejected_items = losses.unusable + losses.no_room;
    outcome.invalid_items = losses.unusable;
    counter_add(&counters->unusable, losses.unusable);
    counter_add(&counters->no_room, losses.no_room);
    if (losses.reason != NULL) {
        char name[NAME_LOG_BYTES_MAX];
        size_t size = losses.name.size < sizeof(name) - 1 ? losses.name.size : sizeof(name) - 1;
        if (size > 0)
            memcpy(name, losses.name.data, size);
        name[size] = '\0';
        log_warn(&self->logger, "left out data points that Prometheus cannot get",
                 log_text("metric", name), log_text("reason", losses.reason),
                 log_int("data_points", (int64_t)outcome.rejected_items));
    }
    if (is_first(self))
        count_series(exporter);
    buffer_unref(addition->owner);
    receipt_resolve(addition->receipt, &outcome);
    mem_free(addition);
}

/* Takes requests one after the other. A large one ends the turn after each piece, so that others
 * get theirs. */
static void add_next(void *arg)
{
    struct prometheus_exporter *exporter = arg;
    struct component *self = &exporter->responder.base;
    struct metric_store *store = prometheus_exporter_of(self->first)->store;
    struct addition *addition;
    while ((addition = exporter->additions) != NULL) {
        if (addition->adding == NULL)
            addition->adding = metric_addition_create(store, addition->bytes, clock_now_ns());
        if (metric_addition_go_on(addition->adding)) {
            lane_rest(self->lane);
            lane_defer(self->lane, &exporter->job);
            return;
        }
        exporter->additions = addition->next;
        addition_end(exporter, addition);
    }
}

static void prometheus_exporter_consume(struct component *self, struct batch *batch,
                                        struct receipt *receipt)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(self);
    struct batch_part whole;
    assert(batch->signal == METRICS);
    budget_begin_export();
    bool is_joined = batch_join(batch, self->budget, &whole);
    budget_end_export();
    if (!is_joined) {
        struct outcome outcome = outcome_busy("no memory left in the budget to keep data points");
        outcome.reason = LOSS_MEMORY;
        receipt_resolve(receipt, &outcome);
        return;
    }
    struct addition *addition = mem_alloc(sizeof(*addition));
    *addition = (struct addition){.owner = whole.owner, .bytes = whole.bytes, .receipt = receipt};
    bool is_only = exporter->additions == NULL;
    *(is_only ? &exporter->additions : &exporter->last->next) = addition;
    exporter->last = addition;
    if (is_only)
        add_next(exporter);
}

static void on_expiry(struct timer *timer, void *arg)
{
    struct prometheus_exporter *exporter = arg;
    const struct prometheus_exporter_config *config = exporter->responder.base.config;
    begin_expiry(exporter);
    lane_timer_start(exporter->responder.base.lane, timer, config->metric_expiration_ns);
}

static bool prometheus_exporter_create(struct component *self, struct error *error)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(self);
    const struct prometheus_exporter_config *config = self->config;
    enum strategy strategy = (enum strategy)config->translation_strategy;
    timer_init(&exporter->expiry, on_expiry, exporter);
    exporter->job = (struct lane_job){.fn = add_next, .arg = exporter};
    exporter->expiry_job = (struct lane_job){.fn = expire, .arg = exporter};
    exporter->scrape_job = (struct lane_job){.fn = scrape_go_on, .arg = exporter};
    if (!is_first(self))
        return true;
    bool has_suffixes = strategy != STRATEGY_ESCAPED && strategy != STRATEGY_NONE;
    exporter->store = metric_store_create(&(struct metric_store_settings){
        .labels = {.naming = {.name_space = config->name_space,
                              .has_suffixes = has_suffixes,
                              .has_utf8 = strategy == STRATEGY_UTF8_WITH_SUFFIXES ||
                                          strategy == STRATEGY_NONE},
                   .const_labels = &config->const_labels,
                   .has_scope = !config->without_scope_info,
                   .has_resource = config->resource.enabled,
                   .has_service = !config->resource.exclude_service_attributes},
        .expiration_ns = config->metric_expiration_ns,
        .has_timestamps = config->send_timestamps,
        .budget = self->budget,
        .bytes_max = self->budget != NULL ? budget_limit(self->budget) / SERIES_BUDGET_PART : 0,
    });
    return http_responder_prepare(self, &config->server, respond, "Starting Prometheus exporter",
                                  error);
}

static bool prometheus_exporter_start(struct component *self, struct error *error)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(self);
    const struct prometheus_exporter_config *config = self->config;
    if (!is_first(self))
        return true;
    if (config->metric_expiration_ns > 0)
        lane_timer_start(self->lane, &exporter->expiry, config->metric_expiration_ns);
    return http_responder_start(self, error);
}

static void prometheus_exporter_stop(struct component *self)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(self);
    if (!is_first(self)) {
        component_stopped(self);
        return;
    }
    lane_timer_stop(self->lane, &exporter->expiry);
    lane_defer_cancel(self->lane, &exporter->expiry_job);
    exporter->expiry_at = 0;
    exporter->is_stopping = true;
    http_responder_stop(self);
}

static void prometheus_exporter_destroy(struct component *self)
{
    struct prometheus_exporter *exporter = prometheus_exporter_of(self);
    assert(exporter->additions == NULL && exporter->scrapes == NULL);
    lane_defer_cancel(self->lane, &exporter->job);
    lane_defer_cancel(self->lane, &exporter->expiry_job);
    if (!is_first(self))
        return;
    http_responder_destroy(self);
    metric_store_destroy(exporter->store);
}

const struct component_factory prometheus_exporter_factory = {
    .type = "prometheus",
    .kind = EXPORTER,
    .stability = "beta",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct prometheus_exporter),
    .config_size = sizeof(struct prometheus_exporter_config),
    .fields = prometheus_exporter_fields,
    .counters_size = sizeof(struct prometheus_counters),
    .counters = prometheus_counter_rows,
    .check = prometheus_exporter_check,
    .create = prometheus_exporter_create,
    .start = prometheus_exporter_start,
    .consume = prometheus_exporter_consume,
    .stop = prometheus_exporter_stop,
    .destroy = prometheus_exporter_destroy,
};
