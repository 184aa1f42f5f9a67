/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope: receives profiles as Pyroscope's SDKs and agents send them, on one port, over HTTP/1.1
 * and cleartext HTTP/2. This file is its options, metrics and life cycle. The instance on lane 0
 * opens the listener, which distributes connections to the servers of all lanes. Runs on its lane.
 */
#include "receivers/pyroscope/pyroscope_receiver.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/codec/gzip.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>

enum { BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field limits_fields[] = {
    CONFIG_COUNT(struct upload_limits, label_names, "max_label_names_per_series", "30", 0, 128,
                 "Most labels of a series, with those that its samples add."),
    CONFIG_COUNT(struct upload_limits, label_name_bytes, "max_label_name_length", "1024", 0, 1024,
                 "Most bytes of a label's name."),
    CONFIG_COUNT(struct upload_limits, label_value_bytes, "max_label_value_length", "2048", 0,
                 65535, "Most bytes of a label's value."),
    CONFIG_COUNT(struct upload_limits, sample_labels, "max_profile_stacktrace_sample_labels", "100",
                 0, 128, "Most labels of a sample."),
    CONFIG_DURATION(struct upload_limits, older_than_ns, "reject_older_than", "1h", 0, INT64_MAX,
                    "How old a profile may be."),
    CONFIG_DURATION(struct upload_limits, newer_than_ns, "reject_newer_than", "10m", 0, INT64_MAX,
                    "How far in the future it may be."),
    CONFIG_END,
};

static const struct config_field pyroscope_receiver_fields[] = {
    SERVER_ROWS(struct pyroscope_receiver_config, server.listen, "localhost:4040"),
    HTTP_SERVER_ROWS(struct pyroscope_receiver_config, server, "20971520", "true"),
    CONFIG_SECTION(struct pyroscope_receiver_config, limits, struct upload_limits, "limits",
                   limits_fields, NULL,
                   "Profiles beyond these are refused with an error. Names and defaults are "
                   "those of the server's own limits. 0: no limit."),
    CONFIG_END,
};

static const struct counter_row pyroscope_receiver_counters[] = {
    COUNTER_BY_SIGNAL(struct pyroscope_receiver_counters, accepted, COUNTER_SUM,
                      "otelcol_receiver_accepted_%s", SIGNAL_PROFILES, "transport", "http",
                      "Number of items successfully pushed into the pipeline."),
    COUNTER_BY_SIGNAL(struct pyroscope_receiver_counters, refused, COUNTER_SUM,
                      "otelcol_receiver_refused_%s", SIGNAL_PROFILES, "transport", "http",
                      "Number of items that could not be pushed into the pipeline."),
    COUNTER(struct pyroscope_receiver_counters, waits, COUNTER_SUM, "spanflame_pyroscope_waits",
            "Number of requests that waited for room in the budget or the pipeline."),
    COUNTER(struct pyroscope_receiver_counters, empty, COUNTER_SUM,
            "spanflame_pyroscope_empty_profiles",
            "Number of profiles without values, which are accepted and not passed on."),
    COUNTER(struct pyroscope_receiver_counters, negative, COUNTER_SUM,
            "spanflame_pyroscope_left_out_samples",
            "Number of samples with a negative value, which are left out as the server does."),
    SERVER_TLS_COUNTERS(struct pyroscope_receiver_counters, tls),
    HTTP_SERVER_COUNTERS(struct pyroscope_receiver_counters, http),
    COUNTER_END,
};

extern const struct component_factory pyroscope_receiver_factory;

static struct pyroscope_receiver *pyroscope_receiver_of(struct component *component)
{
    assert(component->factory == &pyroscope_receiver_factory);
    return (struct pyroscope_receiver *)component;
}

static bool pyroscope_receiver_check(const void *section, struct error *error)
{
    const struct pyroscope_receiver_config *config = section;
    return http_server_config_check(&config->server, error);
}

static bool pyroscope_receiver_create(struct component *component, struct error *error)
{
    struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    const struct pyroscope_receiver_config *config = component->config;
    const struct http_server_config *server = &config->server;
    struct pyroscope_receiver_counters *counters = component->counters;
    uint64_t reserve = budget_limit(component->budget) / PYROSCOPE_RESERVE_PART;
    self->body_bytes_max = http_server_config_body_max(server, BODY_BYTES_DEFAULT);
    self->limits = &config->limits;
    self->gzip = gzip_create();
    self->helper_gzip = gzip_create();
    self->codecs = codec_box_create(component->budget);
    self->helper_codecs = codec_box_create(component->budget);
    budget_init(&self->reserve,
                reserve < PYROSCOPE_RESERVE_BYTES_MAX ? reserve : PYROSCOPE_RESERVE_BYTES_MAX);
    return server_front_create_http(&self->http, server,
                                    &(struct server_front_settings){
                                        .component = component,
                                        .handler = &pyroscope_handler,
                                        .tls_counters = &counters->tls,
                                        .counters = &counters->http,
                                    },
                                    error);
}

static bool pyroscope_receiver_start(struct component *component, struct error *error)
{
    const struct pyroscope_receiver_config *config = component->config;
    const struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    if (component->first != component)
        return true;
    if (!server_front_listen(component, offsetof(struct pyroscope_receiver, http),
                             &config->server.listen, error))
        return false;
    log_info(&component->logger, "Starting HTTP server",
             log_text("endpoint", http_server_address(self->http.server)));
    return true;
}

void pyroscope_receiver_check_stopped(struct pyroscope_receiver *self)
{
    if (self->is_stopping && !self->is_server_open && self->exchanges == 0) {
        self->is_stopping = false;
        component_stopped(&self->base);
    }
}

static void on_server_stopped(void *arg)
{
    struct pyroscope_receiver *self = arg;
    assert(self->is_server_open);
    self->is_server_open = false;
    pyroscope_receiver_check_stopped(self);
}

static void pyroscope_receiver_stop(struct component *component)
{
    struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    assert(!self->is_stopping);
    self->is_stopping = true;
    self->is_server_open = true;
    http_server_stop(self->http.server, on_server_stopped, self);
}

static void pyroscope_receiver_destroy(struct component *component)
{
    struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    assert(self->exchanges == 0);
    server_front_destroy(&self->http);
    gzip_destroy(self->gzip);
    gzip_destroy(self->helper_gzip);
    codec_box_destroy(self->codecs);
    codec_box_destroy(self->helper_codecs);
    budget_fini(&self->reserve);
}

const struct component_factory pyroscope_receiver_factory = {
    .type = "pyroscope",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_PROFILES,
    .instance_size = sizeof(struct pyroscope_receiver),
    .config_size = sizeof(struct pyroscope_receiver_config),
    .fields = pyroscope_receiver_fields,
    .counters_size = sizeof(struct pyroscope_receiver_counters),
    .counters = pyroscope_receiver_counters,
    .check = pyroscope_receiver_check,
    .create = pyroscope_receiver_create,
    .start = pyroscope_receiver_start,
    .stop = pyroscope_receiver_stop,
    .destroy = pyroscope_receiver_destroy,
};
