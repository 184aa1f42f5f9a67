/* SPDX-License-Identifier: Apache-2.0 */
/* health_check: responds to HTTP probes as the Go collector's extension does, with 200 while
 * pipelines run, and 503 before and while they stop. Runs on lane 0. */
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* How often it checks whether the service is ready, until it is. */
#define READY_CHECK_NS ((uint64_t)20 * NS_PER_MS)

enum { TIME_TEXT_MAX = 64, STATUS_TEXT_MAX = 256 };

struct health_check_body_config {
    const char *healthy;
    const char *unhealthy;
};

/* For a section whose keys have no effect. */
struct health_check_unused_config {
    bool unused;
};

struct health_check_extension_config {
    struct http_server_config server;
    const char *path;
    bool use_v2;
    struct health_check_unused_config pipeline_check;
    bool has_response_body;
    struct health_check_body_config response_body;
};

struct health_check_extension {
    struct http_responder http;
    struct timer ready_check;
    bool was_ready;
    bool is_stopping;
};

static const struct config_field health_check_body_fields[] = {
    CONFIG_TEXT(struct health_check_body_config, healthy, "healthy", "",
                "Body of the response while the service is ready."),
    CONFIG_TEXT(struct health_check_body_config, unhealthy, "unhealthy", "",
                "Body of the response while it is not."),
    CONFIG_END,
};

static const struct config_field health_check_pipeline_fields[] = {
    CONFIG_IGNORED_BOOL("enabled", "The Go collector ignores it too."),
    CONFIG_IGNORED_TEXT("interval", "The Go collector ignores it too."),
    CONFIG_IGNORED_INT("exporter_failure_threshold", "The Go collector ignores it too."),
    CONFIG_END,
};

#define OWNER struct health_check_extension_config
static const struct config_field health_check_extension_fields[] = {
    HTTP_RESPONDER_ROWS(OWNER, server, "localhost:13133", "false"),
    CONFIG_TEXT(OWNER, path, "path", "/",
                "Path of the status; one that ends in / includes all paths below it."),
    CONFIG_OPTIONAL(OWNER, response_body, struct health_check_body_config, has_response_body,
                    CONFIG_NULL_IS_OFF, "response_body", health_check_body_fields, NULL,
                    "Fixed bodies instead of the JSON status."),
    CONFIG_SECTION(OWNER, pipeline_check, struct health_check_unused_config,
                   "check_collector_pipeline", health_check_pipeline_fields, NULL,
                   "It never worked in the Go collector, which ignores it too."),
    CONFIG_BOOL(OWNER, use_v2, "use_v2", "false",
                "The newer form, with statuses of components; not supported: true is an error."),
    CONFIG_IGNORED_MAP("component_health", "It belongs to use_v2."),
    CONFIG_END,
};
#undef OWNER

extern const struct component_factory health_check_extension_factory;

static struct health_check_extension *health_check_extension_of(struct component *base)
{
    assert(base->factory == &health_check_extension_factory);
    return (struct health_check_extension *)base;
}

static bool is_ready(const struct health_check_extension *self)
{
    const struct service_view *service = self->http.base.service;
    return !self->is_stopping && service->is_ready(service);
}

/* Logs a change of the state. */
static void note_state(struct health_check_extension *self, bool is_now_ready)
{
    assert(lane_is_current(self->http.base.lane));
    if (is_now_ready == self->was_ready)
        return;
    self->was_ready = is_now_ready;
    log_info(&self->http.base.logger, "Health Check state change",
             log_text("status", is_now_ready ? "ready" : "unavailable"));
}

static void on_ready_check(struct timer *timer, void *arg)
{
    struct health_check_extension *self = arg;
    note_state(self, is_ready(self));
    if (!self->was_ready)
        lane_timer_start(self->http.base.lane, timer, READY_CHECK_NS);
}

/* The fraction of a second as Go prints it: ".5", or nothing. */
static void print_fraction(char text[TIME_TEXT_MAX], uint64_t ns)
{
    assert(ns < NS_PER_S);
    text[0] = '\0';
    if (ns == 0)
        return;
    int size = snprintf(text, TIME_TEXT_MAX, ".%09" PRIu64, ns);
    while (text[size - 1] == '0')
        text[--size] = '\0';
}

/* RFC 3339 in UTC. */
static void print_time(char text[TIME_TEXT_MAX], uint64_t wall_ns)
{
    time_t second = (time_t)(wall_ns / NS_PER_S);
    struct tm utc;
    char fraction[TIME_TEXT_MAX];
    gmtime_r(&second, &utc);
    size_t size = strftime(text, TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
    print_fraction(fraction, wall_ns % NS_PER_S);
    snprintf(text + size, TIME_TEXT_MAX - size, "%.10sZ", fraction);
}

/* "1h1m1.5s", as Go prints durations of a second and more; shorter ones are in milliseconds. */
static void print_uptime(char text[TIME_TEXT_MAX], uint64_t ns)
{
    char fraction[TIME_TEXT_MAX];
    uint64_t seconds = ns / NS_PER_S;
    if (seconds == 0) {
        print_fraction(fraction, ns % NS_PER_MS * 1000);
        snprintf(text, TIME_TEXT_MAX, "%" PRIu64 "%.10sms", ns / NS_PER_MS, fraction);
        return;
    }
    print_fraction(fraction, ns % NS_PER_S);
    int size = 0;
    if (seconds >= 3600)
        size += snprintf(text, TIME_TEXT_MAX, "%" PRIu64 "h", seconds / 3600);
    if (seconds >= 60)
        size +=
            snprintf(text + size, TIME_TEXT_MAX - (size_t)size, "%" PRIu64 "m", seconds / 60 % 60);
    snprintf(text + size, TIME_TEXT_MAX - (size_t)size, "%" PRIu64 "%.10ss", seconds % 60,
             fraction);
}

static void respond(struct component *base, struct http_request *request)
{
    struct health_check_extension *self = health_check_extension_of(base);
    const struct health_check_extension_config *config = base->config;
    const struct service_view *service = base->service;
    bool is_now_ready = is_ready(self);
    note_state(self, is_now_ready);

    /* As in Go's mux, a path that ends in "/" includes all paths below it. */
    struct slice path = http_request_path(request);
    size_t path_bytes = strlen(config->path);
    if (config->path[path_bytes - 1] == '/' && path.size > path_bytes)
        path.size = path_bytes;
    if (!slice_equal_text(path, config->path)) {
        http_responder_respond_text(base, request, 404, "404 page not found\n");
        return;
    }

    struct http_response response = {.status = is_now_ready ? 200 : 503};
    char status[STATUS_TEXT_MAX];
    response.headers[0] = (struct http_header){"content-type", "text/plain; charset=utf-8"};
    if (config->has_response_body) {
        response.body = slice_of_text(is_now_ready ? config->response_body.healthy
                                                   : config->response_body.unhealthy);
    } else {
        char since[TIME_TEXT_MAX] = "0001-01-01T00:00:00Z";
        char uptime[TIME_TEXT_MAX] = "";
        if (is_now_ready) {
            uint64_t now_ns = clock_wall_ns();
            uint64_t since_ns = service->ready_since_wall_ns(service);
            print_time(since, since_ns);
            print_uptime(uptime, now_ns > since_ns ? now_ns - since_ns : 0);
        }
        snprintf(status, sizeof(status), "{\"status\":\"%s\",\"upSince\":\"%s\",\"uptime\":\"%s\"}",
                 is_now_ready ? "Server available" : "Server not available", since, uptime);
        response.headers[0].value = "application/json";
        response.body = slice_of_text(status);
    }
    http_responder_respond(base, request, &response);
}

static bool health_check_extension_check(const void *config, struct error *error)
{
    const struct health_check_extension_config *self = config;
    if (self->path[0] != '/')
        return error_set(error, "found \"%s\", expected a path that starts with /", self->path) ||
               error_at(error, "path");
    if (self->use_v2)
        return error_set(error, "use_v2 is not supported by this build; remove the key") ||
               error_unsupported(error) || error_at(error, "use_v2");
    return http_responder_check(&self->server, "localhost:13133", error);
}

static bool health_check_extension_create(struct component *base, struct error *error)
{
    struct health_check_extension *self = health_check_extension_of(base);
    const struct health_check_extension_config *config = base->config;
    timer_init(&self->ready_check, on_ready_check, self);
    self->http.must_respond = true;
    return http_responder_prepare(base, &config->server, respond, "Starting health_check extension",
                                  error);
}

static bool health_check_extension_start(struct component *base, struct error *error)
{
    struct health_check_extension *self = health_check_extension_of(base);
    if (!http_responder_start(base, error))
        return false;
    lane_timer_start(base->lane, &self->ready_check, 0);
    return true;
}

static void health_check_extension_stop(struct component *base)
{
    struct health_check_extension *self = health_check_extension_of(base);
    assert(!self->is_stopping);
    self->is_stopping = true;
    note_state(self, false);
    lane_timer_stop(base->lane, &self->ready_check);
    http_responder_stop(base);
}

const struct component_factory health_check_extension_factory = {
    .type = "health_check",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct health_check_extension),
    .config_size = sizeof(struct health_check_extension_config),
    .fields = health_check_extension_fields,
    .check = health_check_extension_check,
    .create = health_check_extension_create,
    .start = health_check_extension_start,
    .stop = health_check_extension_stop,
    .destroy = http_responder_destroy,
};
