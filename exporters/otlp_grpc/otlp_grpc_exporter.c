/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_grpc: sends batches unchanged, compressed or not, to an OTLP/gRPC back-end. Each consume is
 * one attempt; queue, batching and retries come before it (src/pipeline/exporter_queue.h), and a
 * repeated batch is compressed again. One instance per lane and signal, on its lane. */
#include "exporters/shared/exporter_auth.h"
#include "exporters/shared/exporter_client.h"
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
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/listen/authenticator.h"
#include "src/listen/server_config.h"
#include "src/net/client/grpc_client.h"
#include "src/net/client/grpc_metadata.h"
#include "src/net/client/grpc_target.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/rpc_status.h"
#include "src/net/tls/tls_context.h"
#include "src/otlp/response.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* grpc-go's limits, whatever is configured. */
#define KEEPALIVE_TIME_MIN_NS ((uint64_t)10 * NS_PER_S)
#define KEEPALIVE_TIMEOUT_NS  ((uint64_t)20 * NS_PER_S)

enum { CODE_TEXT_MAX = 32, MESSAGE_MAX = 2048 };

/* ---- options ---- */

struct otlp_grpc_keepalive_config {
    uint64_t time_ns;
    uint64_t timeout_ns;
    bool permit_without_stream;
};

struct otlp_grpc_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    int compression; /* enum compression */
    struct tls_client_config tls;
    struct config_pairs headers;
    const char *balancer_name;
    bool has_keepalive;
    struct otlp_grpc_keepalive_config keepalive;
    bool wait_for_ready;
    const char *authority;
    const char *user_agent;
    struct exporter_auth_config auth;
    struct config_sections middlewares; /* struct server_middleware_config */
    uint64_t timeout_ns;
};

enum compression {
    COMPRESSION_GZIP,
    COMPRESSION_SNAPPY,
    COMPRESSION_ZSTD,
    COMPRESSION_NONE,
    COMPRESSION_EMPTY
};
static const char *const compressions[] = {"gzip", "snappy", "zstd", "none", "", NULL};

static const struct config_field keepalive_fields[] = {
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_grpc_keepalive_config, time_ns, "time", "10s",
        "Silence after which the back-end is pinged; at least 10s, 0: never."),
    CONFIG_DURATION_OR_NEGATIVE(
        struct otlp_grpc_keepalive_config, timeout_ns, "timeout", "10s",
        "How long to wait for the ping's response before closing the connection; 0: 20s."),
    CONFIG_BOOL(struct otlp_grpc_keepalive_config, permit_without_stream, "permit_without_stream",
                "false", "Also ping while no request is in flight."),
    CONFIG_END,
};

static const struct config_field otlp_grpc_fields[] = {
    CONFIG_TEXT(struct otlp_grpc_config, endpoint, "endpoint", NULL,
                "host:port, bare or after http://, https:// (which forces TLS), dns:/// or "
                "passthrough:///; or unix:///path."),
    CONFIG_CHOICE(struct otlp_grpc_config, compression, "compression", "gzip", compressions,
                  "Of messages: gzip, snappy, zstd or none."),
    TLS_CLIENT_ROW(struct otlp_grpc_config, tls),
    CONFIG_HEADERS(struct otlp_grpc_config, headers, "headers",
                   "Metadata of every request; values of names that end in -bin are sent in "
                   "base64."),
    CONFIG_TEXT(struct otlp_grpc_config, balancer_name, "balancer_name", "round_robin",
                "round_robin: a connection to each address of the endpoint; pick_first: one."),
    CONFIG_OPTIONAL(struct otlp_grpc_config, keepalive, struct otlp_grpc_keepalive_config,
                    has_keepalive, CONFIG_NULL_ENABLES, "keepalive", keepalive_fields, NULL,
                    "Pings that detect whether a silent back-end is alive."),
    CONFIG_BOOL(struct otlp_grpc_config, wait_for_ready, "wait_for_ready", "false",
                "While there is no connection, attempts wait until their timeout instead of "
                "failing at once."),
    CONFIG_TEXT(struct otlp_grpc_config, authority, "authority", NULL,
                "The :authority of requests, instead of the endpoint's host:port."),
    CONFIG_TEXT(struct otlp_grpc_config, user_agent, "user_agent", NULL,
                "The user agent, instead of ours."),
    EXPORTER_AUTH_ROW(struct otlp_grpc_config, auth),
    CONFIG_SECTIONS(struct otlp_grpc_config, middlewares, struct server_middleware_config,
                    "middlewares", server_middleware_fields, NULL, "Not supported yet."),
    CONFIG_DURATION(struct otlp_grpc_config, timeout_ns, "timeout", "5s", 0, INT64_MAX,
                    "Limit of one attempt; 0: none."),
    CONFIG_IGNORED_INT("read_buffer_size", "Responses are small; the buffer is ours."),
    CONFIG_IGNORED_INT("write_buffer_size", "Messages are sent without a buffer."),
    SENDING_QUEUE_ROW(struct otlp_grpc_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct otlp_grpc_config),
    CONFIG_END,
};

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* insecure is ignored when an authority is given, and overruled by https://. */
static bool has_tls(const struct otlp_grpc_config *config, bool is_https)
{
    const struct tls_client_config *tls = &config->tls;
    bool has_authority = tls->common.ca_file[0] != '\0' || tls->common.ca_pem[0] != '\0';
    return is_https || has_authority || !tls->insecure;
}

static bool otlp_grpc_exporter_check(const void *section, struct error *error)
{
    const struct otlp_grpc_config *config = section;
    const char *balancer = config->balancer_name;
    struct grpc_target target;
    if (!grpc_target_parse(config->endpoint, &target, error))
        return error_at(error, "endpoint");
    if (balancer[0] != '\0' && strcasecmp(balancer, "round_robin") != 0 &&
        strcasecmp(balancer, "pick_first") != 0)
        return error_set(error, "invalid balancer_name: %s; round_robin or pick_first is expected",
                         balancer) ||
               error_at(error, "balancer_name");
    if (!is_printable(config->user_agent))
        return error_set(error, "user_agent has a line break or another character that is not "
                                "printable ASCII") ||
               error_at(error, "user_agent");
    if (!is_printable(config->authority) || strchr(config->authority, ' ') != NULL)
        return error_set(error, "\"%s\" is not a host:port", config->authority) ||
               error_at(error, "authority");
    if (!grpc_metadata_check(config->headers.pairs, config->headers.count, error))
        return error_at(error, "headers");
    if (config->middlewares.count > 0)
        return error_set(error,
                         "middlewares are not supported by this build yet; remove the key") ||
               error_unsupported(error) || error_at(error, "middlewares");
    return true;
}

/* How messages are compressed. */
static enum codec codec_of(const struct otlp_grpc_config *config)
{
    switch ((enum compression)config->compression) {
    case COMPRESSION_GZIP:
        return CODEC_GZIP;
    case COMPRESSION_SNAPPY:
        /* What gRPC calls snappy is the framed format. */
        return CODEC_SNAPPY_FRAMED;
    case COMPRESSION_ZSTD:
        return CODEC_ZSTD;
    case COMPRESSION_NONE:
    case COMPRESSION_EMPTY:
    default:
        return CODEC_NONE;
    }
}

/* ---- attempts ---- */

struct otlp_grpc_exporter_counters {
    counter odd_responses;
    counter unconvertible;
};

static const struct counter_row otlp_grpc_exporter_counters[] = {
    COUNTER(struct otlp_grpc_exporter_counters, odd_responses, COUNTER_SUM,
            "spanflame_exporter_odd_answers",
            "OK responses without an OTLP response; they count as sent."),
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

/* One call. */
struct attempt {
    struct otlp_grpc_exporter *exporter;
    struct batch *batch;
    struct receipt *receipt;
    uint64_t left_out;         /* items that are not sent */
    struct batch_part encoded; /* owner NULL: the batch's own parts */
};

extern const struct component_factory otlp_grpc_exporter_factory;

static struct otlp_grpc_exporter *otlp_grpc_exporter_of(struct component *base)
{
    assert(base->factory == &otlp_grpc_exporter_factory);
    return (struct otlp_grpc_exporter *)base;
}

static void attempt_end(struct attempt *attempt, const struct outcome *outcome)
{
    struct receipt *receipt = attempt->receipt;
    buffer_unref(attempt->encoded.owner);
    batch_unref(attempt->batch);
    mem_free(attempt);
    receipt_resolve(receipt, outcome);
}

static void on_done(const struct grpc_result *result, void *arg)
{
    struct attempt *attempt = arg;
    const struct otlp_grpc_config *config = attempt->exporter->base.config;
    const struct request_secrets secrets = {
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .credentials = exporter_auth_credentials(attempt->exporter->authenticator),
        .edits = result->edits,
    };
    if (result->code == STATUS_OK) {
        /* Counts as delivered, whatever the message: it can only say that some items were
         * rejected. */
        struct otlp_delivery *delivery = &attempt->exporter->delivery;
        struct outcome outcome = outcome_accepted;
        struct buffer *inflated = NULL;
        struct slice body = result->body;
        bool is_inflated = true;
        if (result->is_compressed && !result->is_cut) {
            enum codec codec = codec_of_grpc(result->encoding);
            is_inflated = codec != CODEC_NONE && codec != CODECS &&
                          codec_inflate(attempt->exporter->codecs, codec, body, RESPONSE_BYTES_MAX,
                                        &inflated) == CODEC_OK;
            if (is_inflated)
                body = buffer_slice(inflated);
        }
        if (result->is_cut)
            otlp_delivery_odd(delivery, "the message is missing, truncated or too large");
        else if (!is_inflated)
            otlp_delivery_odd(delivery, "the message cannot be decompressed");
        else if (!otlp_delivery_take(delivery, body, &secrets, attempt->batch,
                                     &outcome.rejected_items))
            otlp_delivery_odd(delivery, "the message is malformed");
        buffer_unref(inflated);
        profile_outgoing_count(&attempt->exporter->outgoing, attempt->left_out);
        otlp_delivery_left_out(&outcome, attempt->left_out);
        attempt_end(attempt, &outcome);
        return;
    }
    /* Clients get the message and the details, without our secrets. Codes have grpc-go's names. */
    char message[MESSAGE_MAX];
    char number[CODE_TEXT_MAX];
    uint8_t details[RPC_DETAILS_MAX];
    uint64_t delay_ns = 0;
    snprintf(number, sizeof(number), "Code(%u)", result->wire_code);
    bool is_known = result->wire_code <= STATUS_UNAUTHENTICATED;
    snprintf(message, sizeof(message), "rpc error: code = %s desc = %s",
             is_known ? status_code_name((enum status_code)result->wire_code) : number,
             result->message);
    request_secrets_redact(&secrets, message, sizeof(message));
    bool has_retry_info = otlp_response_retry_delay(result->details, &delay_ns);
    /* As the Go collector: retries what it maps to 503, and RESOURCE_EXHAUSTED with RetryInfo. */
    unsigned http_status = rpc_code_to_http(result->code);
    bool is_permanent = http_status != 503 && !(http_status == 429 && has_retry_info);
    struct outcome outcome = {
        .verdict = REFUSED,
        .code = result->code,
        .is_permanent = is_permanent,
        .retry_after_ns = is_permanent ? 0 : delay_ns,
        .is_hint_for_all = true,
        .message = message,
        .details =
            slice_of(details, otlp_status_details(result->details, details, sizeof(details))),
    };
    if (request_secrets_are_in(&secrets, outcome.details))
        outcome.details = slice_of(NULL, 0);
    if (is_permanent)
        profile_outgoing_count(&attempt->exporter->outgoing, attempt->left_out);
    attempt_end(attempt, &outcome);
}

static void otlp_grpc_exporter_consume(struct component *self, struct batch *batch,
                                       struct receipt *receipt)
{
    static const char *const paths[SIGNAL_KINDS] = {
        [TRACES] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        [METRICS] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        [LOGS] = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        [PROFILES] = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    };
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    enum codec codec = codec_of(self->config);
    assert(batch->signal == self->signal);
    struct batch *sent = profile_outgoing_batch(&exporter->outgoing, batch, receipt);
    if (sent == NULL)
        return;
    struct attempt *attempt = mem_zalloc(sizeof(*attempt));
    attempt->exporter = exporter;
    attempt->batch = sent;
    attempt->receipt = receipt;
    attempt->left_out = batch->items - sent->items;
    if (codec != CODEC_NONE) {
        struct buffer *output;
        const struct codec_input input = {
            .parts = sent->parts,
            .parts_count = sent->parts_count,
            .level = codec == CODEC_GZIP ? -1 : 0,
        };
        budget_begin_export();
        enum codec_result result = codec_deflate(exporter->codecs, codec, &input, &output);
        budget_end_export();
        if (result != CODEC_OK) {
            struct outcome outcome =
                outcome_no_memory("no memory left in the budget to compress a request");
            attempt_end(attempt, &outcome);
            return;
        }
        attempt->encoded = (struct batch_part){.owner = output, .bytes = buffer_slice(output)};
    }
    bool is_encoded = attempt->encoded.owner != NULL;
    const struct grpc_post post = {
        .path = paths[batch->signal],
        .parts = is_encoded ? &attempt->encoded : sent->parts,
        .parts_count = is_encoded ? 1 : sent->parts_count,
        .bytes = is_encoded ? attempt->encoded.bytes.size : sent->bytes,
        .is_compressed = is_encoded,
        .client = sent->client,
        .done = on_done,
        .arg = attempt,
    };
    grpc_client_post(exporter->client, &post);
}

/* ---- life cycle ---- */

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
        .odd_responses = counters != NULL ? &counters->odd_responses : NULL,
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
    return codec_prepare(codec_of(config), error) &&
           (has_tls(config, exporter->target.is_https) ||
            exporter_auth_check_cleartext(self, &config->auth, error)) &&
           exporter_auth_create(self, &config->auth, &exporter->authenticator, error);
}

static bool otlp_grpc_exporter_start(struct component *self, struct error *error)
{
    static const char *const protocols[] = {"h2", NULL};
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    const struct otlp_grpc_config *config = self->config;
    const struct grpc_target *target = &exporter->target;
    const char *authority = config->authority[0] != '\0' ? config->authority : NULL;
    if (has_tls(config, target->is_https)) {
        const struct tls_context_settings settings = {.protocols = protocols};
        struct endpoint named;
        struct error ignored;
        if (!tls_client_check_files(&config->tls, error))
            return false;
        /* A configured authority is also the name of the server. */
        bool has_port = authority != NULL && endpoint_parse(authority, &named, &ignored);
        exporter->server_name = mem_copy_text(has_port                  ? named.host
                                              : authority != NULL       ? authority
                                              : target->host[0] != '\0' ? target->host
                                                                        : target->authority);
        exporter->tls = tls_context_create_client(&config->tls, &settings, error);
        if (exporter->tls == NULL)
            return false;
        if (authority == NULL && config->tls.server_name_override[0] != '\0')
            authority = config->tls.server_name_override;
    }
    struct http2_keepalive keepalive = {.time_ns = 0};
    if (config->has_keepalive && config->keepalive.time_ns != 0) {
        uint64_t time_ns = config->keepalive.time_ns;
        uint64_t timeout_ns = config->keepalive.timeout_ns;
        keepalive = (struct http2_keepalive){
            .time_ns = time_ns > KEEPALIVE_TIME_MIN_NS ? time_ns : KEEPALIVE_TIME_MIN_NS,
            .timeout_ns = timeout_ns > 0 ? timeout_ns : KEEPALIVE_TIMEOUT_NS,
            .permit_without_stream = config->keepalive.permit_without_stream,
        };
    }
    const char *user_agent = config->user_agent;
    exporter->client = grpc_client_create(&(struct grpc_client_settings){
        .lane = self->lane,
        .budget = self->budget,
        .target = target,
        .authority = authority != NULL ? authority : target->authority,
        .tls = exporter->tls,
        .server_name = exporter->server_name,
        .user_agent = user_agent[0] != '\0' ? user_agent : exporter_client_user_agent(),
        .headers = config->headers.pairs,
        .headers_count = config->headers.count,
        .credentials = exporter_auth_credentials(exporter->authenticator),
        .encoding =
            config->compression < COMPRESSION_NONE ? compressions[config->compression] : NULL,
        .timeout_ns = config->timeout_ns,
        .keepalive = keepalive,
        .is_pick_first =
            strcasecmp(config->balancer_name, "pick_first") == 0 || target->is_passthrough,
        .waits_for_ready = config->wait_for_ready,
    });
    return true;
}

static void otlp_grpc_exporter_stop(struct component *self)
{
    struct otlp_grpc_exporter *exporter = otlp_grpc_exporter_of(self);
    if (exporter->client == NULL)
        component_stopped(self);
    else
        grpc_client_close(exporter->client, exporter_client_closed, self);
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
    .check = otlp_grpc_exporter_check,
    .create = otlp_grpc_exporter_create,
    .start = otlp_grpc_exporter_start,
    .consume = otlp_grpc_exporter_consume,
    .stop = otlp_grpc_exporter_stop,
    .destroy = otlp_grpc_exporter_destroy,
};
