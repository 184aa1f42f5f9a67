/* SPDX-License-Identifier: Apache-2.0 */
/* zpages: pages about the running service for a person with a browser: pipelines with their rings,
 * the budget, the last warnings and errors. The paths are the Go collector's. Runs on lane 0. */
#include "extensions/http_extension.h"
#include "src/base/error.h"
#include "src/base/mem_stats.h"
#include "src/base/text_escape.h"
#include "src/config/field.h"
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
    HTTP_EXTENSION_ROWS(OWNER, server, "localhost:55679", "true"),
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

/* As /debug/pprof/cmdline has it, and as the Go collector does. */
static void print_command(FILE *out)
{
    char text[4096];
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t size = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    assert(size < sizeof(text));
    if (file != NULL)
        fclose(file);
    text[size] = '\0';
    for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
        fputs(at > 0 ? "," : "", out);
        text_escape_json(out, slice_of_text(text + at));
    }
}

/* Names are those of Go's runtime.MemStats, as far as they mean something here. */
static void respond_variables(struct component *base, struct http_request *request)
{
    struct mem_stats stats = mem_stats_read();
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out != NULL);
    fputs("{\n\"cmdline\": [", out);
    print_command(out);
    fprintf(out,
            "],\n\"memstats\": {\"Alloc\":%" PRIu64 ",\"Sys\":%" PRIu64 ",\"HeapAlloc\":%" PRIu64
            ",\"HeapSys\":%" PRIu64 "}\n}\n",
            stats.allocated_bytes, stats.mapped_bytes, stats.allocated_bytes, stats.resident_bytes);
    fclose(out);
    http_extension_respond_body(base, request, 200, "application/json; charset=utf-8",
                                slice_of(text, size));
    free(text);
}

static void respond_page(struct component *base, struct http_request *request,
                         enum status_page page)
{
    const struct service_view *service = base->service;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out != NULL);
    service->print_page(service, page, out);
    fclose(out);
    http_extension_respond_body(base, request, 200, "text/html; charset=utf-8",
                                slice_of(text, size));
    free(text);
}

static void answer(struct component *base, struct http_request *request)
{
    struct slice path = http_request_path(request);
    const struct zpages_extension_config *config = base->config;
    assert(base->service != NULL);
    if (config->expvar.enabled && slice_equal_text(path, "/debug/expvarz")) {
        respond_variables(base, request);
        return;
    }
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (slice_equal_text(path, routes[i].path)) {
            respond_page(base, request, routes[i].page);
            return;
        }
    http_extension_respond_text(base, request, 404, "404 page not found\n");
}

static bool zpages_extension_check(const void *config, struct error *error)
{
    const struct zpages_extension_config *self = config;
    assert(self != NULL);
    return http_extension_check(&self->server, "localhost:55679", error);
}

static bool zpages_extension_create(struct component *base, struct error *error)
{
    const struct zpages_extension_config *config = base->config;
    assert(base->service != NULL);
    return http_extension_prepare(base, &config->server, answer, error);
}

static bool zpages_extension_start(struct component *base, struct error *error)
{
    assert(error != NULL);
    return http_extension_listen(base, "Starting zPages extension", error);
}

const struct component_factory zpages_extension_factory = {
    .type = "zpages",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct http_extension),
    .config_size = sizeof(struct zpages_extension_config),
    .fields = zpages_extension_fields,
    .check = zpages_extension_check,
    .create = zpages_extension_create,
    .start = zpages_extension_start,
    .stop = http_extension_stop,
    .destroy = http_extension_destroy,
};
