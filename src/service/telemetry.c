/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the service: components' counters, rings, budget, ledger and process, under the Go
 * collector's names where it has them and as spanflame_… otherwise. On lane 0. */
#include "src/service/telemetry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/machine.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/config/component_set.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/journal/journal.h"
#include "src/net/server/http_server.h"
#include "src/net/syntax/http_url.h"
#include "src/pipeline/pipeline.h"
#include "src/service/journal_storage.h"
#include "src/service/journals.h"
#include "src/service/metrics.h"
#include "src/service/service_parts.h"

struct telemetry {
    struct service *service;
    struct http_server *server;
};

static void add_ring(struct metrics *metrics, const char *ring, const char *owner,
                     struct ring_figures figures)
{
    const struct metric_labels labels = {.pairs = {{"ring", ring}, {"owner", owner}}};
    metrics_add(metrics, "spanflame_ring_depth", COUNTER_GAUGE, "Requests in the ring now.",
                &labels, (double)figures.depth);
    metrics_add(metrics, "spanflame_ring_high_water", COUNTER_GAUGE,
                "Maximum of the requests in the ring so far, summed over lanes.", &labels,
                (double)figures.high_water);
    metrics_add(metrics, "spanflame_ring_capacity", COUNTER_GAUGE,
                "Current capacity of the ring in requests, which grows, summed over lanes.",
                &labels, (double)figures.capacity);
    metrics_add(metrics, "spanflame_ring_refusals", COUNTER_SUM,
                "Requests refused by the budget (pipeline) or the queue.", &labels,
                (double)figures.refusals);
}

static void add_reasons(struct metrics *metrics, const char *name, const char *help,
                        const char *signal, const counter *cells)
{
    for (int reason = 0; reason < LOSS_REASONS; reason++) {
        const struct metric_labels labels = {
            .pairs = {{"signal", signal}, {"reason", loss_reason_name((enum loss_reason)reason)}}};
        metrics_add(metrics, name, COUNTER_SUM, help, &labels,
                    (double)counter_read(&cells[reason]));
    }
}

/* received = delivered + rejected + dropped + in flight. */
static void add_ledger(const struct ledger *ledger, struct metrics *metrics)
{
    for (int s = 0; s < SIGNAL_KINDS; s++) {
        const struct ledger_signal *row = &ledger->signals[s];
        const char *signal = signal_name((enum signal_kind)s);
        const struct metric_labels labels = {.pairs = {{"signal", signal}}};
        if (counter_read(&row->received) == 0 && counter_read(&row->taken_over) == 0)
            continue;
        metrics_add(metrics, "spanflame_items_received", COUNTER_SUM,
                    "Items that entered a pipeline, once for each of its exporters.", &labels,
                    (double)counter_read(&row->received));
        metrics_add(metrics, "spanflame_items_delivered", COUNTER_SUM,
                    "Items that an exporter's destination accepted.", &labels,
                    (double)counter_read(&row->delivered));
        metrics_add(metrics, "spanflame_items_in_flight", COUNTER_GAUGE,
                    "Items that are not delivered, rejected or dropped yet.", &labels,
                    (double)ledger_in_flight(row));
        if (counter_read(&row->deferred) > 0)
            metrics_add(metrics, "spanflame_items_deferred", COUNTER_SUM,
                        "Items that an exporter gets later, from the journal. They are received "
                        "again then.",
                        &labels, (double)counter_read(&row->deferred));
        add_reasons(metrics, "spanflame_items_rejected",
                    "Items refused with an error to the client.", signal, row->rejected);
        add_reasons(metrics, "spanflame_items_dropped",
                    "Items lost after the client got a success response.", signal, row->dropped);
    }
}

struct instance_page {
    struct metrics *metrics;
    const struct component *component;
};

/* The label of the component takes its place among the others. */
static void add_labelled(const struct component_counter *row, const struct component_label *labels,
                         size_t count, uint64_t value, void *arg)
{
    const struct instance_page *page = arg;
    const char *kind = component_kind_name(page->component->factory->kind);
    struct metric_labels all = {0};
    size_t size = 0;
    assert(count < METRIC_LABELS_MAX);
    bool has_own = false;
    for (size_t i = 0; i < count; i++) {
        if (!has_own && strcmp(kind, labels[i].key) < 0) {
            all.pairs[size].key = kind;
            all.pairs[size++].value = page->component->id;
            has_own = true;
        }
        all.pairs[size].key = labels[i].key;
        all.pairs[size++].value = labels[i].value;
    }
    if (!has_own) {
        all.pairs[size].key = kind;
        all.pairs[size].value = page->component->id;
    }
    metrics_add(page->metrics, row->name, COUNTER_SUM, row->help, &all, (double)value);
}

static void add_instance(struct metrics *metrics, const struct component *component, int signal)
{
    assert(signal < SIGNAL_KINDS);
    if (component == NULL || component->factory->counters == NULL)
        return;
    const struct metric_labels labels = {
        .pairs = {{component_kind_name(component->factory->kind), component->id}}};
    metrics_add_counters(metrics, component->factory->counters, component->counters, &labels,
                         signal);
    struct instance_page page = {.metrics = metrics, .component = component};
    if (component->factory->each_counter != NULL)
        component->factory->each_counter(component, add_labelled, &page);
}

/* What does not run: pipelines, and components as a whole or in one pipeline. */
static void add_skips(const struct config *config, struct metrics *metrics)
{
    for (size_t i = 0; i < config->skips_count; i++) {
        const struct config_skip *skip = &config->skips[i];
        const char *reason = skip_reason_name(skip->reason);
        if (skip->component == NULL) {
            const struct metric_labels labels = {
                .pairs = {{"pipeline", skip->pipeline}, {"reason", reason}}};
            metrics_add(metrics, "spanflame_skipped_pipelines", COUNTER_GAUGE,
                        "1 for each pipeline that is left out, since this build lacks what it "
                        "needs.",
                        &labels, 1);
            continue;
        }
        const struct metric_labels labels = {
            .pairs = {{"component", skip->component},
                      {"pipeline", skip->pipeline != NULL ? skip->pipeline : ""},
                      {"reason", reason},
                      {"section", skip->section}}};
        metrics_add(metrics, "spanflame_skipped_components", COUNTER_GAUGE,
                    "1 for each component that is left out; with a pipeline: of one that runs "
                    "without it.",
                    &labels, 1);
    }
}

/* Series of one exporter; those of its results name the destination, as in the Go collector. */
static void add_exporter_queue(struct metrics *metrics, const struct component *exporter,
                               struct exporter_queue *queue)
{
    const struct exporter_queue_counters *counters = exporter_queue_counters(queue);
    const struct exporter_queue_config *config = exporter->config;
    int signal = (int)exporter->signal;
    const struct metric_labels by_exporter = {.pairs = {{"exporter", exporter->id}}};
    const struct metric_labels by_type = {
        .pairs = {{"data_type", signal_name(exporter->signal)}, {"exporter", exporter->id}}};
    struct metric_labels by_destination = by_exporter;
    struct http_url url = {0};
    char port[8];
    if (exporter->destination != NULL) {
        /* The labels point into url and port. */
        char text[HTTP_URL_BYTES_MAX + 1];
        struct error ignored;
        bool is_grpc = strncmp(exporter->destination, "grpc://", strlen("grpc://")) == 0;
        snprintf(text, sizeof(text), "%s%s", is_grpc ? "http" : "",
                 exporter->destination + (is_grpc ? strlen("grpc") : 0));
        if (http_url_parse(text, &url, &ignored)) {
            snprintf(port, 8, "%u", url.port);
            by_destination.pairs[1].key = "server_address";
            by_destination.pairs[1].value = url.host;
            by_destination.pairs[2].key = "server_port";
            by_destination.pairs[2].value = port;
            if (!is_grpc) {
                by_destination.pairs[3].key = "url_path";
                by_destination.pairs[3].value = url.target;
            }
        }
    }
    metrics_add_counters(metrics, exporter_queue_sent_rows, counters, &by_destination, signal);
    if (metrics_shows(metrics, METRICS_DETAILED)) {
        /* At level detailed, failures carry the reason, in the Go collector's label order. */
        char name[64];
        assert(by_destination.pairs[METRIC_LABELS_MAX - 2].key == NULL);
        snprintf(name, sizeof(name), "otelcol_exporter_send_failed_%s",
                 signal_items(exporter->signal));
        for (size_t i = 0; i < EXPORT_FAILURES; i++)
            for (size_t permanent = 0; permanent < 2; permanent++) {
                uint64_t items = counter_read(&counters->failures[i][permanent]);
                struct metric_labels all = {
                    .pairs = {{"error_permanent", permanent ? "true" : "false"},
                              {"error_type", export_failure_name(i)}}};
                memcpy(&all.pairs[2], by_destination.pairs,
                       sizeof(all.pairs) - 2 * sizeof(all.pairs[0]));
                if (items > 0)
                    metrics_add(metrics, name, COUNTER_SUM, exporter_queue_failed_rows[0].help,
                                &all, (double)items);
            }
    } else {
        metrics_add_counters(metrics, exporter_queue_failed_rows, counters, &by_destination,
                             signal);
    }
    if (exporter_queue_is_on(config))
        metrics_add_counters(metrics, exporter_queue_offer_rows, counters, &by_exporter, signal);
    metrics_add_counters(metrics, exporter_queue_enqueue_rows, counters, &by_exporter, signal);
    metrics_add_counters(metrics, exporter_queue_progress_rows, counters, &by_type, signal);
    http_url_clear(&url);
}

/* One journal: a pipeline's. */
static void add_journal(const struct service *service, size_t index, struct metrics *metrics)
{
    struct journal *journal = service->journals[index];
    const struct config_component *component = service->storages[index];
    const struct journal_storage storage = journal_storage_of(component);
    const char *pipeline = service->config->pipelines[index].id;
    struct journal_figures figures = journal_figures(journal);
    uint64_t now_ns = clock_wall_ns();
    bool is_waiting = figures.oldest_wall_ns > 0 && figures.oldest_wall_ns < now_ns;
    const struct metric_labels labels = {
        .pairs = {{"pipeline", pipeline}, {storage.label, component->id}}};
    metrics_add(metrics, "spanflame_journal_records", COUNTER_GAUGE,
                "Requests in the journal, from the oldest on that some exporter has not finished.",
                &labels, (double)(figures.next_id - figures.low_id));
    metrics_add(metrics, "spanflame_journal_bytes", COUNTER_GAUGE, "Bytes of the journal's files.",
                &labels, (double)figures.bytes);
    if (storage.bytes_max != UINT64_MAX)
        metrics_add(metrics, "spanflame_journal_capacity", COUNTER_GAUGE,
                    "max_size in bytes, which the journals of an extension share.", &labels,
                    (double)storage.bytes_max);
    metrics_add(metrics, "spanflame_journal_oldest_age_seconds", COUNTER_GAUGE,
                "Age of the oldest request that some exporter has not finished; 0 without one.",
                &labels, is_waiting ? (double)(now_ns - figures.oldest_wall_ns) / NS_PER_S : 0);
    metrics_add(metrics, "spanflame_journal_full", COUNTER_GAUGE,
                "1 since a request was refused for lack of room, until one is taken again.",
                &labels, journal_health(journal).is_full ? 1 : 0);
    metrics_add_counters(metrics, journal_rows, journal_counters(journal), &labels, -1);
    metrics_add_counters(metrics, journal_flush_rows, journal_flushes(journal), &labels, -1);
    struct journal_backlog waits;
    for (size_t i = 0; journal_each_backlog(journal, i, &waits); i++) {
        const struct metric_labels all = {
            .pairs = {{"configured", waits.is_configured ? "true" : "false"},
                      {"exporter", waits.name},
                      {"pipeline", pipeline},
                      {storage.label, component->id}}};
        metrics_add(metrics, "spanflame_journal_waiting_records", COUNTER_GAUGE,
                    "Requests that an exporter has not finished; configured is false when the "
                    "pipeline does not have it any more.",
                    &all, (double)waits.records);
    }
}

/* What the Go collector counts of a wal of prometheus_remote_write. */
static void add_wals(const struct service *service, size_t index, struct metrics *metrics)
{
    struct journal *journal = service->journals[index];
    const struct config_pipeline *pipeline = &service->config->pipelines[index];
    struct journal_counters *counters = journal_counters(journal);
    struct journal_figures figures = journal_figures(journal);
    uint64_t refusals = 0;
    size_t place = 0; /* among those that store */
    for (size_t i = 0; i < JOURNAL_REFUSALS; i++)
        refusals += counter_read(&counters->refusals[i]);
    for (size_t i = 0; i < pipeline->exporters_count; i++) {
        const struct config_component *exporter = pipeline->exporters[i];
        const struct config_component *storage = journal_storage_find(service, exporter);
        if (storage == NULL)
            continue;
        uint64_t lag = journal_backlog(journal, place++);
        if (storage != exporter)
            continue;
        const struct metric_labels labels = {
            .pairs = {{"exporter", exporter->id}, {"pipeline", pipeline->id}}};
#define WAL "otelcol_exporter_prometheusremotewrite_wal_"
        const struct {
            const char *name;
            enum counter_type type;
            const char *help;
            uint64_t value;
        } rows[] = {
            {WAL "lag", COUNTER_GAUGE, "Requests in the wal that are not exported yet.", lag},
            {WAL "writes", COUNTER_SUM, "Requests written to the wal.",
             counter_read(&counters->records)},
            {WAL "writes_failures", COUNTER_SUM, "Requests that could not be written to the wal.",
             refusals},
            {WAL "bytes_written", COUNTER_SUM, "Bytes of the requests written to the wal.",
             figures.written.bytes},
            {WAL "reads", COUNTER_SUM, "Requests read back from the wal.",
             counter_read(&counters->replayed)},
            {WAL "reads_failures", COUNTER_SUM, "Requests that could not be read back.",
             counter_read(&counters->corrupt)},
        };
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
            metrics_add(metrics, rows[j].name, rows[j].type, rows[j].help, &labels,
                        (double)rows[j].value);
#undef WAL
    }
}

static void add_lane(const struct service *service, const struct service_lane *part,
                     struct metrics *metrics)
{
    const struct config *config = service->config;
    for (size_t i = 0; i < config->components_count; i++)
        add_instance(metrics, part->receivers[i], -1);
    for (size_t i = 0; i < config->components_count * SIGNAL_PAIRS; i++)
        if (part->connectors[i] != NULL)
            add_instance(metrics, part->connectors[i], (int)part->connectors[i]->signal);
    for (size_t i = 0; i < config->pipelines_count; i++) {
        add_ring(metrics, "pipeline", config->pipelines[i].id,
                 pipeline_ring_figures(part->pipelines[i]));
        for (size_t j = 0; j < config->pipelines[i].processors_count; j++)
            add_instance(metrics, part->processors[i][j], (int)config->pipelines[i].signal);
    }
    assert(service->lanes_count > 0);
    for (size_t i = 0; i < config->components_count * SIGNAL_KINDS; i++) {
        const struct component *exporter = part->exporters[i];
        if (exporter == NULL)
            continue;
        char owner[1200];
        snprintf(owner, sizeof(owner), "%s/%s", signal_name(exporter->signal), exporter->id);
        add_instance(metrics, exporter, (int)exporter->signal);
        add_exporter_queue(metrics, exporter, part->queues[i]);
        add_ring(metrics, "sending_queue", owner, exporter_queue_ring_figures(part->queues[i]));
        const struct budget *capacity = &service->shared[i].capacity;
        if (part != &service->lanes[0] || budget_limit(capacity) == UINT64_MAX)
            continue;
        const struct metric_labels labels = {
            .pairs = {{"data_type", signal_name(exporter->signal)}, {"exporter", exporter->id}}};
        const struct exporter_queue_config *queue = exporter->config;
        struct journals_queue figures;
        if (!journals_queue(service, exporter, sending_queue_sizer(&queue->queue), &figures))
            figures = (struct journals_queue){.size = (double)budget_used(capacity),
                                              .capacity = (double)budget_limit(capacity)};
        metrics_add(metrics, "otelcol_exporter_queue_size", COUNTER_GAUGE,
                    "Current size of the sending queue, in units of its sizer; with storage all "
                    "that the exporter has not finished, on disk as well.",
                    &labels, figures.size);
        metrics_add(metrics, "otelcol_exporter_queue_capacity", COUNTER_GAUGE,
                    "Fixed capacity of the sending queue, in units of its sizer; with storage what "
                    "the disk has room for, estimated from the average request.",
                    &labels, figures.capacity);
        metrics_add(metrics, "spanflame_exporter_queue_refusals", COUNTER_SUM,
                    "Requests refused by the sending queue.", &labels,
                    (double)atomic_load(&capacity->refusals));
    }
    add_ledger(&part->ledger, metrics);
}

void telemetry_print(struct service *service, enum metrics_level level, FILE *out)
{
    struct metrics *metrics = metrics_create(level);
    const struct metrics_style style = {
        .has_type_suffix = !service->config->service.metrics_without_type_suffix,
        .has_units = !service->config->service.metrics_without_units,
    };
    const struct config_pairs *resource = &service->config->service.resource;
    static const char *const keys[][2] = {{"service.instance.id", "service_instance_id"},
                                          {"service.name", "service_name"},
                                          {"service.version", "service_version"}};
    struct metric_labels labels = {0};
    size_t count = 0;
    assert(METRIC_LABELS_MAX >= 3);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < resource->count; i++)
            if (strcmp(resource->pairs[i].key, keys[k][0]) == 0) {
                labels.pairs[count].key = keys[k][1];
                labels.pairs[count++].value = resource->pairs[i].value;
            }
    metrics_add(metrics, "target_info", COUNTER_GAUGE, "Target metadata", &labels, 1);
    /* Always 0 here; exported because alerts for the Go collector refer to them. */
    static const char *const causes[] = {"encoding", "gathering"};
    for (size_t i = 0; i < 2; i++) {
        const struct metric_labels cause = {.pairs = {{"cause", causes[i]}}};
        metrics_add(metrics, "promhttp_metric_handler_errors_total", COUNTER_SUM,
                    "Errors of this page.", &cause, 0);
    }
    const struct metric_labels none = {0};
    struct process_figures process = machine_process();
    struct mem_stats memory = mem_stats_read();
    metrics_add(metrics, "otelcol_process_uptime", COUNTER_SUM, "Uptime of the process", &none,
                (double)(clock_now_ns() - service->started_ns) / NS_PER_S);
    metrics_add(metrics, "otelcol_process_cpu_seconds", COUNTER_SUM,
                "Total CPU user and system time in seconds", &none, process.cpu_seconds);
    metrics_add(metrics, "otelcol_process_memory_rss", COUNTER_GAUGE,
                "Total physical memory (resident set size)", &none, (double)process.rss_bytes);
    metrics_add(metrics, "otelcol_process_runtime_heap_alloc_bytes", COUNTER_GAUGE,
                "Bytes of allocated heap objects", &none, (double)memory.allocated_bytes);
    metrics_add(metrics, "otelcol_process_runtime_total_alloc_bytes", COUNTER_SUM,
                "Bytes mapped by the allocator so far", &none, (double)memory.mapped_bytes);
    metrics_add(metrics, "otelcol_process_runtime_total_sys_memory_bytes", COUNTER_GAUGE,
                "Total bytes of memory obtained from the OS", &none, (double)memory.resident_bytes);
    struct budget *budget = &service->budget;
    metrics_add(metrics, "spanflame_budget_used_bytes", COUNTER_GAUGE,
                "Bytes charged to the budget now.", &none, (double)budget_used(budget));
    metrics_add(metrics, "spanflame_budget_limit_bytes", COUNTER_GAUGE,
                "Limit of the budget in bytes.", &none, (double)budget_limit(budget));
    metrics_add(metrics, "spanflame_budget_high_water_bytes", COUNTER_GAUGE,
                "Maximum of the bytes charged so far.", &none,
                (double)atomic_load(&budget->high_water));
    metrics_add(metrics, "spanflame_budget_refusals", COUNTER_SUM,
                "Charges that the budget refused.", &none, (double)atomic_load(&budget->refusals));
    for (unsigned i = 0; i < service->lanes_count; i++)
        add_lane(service, &service->lanes[i], metrics);
    for (size_t i = 0; i < service->config->pipelines_count; i++)
        if (service->journals[i] != NULL) {
            add_journal(service, i, metrics);
            add_wals(service, i, metrics);
        }
    for (size_t i = 0; i < service->unused_count; i++) {
        const struct unused_journal *unused = &service->unused[i];
        const struct metric_labels place = {
            .pairs = {{"directory", unused->directory},
                      {journal_storage_of(unused->storage).label, unused->storage->id}}};
        metrics_add(metrics, "spanflame_journal_unused_records", COUNTER_GAUGE,
                    "Requests found at the start in a journal that no pipeline uses.", &place,
                    (double)unused->records);
        metrics_add(metrics, "spanflame_journal_unused_bytes", COUNTER_GAUGE,
                    "Bytes of the files of a journal that no pipeline uses, found at the start.",
                    &place, (double)unused->bytes);
    }
    add_skips(service->config, metrics);
    metrics_print(metrics, &style, out);
    metrics_destroy(metrics);
}

static void respond_text(struct http_request *request, unsigned status, const char *text)
{
    assert(status >= 400);
    http_respond(request, &(struct http_response){
                              .status = status,
                              .headers = {{"content-type", "text/plain; charset=utf-8"}},
                              .body = slice_of_text(text),
                          });
}

static void on_request(struct http_request *request, void *arg)
{
    struct telemetry *telemetry = arg;
    char *page = NULL;
    size_t size = 0;
    struct slice method = http_request_method(request);
    if (!slice_equal_text(http_request_path(request), "/metrics")) {
        respond_text(request, 404, "404 page not found\n");
        return;
    }
    if (!slice_equal_text(method, "GET") && !slice_equal_text(method, "HEAD")) {
        respond_text(request, 405, "405 method not allowed, supported: [GET]\n");
        return;
    }
    FILE *out = open_memstream(&page, &size);
    const struct config *config = telemetry->service->config;
    telemetry_print(telemetry->service, (enum metrics_level)config->service.metrics_level, out);
    fclose(out);
    http_respond(request,
                 &(struct http_response){
                     .status = 200,
                     .headers = {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                     .body = slice_of(page, size),
                 });
    free(page);
}

static void on_body(struct http_request *request, void *arg)
{
    (void)arg;
    respond_text(request, 400, "no body expected\n");
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    assert(failure <= HTTP_BODY_TOO_SLOW);
    on_body(request, arg);
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
};

struct telemetry *telemetry_create(struct service *service, struct error *error)
{
    const struct config_service *config = &service->config->service;
    struct telemetry *telemetry = mem_zalloc(sizeof(*telemetry));
    char endpoint[512];
    telemetry->service = service;
    telemetry->server = http_server_create(&(struct http_server_settings){
        .lane = service->lanes[0].lane,
        .budget = &service->budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .header_deadline_ns = HTTP_HEADER_DEADLINE_NS,
        .idle_ns = HTTP1_IDLE_NS,
        .handler = &handler,
        .arg = telemetry,
    });
    bool is_v6 = strchr(config->metrics_host, ':') != NULL && config->metrics_host[0] != '[';
    snprintf(endpoint, sizeof(endpoint), is_v6 ? "[%s]:%u" : "%s:%u", config->metrics_host,
             (unsigned)config->metrics_port);
    if (http_server_listen(&telemetry->server, 1, "tcp", endpoint, error))
        return telemetry;
    telemetry_destroy(telemetry);
    return NULL;
}

void telemetry_stop(struct telemetry *telemetry, void (*done)(void *arg), void *arg)
{
    http_server_stop(telemetry->server, done, arg);
}

void telemetry_destroy(struct telemetry *telemetry)
{
    if (telemetry == NULL)
        return;
    http_server_destroy(telemetry->server);
    mem_free(telemetry);
}
