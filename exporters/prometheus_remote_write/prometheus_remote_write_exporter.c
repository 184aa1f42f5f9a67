/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_remote_write: POSTs metrics to what takes Prometheus remote write. Each consume is
 * one attempt; queue and retries come before it (src/pipeline/exporter_queue.h), and a repeated
 * batch is translated and sent again, which changes nothing for samples that have arrived. One
 * instance per lane, on its lane; what is large is translated by the lane's helper. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporters/prometheus_remote_write/remote_write_writer.h"
#include "exporters/shared/exporter_client.h"
#include "exporters/shared/http_client_config.h"
#include "exporters/shared/http_outcome.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/codec/codec.h"
#include "src/config/feature_gates.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/client/response_notes.h"
#include "src/net/syntax/http_url.h"

enum {
    /* What is translated on the lane itself: about 15 ms. More is begun anew by the helper. */
    LANE_SET_BYTES_MAX = 1 << 20,
    /* Each series repeats its labels: no bound follows from the request. */
    SET_BYTES_MAX = 256 << 20,
    SET_BUDGET_PART = 4, /* and at most a quarter of the budget */
    BATCH_BYTES_STANDARD = 3000000,
    NAME_LOG_BYTES_MAX = 200,
    DIGITS_MAX = 18, /* of a number of what was written */
};

/* ---- options ---- */

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
#define VERSION_HEADER "X-Prometheus-Remote-Write-Version"
#define V2_GATE        "exporter.prometheusremotewritexporter.enableSendingRW2"
enum { MESSAGE_V1, MESSAGE_V2 };
static const char *const messages[] = {"prometheus.WriteRequest", "io.prometheus.write.v2.Request",
                                       NULL};
/* What max_batch_request_parallelism is unless it is set. */
static const char *const parallelisms[] = {"num_consumers", NULL};

struct resource_to_telemetry_config {
    bool enabled;
    bool exclude_service_attributes;
};

struct target_info_config {
    bool enabled;
};

struct remote_write_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    const char *name_space;
    struct config_pairs external_labels;
    uint64_t max_batch_size_bytes;
    uint64_t max_batch_request_parallelism; /* 0: as remote_write_queue::num_consumers */
    struct resource_to_telemetry_config resource;
    struct target_info_config target_info;
    bool disable_scope_info;
    bool add_metric_suffixes;
    int translation_strategy;
    bool send_metadata;
    int protobuf_message;
    struct http_client_config client;
};

static const struct config_field queue_fields[] = {
    CONFIG_COUNT(struct sending_queue_config, queue_size, "queue_size", "10000", 0, INT64_MAX,
                 "Requests that wait or are being exported at most; more is refused."),
    CONFIG_COUNT(struct sending_queue_config, parallelism, "num_consumers", "5", 0, 1000000,
                 "Requests at the same time that one batch was cut into; batches are exported one "
                 "after the other."),
    CONFIG_EXTENSION_NOT_EMPTY(struct sending_queue_config, storage, "storage",
                               "storage client extension", file_storage_accepts,
                               "Ours: a storage extension. Batches stay in the pipeline's journal "
                               "on disk until they are exported."),
    CONFIG_END,
};

static const struct config_field retry_rows[] = {RETRY_ROWS("50ms"), CONFIG_END};

static const struct config_field resource_fields[] = {
    CONFIG_BOOL(struct resource_to_telemetry_config, enabled, "enabled", "false",
                "Make all resource attributes labels of every series."),
    CONFIG_BOOL(struct resource_to_telemetry_config, exclude_service_attributes,
                "exclude_service_attributes", "false",
                "But not those that job and instance are made of."),
    CONFIG_END,
};

static const struct config_field target_info_fields[] = {
    CONFIG_BOOL(struct target_info_config, enabled, "enabled", "true",
                "Send target_info with the other attributes of each resource."),
    CONFIG_END,
};

#define OWNER struct remote_write_config
static const struct config_field remote_write_fields[] = {
    CONFIG_TEXT_WARNED(OWNER, endpoint, "endpoint", "http://some.url:9411/api/prom/push",
                       exporter_url_warning, "Whole URL, http://prometheus:9090/api/v1/write."),
    CONFIG_TEXT(OWNER, name_space, "namespace", "", "Put in front of each metric's name, with _."),
    CONFIG_PAIRS(OWNER, external_labels, "external_labels",
                 "Labels of every series that has none of the same name."),
    CONFIG_OPTIONAL(OWNER, exporter_queue.queue, struct sending_queue_config,
                    exporter_queue.has_queue, CONFIG_DEFAULT_ON, "remote_write_queue", queue_fields,
                    NULL, "Queue between the pipeline and this exporter."),
    CONFIG_COUNT(OWNER, max_batch_size_bytes, "max_batch_size_bytes", "3000000", 0, INT64_MAX,
                 "Larger batches are cut into requests of series with fewer bytes; 0: 3000000."),
    CONFIG_COUNT_OR(OWNER, max_batch_request_parallelism, "max_batch_request_parallelism",
                    "num_consumers", 1, 1000000, parallelisms,
                    "How many of those requests are sent at the same time."),
    CONFIG_SECTION(OWNER, resource, struct resource_to_telemetry_config,
                   "resource_to_telemetry_conversion", resource_fields, NULL,
                   "Resource attributes as labels; without it they are in target_info."),
    CONFIG_SECTION(OWNER, target_info, struct target_info_config, "target_info", target_info_fields,
                   NULL, "The series that describes a resource."),
    CONFIG_BOOL(OWNER, disable_scope_info, "disable_scope_info", "false",
                "Leave out the labels otel_scope_…"),
    CONFIG_BOOL(OWNER, add_metric_suffixes, "add_metric_suffixes", "true",
                "Add unit and _total to names, unless translation_strategy is set. Deprecated."),
    CONFIG_CHOICE(OWNER, translation_strategy, "translation_strategy", "", strategies,
                  "How names are translated."),
    CONFIG_BOOL(
        OWNER, send_metadata, "send_metadata", "false",
        "Send type, unit and description of each metric, too; version 2.0 always has them."),
    CONFIG_CHOICE(OWNER, protobuf_message, "protobuf_message", "prometheus.WriteRequest", messages,
                  "Version of remote write: 1.0, or 2.0 with --feature-gates " V2_GATE "."),
    WAL_ROW(OWNER),
    HTTP_CLIENT_ROWS(OWNER, client, "5s", ""),
    RETRY_ROW_OF(OWNER, retry_rows),
    CONFIG_END,
};
#undef OWNER

static bool external_labels_check(const struct config_pairs *labels, struct error *error)
{
    for (size_t i = 0; i < labels->count; i++) {
        const struct config_pair *pair = &labels->pairs[i];
        struct slice key = slice_of_text(pair->key);
        char *name = mem_alloc(prometheus_label_name_max(key));
        size_t size = prometheus_label_name_joined(key, name);
        mem_free(name);
        if (key.size == 0 || pair->value[0] == '\0')
            return error_set(error, "prometheus remote write: external labels configuration "
                                    "contains an empty key or value; give both, or remove it") ||
                   error_at_index(error, i) || error_at(error, "external_labels");
        if (size == 0)
            return error_set(error,
                             "label name \"%s\" contains only underscores; expected a letter or "
                             "digit",
                             pair->key) ||
                   error_at_index(error, i) || error_at(error, "external_labels");
    }
    return true;
}

static bool keeps_utf8(const struct remote_write_config *config)
{
    return config->translation_strategy == STRATEGY_UTF8_WITH_SUFFIXES ||
           config->translation_strategy == STRATEGY_NONE;
}

static bool remote_write_exporter_check(const void *section, struct error *error)
{
    const struct remote_write_config *config = section;
    const char *compression = http_client_config_encoding(&config->client);
    if (config->exporter_queue.has_queue && config->exporter_queue.queue.queue_size == 0)
        return error_set(error, "a 0 size queue will drop all the data; set queue_size, or "
                                "enabled: false") ||
               error_at(error, "queue_size") || error_at(error, "remote_write_queue");
    if (compression[0] != '\0' && strcmp(compression, "snappy") != 0)
        return error_set(error, "compression type must be snappy, found \"%s\"; remove the key",
                         compression) ||
               error_at(error, "compression");
    if (config->protobuf_message == MESSAGE_V1 && keeps_utf8(config))
        return error_set(error,
                         "translation strategy %s requires Prometheus Remote Write 2.0 (UTF-8 "
                         "support); set protobuf_message: %s, or use "
                         "UnderscoreEscapingWithSuffixes or UnderscoreEscapingWithoutSuffixes",
                         strategies[config->translation_strategy], messages[MESSAGE_V2]) ||
               error_at(error, "translation_strategy");
    if (config->exporter_queue.has_wal && config->exporter_queue.queue.storage[0] != '\0')
        return error_set(error, "both wal and remote_write_queue::storage are set, expected one: "
                                "each keeps requests in a journal; remove one of them") ||
               error_at(error, "wal");
    if (config->endpoint[0] == '\0')
        return error_set(error, "invalid endpoint: found \"\", expected the whole URL, as in "
                                "http://prometheus:9090/api/v1/write") ||
               error_at(error, "endpoint");
    return exporter_url_check("endpoint", config->endpoint, error) &&
           external_labels_check(&config->external_labels, error) &&
           http_client_config_check(&config->client, error);
}

/* ---- attempts ---- */

/* What back-ends of version 2.0 say that they have written. */
enum written { WRITTEN_SAMPLES, WRITTEN_HISTOGRAMS, WRITTEN_EXEMPLARS, WRITTEN_KINDS };
static const char *const written_headers[WRITTEN_KINDS + 1] = {
    "X-Prometheus-Remote-Write-Samples-Written", "X-Prometheus-Remote-Write-Histograms-Written",
    "X-Prometheus-Remote-Write-Exemplars-Written"};

struct remote_write_counters {
    counter consumers;
    counter failed_translations;
    counter sent_batches;
    counter translated;
    counter losses[REMOTE_WRITE_LOSSES];
    counter rejected;
    counter written[WRITTEN_KINDS];
};

#define WRITTEN_ROW(kind, what)                                                                    \
    COUNTER(struct remote_write_counters, written[kind], COUNTER_SUM,                              \
            "otelcol_exporter_prometheusremotewrite_written_" what,                                \
            "What the back-end says it has written of them; remote write 2.0 only.")

#define LOSS_ROW(loss, text)                                                                       \
    {                                                                                              \
        .name = "spanflame_remote_write_unusable_points",                                          \
        .help = "Data points that remote write has no form for.", .type = COUNTER_SUM,             \
        .offset = offsetof(struct remote_write_counters, losses[loss]), .label = "reason",         \
        .label_value = (text)                                                                      \
    }

static const struct counter_row remote_write_counter_rows[] = {
    COUNTER(struct remote_write_counters, consumers, COUNTER_GAUGE,
            "otelcol_exporter_prometheusremotewrite_consumers",
            "Requests of one batch that are sent at the same time."),
    COUNTER(struct remote_write_counters, failed_translations, COUNTER_SUM,
            "otelcol_exporter_prometheusremotewrite_failed_translations",
            "Batches of which data points were left out."),
    COUNTER(struct remote_write_counters, sent_batches, COUNTER_SUM,
            "otelcol_exporter_prometheusremotewrite_sent_batches",
            "Remote write requests that were sent, retries included."),
    COUNTER(struct remote_write_counters, translated, COUNTER_SUM,
            "otelcol_exporter_prometheusremotewrite_translated_time_series",
            "Time series that metrics were translated to."),
    LOSS_ROW(REMOTE_WRITE_TEMPORALITY, "temporality"),
    LOSS_ROW(REMOTE_WRITE_NAME, "name"),
    LOSS_ROW(REMOTE_WRITE_LABELS, "labels"),
    LOSS_ROW(REMOTE_WRITE_SCALE, "scale"),
    COUNTER(struct remote_write_counters, rejected, COUNTER_SUM,
            "spanflame_remote_write_rejected_points",
            "Data points in requests that the back-end refused for good while it took others of "
            "the same batch."),
    WRITTEN_ROW(WRITTEN_SAMPLES, "samples"),
    WRITTEN_ROW(WRITTEN_HISTOGRAMS, "histograms"),
    WRITTEN_ROW(WRITTEN_EXEMPLARS, "exemplars"),
    COUNTER_END,
};

struct remote_write_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    struct http_client *client;
    struct remote_write_settings settings;
    struct prometheus_label *external_labels;
    char *external_text; /* their names */
    uint64_t batch_bytes_max;
    uint64_t parallelism;
    bool has_own_version; /* the configured headers have X-Prometheus-Remote-Write-Version */
    struct codec_box *codecs;
    struct codec_box *helper_codecs;     /* the same, on the helper of the lane */
    struct authenticator *authenticator; /* NULL: none */
    struct stop_latch users; /* held by the client, and while the helper works on an attempt */
    bool has_warned[WRITTEN_KINDS]; /* of a header that is missing or wrong */
    bool is_stopping;
};

struct attempt;

/* One request. */
struct piece {
    struct attempt *attempt;
    struct batch_part body; /* compressed */
    uint64_t points;
    struct http_post post;
};

/* One batch. */
struct attempt {
    struct remote_write_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct piece *pieces;
    size_t count;
    size_t next; /* the first that is not sent */
    size_t under_way;
    uint64_t series;
    struct remote_write_losses losses;
    char name[NAME_LOG_BYTES_MAX]; /* of the metric of the last loss */
    uint64_t accepted;             /* pieces */
    uint64_t rejected;             /* points of pieces that were refused for good */
    struct outcome failure;        /* the worst so far; not permanent before permanent */
    char *failure_text;            /* its message; NULL: no failure */
    struct helper_work work;       /* when the helper translates */
    bool is_helped;
    enum remote_write_result result;
};

extern const struct component_factory prometheus_remote_write_exporter_factory;

static struct remote_write_exporter *exporter_of(struct component *base)
{
    assert(base->factory == &prometheus_remote_write_exporter_factory);
    return (struct remote_write_exporter *)base;
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    struct outcome last = *outcome;
    receipt_resolve(receipt, &last);
    for (size_t i = 0; i < attempt->count; i++)
        buffer_unref(attempt->pieces[i].body.owner);
    mem_free(attempt->pieces);
    mem_free(attempt->failure_text);
    batch_unref(attempt->batch);
    mem_free(attempt);
}

/* Once for a batch, however often it is translated. */
static void note_losses(const struct attempt *attempt)
{
    const struct component *self = &attempt->exporter->base;
    struct remote_write_counters *counters = self->counters;
    counter_add(&counters->translated, attempt->series);
    if (attempt->losses.total == 0)
        return;
    counter_add(&counters->failed_translations, 1);
    for (size_t i = 0; i < REMOTE_WRITE_LOSSES; i++)
        counter_add(&counters->losses[i], attempt->losses.points[i]);
    log_warn(&self->logger, "left out data points that Prometheus cannot get",
             log_text("metric", attempt->name), log_text("reason", attempt->losses.reason),
             log_int("data_points", (int64_t)attempt->losses.total));
}

/* Everything was sent and has its response. Once a piece has arrived, the others of which the
 * back-end wants nothing are partial success. */
static void attempt_done(struct attempt *attempt)
{
    struct remote_write_exporter *exporter = attempt->exporter;
    struct remote_write_counters *counters = exporter->base.counters;
    bool has_failure = attempt->failure_text != NULL;
    if (!has_failure || attempt->failure.is_permanent)
        note_losses(attempt);
    if (has_failure && (attempt->accepted == 0 || !attempt->failure.is_permanent)) {
        attempt->failure.message = attempt->failure_text;
        attempt_end(attempt, &attempt->failure);
        return;
    }
    struct outcome outcome = outcome_accepted;
    uint64_t items = attempt->batch->items;
    outcome.invalid_items = attempt->losses.total < items ? attempt->losses.total : items;
    outcome.rejected_items = outcome.invalid_items + attempt->rejected;
    if (outcome.rejected_items > items)
        outcome.rejected_items = items;
    if (has_failure) {
        counter_add(&counters->rejected, attempt->rejected);
        log_warn(&exporter->base.logger, "the back-end refused a part of a batch for good",
                 log_text("error", attempt->failure_text),
                 log_int("data_points", (int64_t)attempt->rejected));
    }
    attempt_end(attempt, &outcome);
}

static void note_failure(struct attempt *attempt, const struct outcome *failure)
{
    bool is_first = attempt->failure_text == NULL;
    uint64_t delay_ns = attempt->failure.retry_after_ns;
    if (is_first || (attempt->failure.is_permanent && !failure->is_permanent)) {
        mem_free(attempt->failure_text);
        attempt->failure = *failure;
        attempt->failure_text = mem_copy_text(failure->message);
    }
    if (delay_ns > attempt->failure.retry_after_ns && !attempt->failure.is_permanent)
        attempt->failure.retry_after_ns = delay_ns;
    if (failure->retry_after_ns > attempt->failure.retry_after_ns)
        attempt->failure.retry_after_ns = failure->retry_after_ns;
}

static void send_pieces(struct attempt *attempt)
{
    struct remote_write_exporter *exporter = attempt->exporter;
    struct remote_write_counters *counters = exporter->base.counters;
    if (exporter->is_stopping && attempt->next < attempt->count) {
        struct outcome outcome = outcome_busy("the exporter is stopping");
        note_failure(attempt, &outcome);
        attempt->next = attempt->count;
    }
    while (attempt->next < attempt->count && attempt->under_way < exporter->parallelism) {
        attempt->under_way++;
        counter_add(&counters->sent_batches, 1);
        http_client_post(exporter->client, &attempt->pieces[attempt->next++].post);
    }
    if (attempt->under_way == 0)
        attempt_done(attempt);
}

/* As the Go collector does, for any status. A header that is missing is a sign of a back-end that
 * takes 1.0 alone and may drop what it does not know. */
static void note_written(struct remote_write_exporter *exporter, const struct http_result *result)
{
    struct remote_write_counters *counters = exporter->base.counters;
    for (size_t i = 0; result->notes != NULL && i < WRITTEN_KINDS; i++) {
        const char *text = response_note(result->notes, i);
        size_t digits = text != NULL ? strspn(text, "0123456789") : 0;
        bool is_number = digits > 0 && digits <= DIGITS_MAX && text[digits] == '\0';
        if (is_number)
            counter_add(&counters->written[i], strtoull(text, NULL, 10));
        if (is_number || exporter->has_warned[i])
            continue;
        exporter->has_warned[i] = true;
        log_warn(&exporter->base.logger,
                 text == NULL ? "The response has no header that says how much was written: the "
                                "back-end may not support remote write 2.0, and drop data."
                              : "The header of the response that says how much was written is not "
                                "a number: it is not counted.",
                 log_text("header", written_headers[i]), log_text("url", exporter->shown_url));
    }
}

static void on_done(const struct http_result *result, void *arg)
{
    enum { TOO_MANY_REQUESTS = 429, SERVER_ERROR = 500 };
    struct piece *piece = arg;
    struct attempt *attempt = piece->attempt;
    struct remote_write_exporter *exporter = attempt->exporter;
    if (exporter->settings.is_v2)
        note_written(exporter, result);
    if (result->status >= 200 && result->status < 300) {
        attempt->accepted++;
    } else {
        char text[HTTP_OUTCOME_TEXT_MAX];
        const struct request_secrets secrets = http_client_secrets(exporter->client, result);
        struct outcome refused = http_outcome_refused(result, &secrets, exporter->shown_url, text);
        if (result->status != 0)
            refused.is_permanent =
                result->status < SERVER_ERROR && result->status != TOO_MANY_REQUESTS;
        if (refused.is_permanent)
            attempt->rejected += piece->points;
        note_failure(attempt, &refused);
    }
    attempt->under_way--;
    send_pieces(attempt);
}

/* False: there is no memory. Takes over the request. */
static bool add_piece(struct attempt *attempt, struct buffer *request, uint64_t points)
{
    static const struct config_pair versions[] = {{VERSION_HEADER, "0.1.0"},
                                                  {VERSION_HEADER, "2.0.0"}};
    static const char *const types[] = {
        "application/x-protobuf", "application/x-protobuf;proto=io.prometheus.write.v2.Request"};
    const struct remote_write_exporter *exporter = attempt->exporter;
    bool is_v2 = exporter->settings.is_v2;
    struct codec_box *codecs = attempt->is_helped ? exporter->helper_codecs : exporter->codecs;
    const struct batch_part plain = {.owner = request, .bytes = buffer_slice(request)};
    const struct codec_input input = {.parts = &plain, .parts_count = 1, .level = -1};
    struct buffer *output = NULL;
    struct piece *grown =
        mem_try_resize(attempt->pieces, (attempt->count + 1) * sizeof(*attempt->pieces));
    if (grown != NULL)
        attempt->pieces = grown;
    bool is_done =
        grown != NULL && codec_deflate(codecs, CODEC_SNAPPY, &input, &output) == CODEC_OK;
    buffer_unref(request);
    if (!is_done)
        return false;
    attempt->pieces[attempt->count++] = (struct piece){
        .attempt = attempt,
        .body = {.owner = output, .bytes = buffer_slice(output)},
        .points = points,
        .post = {.parts_count = 1,
                 .bytes = output->size,
                 .content_type = types[is_v2],
                 .content_encoding = "snappy",
                 .header = exporter->has_own_version ? NULL : &versions[is_v2],
                 .noted = is_v2 ? written_headers : NULL,
                 .client = attempt->batch->client,
                 .done = on_done},
    };
    return true;
}

static void drop_pieces(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->count; i++)
        buffer_unref(attempt->pieces[i].body.owner);
    attempt->count = 0;
}

/* The set as pieces. */
static enum remote_write_result cut(struct attempt *attempt, struct remote_write_set *set)
{
    const struct remote_write_exporter *exporter = attempt->exporter;
    struct remote_write_cursor cursor = remote_write_cursor_of(set);
    struct buffer *request;
    uint64_t points;
    enum remote_write_next next = REMOTE_WRITE_NO_MORE;
    while (set->count > 0 && (next = remote_write_cursor_next(&cursor, exporter->base.budget,
                                                              exporter->batch_bytes_max, &request,
                                                              &points)) == REMOTE_WRITE_REQUEST)
        if (!add_piece(attempt, request, points)) {
            next = REMOTE_WRITE_NO_BUDGET;
            break;
        }
    for (size_t i = 0; i < attempt->count; i++) {
        struct piece *piece = &attempt->pieces[i];
        piece->post.parts = &piece->body;
        piece->post.arg = piece;
    }
    if (next != REMOTE_WRITE_NO_MORE)
        drop_pieces(attempt);
    return next == REMOTE_WRITE_NO_MORE    ? REMOTE_WRITE_TRANSLATED
           : next == REMOTE_WRITE_TOO_MUCH ? REMOTE_WRITE_TOO_LARGE
                                           : REMOTE_WRITE_NO_MEMORY;
}

static void keep_name(struct attempt *attempt)
{
    struct slice name = attempt->losses.name;
    size_t size = name.size < sizeof(attempt->name) - 1 ? name.size : sizeof(attempt->name) - 1;
    if (size > 0)
        memcpy(attempt->name, name.data, size);
    attempt->name[size] = '\0';
}

static enum remote_write_result encode_pieces(struct attempt *attempt, size_t bytes_max)
{
    const struct remote_write_exporter *exporter = attempt->exporter;
    struct budget *budget = exporter->base.budget;
    struct remote_write_set set;
    struct batch_part whole;
    if (!batch_join(attempt->batch, budget, &whole))
        return REMOTE_WRITE_NO_MEMORY;
    remote_write_set_init(&set, bytes_max, budget);
    enum remote_write_result result =
        remote_write_translate(whole.bytes, &exporter->settings, &set, &attempt->losses);
    keep_name(attempt);
    if (result == REMOTE_WRITE_TRANSLATED)
        result = cut(attempt, &set);
    attempt->series = set.count;
    remote_write_set_fini(&set);
    buffer_unref(whole.owner);
    return result;
}

/* Runs on the lane or on its helper. */
static enum remote_write_result encode(struct attempt *attempt, size_t bytes_max)
{
    budget_begin_export();
    enum remote_write_result result = encode_pieces(attempt, bytes_max);
    budget_end_export();
    return result;
}

static void send_encoded(struct attempt *attempt)
{
    struct outcome outcome;
    switch (attempt->result) {
    case REMOTE_WRITE_TRANSLATED:
        send_pieces(attempt);
        return;
    case REMOTE_WRITE_TOO_LARGE:
        outcome = outcome_too_large(
            "the data points are too many to be translated at once, as each series carries all "
            "its labels; set send_batch_max_size of the batch processor");
        break;
    case REMOTE_WRITE_NO_MEMORY:
    default:
        outcome = outcome_no_memory("no memory left in the budget to encode a request");
        break;
    }
    attempt_end(attempt, &outcome);
}

static struct attempt *attempt_of(struct helper_work *work)
{
    return (struct attempt *)((char *)work - offsetof(struct attempt, work));
}

static void on_help(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    const struct budget *budget = attempt->exporter->base.budget;
    size_t bytes_max = SET_BYTES_MAX;
    if (budget != NULL && budget_limit(budget) / SET_BUDGET_PART < bytes_max)
        bytes_max = (size_t)budget_limit(budget) / SET_BUDGET_PART;
    attempt->result = encode(attempt, bytes_max);
}

static void on_helped(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    struct remote_write_exporter *exporter = attempt->exporter;
    attempt->is_helped = false;
    if (exporter->is_stopping) {
        struct outcome outcome = outcome_busy("the exporter is stopping");
        attempt_end(attempt, &outcome);
    } else {
        send_encoded(attempt);
    }
    stop_latch_release(&exporter->users);
}

static void remote_write_exporter_consume(struct component *self, struct batch *batch,
                                          struct receipt *receipt)
{
    struct remote_write_exporter *exporter = exporter_of(self);
    assert(batch->signal == METRICS);
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    attempt->result = batch->bytes < HELPED_BYTES_MIN ? encode(attempt, LANE_SET_BYTES_MAX)
                                                      : REMOTE_WRITE_TOO_LARGE;
    if (attempt->result != REMOTE_WRITE_TOO_LARGE) {
        send_encoded(attempt);
        return;
    }
    attempt->is_helped = true;
    stop_latch_hold(&exporter->users);
    attempt->work = (struct helper_work){.run = on_help, .done = on_helped};
    lane_help(self->lane, &attempt->work);
}

/* ---- life cycle ---- */

static void make_external_labels(struct remote_write_exporter *exporter,
                                 const struct config_pairs *pairs)
{
    size_t room = 0;
    for (size_t i = 0; i < pairs->count; i++)
        room += prometheus_label_name_max(slice_of_text(pairs->pairs[i].key));
    char *text = mem_alloc(room);
    exporter->external_text = text;
    exporter->external_labels = mem_zalloc(pairs->count * sizeof(*exporter->external_labels));
    for (size_t i = 0; i < pairs->count; i++) {
        size_t size = prometheus_label_name_joined(slice_of_text(pairs->pairs[i].key), text);
        exporter->external_labels[i] = (struct prometheus_label){
            .name = slice_of(text, size), .value = slice_of_text(pairs->pairs[i].value)};
        text += size;
    }
}

static bool has_version_header(const struct config_pairs *headers)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcasecmp(headers->pairs[i].key, VERSION_HEADER) == 0)
            return true;
    return false;
}

static uint64_t parallelism_of(const struct remote_write_config *config)
{
    uint64_t most = config->max_batch_request_parallelism > 0
                        ? config->max_batch_request_parallelism
                        : config->exporter_queue.queue.parallelism;
    return most > 0 ? most : 1;
}

static bool remote_write_exporter_create(struct component *self, struct error *error)
{
    struct remote_write_exporter *exporter = exporter_of(self);
    const struct remote_write_config *config = self->config;
    struct http_url url;
    if (config->protobuf_message == MESSAGE_V2 && self->service != NULL &&
        !feature_gate_is_enabled(self->service->gates, GATE_REMOTE_WRITE_V2))
        return error_set(error,
                         "remote write v2 is only supported with the feature gate %s: start with "
                         "--feature-gates %s, or remove the key to send %s",
                         V2_GATE, V2_GATE, messages[MESSAGE_V1]) ||
               error_at(error, "protobuf_message");
    exporter->url = exporter_url(config->endpoint);
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    self->destination = exporter->shown_url;
    http_url_clear(&url);
    make_external_labels(exporter, &config->external_labels);
    bool is_v2 = config->protobuf_message == MESSAGE_V2;
    bool has_utf8 = keeps_utf8(config);
    bool has_suffixes = config->translation_strategy == STRATEGY_UNSET
                            ? config->add_metric_suffixes
                            : config->translation_strategy == STRATEGY_ESCAPED_WITH_SUFFIXES ||
                                  config->translation_strategy == STRATEGY_UTF8_WITH_SUFFIXES;
    exporter->settings = (struct remote_write_settings){
        .naming = {.name_space = config->name_space,
                   .has_suffixes = has_suffixes,
                   .has_utf8 = has_utf8},
        .labels = {.external = exporter->external_labels,
                   .external_count = config->external_labels.count,
                   .has_scope = !config->disable_scope_info,
                   .has_resource = config->resource.enabled,
                   .has_service = !config->resource.exclude_service_attributes,
                   .has_utf8 = has_utf8,
                   .is_v2 = is_v2},
        .has_target_info = config->target_info.enabled,
        .has_metadata = config->send_metadata,
        .is_v2 = is_v2,
    };
    exporter->batch_bytes_max =
        config->max_batch_size_bytes > 0 ? config->max_batch_size_bytes : BATCH_BYTES_STANDARD;
    exporter->parallelism = parallelism_of(config);
    exporter->has_own_version = has_version_header(&config->client.headers);
    exporter->codecs = codec_box_create(self->budget);
    exporter->helper_codecs = codec_box_create(self->budget);
    if (!config->add_metric_suffixes && lane_index(self->lane) == 0)
        log_warn(&self->logger, "`add_metric_suffixes` is deprecated. Please use "
                                "`translation_strategy: UnderscoreEscapingWithoutSuffixes` "
                                "instead.");
    return codec_prepare(CODEC_SNAPPY, error) &&
           exporter_auth_create(self, &config->client.auth, &exporter->authenticator, error);
}

static bool remote_write_exporter_start(struct component *self, struct error *error)
{
    struct remote_write_exporter *exporter = exporter_of(self);
    const struct remote_write_config *config = self->config;
    struct remote_write_counters *counters = self->counters;
    struct http_client_settings settings = http_client_config_settings(&config->client);
    settings.url = exporter->url;
    exporter->client = exporter_client_create(self, &settings, &config->client.tls,
                                              exporter->authenticator, error);
    exporter_client_users(self, &exporter->users);
    if (lane_index(self->lane) == 0)
        counter_set(&counters->consumers, exporter->parallelism);
    return exporter->client != NULL;
}

static void remote_write_exporter_stop(struct component *self)
{
    struct remote_write_exporter *exporter = exporter_of(self);
    exporter->is_stopping = true;
    exporter_client_stop(self, exporter->client, &exporter->users);
}

static void remote_write_exporter_destroy(struct component *self)
{
    struct remote_write_exporter *exporter = exporter_of(self);
    http_client_destroy(exporter->client);
    codec_box_destroy(exporter->codecs);
    codec_box_destroy(exporter->helper_codecs);
    authenticator_destroy(exporter->authenticator);
    mem_free(exporter->external_labels);
    mem_free(exporter->external_text);
    mem_free(exporter->url);
    mem_free(exporter->shown_url);
}

static const char *const remote_write_aliases[] = {"prometheusremotewrite", NULL};

const struct component_factory prometheus_remote_write_exporter_factory = {
    .type = "prometheus_remote_write",
    .aliases = remote_write_aliases,
    .kind = EXPORTER,
    .stability = "beta",
    .signals = SIGNAL_METRICS,
    .instance_size = sizeof(struct remote_write_exporter),
    .config_size = sizeof(struct remote_write_config),
    .fields = remote_write_fields,
    .counters_size = sizeof(struct remote_write_counters),
    .counters = remote_write_counter_rows,
    .check = remote_write_exporter_check,
    .create = remote_write_exporter_create,
    .start = remote_write_exporter_start,
    .consume = remote_write_exporter_consume,
    .stop = remote_write_exporter_stop,
    .destroy = remote_write_exporter_destroy,
};
