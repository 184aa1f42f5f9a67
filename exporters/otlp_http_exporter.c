/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_http: POSTs batches as they are, gzipped or not, to an OTLP/HTTP back-end. Each consume is
 * one attempt; queue, batching and retries stand before it (src/sender.h), and a repeated batch is
 * compressed again. One instance per lane and signal, on its lane. */
#include "exporters/http_outcome.h"
#include "exporters/http_settings.h"
#include "src/batch.h"
#include "src/budget.h"
#include "src/buffer.h"
#include "src/component.h"
#include "src/counter.h"
#include "src/error.h"
#include "src/limits.h"
#include "src/mem.h"
#include "src/net/gzip.h"
#include "src/net/http_client.h"
#include "src/net/http_url.h"
#include "src/otlp/answer.h"
#include "src/receipt.h"
#include "src/sender_config.h"
#include "src/tls_client_config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char protobuf_type[] = "application/x-protobuf";

struct compression_params {
    int64_t level;
};

struct auth_config {
    const char *authenticator;
};

struct cookies_config {
    bool is_unused;
};

struct otlp_http_exporter_config {
    struct sender_config sender;
    const char *endpoint;
    const char *endpoints[SIGNAL_KINDS];
    int encoding;
    int compression;
    struct compression_params compression_params;
    struct config_pairs headers;
    uint64_t timeout_ns;
    struct tls_client_config tls;
    const char *proxy_url;
    uint64_t max_idle_conns;
    uint64_t max_idle_conns_per_host;
    uint64_t max_conns_per_host;
    uint64_t idle_conn_timeout_ns;
    bool disable_keep_alives;
    bool force_attempt_http2;
    bool has_cookies;
    struct cookies_config cookies;
    bool has_auth;
    struct auth_config auth;
    const struct config_value *middlewares;
};

enum encoding { ENCODING_PROTO, ENCODING_JSON };
static const char *const encodings[] = {"proto", "json", NULL};

enum compression { COMPRESSION_GZIP, COMPRESSION_NONE, COMPRESSION_EMPTY };
static const char *const compressions[] = {
    "gzip", "none", "", "zstd", "snappy", "x-snappy-framed", "zlib", "deflate", "lz4", NULL};

static const struct config_field compression_params_fields[] = {
    CONFIG_INT(struct compression_params, level, "level", "-1", -2, 9,
               "How hard to compress: -1 standard, 1 fastest to 9 smallest."),
    CONFIG_END,
};

static const struct config_field cookies_fields[] = {CONFIG_END};

static const struct config_field auth_fields[] = {
    CONFIG_TEXT(struct auth_config, authenticator, "authenticator", NULL,
                "Id of an authenticator extension."),
    CONFIG_END,
};

static const struct config_field otlp_http_exporter_fields[] = {
    CONFIG_TEXT(struct otlp_http_exporter_config, endpoint, "endpoint", NULL,
                "Base URL; /v1/traces and so on are put behind its path."),
    CONFIG_TEXT(struct otlp_http_exporter_config, endpoints[TRACES], "traces_endpoint", NULL,
                "Whole URL for traces, instead of endpoint."),
    CONFIG_TEXT(struct otlp_http_exporter_config, endpoints[METRICS], "metrics_endpoint", NULL,
                "Whole URL for metrics, instead of endpoint."),
    CONFIG_TEXT(struct otlp_http_exporter_config, endpoints[LOGS], "logs_endpoint", NULL,
                "Whole URL for logs, instead of endpoint."),
    CONFIG_TEXT(struct otlp_http_exporter_config, endpoints[PROFILES], "profiles_endpoint", NULL,
                "Whole URL for profiles, instead of endpoint."),
    CONFIG_CHOICE(struct otlp_http_exporter_config, encoding, "encoding", "proto", encodings,
                  "Form of the body; json is not supported yet."),
    CONFIG_CHOICE(struct otlp_http_exporter_config, compression, "compression", "gzip",
                  compressions, "gzip or none; the others are not supported yet."),
    CONFIG_SECTION(struct otlp_http_exporter_config, compression_params, struct compression_params,
                   "compression_params", compression_params_fields, NULL,
                   "Parameters of the compression."),
    CONFIG_HEADERS(struct otlp_http_exporter_config, headers, "headers",
                   "Headers of every request; they win over ours, Host included."),
    CONFIG_DURATION(struct otlp_http_exporter_config, timeout_ns, "timeout", "30s", 0, INT64_MAX,
                    "Limit of one attempt, from connecting to the end of the answer; 0: none."),
    TLS_CLIENT_ROW(struct otlp_http_exporter_config, tls),
    CONFIG_TEXT(struct otlp_http_exporter_config, proxy_url, "proxy_url", NULL,
                "Proxy for every request; HTTP_PROXY, HTTPS_PROXY and NO_PROXY when unset."),
    CONFIG_COUNT(struct otlp_http_exporter_config, max_idle_conns, "max_idle_conns", "100", 0,
                 INT64_MAX, "Most idle connections that are kept; 0: no limit."),
    CONFIG_COUNT(struct otlp_http_exporter_config, max_idle_conns_per_host,
                 "max_idle_conns_per_host", "0", 0, INT64_MAX,
                 "The same for one host; 0: as max_idle_conns."),
    CONFIG_COUNT(struct otlp_http_exporter_config, max_conns_per_host, "max_conns_per_host", "0", 0,
                 INT64_MAX, "Most connections of a lane; further requests wait. 0: no limit."),
    CONFIG_DURATION(struct otlp_http_exporter_config, idle_conn_timeout_ns, "idle_conn_timeout",
                    "90s", 0, INT64_MAX, "An idle connection is closed after this; 0: never."),
    CONFIG_BOOL(struct otlp_http_exporter_config, disable_keep_alives, "disable_keep_alives",
                "false", "Use each connection for one request only."),
    CONFIG_BOOL(struct otlp_http_exporter_config, force_attempt_http2, "force_attempt_http2",
                "true", "Offer HTTP/2 to https servers."),
    CONFIG_OPTIONAL(struct otlp_http_exporter_config, cookies, struct cookies_config, has_cookies,
                    CONFIG_NULL_IS_OFF, "cookies", cookies_fields, NULL, "Not supported yet."),
    CONFIG_OPTIONAL(struct otlp_http_exporter_config, auth, struct auth_config, has_auth,
                    CONFIG_NULL_IS_OFF, "auth", auth_fields, NULL, "Not supported yet."),
    CONFIG_VALUE(struct otlp_http_exporter_config, middlewares, "middlewares",
                 "Not supported yet."),
    CONFIG_IGNORED("read_buffer_size", "Answers are small; the buffer is ours."),
    CONFIG_IGNORED("write_buffer_size", "Bodies are sent from where they lie."),
    CONFIG_IGNORED("http2_read_idle_timeout", "Requests have a timeout of their own."),
    CONFIG_IGNORED("http2_ping_timeout", "Requests have a timeout of their own."),
    SENDER_QUEUE_ROW(struct otlp_http_exporter_config, CONFIG_DEFAULT_ON),
    SENDER_RETRY_ROW(struct otlp_http_exporter_config),
    CONFIG_END,
};

struct otlp_http_exporter_counters {
    counter odd_answers;
};

static const struct counter_row otlp_http_exporter_counters[] = {
    COUNTER(
        struct otlp_http_exporter_counters, odd_answers, COUNTER_SUM,
        "spanflame_exporter_odd_answers",
        "Answers with a 2xx status whose body was cut or no OTLP response; they count as sent."),
    COUNTER_END,
};

struct otlp_http_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    struct http_client *client;
    struct gzip *gzip; /* NULL: bodies go as they are */
    bool has_told_odd_answer;
};

/* One request on its way. */
struct attempt {
    struct otlp_http_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct batch_part encoded; /* owner NULL: the batch's own parts are sent */
};

extern const struct component_factory otlp_http_exporter_factory;

static struct otlp_http_exporter *otlp_http_exporter_of(struct component *base)
{
    assert(base->factory == &otlp_http_exporter_factory);
    return (struct otlp_http_exporter *)base;
}

static const char *signal_path(enum signal_kind signal)
{
    static const char *const paths[SIGNAL_KINDS] = {
        [TRACES] = "/v1/traces",
        [METRICS] = "/v1/metrics",
        [LOGS] = "/v1/logs",
        [PROFILES] = "/v1development/profiles",
    };
    return paths[signal];
}

static bool url_check(const char *key, const char *text, struct error *error)
{
    struct http_url url;
    if (text[0] == '\0')
        return true;
    if (!http_url_parse(text, &url, error))
        return error_prefix(error, "%s must be a valid URL", key);
    http_url_clear(&url);
    return true;
}

static bool endpoints_check(const struct otlp_http_exporter_config *config, struct error *error)
{
    bool has_any = config->endpoint[0] != '\0';
    if (!url_check("endpoint", config->endpoint, error))
        return false;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        char key[32];
        snprintf(key, sizeof(key), "%s_endpoint", signal_name((enum signal_kind)signal));
        has_any |= config->endpoints[signal][0] != '\0';
        if (!url_check(key, config->endpoints[signal], error))
            return false;
    }
    return has_any || error_set(error, "at least one endpoint must be specified");
}

static bool compression_check(const struct otlp_http_exporter_config *config, struct error *error)
{
    if (config->compression <= COMPRESSION_EMPTY)
        return true;
    return error_set(error,
                     "compression: \"%s\" is not supported by this build yet; use gzip or none",
                     compressions[config->compression]);
}

static bool proxy_check(const struct otlp_http_exporter_config *config, struct error *error)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    if (config->proxy_url[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return error_set(error, "proxy_url does not begin with http://, https://, socks5:// or "
                            "socks5h://; write the scheme, as in http://proxy:3128");
}

static bool otlp_http_exporter_check(const void *text, struct error *error)
{
    const struct otlp_http_exporter_config *config = text;
    assert(config != NULL);
    if (!endpoints_check(config, error) || !compression_check(config, error) ||
        !proxy_check(config, error))
        return false;
    if (config->encoding == ENCODING_JSON)
        return error_set(error, "encoding: \"json\" is not supported by this build yet; use proto");
    if (config->has_auth && config->auth.authenticator[0] != '\0')
        return error_set(error, "auth: authenticators are not supported by this build yet; put the "
                                "credentials into headers");
    if (config->has_cookies)
        return error_set(error, "cookies are not supported by this build yet; remove the key");
    if (config->middlewares != NULL && config->middlewares->count > 0)
        return error_set(error, "middlewares are not supported by this build yet; remove the key");
    return true;
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->encoded.owner);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

/* Says once, and counts each time, that a back-end takes data and answers nonsense. */
static void odd_answer(struct otlp_http_exporter *exporter, const char *reason)
{
    struct otlp_http_exporter_counters *counters = exporter->base.counters;
    if (counters != NULL)
        counter_add(&counters->odd_answers, 1);
    if (exporter->has_told_odd_answer)
        return;
    exporter->has_told_odd_answer = true;
    log_warn(&exporter->base.logger,
             "The back-end took the data but its answer is no OTLP response; counted as sent",
             log_text("url", exporter->shown_url), log_text("reason", reason));
}

static void log_partial_success(const struct otlp_http_exporter *exporter,
                                const struct otlp_partial_success *partial)
{
    static const char *const keys[SIGNAL_KINDS] = {
        [TRACES] = "dropped_spans",
        [METRICS] = "dropped_data_points",
        [LOGS] = "dropped_log_records",
        [PROFILES] = "dropped_samples",
    };
    char message[HTTP_OUTCOME_TEXT_MAX];
    snprintf(message, sizeof(message), "%.*s", (int)partial->message.size,
             (const char *)partial->message.data);
    log_warn(&exporter->base.logger, "Partial success response", log_text("message", message),
             log_int(keys[exporter->base.signal], partial->rejected));
}

/* A 2xx is delivered, whatever its body; the body can only say that some items were refused. */
static struct outcome take_success(const struct attempt *attempt, const struct http_result *result)
{
    struct outcome outcome = outcome_accepted;
    struct otlp_partial_success partial;
    if (result->body.size == 0 || !slice_equal_text(result->content_type, protobuf_type)) {
        if (result->is_cut)
            odd_answer(attempt->exporter, "the answer broke off");
        return outcome;
    }
    if (result->is_cut || !otlp_answer_partial_success(result->body, &partial)) {
        odd_answer(attempt->exporter,
                   result->is_cut ? "the body is too large or broke off" : "the body is malformed");
        return outcome;
    }
    if (partial.rejected != 0 || partial.message.size > 0)
        log_partial_success(attempt->exporter, &partial);
    if (partial.rejected > 0)
        outcome.rejected_items = (uint64_t)partial.rejected < attempt->batch->items
                                     ? (uint64_t)partial.rejected
                                     : attempt->batch->items;
    return outcome;
}

static void on_done(const struct http_result *result, void *arg)
{
    struct attempt *attempt = arg;
    char text[HTTP_OUTCOME_TEXT_MAX];
    struct outcome outcome;
    if (result->status >= 200 && result->status < 300)
        outcome = take_success(attempt, result);
    else
        outcome = http_outcome_refused(result, attempt->exporter->shown_url, text);
    attempt_end(attempt, &outcome);
}

/* ISA-L knows four levels where zlib has ten. */
static int gzip_level(int64_t level)
{
    if (level <= 0)
        return level == 0 ? 0 : -1;
    return level < 4 ? 1 : level < 7 ? 2 : 3;
}

static bool attempt_encode(struct attempt *attempt)
{
    struct otlp_http_exporter *exporter = attempt->exporter;
    const struct otlp_http_exporter_config *config = exporter->base.config;
    struct buffer *output;
    enum gzip_result result = gzip_deflate(exporter->gzip, exporter->base.budget,
                                           attempt->batch->parts, attempt->batch->parts_count,
                                           gzip_level(config->compression_params.level), &output);
    if (result != GZIP_OK)
        return false;
    attempt->encoded = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    return true;
}

static void otlp_http_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    assert(exporter->client != NULL);
    assert(batch->signal == self->signal);
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->exporter = exporter;
    attempt->batch = batch_ref(batch);
    attempt->receipt = receipt;
    if (exporter->gzip != NULL && !attempt_encode(attempt)) {
        struct outcome outcome = outcome_busy("no memory left in the budget to compress a request");
        attempt_end(attempt, &outcome);
        return;
    }
    bool is_encoded = attempt->encoded.owner != NULL;
    const struct http_post post = {
        .parts = is_encoded ? &attempt->encoded : batch->parts,
        .parts_count = is_encoded ? 1 : batch->parts_count,
        .bytes = is_encoded ? attempt->encoded.bytes.size : batch->bytes,
        .content_type = protobuf_type,
        .content_encoding = is_encoded ? "gzip" : NULL,
        .done = on_done,
        .arg = attempt,
    };
    http_client_post(exporter->client, &post);
}

static bool otlp_http_exporter_create(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_exporter_config *config = self->config;
    const char *own = config->endpoints[self->signal];
    struct http_url url;
    if (own[0] == '\0' && config->endpoint[0] == '\0')
        return error_set(error, "either endpoint or %s_endpoint must be specified",
                         signal_name(self->signal));
    exporter->url = own[0] != '\0' ? mem_copy_text(own)
                                   : http_url_join(config->endpoint, signal_path(self->signal));
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "%s", own[0] != '\0' ? "signal endpoint" : "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    self->destination = exporter->shown_url;
    http_url_clear(&url);
    if (config->compression == COMPRESSION_GZIP)
        exporter->gzip = gzip_create();
    return true;
}

static uint64_t idle_connections_max(const struct otlp_http_exporter_config *config)
{
    uint64_t total = config->max_idle_conns == 0 ? UINT64_MAX : config->max_idle_conns;
    uint64_t per_host = config->max_idle_conns_per_host;
    return per_host != 0 && per_host < total ? per_host : total;
}

static bool otlp_http_exporter_start(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_exporter_config *config = self->config;
    const struct tls_client_config *tls = &config->tls;
    struct http_client_settings settings = {
        .lane = self->lane,
        .url = exporter->url,
        .user_agent = http_settings_user_agent(),
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .timeout_ns = config->timeout_ns,
        .connections_max = config->max_conns_per_host,
        .idle_connections_max = idle_connections_max(config),
        .idle_timeout_ns = config->idle_conn_timeout_ns,
        .has_keep_alive = !config->disable_keep_alives,
        .forbids_http2 = !config->force_attempt_http2,
        .proxy_url = config->proxy_url,
    };
    if (!tls_client_check_files(tls, error))
        return false;
    http_settings_add_tls(&settings, tls);
    exporter->client = http_client_create(&settings, error);
    return exporter->client != NULL;
}

static void on_client_closed(void *arg)
{
    component_stopped(arg);
}

static void otlp_http_exporter_stop(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    if (exporter->client == NULL)
        component_stopped(self);
    else
        http_client_close(exporter->client, on_client_closed, self);
}

static void otlp_http_exporter_destroy(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    http_client_destroy(exporter->client);
    gzip_destroy(exporter->gzip);
    mem_free(exporter->url);
    mem_free(exporter->shown_url);
}

static const char *const otlp_http_exporter_aliases[] = {"otlphttp", NULL};

const struct component_factory otlp_http_exporter_factory = {
    .type = "otlp_http",
    .aliases = otlp_http_exporter_aliases,
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct otlp_http_exporter),
    .config_size = sizeof(struct otlp_http_exporter_config),
    .fields = otlp_http_exporter_fields,
    .counters_size = sizeof(struct otlp_http_exporter_counters),
    .counters = otlp_http_exporter_counters,
    .check = otlp_http_exporter_check,
    .create = otlp_http_exporter_create,
    .start = otlp_http_exporter_start,
    .consume = otlp_http_exporter_consume,
    .stop = otlp_http_exporter_stop,
    .destroy = otlp_http_exporter_destroy,
};
