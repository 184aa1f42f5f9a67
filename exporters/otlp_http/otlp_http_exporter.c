/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_http: POSTs batches, as they are or as JSON, compressed or not, to an OTLP/HTTP back-end.
 * Each consume is one attempt; queue, batching and retries stand before it
 * (src/pipeline/exporter_queue.h), and a repeated batch is compressed again. One instance per lane
 * and signal, on its lane. */
#include "exporters/otlp_http/otlp_http_config.h"
#include "exporters/otlp_http/pyroscope_road.h"
#include "exporters/shared/http_outcome.h"
#include "exporters/shared/http_settings.h"
#include "exporters/shared/otlp_delivery.h"
#include "exporters/shared/profile_outgoing.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
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

struct otlp_http_exporter_counters {
    counter odd_answers;
    counter unconvertible;
};

static const struct counter_row otlp_http_exporter_counters[] = {
    COUNTER(
        struct otlp_http_exporter_counters, odd_answers, COUNTER_SUM,
        "spanflame_exporter_odd_answers",
        "Answers with a 2xx status whose body was cut or no OTLP response; they count as sent."),
    PROFILE_OUTGOING_COUNTER(struct otlp_http_exporter_counters, unconvertible),
    COUNTER_END,
};

struct otlp_http_exporter {
    struct component base;
    char *url;
    char *shown_url; /* for messages: without userinfo and query */
    struct http_client *client;
    enum codec codec; /* CODEC_NONE: bodies go as they are */
    struct codec_box *codecs;
    struct codec_box *helper_codecs;     /* the same, on the helper of the lane */
    struct authenticator *authenticator; /* NULL: none */
    struct profile_outgoing outgoing;
    struct otlp_delivery delivery;
    struct pyroscope_road *road; /* of profiles; NULL: none */
};

/* One request on its way. */
struct attempt {
    struct otlp_http_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    struct batch *whole;       /* of profiles: the batch as it came; NULL: nobody needs it */
    uint64_t left_out;         /* items that are not sent */
    struct batch_part encoded; /* JSON, or compressed; owner NULL: the batch's own parts are sent */
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

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->encoded.owner);
    batch_unref(attempt->whole);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

/* What an OTLP response says; false when it is none. */
static bool take_response(const struct attempt *attempt, const struct http_result *result,
                          uint64_t *ret_rejected)
{
    const struct otlp_delivery *delivery = &attempt->exporter->delivery;
    char reason[JSON_REASON_BYTES_MAX];
    const struct request_secrets secrets = http_client_secrets(attempt->exporter->client);
    struct buffer *encoded;
    assert(result->body.size > 0);
    if (!media_type_is(result->content_type, json_type))
        return otlp_delivery_take(delivery, result->body, &secrets, attempt->batch, ret_rejected);
    if (json_read(otlp_response(attempt->batch->signal), result->body, NULL, &encoded, reason) !=
        JSON_READ)
        return false;
    bool is_read =
        otlp_delivery_take(delivery, buffer_slice(encoded), &secrets, attempt->batch, ret_rejected);
    buffer_unref(encoded);
    return is_read;
}

/* A 2xx is delivered, whatever its body; the body can only say that some items were refused. */
static struct outcome take_success(const struct attempt *attempt, const struct http_result *result)
{
    struct outcome outcome = outcome_accepted;
    struct otlp_delivery *delivery = &attempt->exporter->delivery;
    bool is_response = slice_equal_text(result->content_type, protobuf_type) ||
                       media_type_is(result->content_type, json_type);
    if (result->body.size == 0 || !is_response) {
        if (result->is_cut)
            otlp_delivery_odd(delivery, "the answer broke off");
        return outcome;
    }
    if (result->is_cut)
        otlp_delivery_odd(delivery, "the body is too large or broke off");
    else if (!take_response(attempt, result, &outcome.rejected_items))
        otlp_delivery_odd(delivery, "the body is malformed");
    return outcome;
}

static struct outcome refused(const struct attempt *attempt, const struct http_result *result,
                              char text[HTTP_OUTCOME_TEXT_MAX])
{
    const struct otlp_http_exporter *exporter = attempt->exporter;
    const struct request_secrets secrets = http_client_secrets(exporter->client);
    return http_outcome_refused(result, &secrets, exporter->shown_url, text);
}

static void on_done(const struct http_result *result, void *arg)
{
    struct attempt *attempt = arg;
    char text[HTTP_OUTCOME_TEXT_MAX];
    struct outcome outcome;
    if (result->status == 0)
        pyroscope_road_forget(attempt->exporter->road);
    if (result->status >= 200 && result->status < 300)
        outcome = take_success(attempt, result);
    else
        outcome = refused(attempt, result, text);
    if (outcome.verdict == ACCEPTED)
        otlp_delivery_left_out(&outcome, attempt->left_out);
    else if (attempt->whole != NULL &&
             pyroscope_road_takes_refused(attempt->exporter->road, result, &outcome, attempt->whole,
                                          attempt->receipt))
        attempt->receipt = NULL;
    attempt_end(attempt, &outcome);
}

/* What is sent: the batch's parts, or what they were made into. */
static void choose_parts(struct attempt *attempt, struct http_post *post)
{
    bool is_encoded = attempt->encoded.owner != NULL;
    assert(attempt->batch->parts_count > 0);
    post->parts = is_encoded ? &attempt->encoded : attempt->batch->parts;
    post->parts_count = is_encoded ? 1 : attempt->batch->parts_count;
    post->bytes = is_encoded ? attempt->encoded.bytes.size : attempt->batch->bytes;
}

/* NULL is tolerated. */
static bool replace_encoded(struct attempt *attempt, struct buffer *output)
{
    if (output == NULL)
        return false;
    buffer_unref(attempt->encoded.owner);
    attempt->encoded = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    assert(attempt->encoded.owner != NULL);
    return true;
}

static bool compress(struct attempt *attempt)
{
    const struct otlp_http_exporter *exporter = attempt->exporter;
    struct http_post *post = &attempt->post;
    const struct otlp_http_config *config = exporter->base.config;
    int level = (int)config->compression_params.level;
    struct buffer *output;
    assert(exporter->codec != CODEC_NONE);
    const struct codec_input input = {
        .parts = post->parts,
        .parts_count = post->parts_count,
        .level = level == 0 ? -1 : level,
    };
    struct codec_box *codecs = attempt->is_helped ? exporter->helper_codecs : exporter->codecs;
    if (codec_deflate(codecs, exporter->codec, &input, &output) != CODEC_OK ||
        !replace_encoded(attempt, output))
        return false;
    choose_parts(attempt, post);
    post->content_encoding = otlp_http_config_encoding(config);
    return true;
}

/* On the lane, or on its helper. False: no memory. */
static bool encode(struct attempt *attempt)
{
    const struct otlp_http_exporter *exporter = attempt->exporter;
    struct http_post *post = &attempt->post;
    const struct otlp_http_config *config = exporter->base.config;
    bool is_json = config->encoding == OTLP_HTTP_JSON;
    assert(attempt->encoded.owner == NULL);
    if (is_json &&
        !replace_encoded(attempt, json_write_batch(attempt->batch, exporter->base.budget)))
        return false;
    choose_parts(attempt, post);
    post->content_type = is_json ? json_type : protobuf_type;
    return exporter->codec == CODEC_NONE || compress(attempt);
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
    attempt->is_helped = false;
    send_encoded(attempt, attempt->is_encoded);
}

static void send_otlp(struct component *self, struct batch *batch, struct receipt *receipt)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    assert(exporter->client != NULL);
    assert(batch->signal == self->signal);
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
    attempt->whole = exporter->road != NULL ? batch_ref(batch) : NULL;
    attempt->is_helped = config->encoding == OTLP_HTTP_JSON && sent->bytes >= HELPED_BYTES_MIN;
    if (!attempt->is_helped) {
        send_encoded(attempt, encode(attempt));
        return;
    }
    attempt->work = (struct helper_work){.run = on_help, .done = on_helped};
    lane_help(self->lane, &attempt->work);
}

static void otlp_http_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    if (!pyroscope_road_takes(exporter->road, batch, receipt))
        send_otlp(self, batch, receipt);
}

static bool open_road(struct otlp_http_exporter *exporter, struct error *error)
{
    const struct otlp_http_config *config = exporter->base.config;
    if (exporter->base.signal != PROFILES || !config->has_pyroscope)
        return true;
    const struct pyroscope_road_settings settings = {
        .config = &config->pyroscope,
        .url = exporter->url,
        .compresses = exporter->codec != CODEC_NONE,
        .has_layout_1_9 = config->proto_version == OTLP_HTTP_1_9,
        .timeout_ns = config->timeout_ns,
    };
    return pyroscope_road_create(&exporter->base, &settings, &exporter->road, error);
}

static bool otlp_http_exporter_create(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_config *config = self->config;
    const char *own = config->endpoints[self->signal];
    struct http_url url;
    if (own[0] == '\0' && config->endpoint[0] == '\0')
        return error_set(error, "either endpoint or %s_endpoint must be specified",
                         signal_name(self->signal));
    char *base = otlp_http_config_url(own[0] != '\0' ? own : config->endpoint);
    exporter->url =
        own[0] != '\0' ? mem_copy_text(base) : http_url_join(base, signal_path(self->signal));
    mem_free(base);
    if (!http_url_parse(exporter->url, &url, error))
        return error_prefix(error, "%s", own[0] != '\0' ? "signal endpoint" : "endpoint");
    exporter->shown_url = mem_copy_text(url.shown);
    self->destination = exporter->shown_url;
    http_url_clear(&url);
    struct otlp_http_exporter_counters *counters = self->counters;
    exporter->delivery = (struct otlp_delivery){
        .exporter = self,
        .odd_answers = counters != NULL ? &counters->odd_answers : NULL,
        .where_key = "url",
        .where = exporter->shown_url,
        .profiles_key = "dropped_samples",
    };
    exporter->outgoing = (struct profile_outgoing){
        .exporter = self,
        .layout = config->proto_version == OTLP_HTTP_1_9 ? LAYOUT_1_9 : LAYOUT_1_10,
        .unconvertible = counters != NULL ? &counters->unconvertible : NULL,
    };
    exporter->codec = otlp_http_config_codec(config);
    exporter->codecs = codec_box_create(self->budget);
    exporter->helper_codecs = codec_box_create(self->budget);
    return codec_prepare(exporter->codec, error) && open_road(exporter, error) &&
           exporter_auth_create(self, &config->auth, &exporter->authenticator, error);
}

/* 0: none are kept. */
static uint64_t idle_connections_max(const struct otlp_http_config *config)
{
    int64_t total = config->max_idle_conns;
    int64_t per_host = config->max_idle_conns_per_host;
    if (total < 0 || per_host < 0)
        return 0;
    uint64_t max = total == 0 ? UINT64_MAX : (uint64_t)total;
    return per_host != 0 && (uint64_t)per_host < max ? (uint64_t)per_host : max;
}

static bool otlp_http_exporter_start(struct component *self, struct error *error)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    const struct otlp_http_config *config = self->config;
    const struct tls_client_config *tls = &config->tls;
    struct http_client_settings settings = {
        .lane = self->lane,
        .url = exporter->url,
        .user_agent = http_settings_user_agent(),
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .credentials = exporter_auth_credentials(exporter->authenticator),
        .timeout_ns = config->timeout_ns,
        .connections_max =
            config->max_conns_per_host > 0 ? (uint64_t)config->max_conns_per_host : 0,
        .idle_connections_max = idle_connections_max(config),
        .idle_timeout_ns = config->idle_conn_timeout_ns,
        .has_keep_alive = !config->disable_keep_alives && idle_connections_max(config) > 0,
        .forbids_http2 = !config->force_attempt_http2,
        .proxy_url = config->proxy_url,
    };
    if (!tls_client_check_files(tls, error))
        return false;
    http_settings_add_tls(&settings, tls);
    exporter->client = http_client_create(&settings, error);
    if (exporter->client != NULL)
        pyroscope_road_start(exporter->road, exporter->client);
    return exporter->client != NULL;
}

static void on_client_closed(void *arg)
{
    component_stopped(arg);
}

static void otlp_http_exporter_stop(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    pyroscope_road_stop(exporter->road);
    if (exporter->client == NULL)
        component_stopped(self);
    else
        http_client_close(exporter->client, on_client_closed, self);
}

static void otlp_http_exporter_destroy(struct component *self)
{
    struct otlp_http_exporter *exporter = otlp_http_exporter_of(self);
    http_client_destroy(exporter->client);
    pyroscope_road_destroy(exporter->road);
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
    .fields = otlp_http_config_fields,
    .counters_size = sizeof(struct otlp_http_exporter_counters),
    .counters = otlp_http_exporter_counters,
    .check = otlp_http_config_check,
    .advise = otlp_http_config_advise,
    .create = otlp_http_exporter_create,
    .start = otlp_http_exporter_start,
    .consume = otlp_http_exporter_consume,
    .stop = otlp_http_exporter_stop,
    .destroy = otlp_http_exporter_destroy,
};
