/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: receives all signals over gRPC and HTTP. One listener per protocol, opened by the instance
 * on lane 0, deals its connections to the servers of all lanes. Runs on its lane. */
#include "receivers/otlp/otlp_receiver.h"

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/client_info.h"

#include <assert.h>
#include <string.h>

enum { SIGNALS = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES };

#define ROWS(field, what, text)                                                                    \
    COUNTER_BY_SIGNAL(struct otlp_receiver_counters, field[OTLP_GRPC], COUNTER_SUM,                \
                      "otelcol_receiver_" what "_%s", SIGNALS, "transport", "grpc", text),         \
        COUNTER_BY_SIGNAL(struct otlp_receiver_counters, field[OTLP_HTTP], COUNTER_SUM,            \
                          "otelcol_receiver_" what "_%s", SIGNALS, "transport", "http", text)

#define LAYOUT_ROW(layout, version)                                                                \
    {                                                                                              \
        .name = "spanflame_profiles_received",                                                     \
        .help = "Number of requests of profiles by the OTLP version that their layout is of.",     \
        .type = COUNTER_SUM, .label = "layout", .label_value = (version),                          \
        .offset = offsetof(struct otlp_receiver_counters, layouts[layout])                         \
    }

static const struct counter_row otlp_receiver_counters[] = {
    ROWS(accepted, "accepted", "Number of items successfully pushed into the pipeline."),
    ROWS(refused, "refused", "Number of items that could not be pushed into the pipeline."),
    ROWS(failed, "failed", "Number of items that failed to be processed by the receiver."),
    LAYOUT_ROW(LAYOUT_1_10, "1.10"),
    LAYOUT_ROW(LAYOUT_1_9, "1.9"),
    LAYOUT_ROW(LAYOUT_1_8, "1.8"),
    LAYOUT_ROW(LAYOUT_1_7, "1.7"),
    LAYOUT_ROW(LAYOUT_1_6, "1.6"),
    LAYOUT_ROW(LAYOUT_UNKNOWN, "unknown"),
    COUNTER(struct otlp_receiver_counters, profiles_rejected, COUNTER_SUM,
            "spanflame_profiles_rejected",
            "Number of Profile messages that were taken out of requests because they are broken."),
    COUNTER(struct otlp_receiver_counters, profile_attributes_dropped, COUNTER_SUM,
            "spanflame_profile_attributes_dropped",
            "Number of attributes of profiles that were dropped because they refer to nothing."),
    SERVER_TLS_COUNTERS(struct otlp_receiver_counters, tls),
    HTTP_SERVER_COUNTERS(struct otlp_receiver_counters, http),
    COUNTER_END,
};

extern const struct component_factory otlp_receiver_factory;

static struct otlp_receiver *otlp_receiver_of(struct component *component)
{
    assert(component->factory == &otlp_receiver_factory);
    return (struct otlp_receiver *)component;
}

static bool otlp_receiver_create(struct component *component, struct error *error)
{
    struct otlp_receiver *self = otlp_receiver_of(component);
    const struct otlp_receiver_config *config = component->config;
    const struct otlp_protocols_config *protocols = &config->protocols;
    struct otlp_receiver_counters *counters = component->counters;
    self->config = protocols;
    self->layout = config->profiles_layout > 0 ? (enum profile_layout)(config->profiles_layout - 1)
                                               : PROFILE_LAYOUTS;
    self->codecs = codec_box_create(component->budget);
    self->helper_codecs = codec_box_create(component->budget);
    struct server_front_settings settings = {
        .component = component,
        .tls_counters = &counters->tls,
        .counters = &counters->http,
    };
    if (protocols->has_grpc) {
        settings.handler = &otlp_grpc_handler;
        settings.place = "protocols::grpc";
        if (!server_front_create_grpc(&self->servers[OTLP_GRPC], &protocols->grpc, &settings,
                                      error))
            return false;
    }
    if (protocols->has_http) {
        for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++)
            self->url_paths[signal] = otlp_config_url_path(protocols->http.url_paths[signal]);
        settings.handler = &otlp_http_handler;
        settings.place = "protocols::http";
        if (!server_front_create_http(&self->servers[OTLP_HTTP], &protocols->http.server, &settings,
                                      error))
            return false;
    }
    return true;
}

static bool listen_for(struct component *first, enum otlp_transport transport,
                       const struct server_config *config, struct error *error)
{
    const struct server_front *front = &otlp_receiver_of(first)->servers[transport];
    size_t offset = (size_t)((const char *)front - (const char *)first);
    if (!server_front_listen(first, offset, config, error))
        return false;
    log_info(&first->logger,
             transport == OTLP_GRPC ? "Starting GRPC server" : "Starting HTTP server",
             log_text("endpoint", http_server_address(front->server)));
    return true;
}

static bool otlp_receiver_start(struct component *component, struct error *error)
{
    struct otlp_receiver *self = otlp_receiver_of(component);
    if (component->first != component)
        return true;
    if (self->config->has_grpc &&
        !listen_for(component, OTLP_GRPC, &self->config->grpc.listen, error))
        return false;
    return !self->config->has_http ||
           listen_for(component, OTLP_HTTP, &self->config->http.server.listen, error);
}

void otlp_receiver_check_stopped(struct otlp_receiver *self)
{
    if (self->is_stopping && self->servers_open == 0 && self->exchanges == 0) {
        self->is_stopping = false;
        component_stopped(&self->base);
    }
}

static void on_server_stopped(void *arg)
{
    struct otlp_receiver *self = arg;
    assert(self->servers_open > 0);
    self->servers_open--;
    otlp_receiver_check_stopped(self);
}

static void otlp_receiver_stop(struct component *component)
{
    struct otlp_receiver *self = otlp_receiver_of(component);
    assert(!self->is_stopping);
    for (enum otlp_transport transport = OTLP_GRPC; transport < OTLP_TRANSPORTS; transport++)
        self->servers_open += self->servers[transport].server != NULL;
    self->is_stopping = true;
    for (enum otlp_transport transport = OTLP_GRPC; transport < OTLP_TRANSPORTS; transport++)
        if (self->servers[transport].server != NULL)
            http_server_stop(self->servers[transport].server, on_server_stopped, self);
    otlp_receiver_check_stopped(self);
}

static void otlp_receiver_destroy(struct component *component)
{
    struct otlp_receiver *self = otlp_receiver_of(component);
    assert(self->exchanges == 0);
    for (enum otlp_transport transport = OTLP_GRPC; transport < OTLP_TRANSPORTS; transport++)
        server_front_destroy(&self->servers[transport]);
    for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++)
        mem_free(self->url_paths[signal]);
    client_info_unref(self->last_client);
    codec_box_destroy(self->codecs);
    codec_box_destroy(self->helper_codecs);
}

const struct component_factory otlp_receiver_factory = {
    .type = "otlp",
    .kind = RECEIVER,
    .stability = "stable",
    .signals = SIGNALS,
    .instance_size = sizeof(struct otlp_receiver),
    .config_size = sizeof(struct otlp_receiver_config),
    .fields = otlp_receiver_fields,
    .counters_size = sizeof(struct otlp_receiver_counters),
    .counters = otlp_receiver_counters,
    .check = otlp_config_check,
    .create = otlp_receiver_create,
    .start = otlp_receiver_start,
    .stop = otlp_receiver_stop,
    .destroy = otlp_receiver_destroy,
};
