/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a server, without its handler. On its lane. */
#include "src/listen/server_front.h"

#include <assert.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/core/component.h"

/* Server settings are complete but for what this adds. */
static bool create(struct server_front *front, const struct server_config *listen, bool has_http1,
                   struct http_server_settings server, const struct server_front_settings *settings,
                   struct error *error)
{
    struct component *component = settings->component;
    assert(front->server == NULL);
    front->tls.logger = &component->logger;
    front->tls.counters = settings->tls_counters;
    if (!component_is_rehearsed(component) &&
        !server_tls_context_init(&front->tls, listen, has_http1, error))
        return settings->place != NULL ? error_prefix(error, "%s", settings->place) : false;
    if (!server_auth_init(&front->auth, component, listen, error))
        return settings->place != NULL ? error_prefix(error, "%s::auth", settings->place)
                                       : error_prefix(error, "auth");
    server.tls = front->tls.context;
    server.counters = settings->counters;
    if (settings->budget != NULL)
        server.budget = settings->budget;
    server.handler = settings->handler;
    front->server = http_server_create(&server);
    return true;
}

bool server_front_create_http(struct server_front *front, const struct http_server_config *config,
                              const struct server_front_settings *settings, struct error *error)
{
    if (config->has_cors)
        server_cors_init(&front->cors, &config->cors);
    front->response_headers = http_server_config_headers(config);
    return create(front, &config->listen, true,
                  http_server_config_settings(config, settings->component), settings, error);
}

bool server_front_create_grpc(struct server_front *front, const struct grpc_server_config *config,
                              const struct server_front_settings *settings, struct error *error)
{
    return create(front, &config->listen, false,
                  grpc_server_config_settings(config, settings->component), settings, error);
}

bool server_front_listen(const struct component *first, size_t offset,
                         const struct server_config *config, struct error *error)
{
    struct http_server *servers[LANES_MAX];
    size_t count = 0;
    for (const struct component *c = first; c != NULL; c = c->next_lane) {
        const struct server_front *front = (const void *)((const char *)c + offset);
        assert(count < LANES_MAX);
        if (front->server != NULL)
            servers[count++] = front->server;
    }
    return http_server_listen(servers, count, config->transport, config->endpoint, error);
}

void server_front_destroy(struct server_front *front)
{
    http_server_destroy(front->server);
    server_tls_context_fini(&front->tls);
    server_auth_fini(&front->auth);
    server_cors_fini(&front->cors);
    http_server_config_free_headers(&front->response_headers);
}
