/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_http: POSTs batches, unchanged or as JSON, compressed or not, to an OTLP/HTTP back-end. Each
 * consume is one attempt; queue, batching and retries come before it
 * (src/pipeline/exporter_queue.h), and a repeated batch is compressed again. One instance per lane
 * and signal, on its lane. */
#include "exporters/otlp_http/pyroscope_fallback.h"
#include "exporters/shared/exporter_client.h"
#include "exporters/shared/http_client_config.h"
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
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/media_type.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char protobuf_type[] = "application/x-protobuf";
static const char json_type[] = "application/json";

/* ---- options ---- */

enum otlp_http_encoding { OTLP_HTTP_PROTO, OTLP_HTTP_JSON };
enum otlp_http_proto_version { OTLP_HTTP_1_10, OTLP_HTTP_1_9 };

struct otlp_http_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    const char *endpoints[SIGNAL_KINDS];
    int encoding;
    int proto_version; /* of profiles: enum otlp_http_proto_version */
    struct http_client_config client;
    bool has_pyroscope;
    struct pyroscope_fallback_config pyroscope;
};

/* In the order of enum otlp_http_encoding. */
static const char *const encodings[] = {"proto", "json", NULL};

/* In the order of enum otlp_http_proto_version. */
static const char *const proto_versions[] = {"1.10", "1.9", NULL};

static const struct config_field otlp_http_fields[] = {
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoint, "endpoint", NULL, exporter_url_warning,
                       "Base URL; /v1/traces and so on are appended to its path."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[TRACES], "traces_endpoint", NULL,
                       exporter_url_warning, "Whole URL for traces, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[METRICS], "metrics_endpoint", NULL,
                       exporter_url_warning, "Whole URL for metrics, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[LOGS], "logs_endpoint", NULL,
                       exporter_url_warning, "Whole URL for logs, instead of endpoint."),
    CONFIG_TEXT_WARNED(struct otlp_http_config, endpoints[PROFILES], "profiles_endpoint", NULL,
                       exporter_url_warning, "Whole URL for profiles, instead of endpoint."),
    CONFIG_CHOICE(struct otlp_http_config, encoding, "encoding", "proto", encodings,
                  "Encoding of the body: protobuf, or OTLP/JSON."),
    CONFIG_CHOICE(struct otlp_http_config, proto_version, "proto_version", "1.10", proto_versions,
                  "Layout of profiles; \"1.9\", in quotes, for Pyroscope 1.18 and 1.19 and Go "
                  "collectors up to 0.147."),
    HTTP_CLIENT_ROWS(struct otlp_http_config, client, "30s", "gzip"),
    CONFIG_OPTIONAL(struct otlp_http_config, pyroscope, struct pyroscope_fallback_config,
                    has_pyroscope, CONFIG_DEFAULT_ON, "pyroscope", pyroscope_fallback_fields, NULL,
                    "When the server behind profiles turns out to be a Pyroscope: send profiles "
                    "that its OTLP endpoint refuses by its Push API."),
    SENDING_QUEUE_ROW(struct otlp_http_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct otlp_http_config),
    CONFIG_END,
};

static bool otlp_http_exporter_check(const void *section, struct error *error)
{
    static const char *const endpoint_keys[SIGNAL_KINDS] = {
        [TRACES] = "traces_endpoint",
        [METRICS] = "metrics_endpoint",
        [LOGS] = "logs_endpoint",
        [PROFILES] = "profiles_endpoint",
    };
    const struct otlp_http_config *config = section;
    bool has_endpoint = config->endpoint[0] != '\0';
    if (!exporter_url_check("endpoint", config->endpoint, error))
        return false;
    for (unsigned signal = 0; signal < SIGNAL_KINDS; signal++) {
        has_endpoint |= config->endpoints[signal][0] != '\0';
        if (!exporter_url_check(endpoint_keys[signal], config->endpoints[signal], error))
            return false;
    }
    if (!has_endpoint)
        return error_set(error, "at least one endpoint must be specified");

    if (!http_client_config_check(&config->client, error))
        return false;
    if (config->proto_version == OTLP_HTTP_1_9 && config->encoding == OTLP_HTTP_JSON)
        return error_set(error, "proto_version \"1.9\" needs encoding: proto") ||
               error_at(error, "proto_version");
    return true;
}

/* Recommends the pyroscope exporter for profiles. */
static bool otlp_http_exporter_advise(const void *section, enum signal_kind signal,
                                      struct error *advice)
{
    const struct otlp_http_config *config = section;
    const char *own = config->endpoints[PROFILES];
    char *url = exporter_url(own[0] != '\0' ? own : config->endpoint);
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
    const struct request_secrets secrets = http_client_secrets(exporter->client, result);
    if (result->status == 0)
        pyroscope_fallback_forget(exporter->fallback);
    if (result->status < 200 || result->status >= 300) {
        char text[HTTP_OUTCOME_TEXT_MAX];
        struct outcome refused = http_outcome_refused(result, &secrets, exporter->shown_url, text);
        if (attempt->whole != NULL &&
            pyroscope_fallback_takes_refused(exporter->fallback, result, &refused, attempt->whole,
                                             attempt->receipt))
            attempt->receipt = NULL;
        else if (refused.is_permanent)
            profile_outgoing_count(&exporter->outgoing, attempt->left_out);
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
    profile_outgoing_count(&exporter->outgoing, attempt->left_out);
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

/* False: no memory. */
static bool encode_body(struct attempt *attempt)
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
    struct codec_box *codecs = attempt->is_helped ? exporter->helper_codecs : exporter->codecs;
    struct buffer *output;
    const struct codec_input input = {
        .parts = post->parts,
        .parts_count = post->parts_count,
        .level = http_client_config_level(&config->client),
    };
    post->content_encoding = http_client_config_encoding(&config->client);
    return codec_deflate(codecs, exporter->codec, &input, &output) == CODEC_OK &&
           replace_encoded(attempt, output);
}

/* Runs on the lane or on its helper. False: no memory. */
static bool encode(struct attempt *attempt)
{
    budget_begin_export();
    bool is_encoded = encode_body(attempt);
    budget_end_export();
    return is_encoded;
}

static void send_encoded(struct attempt *attempt, bool is_encoded)
{
    if (is_encoded) {
        http_client_post(attempt->exporter->client, &attempt->post);
        return;
    }
    struct outcome outcome = outcome_no_memory("no memory left in the budget to encode a request");
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
    attempt->post = (struct http_post){.client = sent->client, .done = on_done, .arg = attempt};
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
    char *base = exporter_url(own[0] != '\0' ? own : config->endpoint);
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
    exporter->codec = http_client_config_codec(&config->client);
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
            .timeout_ns = config->client.timeout_ns,
        };
        if (!pyroscope_fallback_create(self, &settings, &exporter->fallback, error))
            return false;
    }
    return exporter_auth_create(self, &config->client.auth, &exporter->authenticator, error);
}

static bool otlp_http_exporter_start(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_config *config = self->config;
    struct http_client_settings settings = http_client_config_settings(&config->client);
    settings.url = exporter->url;
    exporter->client = exporter_client_create(self, &settings, &config->client.tls,
                                              exporter->authenticator, error);
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
