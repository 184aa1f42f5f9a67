/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server. With a token, requests without it get no information. Without one it listens
 * on this host only, and rejects what web pages in a local browser can send: other media types,
 * which need no CORS preflight, and Host headers with other names (DNS rebinding). Lane 0. */
#include "processors/trace_profile_join/trace_profile_control.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include "processors/trace_profile_join/trace_profile_rules.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/core/component.h"
#include "src/net/server/http_server.h"
#include "src/net/socket/endpoint.h"
#include "src/net/syntax/media_type.h"

#define READ_DEADLINE_NS ((uint64_t)5 * NS_PER_S)

enum { BODY_BYTES_MAX = 4096 };

const struct config_field trace_profile_control_fields[] = {
    CONFIG_TEXT(struct join_control_config, endpoint, "endpoint", NULL,
                "host:port for changing keep at run time. Empty: off."),
    CONFIG_SECRET(struct join_control_config, token, "token",
                  "Bearer token; required beyond loopback."),
    CONFIG_END,
};

struct trace_profile_control {
    const struct component *owner;
    const struct join_control_config *config;
    struct keep_switch *keep;
    struct http_server *server;
};

static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return strcasecmp(host, "localhost") == 0;
}

bool trace_profile_control_check(const struct join_control_config *config, struct error *error)
{
    struct endpoint endpoint;
    if (config->endpoint[0] == '\0')
        return config->token[0] == '\0' ||
               error_set(error, "control::token has no effect without control::endpoint") ||
               error_at(error, "token") || error_at(error, "control");
    if (!endpoint_parse(config->endpoint, &endpoint, error))
        return error_at(error, "endpoint") || error_at(error, "control");
    if (config->token[0] == '\0' && !is_loopback(endpoint.host))
        return error_set(error,
                         "control::token is missing: other hosts can connect to "
                         "\"%s\"; set a token, or listen on localhost",
                         config->endpoint) ||
               error_at(error, "endpoint") || error_at(error, "control");
    return true;
}

static void respond(struct http_request *request, unsigned status, const char *type,
                    const char *body)
{
    struct http_response response = {
        .status = status,
        .headers = {{"content-type", type},
                    {"cache-control", "no-store"},
                    {"x-content-type-options", "nosniff"}},
        .body = slice_of_text(body),
    };
    if (status == 401)
        response.headers[3] = (struct http_header){"www-authenticate", "Bearer"};
    if (status == 405)
        response.headers[3] = (struct http_header){"allow", "GET, POST, DELETE"};
    http_respond(request, &response);
}

static void refuse(struct http_request *request, unsigned status, const char *reason)
{
    respond(request, status, "text/plain; charset=utf-8", reason);
}

static void respond_rules(struct trace_profile_control *control, struct http_request *request)
{
    struct keep_rules rules = keep_switch_read(control->keep);
    struct keep_json json = keep_rules_to_json(&rules);
    respond(request, 200, "application/json", json.text);
}

static void change(struct trace_profile_control *control, const struct keep_rules *rules)
{
    struct keep_json json = keep_rules_to_json(rules);
    assert(lane_is_current(control->owner->lane));
    json.text[strcspn(json.text, "\n")] = '\0';
    keep_switch_set(control->keep, rules);
    log_info(&control->owner->logger, "Keep rules changed", log_text("rules", json.text));
}

/* False: not authorized; it has responded. */
static bool is_allowed(const struct trace_profile_control *control, struct http_request *request)
{
    static const char scheme[] = "bearer ";
    const size_t prefix = sizeof(scheme) - 1;
    const char *token = control->config->token;
    if (token[0] != '\0') {
        struct slice header = http_request_header(request, "authorization");
        if (header.size >= prefix && strncasecmp((const char *)header.data, scheme, prefix) == 0 &&
            secret_equal(slice_of(header.data + prefix, header.size - prefix),
                         slice_of_text(token)))
            return true;
        refuse(request, 401, "the token is missing or wrong: send Authorization: Bearer <token>\n");
        return false;
    }
    /* The Host that the client asked for must be a loopback name. */
    struct slice host = http_request_host(request);
    char name[ENDPOINT_HOST_MAX + ENDPOINT_PORT_MAX];
    struct endpoint endpoint;
    struct error error;
    if (host.size > 0 && host.size < sizeof(name)) {
        memcpy(name, host.data, host.size);
        name[host.size] = '\0';
        if (is_loopback(name) ||
            (endpoint_parse(name, &endpoint, &error) && is_loopback(endpoint.host)))
            return true;
    }
    refuse(request, 403, "without a token only requests to localhost are allowed\n");
    return false;
}

static void on_request(struct http_request *request, void *arg)
{
    static const struct http_body_plan plan = {.max_bytes = BODY_BYTES_MAX};
    struct trace_profile_control *control = arg;
    struct slice method = http_request_method(request);
    if (!is_allowed(control, request))
        return;
    if (!slice_equal_text(http_request_path(request), "/keep")) {
        refuse(request, 404, "not found: the only path is /keep\n");
    } else if (slice_equal_text(method, "GET")) {
        respond_rules(control, request);
    } else if (slice_equal_text(method, "DELETE")) {
        change(control, &control->keep->configured);
        respond_rules(control, request);
    } else if (!slice_equal_text(method, "POST")) {
        refuse(request, 405, "expected GET, POST or DELETE\n");
    } else if (!media_type_is(http_request_header(request, "content-type"), "application/json")) {
        refuse(request, 415, "expected Content-Type: application/json\n");
    } else {
        http_request_read_body(request, &plan);
    }
}

static void on_body(struct http_request *request, void *arg)
{
    struct trace_profile_control *control = arg;
    struct keep_rules rules = keep_switch_read(control->keep);
    struct error error;
    if (!keep_rules_from_json(buffer_slice(http_request_body(request)), &rules, &error)) {
        char text[ERROR_TEXT_MAX + 1];
        snprintf(text, sizeof(text), "%s\n", error.text);
        refuse(request, 400, text);
        return;
    }
    change(control, &rules);
    respond_rules(control, request);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        [HTTP_BODY_TOO_LARGE] = {413, "expected a body of at most 4096 bytes\n"},
        [HTTP_BODY_NO_BUDGET] = {503, "memory is short: try again later\n"},
        [HTTP_BODY_MALFORMED] = {400, "the body's framing is broken\n"},
        [HTTP_BODY_TOO_SLOW] = {408, "the body came too slowly\n"},
    };
    assert(failure < sizeof(rows) / sizeof(rows[0]));
    (void)arg;
    refuse(request, rows[failure].status, rows[failure].text);
}

static const struct http_handler handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
};

struct trace_profile_control *trace_profile_control_start(const struct component *owner,
                                                          const struct join_control_config *config,
                                                          struct keep_switch *keep,
                                                          struct error *error)
{
    struct trace_profile_control *control = mem_zalloc(sizeof(*control));
    assert(lane_index(owner->lane) == 0);
    *control = (struct trace_profile_control){.owner = owner, .config = config, .keep = keep};
    control->server = http_server_create(&(struct http_server_settings){
        .lane = owner->lane,
        .budget = owner->budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .read_deadline_ns = READ_DEADLINE_NS,
        .handler = &handler,
        .arg = control,
    });
    if (!http_server_listen(&control->server, 1, "tcp", config->endpoint, error)) {
        error_prefix(error, "failed to bind to address %s", config->endpoint);
        trace_profile_control_destroy(control);
        return NULL;
    }
    log_info(&owner->logger, "Starting the control of keep rules",
             log_text("endpoint", http_server_address(control->server)));
    return control;
}

void trace_profile_control_stop(struct trace_profile_control *control, void (*done)(void *arg),
                                void *arg)
{
    http_server_stop(control->server, done, arg);
}

void trace_profile_control_destroy(struct trace_profile_control *control)
{
    if (control == NULL)
        return;
    http_server_destroy(control->server);
    mem_free(control);
}
