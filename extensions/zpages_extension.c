/* SPDX-License-Identifier: Apache-2.0 */
/* zpages: pages about the running service for a browser: pipelines with their rings, the budget,
 * the last warnings and errors. The paths are those of the Go collector. Runs on lane 0. */
#include "src/base/error.h"
#include "src/base/mem_stats.h"
#include "src/base/text_escape.h"
#include "src/config/field.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct zpages_expvar_config {
    bool enabled;
};

struct zpages_extension_config {
    struct http_server_config server;
    struct zpages_expvar_config expvar;
};

static const struct config_field zpages_expvar_fields[] = {
    CONFIG_BOOL(struct zpages_expvar_config, enabled, "enabled", "false",
                "Serve /debug/expvarz: the command line and figures of memory, as JSON."),
    CONFIG_END,
};

#define OWNER struct zpages_extension_config
static const struct config_field zpages_extension_fields[] = {
    HTTP_RESPONDER_ROWS(OWNER, server, "localhost:55679", "true"),
    CONFIG_SECTION(OWNER, expvar, struct zpages_expvar_config, "expvar", zpages_expvar_fields, NULL,
                   "Variables of the process."),
    CONFIG_END,
};
#undef OWNER

static const struct {
    const char *path;
    enum status_page page;
} routes[] = {
    {"/debug/servicez", STATUS_SERVICE},
    {"/debug/pipelinez", STATUS_PIPELINES},
    {"/debug/extensionz", STATUS_EXTENSIONS},
    {"/debug/featurez", STATUS_FEATURES},
};

static void respond(struct component *base, struct http_request *request)
{
    const struct zpages_extension_config *config = base->config;
    const struct service_view *service = base->service;
    struct slice path = http_request_path(request);
    bool is_variables = config->expvar.enabled && slice_equal_text(path, "/debug/expvarz");
    size_t route = 0;
    while (route < sizeof(routes) / sizeof(routes[0]) &&
           !slice_equal_text(path, routes[route].path))
        route++;
    if (!is_variables && route == sizeof(routes) / sizeof(routes[0])) {
        http_responder_respond_text(base, request, 404, "404 page not found\n");
        return;
    }
    char *body = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&body, &size);
    assert(out != NULL);
    if (is_variables) {
        /* Names are those of Go's runtime.MemStats, as far as they mean something here. */
        struct mem_stats stats = mem_stats_read();
        char command[COMMAND_BYTES_MAX];
        size_t command_size = http_responder_read_command(command);
        fputs("{\n\"cmdline\": [", out);
        for (size_t at = 0; at < command_size; at += strlen(command + at) + 1) {
            fputs(at > 0 ? "," : "", out);
            text_escape_json(out, slice_of_text(command + at));
        }
        fprintf(out,
                "],\n\"memstats\": {\"Alloc\":%" PRIu64 ",\"Sys\":%" PRIu64
                ",\"HeapAlloc\":%" PRIu64 ",\"HeapSys\":%" PRIu64 "}\n}\n",
                stats.allocated_bytes, stats.mapped_bytes, stats.allocated_bytes,
                stats.resident_bytes);
    } else {
        service->print_page(service, routes[route].page, out);
    }
    fclose(out);
    http_responder_respond_body(base, request, 200,
                                is_variables ? "application/json; charset=utf-8"
                                             : "text/html; charset=utf-8",
                                slice_of(body, size));
    free(body);
}

static bool zpages_extension_check(const void *config, struct error *error)
{
    const struct zpages_extension_config *self = config;
    return http_responder_check(&self->server, "localhost:55679", error);
}

static bool zpages_extension_create(struct component *base, struct error *error)
{
    const struct zpages_extension_config *config = base->config;
    return http_responder_prepare(base, &config->server, respond, "Starting zPages extension",
                                  error);
}

const struct component_factory zpages_extension_factory = {
    .type = "zpages",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct http_responder),
    .config_size = sizeof(struct zpages_extension_config),
    .fields = zpages_extension_fields,
    .check = zpages_extension_check,
    .create = zpages_extension_create,
    .start = http_responder_start,
    .stop = http_responder_stop,
    .destroy = http_responder_destroy,
};
