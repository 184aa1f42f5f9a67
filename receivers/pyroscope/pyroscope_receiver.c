/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope: takes profiles as Pyroscope's SDKs and agents send them, on one port, over HTTP/1.1
 * and cleartext HTTP/2. The instance on lane 0 opens the listener, which deals connections to the
 * servers of all lanes. Runs on its lane. */
#include "receivers/pyroscope/pyroscope_receiver.h"

#include "receivers/pyroscope/pyroscope_exchange.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/codec/gzip.h"
#include "src/core/client_info.h"
#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>
#include <string.h>

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
            "Number of samples with a value below zero, which are left out as by the server."),
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

static void respond_ready(struct pyroscope_receiver *self, struct http_request *request)
{
    struct slice method = http_request_method(request);
    assert(method.size > 0);
    if (slice_equal_text(method, "GET") || slice_equal_text(method, "HEAD"))
        pyroscope_respond_text(self, request, 200, "ready");
    else
        pyroscope_respond(self, request,
                          &(struct http_response){.status = 405, .headers = {{"allow", "GET"}}});
}

static const struct route {
    const char *path;
    void (*handle)(struct pyroscope_receiver *self, struct http_request *request);
} routes[] = {
    {"/push.v1.PusherService/Push", pyroscope_push_request},
    {"/ingest", pyroscope_ingest_request},
    {"/pyroscope/ingest", pyroscope_ingest_request},
    {"/ready", respond_ready},
    {"/healthz", respond_ready},
};

/* Who may not come in is told so in the form of the protocol. */
static void refuse_stranger(struct pyroscope_receiver *self, struct http_request *request,
                            const struct outcome *outcome)
{
    static const char grpc_type[] = "application/grpc";
    struct slice type = http_request_header(request, "content-type");
    bool is_grpc = http_request_is_http2(request) && type.size >= sizeof(grpc_type) - 1 &&
                   memcmp(type.data, grpc_type, sizeof(grpc_type) - 1) == 0;
    assert(outcome->verdict == REFUSED);
    pyroscope_exchange_answer(
        pyroscope_exchange_create(self, request, is_grpc ? PYROSCOPE_GRPC : PYROSCOPE_CONNECT),
        outcome);
}

/* On every path, before a byte of a body is read. False: it has answered. */
static bool is_admitted(struct pyroscope_receiver *self, struct http_request *request)
{
    struct server_cors_room room;
    struct http_response response;
    struct auth_answer answer;
    assert(self->server != NULL);
    if (server_cors_preflight(&self->cors, request, &room, &response)) {
        pyroscope_respond(self, request, &response);
        return false;
    }
    enum auth_verdict verdict = server_auth_ask(&self->auth, request, &answer);
    struct slice tenant = http_request_header(request, CLIENT_TENANT_HEADER);
    if (verdict == AUTH_GRANTED && tenant.size <= CLIENT_TENANT_BYTES_MAX)
        return true;
    struct outcome outcome =
        outcome_refused(STATUS_UNAUTHENTICATED, "tenant ID is too long: max 150 characters");
    if (verdict != AUTH_GRANTED)
        outcome = verdict == AUTH_BUSY ? outcome_busy(answer.reason)
                                       : outcome_refused(STATUS_UNAUTHENTICATED, answer.reason);
    refuse_stranger(self, request, &outcome);
    return false;
}

static void on_request(struct http_request *request, void *arg)
{
    struct pyroscope_receiver *self = arg;
    assert(self->server != NULL);
    struct slice path = http_request_path(request);
    if (!is_admitted(self, request))
        return;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (slice_equal_text(path, routes[i].path)) {
            routes[i].handle(self, request);
            return;
        }
    pyroscope_respond_text(self, request, 404, "404 page not found\n");
}

static void on_body(struct http_request *request, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    assert(exchange->receiver == arg);
    (void)arg;
    if (exchange->ingest != NULL)
        pyroscope_ingest_body(exchange);
    else
        pyroscope_push_body(exchange);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct pyroscope_exchange *exchange = http_request_context(request);
    struct outcome outcome =
        outcome_refused(STATUS_INVALID_ARGUMENT, "the request body is malformed");
    assert(exchange->receiver == arg);
    (void)arg;
    if (failure == HTTP_BODY_TOO_LARGE) {
        exchange->http_status = 413;
        outcome = outcome_refused(STATUS_RESOURCE_EXHAUSTED,
                                  "request body too large: see max_request_body_size");
    } else if (failure == HTTP_BODY_NO_BUDGET) {
        outcome = outcome_busy("the memory budget is used up, try again later");
    } else if (failure == HTTP_BODY_TOO_SLOW) {
        exchange->http_status = 408;
        outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "the request body came too slowly");
    }
    pyroscope_exchange_answer(exchange, &outcome);
}

static void on_end(struct http_request *request, void *arg)
{
    assert(arg != NULL);
    (void)arg;
    pyroscope_exchange_end(request);
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = on_end,
};

/* Beside the budget, and small against it. */
static uint64_t reserve_bytes(const struct budget *budget)
{
    uint64_t bytes = budget_limit(budget) / PYROSCOPE_RESERVE_PART;
    assert(bytes > 0);
    return bytes < PYROSCOPE_RESERVE_BYTES_MAX ? bytes : PYROSCOPE_RESERVE_BYTES_MAX;
}

static bool pyroscope_receiver_create(struct component *component, struct error *error)
{
    struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    const struct pyroscope_receiver_config *config = component->config;
    const struct http_server_config *server = &config->server;
    struct pyroscope_receiver_counters *counters = component->counters;
    assert(error != NULL);
    self->gzip = gzip_create();
    self->helper_gzip = gzip_create();
    self->codecs = codec_box_create(component->budget);
    budget_init(&self->reserve, reserve_bytes(component->budget));
    self->tls.logger = &component->logger;
    self->tls.counters = &counters->tls;
    if (!component_is_rehearsed(component) &&
        !server_tls_context_init(&self->tls, &server->listen, true, error))
        return false;
    if (!server_auth_init(&self->auth, component, &server->listen, error))
        return error_prefix(error, "auth");
    if (server->has_cors)
        server_cors_init(&self->cors, &server->cors);
    self->response_headers = http_server_config_headers(server);
    struct http_server_settings settings = http_server_config_settings(server, component);
    settings.tls = self->tls.context;
    settings.counters = &counters->http;
    settings.handler = &handler;
    self->server = http_server_create(&settings);
    return true;
}

/* On lane 0, for the servers of all lanes. */
static bool pyroscope_receiver_start(struct component *component, struct error *error)
{
    assert(error != NULL);
    const struct pyroscope_receiver_config *config = component->config;
    struct http_server *servers[LANES_MAX];
    size_t count = 0;
    if (component->first != component)
        return true;
    for (struct component *c = component; c != NULL; c = c->next_lane) {
        assert(count < LANES_MAX);
        servers[count++] = pyroscope_receiver_of(c)->server;
    }
    if (!http_server_listen(servers, count, config->server.listen.transport,
                            config->server.listen.endpoint, error))
        return false;
    log_info(&component->logger, "Starting HTTP server",
             log_text("endpoint", http_server_address(servers[0])));
    return true;
}

void pyroscope_receiver_check_stopped(struct pyroscope_receiver *self)
{
    assert(self != NULL);
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
    http_server_stop(self->server, on_server_stopped, self);
}

static void pyroscope_receiver_destroy(struct component *component)
{
    struct pyroscope_receiver *self = pyroscope_receiver_of(component);
    assert(self->exchanges == 0);
    http_server_destroy(self->server);
    server_tls_context_fini(&self->tls);
    server_auth_fini(&self->auth);
    server_cors_fini(&self->cors);
    http_server_config_free_headers(&self->response_headers);
    gzip_destroy(self->gzip);
    gzip_destroy(self->helper_gzip);
    codec_box_destroy(self->codecs);
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
    .check = pyroscope_receiver_config_check,
    .create = pyroscope_receiver_create,
    .start = pyroscope_receiver_start,
    .stop = pyroscope_receiver_stop,
    .destroy = pyroscope_receiver_destroy,
};
