/* SPDX-License-Identifier: Apache-2.0 */
/* The server, from create to destroy. Runs on lane 0. */
#include "src/listen/http_responder.h"

#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <stdio.h>

enum { REASON_MAX = 512 };

static struct http_responder *http_responder_of(struct component *base)
{
    assert(base->factory->instance_size >= sizeof(struct http_responder));
    return (struct http_responder *)base;
}

bool http_responder_check(const struct http_server_config *config, const char *example,
                          struct error *error)
{
    if (config->listen.endpoint[0] == '\0')
        return error_set(error, "missing, expected host:port such as %s", example) ||
               error_at(error, "endpoint");
    return http_server_config_check(config, error);
}

/* Adds the headers that are configured for all responses. */
static void finish(struct http_responder *self, struct http_request *request,
                   struct http_response *response)
{
    response->common = self->front.response_headers;
    http_respond(request, response);
}

void http_responder_respond(struct component *base, struct http_request *request,
                            struct http_response *response)
{
    struct http_responder *self = http_responder_of(base);
    struct server_cors_room room;
    server_cors_add(&self->front.cors, request, &room, response);
    finish(self, request, response);
}

void http_responder_respond_body(struct component *base, struct http_request *request,
                                 unsigned status, const char *type, struct slice body)
{
    http_responder_respond(
        base, request,
        &(struct http_response){
            .status = status,
            .headers = {{"content-type", type}, {"x-content-type-options", "nosniff"}},
            .body = body,
        });
}

void http_responder_respond_text(struct component *base, struct http_request *request,
                                 unsigned status, const char *text)
{
    http_responder_respond_body(base, request, status, "text/plain; charset=utf-8",
                                slice_of_text(text));
}

static void on_request(struct http_request *request, void *arg)
{
    struct http_responder *self = arg;
    struct server_cors_room room;
    struct http_response response;
    struct auth_result result;
    /* Browsers send preflight requests without credentials. */
    if (server_cors_preflight(&self->front.cors, request, &room, &response)) {
        finish(self, request, &response);
        return;
    }
    enum auth_verdict verdict = server_auth_ask(&self->front.auth, request, &result);
    if (verdict == AUTH_PENDING)
        return;
    if (verdict == AUTH_GRANTED) {
        self->respond(&self->base, request);
        return;
    }
    char text[REASON_MAX];
    snprintf(text, sizeof(text), "%s\n", result.reason);
    http_responder_respond_text(&self->base, request, verdict == AUTH_BUSY ? 503 : 401, text);
}

/* Bodies are not read. */
static const struct http_handler handler = {.on_request = on_request};

bool http_responder_prepare(struct component *base, const struct http_server_config *config,
                            http_responder_fn respond, const char *start_message,
                            struct error *error)
{
    struct http_responder *self = http_responder_of(base);
    self->config = config;
    self->respond = respond;
    self->start_message = start_message;
    if (self->must_respond)
        budget_init_allowance(&self->allowance, base->budget, HTTP_PROBES_BYTES);
    return server_front_create_http(
        &self->front, config,
        &(struct server_front_settings){.component = base,
                                        .handler = &handler,
                                        .budget = self->must_respond ? &self->allowance : NULL},
        error);
}

bool http_responder_start(struct component *base, struct error *error)
{
    struct http_responder *self = http_responder_of(base);
    const struct server_config *listen = &self->config->listen;
    if (!server_front_listen(base, offsetof(struct http_responder, front), listen, error))
        return error_prefix(error, "failed to bind to address %s", listen->endpoint);
    log_info(&base->logger, self->start_message,
             log_text("endpoint", http_server_address(self->front.server)));
    return true;
}

void http_responder_begin(struct component *base)
{
    http_responder_of(base)->pending++;
}

void http_responder_end(struct component *base)
{
    struct http_responder *self = http_responder_of(base);
    assert(self->pending > 0);
    self->pending--;
    if (self->pending == 0 && self->has_stopped)
        component_stopped(base);
}

static void on_stopped(void *arg)
{
    struct http_responder *self = arg;
    self->has_stopped = true;
    if (self->pending == 0)
        component_stopped(&self->base);
}

void http_responder_stop(struct component *base)
{
    assert(lane_is_current(base->lane));
    http_server_stop(http_responder_of(base)->front.server, on_stopped, base);
}

void http_responder_destroy(struct component *base)
{
    struct http_responder *self = http_responder_of(base);
    server_front_destroy(&self->front);
    if (self->allowance.whole != NULL)
        budget_fini(&self->allowance);
}

size_t http_responder_read_command(char text[COMMAND_BYTES_MAX])
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t size = file != NULL ? fread(text, 1, COMMAND_BYTES_MAX - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[size] = '\0';
    return size;
}
