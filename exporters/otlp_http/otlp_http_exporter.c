/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_http: POSTs batches, unchanged or as JSON, compressed or not, to an OTLP/HTTP back-end. Each
 * consume is one attempt; queue, batching and retries come before it
 * (src/pipeline/exporter_queue.h), and a repeated batch is compressed again. One instance per lane
 * and signal, on its lane. */
#include "exporters/otlp_http/pyroscope_fallback.h"
#include "exporters/shared/exporter_auth.h"
#include "exporters/shared/exporter_client.h"
#include "exporters/shared/http_outcome.h"
#include "exporters/shared/otlp_delivery.h"
#include "exporters/shared/profile_outgoing.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/codec/codec.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/listen/server_config.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char protobuf_type[] = "application/x-protobuf";
static const char json_type[] = "application/json";

/* ---- options ---- */

enum otlp_http_encoding { OTLP_HTTP_PROTO, OTLP_HTTP_JSON };
enum otlp_http_proto_version { OTLP_HTTP_1_10, OTLP_HTTP_1_9 };

struct otlp_http_compression_config {
    int64_t level;
};

struct otlp_http_cookies_config {
    bool is_unused;
};

struct otlp_http_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    const char *endpoints[SIGNAL_KINDS];
    int encoding;
    int proto_version; /* of profiles: enum otlp_http_proto_version */
    int compression;
    struct otlp_http_compression_config compression_params;
    struct config_pairs headers;
    uint64_t timeout_ns;
    struct tls_client_config tls;
    const char *proxy_url;
    int64_t max_idle_conns;
    int64_t max_idle_conns_per_host;
    int64_t max_conns_per_host;
    uint64_t idle_conn_timeout_ns;
    bool disable_keep_alives;
    bool force_attempt_http2;
    bool has_cookies;
    struct otlp_http_cookies_config cookies;
    struct exporter_auth_config auth;
    struct config_sections middlewares; /* struct server_middleware_config */
    bool has_pyroscope;
    struct pyroscope_fallback_config pyroscope;
};

/* In the order of enum otlp_http_encoding. */
static const char *const encodings[] = {"proto", "json", NULL};

/* In the order of enum otlp_http_proto_version. */
static const char *const proto_versions[] = {"1.10", "1.9", NULL};

/* Also the names in Content-Encoding, but for none. */
static const char *const compressions[] = {
    "gzip", "none", "", "zstd", "snappy", "x-snappy-framed", "zlib", "deflate", "lz4", NULL};

static const struct config_field compression_params_fields[] = {
    CONFIG_INT(struct otlp_http_compression_config, level, "level", "0", INT32_MIN, INT32_MAX,
               "How hard to compress; gzip, zlib and deflate: 1 fastest to 9 smallest, zstd: its "
               "own levels, of which only 1, 3, 7 and 11 differ. 0: the default."),
    CONFIG_END,
};

static const struct config_field cookies_fields[] = {CONFIG_END};

/* As Go parses URLs: one without "://" may still be "scheme:rest", if its first part looks like a
 * scheme, which 127.0.0.1 does not; everything else is a path. */
static bool lacks_scheme(const char *text)
{
    if (strncmp(text, "//", 2) == 0)
        return true;
    size_t first = strcspn(text, ":/?#");
    bool is_name =
        isalpha((unsigned char)text[0]) &&
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == first;
    if (text[first] == ':')
        return is_name && strncmp(text + first, "://", 3) != 0;
    return first > 0;
}

static const char *warn_of_scheme(const char *text)
{
    return lacks_scheme(text) ? "found a URL without a scheme, so http is used; write "
                                "http:// or https:// before it"
                              : NULL;
}

static const struct config_field otlp_http_fields[] = {
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoint, "endpoint", NULL, warn_of_scheme,
                       "Base URL; /v1/traces and so on are appended to its path."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[TRACES], "traces_endpoint", NULL,
                       warn_of_scheme, "Whole URL for traces, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[METRICS], "metrics_endpoint", NULL,
                       warn_of_scheme, "Whole URL for metrics, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[LOGS], "logs_endpoint", NULL,
                       warn_of_scheme, "Whole URL for logs, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[PROFILES], "profiles_endpoint", NULL,
                       warn_of_scheme, "Whole URL for profiles, instead of endpoint."),
    CONFIG_CHOICE(struct otlp_http_config, encoding, "encoding", "proto", encodings,
                  "Encoding of the body: protobuf, or OTLP/JSON."),
    CONFIG_CHOICE(struct otlp_http_config, proto_version, "proto_version", "1.10", proto_versions,
                  "Layout of profiles; \"1.9\", in quotes, for Pyroscope 1.18 and 1.19 and Go "
                  "collectors up to 0.147."),
    CONFIG_CHOICE(struct otlp_http_config, compression, "compression", "gzip", compressions,
                  "How bodies are compressed; none or \"\": not at all."),
    CONFIG_SECTION(struct otlp_http_config, compression_params, struct otlp_http_compression_config,
                   "compression_params", compression_params_fields, NULL,
                   "Parameters of the compression."),
    CONFIG_HEADERS(struct otlp_http_config, headers, "headers",
                   "Headers of every request; they win over ours, Host included."),
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_http_config, timeout_ns, "timeout", "30s",
        "Limit of one attempt, from connecting to the end of the response; 0: none."),
    TLS_CLIENT_ROW(struct otlp_http_config, tls),
    CONFIG_TEXT(struct otlp_http_config, proxy_url, "proxy_url", NULL,
                "Proxy for every request; HTTP_PROXY, HTTPS_PROXY and NO_PROXY when unset."),
    CONFIG_INT(struct otlp_http_config, max_idle_conns, "max_idle_conns", "100", INT64_MIN,
               INT64_MAX, "Most idle connections that are kept; 0: no limit, less: none are kept."),
    CONFIG_INT(struct otlp_http_config, max_idle_conns_per_host, "max_idle_conns_per_host", "0",
               INT64_MIN, INT64_MAX,
               "The same for one host; 0: as max_idle_conns, less: none are kept."),
    CONFIG_INT(struct otlp_http_config, max_conns_per_host, "max_conns_per_host", "0", INT64_MIN,
               INT64_MAX, "Most connections of a lane; more requests wait. 0 or less: no limit."),
    CONFIG_DURATION_OR_NEGATIVE(struct otlp_http_config, idle_conn_timeout_ns, "idle_conn_timeout",
                                "90s", "An idle connection is closed after this; 0: never."),
    CONFIG_BOOL(struct otlp_http_config, disable_keep_alives, "disable_keep_alives", "false",
                "Use each connection for one request only."),
    CONFIG_BOOL(struct otlp_http_config, force_attempt_http2, "force_attempt_http2", "true",
                "Offer HTTP/2 to https servers."),
    CONFIG_UNUSED_OPTIONAL(struct otlp_http_config, cookies, struct otlp_http_cookies_config,
                           has_cookies, CONFIG_NULL_IS_OFF, "cookies", cookies_fields,
                           "Cookies that back-ends set are not sent back to them."),
    CONFIG_OPTIONAL(struct otlp_http_config, pyroscope, struct pyroscope_fallback_config,
                    has_pyroscope, CONFIG_DEFAULT_ON, "pyroscope", pyroscope_fallback_fields, NULL,
                    "When the server behind profiles turns out to be a Pyroscope: send profiles "
                    "that its OTLP endpoint refuses by its Push API."),
    EXPORTER_AUTH_ROW(struct otlp_http_config, auth),
    CONFIG_SECTIONS(struct otlp_http_config, middlewares, struct server_middleware_config,
                    "middlewares", server_middleware_fields, NULL, "Not supported yet."),
    CONFIG_IGNORED_INT("read_buffer_size", "Responses are small; the buffer is ours."),
    CONFIG_IGNORED_INT("write_buffer_size", "Bodies are sent without a buffer."),
    CONFIG_IGNORED_DURATION("http2_read_idle_timeout", "Requests have a timeout of their own."),
    CONFIG_IGNORED_DURATION("http2_ping_timeout", "Requests have a timeout of their own."),
    SENDING_QUEUE_ROW(struct otlp_http_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct otlp_http_config),
    CONFIG_END,
};

/* "gzip", "none" …, as in Content-Encoding but for none. */
static const char *encoding_of(const struct otlp_http_config *config)
{
    return compressions[config->compression];
}

static enum codec codec_of(const struct otlp_http_config *config)
{
    const char *name = encoding_of(config);
    return strcmp(name, "none") == 0 ? CODEC_NONE : codec_of_http(slice_of_text(name));
}

/* An endpoint with its scheme: http, where none is configured. Freed with mem_free. */
static char *url_of(const char *text)
{
    bool is_bare = lacks_scheme(text);
    const char *rest = is_bare && text[0] == '/' ? text + 2 : text;
    char *url = mem_alloc(strlen("http://") + strlen(rest) + 1);
    sprintf(url, "%s%s", is_bare ? "http://" : "", rest);
    return url;
}

static bool url_check(const char *key, const char *text, struct error *error)
{
    struct http_url url;
    if (text[0] == '\0')
        return true;
    char *whole = url_of(text);
    bool is_valid = http_url_parse(whole, &url, error);
    mem_free(whole);
    if (!is_valid)
        return error_prefix(error, "%s must be a valid URL", key) || error_at(error, key);
    http_url_clear(&url);
    return true;
}

static bool otlp_http_exporter_check(const void *section, struct error *error)
{
    enum { LEVEL_MIN = -2, LEVEL_MAX = 9 };
    static const char *const endpoint_keys[SIGNAL_KINDS] = {
        [TRACES] = "traces_endpoint",
        [METRICS] = "metrics_endpoint",
        [LOGS] = "logs_endpoint",
        [PROFILES] = "profiles_endpoint",
    };
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    const struct otlp_http_config *config = section;
    bool has_endpoint = config->endpoint[0] != '\0';
    if (!url_check("endpoint", config->endpoint, error))
        return false;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        has_endpoint |= config->endpoints[signal][0] != '\0';
        if (!url_check(endpoint_keys[signal], config->endpoints[signal], error))
            return false;
    }
    if (!has_endpoint)
        return error_set(error, "at least one endpoint must be specified");

    int64_t level = config->compression_params.level;
    enum codec codec = codec_of(config);
    bool has_any_level = codec == CODEC_NONE || codec == CODEC_ZSTD || level == 0;
    bool has_levels = codec == CODEC_GZIP || codec == CODEC_ZLIB;
    if (!has_any_level && !(has_levels && level >= LEVEL_MIN && level <= LEVEL_MAX))
        return error_set(error,
                         "unsupported parameters {Level:%" PRId64
                         "} for compression type \"%s\": expected %s",
                         level, encoding_of(config),
                         has_levels ? "a level of -2 to 9" : "no level") ||
               error_at(error, "level") || error_at(error, "compression_params");

    bool has_scheme = config->proxy_url[0] == '\0';
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        has_scheme |= strncasecmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0;
    if (!has_scheme)
        return error_set(error, "proxy_url does not begin with http://, https://, socks5:// or "
                                "socks5h://; write the scheme, as in http://proxy:3128") ||
               error_at(error, "proxy_url");
    if (config->proto_version == OTLP_HTTP_1_9 && config->encoding == OTLP_HTTP_JSON)
        return error_set(error, "proto_version \"1.9\" needs encoding: proto") ||
               error_at(error, "proto_version");
    if (config->middlewares.count > 0)
        return error_set(error,
                         "middlewares are not supported by this build yet; remove the key") ||
               error_at(error, "middlewares");
    return true;
}

/* Recommends the pyroscope exporter for profiles. */
static bool otlp_http_exporter_advise(const void *section, enum signal_kind signal,
                                      struct error *advice)
{
    const struct otlp_http_config *config = section;
    const char *own = config->endpoints[PROFILES];
    char *url = url_of(own[0] != '\0' ? own : config->endpoint);
    bool is_pyroscope = signal == PROFILES && pyroscope_fallback_is_likely(url);
    mem_free(url);
    if (!is_pyroscope)
        return false;
    error_set(advice, "its endpoint looks like a Pyroscope server; the pyroscope exporter suits it "
                      "better: it names profiles as the server's own SDKs do, keeps the server's "
                      "limits and passes JFR files on");
    return true;
}

/* ---- attempts ---- */

struct otlp_http_exporter_counters {
    counter odd_responses;
    counter unconvertible;
};

static const struct counter_row otlp_http_exporter_counters[] = {
    COUNTER(struct otlp_http_exporter_counters, odd_responses, COUNTER_SUM,
            "spanflame_exporter_odd_answers",
            "2xx responses whose body was cut off or not an OTLP response; they count as sent."),
    PROFILE_OUTGOING_COUNTER(struct otlp_http_exporter_counters, unconvertible),
    COUNTER_END,
};

struct otlp_http_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    struct http_client *client;
    enum codec codec; /* CODEC_NONE: bodies are not compressed */
    struct codec_box *codecs;
    struct codec_box *helper_codecs;     /* the same, on the helper of the lane */
    struct authenticator *authenticator; /* NULL: none */
    struct profile_outgoing outgoing;
    struct otlp_delivery delivery;
    struct pyroscope_fallback *fallback; /* of profiles; NULL: none */
    struct stop_latch users; /* held by the client, and while the helper works on an attempt */
    bool is_stopping;
};

/* One request. */
struct attempt {
    struct otlp_http_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct batch *whole;       /* of profiles, for the fallback: the unchanged batch; NULL: none */
    uint64_t left_out;         /* items that are not sent */
    struct batch_part encoded; /* JSON, or compressed; owner NULL: the batch's own parts */
    struct http_post post;
    struct helper_work work; /* when the helper encodes */
    bool is_helped;
    bool is_encoded; /* by it; false: no memory */
};

extern const struct component_factory otlp_http_exporter_factory;

static struct otlp_http_exporter *otlp_http_exporter_of(struct component *base)
{
    assert(base->factory == &otlp_http_exporter_factory);
    return (struct otlp_http_exporter *)base;
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->encoded.owner);
    batch_unref(attempt->whole);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

static void on_done(const struct http_result *result, void *arg)
{
    struct attempt *attempt = arg;
    struct otlp_http_exporter *exporter = attempt->exporter;
    struct otlp_delivery *delivery = &exporter->delivery;
    const struct request_secrets secrets = http_client_secrets(exporter->client);
    if (result->status == 0)
        pyroscope_fallback_forget(exporter->fallback);
    if (result->status < 200 || result->status >= 300) {
        char text[HTTP_OUTCOME_TEXT_MAX];
        struct outcome refused = http_outcome_refused(result, &secrets, exporter->shown_url, text);
        if (attempt->whole != NULL &&
            pyroscope_fallback_takes_refused(exporter->fallback, result, &refused, attempt->whole,
                                             attempt->receipt))
            attempt->receipt = NULL;
        attempt_end(attempt, &refused);
        return;
    }
    /* A 2xx counts as delivered, whatever its body: it can only say that some items were
     * rejected. */
    struct outcome outcome = outcome_accepted;
    bool is_json = media_type_is(result->content_type, json_type);
    bool is_response = is_json || slice_equal_text(result->content_type, protobuf_type);
    if (result->body.size == 0 || !is_response) {
        if (result->is_cut)
            otlp_delivery_odd(delivery, "the response was cut off");
    } else if (result->is_cut) {
        otlp_delivery_odd(delivery, "the body is too large or was cut off");
    } else {
        char reason[JSON_REASON_BYTES_MAX];
        struct buffer *encoded = NULL; /* JSON as protobuf */
        struct slice body = result->body;
        bool is_read = !is_json || json_read(otlp_response(attempt->batch->signal), body, NULL,
                                             &encoded, reason) == JSON_READ;
        if (encoded != NULL)
            body = buffer_slice(encoded);
        if (!is_read ||
            !otlp_delivery_take(delivery, body, &secrets, attempt->batch, &outcome.rejected_items))
            otlp_delivery_odd(delivery, "the body is malformed");
        buffer_unref(encoded);
    }
    otlp_delivery_left_out(&outcome, attempt->left_out);
    attempt_end(attempt, &outcome);
}

/* Sends the output instead of the batch's parts, or of an earlier output. False: it is NULL. */
static bool replace_encoded(struct attempt *attempt, struct buffer *output)
{
    struct http_post *post = &attempt->post;
    if (output == NULL)
        return false;
    buffer_unref(attempt->encoded.owner);
    attempt->encoded = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    post->parts = &attempt->encoded;
    post->parts_count = 1;
    post->bytes = output->size;
    return true;
}

/* Runs on the lane or on its helper. False: no memory. */
static bool encode(struct attempt *attempt)
{
    const struct otlp_http_exporter *exporter = attempt->exporter;
    const struct otlp_http_config *config = exporter->base.config;
    struct http_post *post = &attempt->post;
    bool is_json = config->encoding == OTLP_HTTP_JSON;
    post->parts = attempt->batch->parts;
    post->parts_count = attempt->batch->parts_count;
    post->bytes = attempt->batch->bytes;
    post->content_type = is_json ? json_type : protobuf_type;
    if (is_json &&
        !replace_encoded(attempt, json_write_batch(attempt->batch, exporter->base.budget)))
        return false;
    if (exporter->codec == CODEC_NONE)
        return true;
    int level = (int)config->compression_params.level;
    struct codec_box *codecs = attempt->is_helped ? exporter->helper_codecs : exporter->codecs;
    struct buffer *output;
    const struct codec_input input = {
        .parts = post->parts,
        .parts_count = post->parts_count,
        .level = level == 0 ? -1 : level,
    };
    post->content_encoding = encoding_of(config);
    return codec_deflate(codecs, exporter->codec, &input, &output) == CODEC_OK &&
           replace_encoded(attempt, output);
}

static void send_encoded(struct attempt *attempt, bool is_encoded)
{
    if (is_encoded) {
        http_client_post(attempt->exporter->client, &attempt->post);
        return;
    }
    struct outcome outcome = outcome_busy("no memory left in the budget to encode a request");
    attempt_end(attempt, &outcome);
}

static struct attempt *attempt_of(struct helper_work *work)
{
    return (struct attempt *)((char *)work - offsetof(struct attempt, work));
}

static void on_help(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    attempt->is_encoded = encode(attempt);
}

static void on_helped(struct helper_work *work)
{
    struct attempt *attempt = attempt_of(work);
    struct otlp_http_exporter *exporter = attempt->exporter;
    attempt->is_helped = false;
    if (exporter->is_stopping) {
        struct outcome outcome = outcome_busy("the exporter is stopping");
        attempt_end(attempt, &outcome);
    } else {
        send_encoded(attempt, attempt->is_encoded);
    }
    stop_latch_release(&exporter->users);
}

static void otlp_http_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    assert(batch->signal == self->signal);
    if (pyroscope_fallback_takes(exporter->fallback, batch, receipt))
        return;
    struct batch *sent = profile_outgoing_batch(&exporter->outgoing, batch, receipt);
    if (sent == NULL)
        return;
    const struct otlp_http_config *config = self->config;
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->post = (struct http_post){.done = on_done, .arg = attempt};
    attempt->exporter = exporter;
    attempt->batch = sent;
    attempt->receipt = receipt;
    attempt->left_out = batch->items - sent->items;
    attempt->whole = exporter->fallback != NULL ? batch_ref(batch) : NULL;
    attempt->is_helped = config->encoding == OTLP_HTTP_JSON && sent->bytes >= HELPED_BYTES_MIN;
    if (!attempt->is_helped) {
        send_encoded(attempt, encode(attempt));
        return;
    }
    stop_latch_hold(&exporter->users);
    attempt->work = (struct helper_work){.run = on_help, .done = on_helped};
    lane_help(self->lane, &attempt->work);
}

/* ---- life cycle ---- */

static bool otlp_http_exporter_create(struct component *self, struct error *error)
{
    static const char *const paths[SIGNAL_KINDS] = {
        [TRACES] = "/v1/traces",
        [METRICS] = "/v1/metrics",
        [LOGS] = "/v1/logs",
        [PROFILES] = "/v1development/profiles",
    };
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_config *config = self->config;
    const char *own = config->endpoints[self->signal];
    struct http_url url;
    if (own[0] == '\0' && config->endpoint[0] == '\0')
        return error_set(error, "either endpoint or %s_endpoint must be specified",
                         signal_name(self->signal));
    char *base = url_of(own[0] != '\0' ? own : config->endpoint);
    exporter->url = own[0] != '\0' ? mem_copy_text(base) : http_url_join(base, paths[self->signal]);
    mem_free(base);
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "%s", own[0] != '\0' ? "signal endpoint" : "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    self->destination = exporter->shown_url;
    http_url_clear(&url);
    struct otlp_http_exporter_counters *counters = self->counters;
    exporter->delivery = (struct otlp_delivery){
        .exporter = self,
        .odd_responses = counters != NULL ? &counters->odd_responses : NULL,
        .where_key = "url",
        .where = exporter->shown_url,
        .profiles_key = "dropped_samples",
    };
    exporter->outgoing = (struct profile_outgoing){
        .exporter = self,
        .layout = config->proto_version == OTLP_HTTP_1_9 ? LAYOUT_1_9 : LAYOUT_1_10,
        .unconvertible = counters != NULL ? &counters->unconvertible : NULL,
    };
    exporter->codec = codec_of(config);
    exporter->codecs = codec_box_create(self->budget);
    exporter->helper_codecs = codec_box_create(self->budget);
    if (!codec_prepare(exporter->codec, error))
        return false;
    if (self->signal == PROFILES && config->has_pyroscope) {
        const struct pyroscope_fallback_settings settings = {
            .config = &config->pyroscope,
            .url = exporter->url,
            .compresses = exporter->codec != CODEC_NONE,
            .has_layout_1_9 = config->proto_version == OTLP_HTTP_1_9,
            .timeout_ns = config->timeout_ns,
        };
        if (!pyroscope_fallback_create(self, &settings, &exporter->fallback, error))
            return false;
    }
    return exporter_auth_create(self, &config->auth, &exporter->authenticator, error);
}

static bool otlp_http_exporter_start(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_config *config = self->config;
    int64_t total = config->max_idle_conns;
    int64_t per_host = config->max_idle_conns_per_host;
    uint64_t idle_max = total == 0 ? UINT64_MAX : (uint64_t)total;
    if (per_host != 0 && (uint64_t)per_host < idle_max)
        idle_max = (uint64_t)per_host;
    if (total < 0 || per_host < 0)
        idle_max = 0;
    struct http_client_settings settings = {
        .url = exporter->url,
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .timeout_ns = config->timeout_ns,
        .connections_max =
            config->max_conns_per_host > 0 ? (uint64_t)config->max_conns_per_host : 0,
        .idle_connections_max = idle_max,
        .idle_timeout_ns = config->idle_conn_timeout_ns,
        .has_keep_alive = !config->disable_keep_alives && idle_max > 0,
        .forbids_http2 = !config->force_attempt_http2,
        .proxy_url = config->proxy_url,
    };
    exporter->client =
        exporter_client_create(self, &settings, &config->tls, exporter->authenticator, error);
    exporter_client_users(self, &exporter->users);
    if (exporter->client != NULL)
        pyroscope_fallback_start(exporter->fallback, exporter->client, &exporter->users);
    return exporter->client != NULL;
}

static void otlp_http_exporter_stop(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    exporter->is_stopping = true;
    pyroscope_fallback_stop(exporter->fallback);
    exporter_client_stop(self, exporter->client, &exporter->users);
}

static void otlp_http_exporter_destroy(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    http_client_destroy(exporter->client);
    pyroscope_fallback_destroy(exporter->fallback);
    codec_box_destroy(exporter->codecs);
    codec_box_destroy(exporter->helper_codecs);
    authenticator_destroy(exporter->authenticator);
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
    .config_size = sizeof(struct otlp_http_config),
    .fields = otlp_http_fields,
    .counters_size = sizeof(struct otlp_http_exporter_counters),
    .counters = otlp_http_exporter_counters,
    .check = otlp_http_exporter_check,
    .advise = otlp_http_exporter_advise,
    .create = otlp_http_exporter_create,
    .start = otlp_http_exporter_start,
    .consume = otlp_http_exporter_consume,
    .stop = otlp_http_exporter_stop,
    .destroy = otlp_http_exporter_destroy,
};
