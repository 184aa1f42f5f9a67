/* SPDX-License-Identifier: Apache-2.0 */
/* The server of an extension that shows pages, from create to destroy. Runs on lane 0. */
#include "extensions/page_extension.h"

#include "src/error.h"
#include "src/lane.h"
#include "src/log.h"
#include "src/net/http_server.h"

#include <assert.h>

static struct page_extension *page_extension_of(struct component *base)
{
    assert(base->factory->kind == EXTENSION);
    return (struct page_extension *)base;
}

void page_extension_prepare(struct component *base, const struct http_handler *handler)
{
    assert(handler->on_request != NULL);
    page_extension_of(base)->server = http_server_create(&(struct http_server_settings){
        .lane = base->lane,
        .budget = base->budget,
        .has_http1 = true,
        .has_keep_alive = true,
        .handler = handler,
        .arg = base,
    });
}

bool page_extension_listen(struct component *base, const char *transport, const char *endpoint,
                           const char *message, struct error *error)
{
    struct page_extension *self = page_extension_of(base);
    assert(message != NULL);
    if (!http_server_listen(&self->server, 1, transport, endpoint, error))
        return error_prefix(error, "failed to bind to address %s", endpoint);
    log_info(&base->logger, message, log_text("endpoint", http_server_address(self->server)));
    return true;
}

static void on_stopped(void *arg)
{
    assert(arg != NULL);
    component_stopped(arg);
}

void page_extension_stop(struct component *base)
{
    assert(lane_is_current(base->lane));
    http_server_stop(page_extension_of(base)->server, on_stopped, base);
}

void page_extension_destroy(struct component *base)
{
    assert(base->factory != NULL);
    http_server_destroy(page_extension_of(base)->server);
}

void page_respond(struct http_request *request, unsigned status, const char *type,
                  struct slice body)
{
    assert(status >= 200);
    http_respond(request,
                 &(struct http_response){
                     .status = status,
                     .headers = {{"content-type", type}, {"x-content-type-options", "nosniff"}},
                     .body = body,
                 });
}
