/* SPDX-License-Identifier: Apache-2.0 */
/* zipkin: receives traces as Zipkin's clients send them, on one port, over HTTP/1.1 and cleartext
 * HTTP/2. This file is its options, metrics and life cycle. The instance on lane 0 opens the
 * listener, which distributes connections to the servers of all lanes. Runs on its lane. */
#include "receivers/zipkin/zipkin_receiver.h"

#include "src/base/error.h"
#include "src/base/limits.h"

#include <assert.h>

enum { BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field zipkin_receiver_fields[] = {
    SERVER_ROWS(struct zipkin_receiver_config, server.listen, "localhost:9411"),
    HTTP_SERVER_ROWS(struct zipkin_receiver_config, server, "20971520", "false"),
    CONFIG_BOOL(struct zipkin_receiver_config, parses_strings, "parse_string_tags", "false",
                "Tags that are numbers, true or false become that instead of strings."),
    CONFIG_END,
};

#define FORM_ROW(form, transport, field, name, help)                                               \
    COUNTER_BY_SIGNAL(struct zipkin_receiver_counters, field[form], COUNTER_SUM,                   \
                      "otelcol_receiver_" name "_%s", SIGNAL_TRACES, "transport", transport, help)

#define FORM_ROWS(field, name, help)                                                               \
    FORM_ROW(ZIPKIN_V2_JSON, "http_v2_json", field, name, help),                                   \
        FORM_ROW(ZIPKIN_V2_PROTO, "http_v2_proto", field, name, help),                             \
        FORM_ROW(ZIPKIN_V1_JSON, "http_v1_json", field, name, help),                               \
        FORM_ROW(ZIPKIN_V1_THRIFT, "http_v1_thrift", field, name, help)

static const struct counter_row zipkin_receiver_counters[] = {
    FORM_ROWS(accepted, "accepted", "Number of items successfully pushed into the pipeline."),
    FORM_ROWS(refused, "refused", "Number of items that could not be pushed into the pipeline."),
    SERVER_TLS_COUNTERS(struct zipkin_receiver_counters, tls),
    HTTP_SERVER_COUNTERS(struct zipkin_receiver_counters, http),
    COUNTER_END,
};

extern const struct component_factory zipkin_receiver_factory;

static struct zipkin_receiver *zipkin_receiver_of(struct component *component)
{
    assert(component->factory == &zipkin_receiver_factory);
    return (struct zipkin_receiver *)component;
}

static bool zipkin_receiver_check(const void *section, struct error *error)
{
    const struct zipkin_receiver_config *config = section;
    return http_server_config_check(&config->server, error);
}

static bool zipkin_receiver_create(struct component *component, struct error *error)
{
    struct zipkin_receiver *self = zipkin_receiver_of(component);
    const struct zipkin_receiver_config *config = component->config;
    const struct http_server_config *server = &config->server;
    struct zipkin_receiver_counters *counters = component->counters;
    self->config = config;
    self->body_bytes_max = http_server_config_body_max(server, BODY_BYTES_DEFAULT);
    self->front = (struct span_front){
        .receiver = component,
        .ops = &zipkin_exchange_ops,
        .http = &self->http,
        .codecs = codec_box_create(component->budget),
        .helper_codecs = codec_box_create(component->budget),
    };
    return server_front_create_http(&self->http, server,
                                    &(struct server_front_settings){
                                        .component = component,
                                        .handler = &zipkin_handler,
                                        .tls_counters = &counters->tls,
                                        .counters = &counters->http,
                                    },
                                    error);
}

static bool zipkin_receiver_start(struct component *component, struct error *error)
{
    const struct zipkin_receiver_config *config = component->config;
    const struct zipkin_receiver *self = zipkin_receiver_of(component);
    if (component->first != component)
        return true;
    if (!server_front_listen(component, offsetof(struct zipkin_receiver, http),
                             &config->server.listen, error))
        return false;
    log_info(&component->logger, "Starting HTTP server",
             log_text("endpoint", http_server_address(self->http.server)));
    return true;
}

void zipkin_receiver_check_stopped(struct zipkin_receiver *self)
{
    if (self->is_stopping && !self->is_server_open && self->exchanges == 0) {
        self->is_stopping = false;
        component_stopped(&self->base);
    }
}

static void on_server_stopped(void *arg)
{
    struct zipkin_receiver *self = arg;
    assert(self->is_server_open);
    self->is_server_open = false;
    zipkin_receiver_check_stopped(self);
}

static void zipkin_receiver_stop(struct component *component)
{
    struct zipkin_receiver *self = zipkin_receiver_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    self->is_server_open = true;
    http_server_stop(self->http.server, on_server_stopped, self);
}

static void zipkin_receiver_destroy(struct component *component)
{
    struct zipkin_receiver *self = zipkin_receiver_of(component);
    assert(self->exchanges == 0);
    server_front_destroy(&self->http);
    codec_box_destroy(self->front.codecs);
    codec_box_destroy(self->front.helper_codecs);
}

const struct component_factory zipkin_receiver_factory = {
    .type = "zipkin",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct zipkin_receiver),
    .config_size = sizeof(struct zipkin_receiver_config),
    .fields = zipkin_receiver_fields,
    .counters_size = sizeof(struct zipkin_receiver_counters),
    .counters = zipkin_receiver_counters,
    .check = zipkin_receiver_check,
    .create = zipkin_receiver_create,
    .start = zipkin_receiver_start,
    .stop = zipkin_receiver_stop,
    .destroy = zipkin_receiver_destroy,
};
