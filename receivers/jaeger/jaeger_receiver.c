/* SPDX-License-Identifier: Apache-2.0 */
/* jaeger: receives traces as Jaeger's clients and agents send them, over gRPC, HTTP and UDP. This
 * file is its options, metrics and life cycle. The instance on lane 0 opens the listeners, which
 * distribute connections to the servers of all lanes, and the sockets for packets, which it reads
 * itself. Runs on its lane. */
#include "receivers/jaeger/jaeger_receiver.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/net/socket/packet_socket.h"

#include <assert.h>

enum { BODY_BYTES_DEFAULT = 20971520, MESSAGE_MIB_DEFAULT = 4 };

static const struct config_field grpc_fields[] = {
    SERVER_ROWS(struct grpc_server_config, listen, "localhost:14250"),
    SERVER_AUTH_ROW(struct grpc_server_config, listen, server_auth_fields),
    GRPC_SERVER_ROWS(struct grpc_server_config, "0: 4. More than 4095 is 4095."),
    CONFIG_END,
};

static const struct config_field http_fields[] = {
    SERVER_ROWS(struct jaeger_http_protocol, server.listen, "localhost:14268"),
    HTTP_SERVER_ROWS(struct jaeger_http_protocol, server, "20971520", "false"),
    CONFIG_END,
};

#define UDP_ROWS(address)                                                                          \
    CONFIG_TEXT(struct jaeger_udp_protocol, endpoint, "endpoint", address, "Where to listen."),    \
        CONFIG_COUNT(struct jaeger_udp_protocol, queue_size, "queue_size", "1000", 0, INT64_MAX,   \
                     "Packets on their way to the pipelines, beside those of workers; more are "   \
                     "dropped."),                                                                  \
        CONFIG_COUNT(struct jaeger_udp_protocol, packet_bytes_max, "max_packet_size", "65000", 0,  \
                     INT64_MAX, "Largest packet in bytes; larger ones are dropped."),              \
        CONFIG_COUNT(struct jaeger_udp_protocol, workers, "workers", "10", 1, INT64_MAX,           \
                     "Adds to queue_size: packets are read on the lane."),                         \
        CONFIG_COUNT(struct jaeger_udp_protocol, socket_buffer_bytes, "socket_buffer_size", "0",   \
                     0, INT64_MAX, "The socket's buffer in bytes. 0: the system's default.")

static const struct config_field compact_fields[] = {UDP_ROWS("localhost:6831"), CONFIG_END};
static const struct config_field binary_fields[] = {UDP_ROWS("localhost:6832"), CONFIG_END};

static bool check_grpc(const void *section, struct error *error)
{
    const struct grpc_server_config *grpc = section;
    return server_config_check(&grpc->listen, error);
}

static bool check_http(const void *section, struct error *error)
{
    const struct jaeger_http_protocol *http = section;
    return http_server_config_check(&http->server, error);
}

static bool check_udp(const void *section, struct error *error)
{
    const struct jaeger_udp_protocol *udp = section;
    const struct server_config listen = {.endpoint = udp->endpoint, .transport = "tcp"};
    return server_config_check(&listen, error);
}

static const struct config_field protocols_fields[] = {
    CONFIG_OPTIONAL(struct jaeger_protocols_config, grpc, struct grpc_server_config, has_grpc,
                    CONFIG_NULL_ENABLES, "grpc", grpc_fields, check_grpc,
                    "PostSpans of jaeger.api_v2.CollectorService."),
    CONFIG_OPTIONAL(struct jaeger_protocols_config, http, struct jaeger_http_protocol, has_http,
                    CONFIG_NULL_ENABLES, "thrift_http", http_fields, check_http,
                    "Thrift's binary protocol by POST /api/traces."),
    CONFIG_OPTIONAL(struct jaeger_protocols_config, compact, struct jaeger_udp_protocol,
                    has_compact, CONFIG_NULL_ENABLES, "thrift_compact", compact_fields, check_udp,
                    "emitBatch of the Agent's service by UDP, in Thrift's compact protocol."),
    CONFIG_OPTIONAL(struct jaeger_protocols_config, binary, struct jaeger_udp_protocol, has_binary,
                    CONFIG_NULL_ENABLES, "thrift_binary", binary_fields, check_udp,
                    "The same in Thrift's binary protocol."),
    CONFIG_END,
};

static const struct config_field sampling_fields[] = {
    CONFIG_TEXT(struct jaeger_sampling_config, host_endpoint, "host_endpoint", "", "Refused."),
    CONFIG_TEXT(struct jaeger_sampling_config, strategy_file, "strategy_file", "", "Refused."),
    CONFIG_DURATION_OR_NEGATIVE(struct jaeger_sampling_config, reload_interval_ns,
                                "strategy_file_reload_interval", "0", "Refused."),
    CONFIG_END,
};

static const struct config_field jaeger_receiver_fields[] = {
    CONFIG_SECTION(struct jaeger_receiver_config, protocols, struct jaeger_protocols_config,
                   "protocols", protocols_fields, NULL, "Each protocol has a listener of its own."),
    CONFIG_OPTIONAL(struct jaeger_receiver_config, sampling, struct jaeger_sampling_config,
                    has_sampling, CONFIG_NULL_IS_OFF, "remote_sampling", sampling_fields, NULL,
                    "Refused, as in the Go collector."),
    CONFIG_END,
};

#define TRANSPORT_ROW(transport, label, field, name, help)                                         \
    COUNTER_BY_SIGNAL(struct jaeger_receiver_counters, field[transport], COUNTER_SUM,              \
                      "otelcol_receiver_" name "_%s", SIGNAL_TRACES, "transport", label, help)

#define TRANSPORT_ROWS(field, name, help)                                                          \
    TRANSPORT_ROW(JAEGER_GRPC, "grpc", field, name, help),                                         \
        TRANSPORT_ROW(JAEGER_HTTP, "collector_http", field, name, help),                           \
        TRANSPORT_ROW(JAEGER_COMPACT, "udp_thrift_compact", field, name, help),                    \
        TRANSPORT_ROW(JAEGER_BINARY, "udp_thrift_binary", field, name, help)

#define PACKET_ROW(transport, label)                                                               \
    COUNTER_BY_SIGNAL(struct jaeger_receiver_counters, dropped_packets[transport], COUNTER_SUM,    \
                      "spanflame_jaeger_dropped_packets", SIGNAL_TRACES, "transport", label,       \
                      "Packets that were malformed, too large or too many; their spans are not "   \
                      "counted elsewhere.")

static const struct counter_row jaeger_receiver_counters[] = {
    TRANSPORT_ROWS(accepted, "accepted", "Number of items successfully pushed into the pipeline."),
    TRANSPORT_ROWS(refused, "refused",
                   "Number of items that could not be pushed into the pipeline."),
    PACKET_ROW(JAEGER_COMPACT, "udp_thrift_compact"),
    PACKET_ROW(JAEGER_BINARY, "udp_thrift_binary"),
    SERVER_TLS_COUNTERS(struct jaeger_receiver_counters, tls),
    HTTP_SERVER_COUNTERS(struct jaeger_receiver_counters, http),
    COUNTER_END,
};

extern const struct component_factory jaeger_receiver_factory;

static struct jaeger_receiver *jaeger_receiver_of(struct component *component)
{
    assert(component->factory == &jaeger_receiver_factory);
    return (struct jaeger_receiver *)component;
}

static bool jaeger_receiver_check(const void *section, struct error *error)
{
    const struct jaeger_receiver_config *config = section;
    if (config->has_sampling)
        return error_set(error, "remote sampling config detected in the Jaeger receiver; use the "
                                "`jaegerremotesampling` extension instead") ||
               error_at(error, "remote_sampling");
    const struct jaeger_protocols_config *protocols = &config->protocols;
    if (protocols->has_grpc || protocols->has_http || protocols->has_compact ||
        protocols->has_binary)
        return true;
    return error_set(error, "must specify at least one protocol when using the Jaeger receiver: "
                            "found none, expected grpc, thrift_http, thrift_compact or "
                            "thrift_binary under protocols") ||
           error_at(error, "protocols");
}

static bool jaeger_receiver_create(struct component *component, struct error *error)
{
    struct jaeger_receiver *self = jaeger_receiver_of(component);
    const struct jaeger_receiver_config *config = component->config;
    const struct jaeger_protocols_config *protocols = &config->protocols;
    const struct http_server_config *http = &protocols->http.server;
    struct jaeger_receiver_counters *counters = component->counters;
    self->config = protocols;
    for (enum jaeger_transport i = JAEGER_SERVERS; i < JAEGER_TRANSPORTS; i++) {
        bool is_compact = i == JAEGER_COMPACT;
        bool is_on = is_compact ? protocols->has_compact : protocols->has_binary;
        const struct jaeger_udp_protocol *udp =
            is_compact ? &protocols->compact : &protocols->binary;
        self->packets[i - JAEGER_SERVERS] =
            (struct jaeger_packets){.receiver = self, .transport = i, .config = is_on ? udp : NULL};
    }
    self->front = (struct span_front){
        .receiver = component,
        .ops = &jaeger_exchange_ops,
        .http = &self->servers[JAEGER_HTTP],
        .codecs = codec_box_create(component->budget),
        .helper_codecs = codec_box_create(component->budget),
    };
    struct server_front_settings settings = {
        .component = component,
        .tls_counters = &counters->tls,
        .counters = &counters->http,
    };
    if (protocols->has_grpc) {
        uint64_t bytes_max = grpc_server_config_message_max(&protocols->grpc);
        self->bytes_max[JAEGER_GRPC] = bytes_max > 0 ? bytes_max : MESSAGE_MIB_DEFAULT * MIB;
        settings.handler = &jaeger_grpc_handler;
        settings.place = "protocols::grpc";
        if (!server_front_create_grpc(&self->servers[JAEGER_GRPC], &protocols->grpc, &settings,
                                      error))
            return false;
    }
    if (protocols->has_http) {
        self->bytes_max[JAEGER_HTTP] = http_server_config_body_max(http, BODY_BYTES_DEFAULT);
        settings.handler = &jaeger_http_handler;
        settings.place = "protocols::thrift_http";
        if (!server_front_create_http(&self->servers[JAEGER_HTTP], http, &settings, error))
            return false;
    }
    return true;
}

static bool listen_for(struct component *first, enum jaeger_transport transport,
                       const struct server_config *config, struct error *error)
{
    const struct server_front *front = &jaeger_receiver_of(first)->servers[transport];
    size_t offset = (size_t)((const char *)front - (const char *)first);
    if (!server_front_listen(first, offset, config, error))
        return false;
    log_info(&first->logger,
             transport == JAEGER_GRPC ? "Starting gRPC server for Jaeger Protobuf"
                                      : "Starting HTTP server for Jaeger Thrift",
             log_text("endpoint", http_server_address(front->server)));
    return true;
}

static bool jaeger_receiver_start(struct component *component, struct error *error)
{
    struct jaeger_receiver *self = jaeger_receiver_of(component);
    const struct jaeger_protocols_config *config = self->config;
    if (component->first != component)
        return true;
    for (size_t i = 0; i < JAEGER_TRANSPORTS - JAEGER_SERVERS; i++)
        if (self->packets[i].config != NULL && !jaeger_packets_open(&self->packets[i], error))
            return false;
    if (config->has_grpc && !listen_for(component, JAEGER_GRPC, &config->grpc.listen, error))
        return false;
    return !config->has_http ||
           listen_for(component, JAEGER_HTTP, &config->http.server.listen, error);
}

void jaeger_receiver_check_stopped(struct jaeger_receiver *self)
{
    if (self->is_stopping && self->servers_open == 0 && self->exchanges == 0) {
        self->is_stopping = false;
        component_stopped(&self->base);
    }
}

static void on_server_stopped(void *arg)
{
    struct jaeger_receiver *self = arg;
    assert(self->servers_open > 0);
    self->servers_open--;
    jaeger_receiver_check_stopped(self);
}

static void jaeger_receiver_stop(struct component *component)
{
    struct jaeger_receiver *self = jaeger_receiver_of(component);
    assert(!self->is_stopping);
    for (enum jaeger_transport i = JAEGER_GRPC; i < JAEGER_SERVERS; i++)
        self->servers_open += self->servers[i].server != NULL;
    for (size_t i = 0; i < JAEGER_TRANSPORTS - JAEGER_SERVERS; i++)
        self->servers_open += self->packets[i].socket != NULL;
    self->is_stopping = true;
    for (size_t i = 0; i < JAEGER_TRANSPORTS - JAEGER_SERVERS; i++)
        if (self->packets[i].socket != NULL)
            packet_socket_close(self->packets[i].socket, on_server_stopped, self);
    for (enum jaeger_transport i = JAEGER_GRPC; i < JAEGER_SERVERS; i++)
        if (self->servers[i].server != NULL)
            http_server_stop(self->servers[i].server, on_server_stopped, self);
    jaeger_receiver_check_stopped(self);
}

static void jaeger_receiver_destroy(struct component *component)
{
    struct jaeger_receiver *self = jaeger_receiver_of(component);
    assert(self->exchanges == 0);
    for (enum jaeger_transport i = JAEGER_GRPC; i < JAEGER_SERVERS; i++)
        server_front_destroy(&self->servers[i]);
    codec_box_destroy(self->front.codecs);
    codec_box_destroy(self->front.helper_codecs);
}

const struct component_factory jaeger_receiver_factory = {
    .type = "jaeger",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct jaeger_receiver),
    .config_size = sizeof(struct jaeger_receiver_config),
    .fields = jaeger_receiver_fields,
    .counters_size = sizeof(struct jaeger_receiver_counters),
    .counters = jaeger_receiver_counters,
    .check = jaeger_receiver_check,
    .create = jaeger_receiver_create,
    .start = jaeger_receiver_start,
    .stop = jaeger_receiver_stop,
    .destroy = jaeger_receiver_destroy,
};
