/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_grpc: sends batches as they are, compressed or not, to an OTLP/gRPC back-end. Each consume
 * is one attempt; queue, batching and retries stand before it (src/pipeline/exporter_queue.h), and
 * a repeated batch is compressed again. One instance per lane and signal, on its lane. */
#include "exporters/otlp_grpc/otlp_grpc_config.h"
#include "exporters/shared/grpc_outcome.h"
#include "exporters/shared/http_settings.h"
#include "exporters/shared/otlp_delivery.h"
#include "exporters/shared/profile_outgoing.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/net/client/grpc_client.h"
#include "src/net/client/grpc_target.h"
#include "src/net/client/request_secrets.h"
#include "src/net/tls/tls_context.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* As grpc-go has them, whatever is configured. */
#define KEEPALIVE_TIME_MIN_NS ((uint64_t)10 * NS_PER_S)
#define KEEPALIVE_TIMEOUT_NS  ((uint64_t)20 * NS_PER_S)

struct otlp_grpc_exporter_counters {
    counter odd_answers;
    counter unconvertible;
};

static const struct counter_row otlp_grpc_exporter_counters[] = {
    COUNTER(struct otlp_grpc_exporter_counters, odd_answers, COUNTER_SUM,
            "spanflame_exporter_odd_answers",
            "Answers that say OK and hold no OTLP response; they count as sent."),
    PROFILE_OUTGOING_COUNTER(struct otlp_grpc_exporter_counters, unconvertible),
    COUNTER_END,
};

struct otlp_grpc_exporter {
    struct component base;
    struct grpc_target target;
    char *destination;       /* for metrics */
    struct tls_context *tls; /* NULL: cleartext */
    char *server_name;
    struct grpc_client *client;
    struct codec_box *codecs;
    struct authenticator *authenticator; /* NULL: none */
    struct profile_outgoing outgoing;
    struct otlp_delivery delivery;
};

/* One call on its way. */
struct attempt {
    struct otlp_grpc_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    uint64_t left_out;         /* items that are not sent */
    struct batch_part encoded; /* owner NULL: the batch's own parts are sent */
};

extern const struct component_factory otlp_grpc_exporter_factory;

static struct otlp_grpc_exporter *otlp_grpc_exporter_of(struct component *base)
{
    assert(base->factory == &otlp_grpc_exporter_factory);
    return (struct otlp_grpc_exporter *)base;
}

static const char *signal_path(enum signal_kind signal)
{
    static const char *const paths[SIGNAL_KINDS] = {
        [TRACES] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        [METRICS] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        [LOGS] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        [PROFILES] = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    };
    return paths[signal];
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->encoded.owner);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

/* The response in plain bytes; false when it cannot be had. *ret_owner is the caller's. */
static bool unpack(struct otlp_grpc_exporter *exporter, const struct grpc_result *result,
                   struct slice *ret_body, struct buffer **ret_owner)
{
    assert(!result->is_cut);
    enum codec codec = codec_of_grpc(result->encoding);
    *ret_owner = NULL;
    *ret_body = result->body;
    if (!result->is_compressed)
        return true;
    if (codec == CODEC_NONE || codec == CODECS ||
        codec_inflate(exporter->codecs, codec, result->body, RESPONSE_BYTES_MAX, ret_owner) !=
            CODEC_OK)
        return false;
    *ret_body = buffer_slice(*ret_owner);
    return true;
}

/* What a back-end may repeat. */
static struct request_secrets secrets_of(const struct otlp_grpc_exporter *exporter)
{
    const struct otlp_grpc_config *config = exporter->base.config;
    return (struct request_secrets){
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .credentials = exporter_auth_credentials(exporter->authenticator),
    };
}

/* OK is delivered, whatever the message; that can only say that some items were refused. */
static struct outcome take_success(const struct attempt *attempt, const struct grpc_result *result)
{
    struct outcome outcome = outcome_accepted;
    struct otlp_grpc_exporter *exporter = attempt->exporter;
    struct otlp_delivery *delivery = &exporter->delivery;
    struct buffer *owner = NULL;
    struct slice body;
    const struct request_secrets secrets = secrets_of(exporter);
    if (result->is_cut)
        otlp_delivery_odd(delivery, "the message is missing, torn or too large");
    else if (!unpack(exporter, result, &body, &owner))
        otlp_delivery_odd(delivery, "the message cannot be decompressed");
    else if (!otlp_delivery_take(delivery, body, &secrets, attempt->batch, &outcome.rejected_items))
        otlp_delivery_odd(delivery, "the message is malformed");
    buffer_unref(owner);
    return outcome;
}

/* Without our secrets; senders get the message and the details. */
static struct outcome refused(const struct attempt *attempt, const struct grpc_result *result,
                              struct grpc_outcome_room *room)
{
    const struct request_secrets secrets = secrets_of(attempt->exporter);
    struct outcome outcome = grpc_outcome_refused(result, room);
    request_secrets_redact(&secrets, room->text, sizeof(room->text));
    if (request_secrets_are_in(&secrets, outcome.details))
        outcome.details = slice_of(NULL, 0);
    return outcome;
}

static void on_done(const struct grpc_result *result, void *arg)
{
    struct attempt *attempt = arg;
    struct grpc_outcome_room room;
    assert(attempt->batch != NULL);
    struct outcome outcome =
        result->code == STATUS_OK ? take_success(attempt, result) : refused(attempt, result, &room);
    if (outcome.verdict == ACCEPTED)
        otlp_delivery_left_out(&outcome, attempt->left_out);
    attempt_end(attempt, &outcome);
}

static bool attempt_encode(struct attempt *attempt, enum codec codec)
{
    struct buffer *output;
    assert(codec != CODEC_NONE);
    const struct codec_input input = {
        .parts = attempt->batch->parts,
        .parts_count = attempt->batch->parts_count,
        .level = codec == CODEC_GZIP ? -1 : 0,
    };
    if (codec_deflate(attempt->exporter->codecs, codec, &input, &output) != CODEC_OK)
        return false;
    attempt->encoded = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    return true;
}

static void otlp_grpc_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    enum codec codec = otlp_grpc_config_codec(self->config);
    assert(exporter->client != NULL);
    assert(batch->signal == self->signal);
    struct batch *sent = profile_outgoing_batch(&exporter->outgoing, batch, receipt);
    if (sent == NULL)
        return;
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->exporter = exporter;
    attempt->batch = sent;
    attempt->receipt = receipt;
    attempt->left_out = batch->items - sent->items;
    if (codec != CODEC_NONE && !attempt_encode(attempt, codec)) {
        struct outcome outcome = outcome_busy("no memory left in the budget to compress a request");
        attempt_end(attempt, &outcome);
        return;
    }
    bool is_encoded = attempt->encoded.owner != NULL;
    const struct grpc_post post = {
        .path = signal_path(batch->signal),
        .parts = is_encoded ? &attempt->encoded : sent->parts,
        .parts_count = is_encoded ? 1 : sent->parts_count,
        .bytes = is_encoded ? attempt->encoded.bytes.size : sent->bytes,
        .is_compressed = is_encoded,
        .done = on_done,
        .arg = attempt,
    };
    grpc_client_post(exporter->client, &post);
}

static bool otlp_grpc_exporter_create(struct component *self, struct error *error)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    const struct otlp_grpc_config *config = self->config;
    if (!grpc_target_parse(config->endpoint, &exporter->target, error))
        return false;
    if (exporter->target.path[0] == '\0') {
        size_t size = sizeof("grpc://") + strlen(exporter->target.authority);
        exporter->destination = mem_alloc(size);
        snprintf(exporter->destination, size, "grpc://%s", exporter->target.authority);
        self->destination = exporter->destination;
    }
    struct otlp_grpc_exporter_counters *counters = self->counters;
    exporter->delivery = (struct otlp_delivery){
        .exporter = self,
        .odd_answers = counters != NULL ? &counters->odd_answers : NULL,
        .where_key = "endpoint",
        .where = exporter->target.authority,
        .profiles_key = "dropped_profiles",
    };
    exporter->outgoing = (struct profile_outgoing){
        .exporter = self,
        .layout = LAYOUT_1_10,
        .unconvertible = counters != NULL ? &counters->unconvertible : NULL,
    };
    exporter->codecs = codec_box_create(self->budget);
    return codec_prepare(otlp_grpc_config_codec(config), error) &&
           exporter_auth_create(self, &config->auth, &exporter->authenticator, error);
}

static struct http2_keepalive keepalive_of(const struct otlp_grpc_config *config)
{
    const struct otlp_grpc_keepalive_config *keepalive = &config->keepalive;
    if (!config->has_keepalive || keepalive->time_ns == 0)
        return (struct http2_keepalive){0};
    return (struct http2_keepalive){
        .time_ns =
            keepalive->time_ns > KEEPALIVE_TIME_MIN_NS ? keepalive->time_ns : KEEPALIVE_TIME_MIN_NS,
        .timeout_ns = keepalive->timeout_ns > 0 ? keepalive->timeout_ns : KEEPALIVE_TIMEOUT_NS,
        .permit_without_stream = keepalive->permit_without_stream,
    };
}

static bool prepare_tls(struct otlp_grpc_exporter *exporter, struct error *error)
{
    static const char *const protocols[] = {"h2", NULL};
    const struct otlp_grpc_config *config = exporter->base.config;
    const struct tls_context_settings settings = {.protocols = protocols};
    struct endpoint authority;
    struct error ignored;
    assert(exporter->tls == NULL);
    if (!tls_client_check_files(&config->tls, error))
        return false;
    /* Whoever names another authority means that server. */
    bool has_port =
        config->authority[0] != '\0' && endpoint_parse(config->authority, &authority, &ignored);
    exporter->server_name =
        mem_copy_text(has_port                           ? authority.host
                      : config->authority[0] != '\0'     ? config->authority
                      : exporter->target.host[0] != '\0' ? exporter->target.host
                                                         : exporter->target.authority);
    exporter->tls = tls_context_create_client(&config->tls, &settings, error);
    return exporter->tls != NULL;
}

static const char *authority_of(const struct otlp_grpc_exporter *exporter)
{
    const struct otlp_grpc_config *config = exporter->base.config;
    bool is_renamed = exporter->tls != NULL && config->tls.server_name_override[0] != '\0';
    if (config->authority[0] != '\0')
        return config->authority;
    return is_renamed ? config->tls.server_name_override : exporter->target.authority;
}

static bool otlp_grpc_exporter_start(struct component *self, struct error *error)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    const struct otlp_grpc_config *config = self->config;
    const char *user_agent = config->user_agent;
    if (otlp_grpc_config_has_tls(config, exporter->target.is_https) &&
        !prepare_tls(exporter, error))
        return false;
    exporter->client = grpc_client_create(&(struct grpc_client_settings){
        .lane = self->lane,
        .target = &exporter->target,
        .authority = authority_of(exporter),
        .tls = exporter->tls,
        .server_name = exporter->server_name,
        .user_agent = user_agent[0] != '\0' ? user_agent : http_settings_user_agent(),
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .credentials = exporter_auth_credentials(exporter->authenticator),
        .encoding = otlp_grpc_config_encoding(config),
        .timeout_ns = config->timeout_ns,
        .keepalive = keepalive_of(config),
        .is_pick_first = otlp_grpc_config_is_pick_first(config) || exporter->target.is_passthrough,
        .waits_for_ready = config->wait_for_ready,
    });
    return true;
}

static void on_client_closed(void *arg)
{
    component_stopped(arg);
}

static void otlp_grpc_exporter_stop(struct component *self)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    if (exporter->client == NULL)
        component_stopped(self);
    else
        grpc_client_close(exporter->client, on_client_closed, self);
}

static void otlp_grpc_exporter_destroy(struct component *self)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    grpc_client_destroy(exporter->client);
    tls_context_destroy(exporter->tls);
    codec_box_destroy(exporter->codecs);
    authenticator_destroy(exporter->authenticator);
    mem_free(exporter->server_name);
    mem_free(exporter->destination);
}

static const char *const otlp_grpc_exporter_aliases[] = {"otlp", NULL};

const struct component_factory otlp_grpc_exporter_factory = {
    .type = "otlp_grpc",
    .aliases = otlp_grpc_exporter_aliases,
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct otlp_grpc_exporter),
    .config_size = sizeof(struct otlp_grpc_config),
    .fields = otlp_grpc_fields,
    .counters_size = sizeof(struct otlp_grpc_exporter_counters),
    .counters = otlp_grpc_exporter_counters,
    .check = otlp_grpc_config_check,
    .create = otlp_grpc_exporter_create,
    .start = otlp_grpc_exporter_start,
    .consume = otlp_grpc_exporter_consume,
    .stop = otlp_grpc_exporter_stop,
    .destroy = otlp_grpc_exporter_destroy,
};
