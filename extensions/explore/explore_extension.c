/* SPDX-License-Identifier: Apache-2.0 */
/* explore: a page for a browser that shows the traces and profiles which explore exporters have
 * brought, and the same data as JSON (docs/explore.md). The files of the page are part of the
 * program; questions go to the explore worker. Runs on lane 0. */
#include "extensions/explore/explore_access.h"
#include "extensions/explore/explore_assets.h"
#include "extensions/explore/explore_live.h"
#include "extensions/explore/explore_picture.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/codec/codec.h"
#include "src/config/field.h"
#include "src/explore/explore_hub.h"
#include "src/explore/explore_query.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ASSET_BYTES_MAX = 16 * 1024 * 1024 };

struct explore_extension_config {
    struct http_server_config server;
    uint64_t max_bytes;
    const char *directory;
    bool needs_token;
};

#define OWNER struct explore_extension_config
static const struct config_field explore_extension_fields[] = {
    HTTP_RESPONDER_ROWS(OWNER, server, "localhost:4620", "true"),
    CONFIG_BYTES(OWNER, max_bytes, "max_bytes", "64MiB", 8 * MIB, INT64_MAX,
                 "What traces and profiles may take in memory, compressed and with their index; "
                 "beyond it the oldest traces go first. Part of the budget."),
    CONFIG_TEXT(OWNER, directory, "directory", "",
                "Keeps traces and profiles over restarts, in files of max_bytes at most; of this "
                "daemon alone. Empty: they are in memory only."),
    CONFIG_BOOL(OWNER, needs_token, "require_token", "true",
                "Without auth, when the endpoint is not of this machine alone: let in who has the "
                "token that the start prints."),
    CONFIG_END,
};
#undef OWNER

struct explore_extension {
    struct http_responder responder;
    struct explore_hub *hub;
    struct explore_access access;
    struct explore_live live;
    struct explore_picture picture;
    struct codec_box *box;  /* for browsers without gzip */
    struct lane_task ended; /* the explore worker has */
};

extern const struct component_factory explore_extension_factory;

static struct explore_extension *explore_extension_of(struct component *base)
{
    assert(base->factory == &explore_extension_factory);
    return (struct explore_extension *)base;
}

/* A question on its way. */
struct question {
    struct explore_job job;
    struct explore_extension *extension;
    struct http_request *request;
};

static void add_header(struct http_response *response, const char *name, const char *value)
{
    size_t i = 0;
    while (response->headers[i].name != NULL)
        i++;
    assert(i < HTTP_RESPONSE_HEADERS_MAX);
    response->headers[i] = (struct http_header){name, value};
}

/* With what keeps other pages, and hostile telemetry, from doing anything with it. */
static void respond(struct explore_extension *self, struct http_request *request,
                    struct http_response *response)
{
    add_header(response, "content-security-policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
               "require-trusted-types-for 'script'; trusted-types 'none'");
    add_header(response, "x-content-type-options", "nosniff");
    add_header(response, "referrer-policy", "no-referrer");
    add_header(response, "cross-origin-opener-policy", "same-origin");
    add_header(response, "cross-origin-resource-policy", "same-origin");
    if (slice_equal_text(http_request_method(request), "HEAD"))
        response->body = slice_of(NULL, 0);
    http_responder_respond(&self->responder.base, request, response);
}

static void respond_error(struct explore_extension *self, struct http_request *request,
                          unsigned status, const char *reason)
{
    char body[512]; /* reasons are constants without anything to escape */
    snprintf(body, sizeof(body), "{\"error\":\"%s\"}", reason);
    struct http_response response = {
        .status = status,
        .headers = {{"content-type", "application/json; charset=utf-8"},
                    {"cache-control", "no-store"}},
        .body = slice_of_text(body),
    };
    if (status == 503)
        add_header(&response, "retry-after", "1");
    if (status == 405)
        add_header(&response, "allow", "GET, HEAD");
    respond(self, request, &response);
}

static bool accepts_gzip(const struct http_request *request)
{
    struct slice accepted = http_request_header(request, "accept-encoding");
    return accepted.data != NULL && memmem(accepted.data, accepted.size, "gzip", 4) != NULL &&
           memmem(accepted.data, accepted.size, "gzip;q=0", 8) == NULL;
}

static void respond_asset(struct explore_extension *self, struct http_request *request,
                          const struct explore_asset *asset)
{
    struct buffer *plain = NULL;
    struct http_response response = {
        .status = 200,
        .headers = {{"content-type", asset->type},
                    {"etag", asset->etag},
                    {"cache-control", "no-cache"},
                    {"vary", "accept-encoding"}},
        .body = slice_of(asset->gzip, asset->gzip_size),
    };
    struct slice known = http_request_header(request, "if-none-match");
    if (known.data != NULL &&
        memmem(known.data, known.size, asset->etag, strlen(asset->etag)) != NULL) {
        response.status = 304;
        response.body = slice_of(NULL, 0);
    } else if (accepts_gzip(request)) {
        add_header(&response, "content-encoding", "gzip");
    } else if (codec_inflate(self->box, CODEC_GZIP, response.body, ASSET_BYTES_MAX, &plain) ==
               CODEC_OK) {
        response.body = buffer_slice(plain);
    } else {
        respond_error(self, request, 503, "no memory at the moment: try again");
        return;
    }
    respond(self, request, &response);
    buffer_unref(plain);
}

static void on_answer(struct explore_job *job)
{
    struct question *question = (struct question *)job;
    struct http_response response = {
        .status = job->body != NULL ? job->status : 503,
        .headers = {{"content-type", job->type}, {"cache-control", "no-store"}},
        .body = job->body != NULL ? buffer_slice(job->body) : slice_of(NULL, 0),
    };
    if (job->disposition[0] != '\0')
        add_header(&response, "content-disposition", job->disposition);
    if (response.status == 503)
        add_header(&response, "retry-after", "1");
    respond(question->extension, question->request, &response);
    buffer_unref(job->body);
    mem_free(job->path);
    mem_free(question);
}

static void ask(struct explore_extension *self, struct http_request *request, struct slice path)
{
    struct slice query = http_request_query(request);
    if (path.size + query.size > EXPLORE_QUERY_BYTES_MAX) {
        respond_error(self, request, 400, "the question is too long, expected 8192 bytes");
        return;
    }
    struct question *question = mem_zalloc(sizeof(*question));
    char *texts = mem_alloc(path.size + query.size + 2);
    memcpy(texts, path.data, path.size);
    texts[path.size] = '\0';
    if (query.size > 0)
        memcpy(texts + path.size + 1, query.data, query.size);
    texts[path.size + 1 + query.size] = '\0';
    question->extension = self;
    question->request = request;
    question->job.path = texts;
    question->job.query = texts + path.size + 1;
    const struct service_view *service = self->responder.base.service;
    const struct picture_sums sums = service->sums(service);
    question->job.has_join = sums.has_join;
    question->job.held_requests = sums.held_requests;
    question->job.lane = self->responder.base.lane;
    question->job.done = on_answer;
    if (explore_hub_ask(self->hub, &question->job))
        return;
    mem_free(texts);
    mem_free(question);
    respond_error(self, request, 503, "too many questions wait: try again in a second");
}

/* The head of a stream of events, or (to HEAD) all of it. */
static void begin_events(void *arg, struct http_request *request)
{
    respond(arg, request,
            &(struct http_response){
                .status = 200,
                .headers = {{"content-type", "text/event-stream; charset=utf-8"},
                            {"cache-control", "no-store"}},
                .is_stream = !slice_equal_text(http_request_method(request), "HEAD"),
            });
}

static void print_url(struct explore_extension *self, const char *message)
{
    char url[512];
    const char *endpoint = self->access.endpoint;
    const char *address = http_server_address(self->responder.front.server);
    const char *port = strrchr(address, ':');
    bool is_everywhere = endpoint[0] == ':' || strncmp(endpoint, "0.0.0.0:", 8) == 0 ||
                         strncmp(endpoint, "[::]:", 5) == 0 ||
                         strncmp(endpoint, "localhost:", 10) == 0;
    size_t host = strlen(address) - (port != NULL ? strlen(port) : 0);
    snprintf(url, sizeof(url), "%s://%.*s%s/%s%s",
             self->responder.config->listen.has_tls ? "https" : "http",
             is_everywhere ? 9 : (int)host, is_everywhere ? "localhost" : address,
             port != NULL ? port : "", self->access.is_token_required ? "#token=" : "",
             self->access.is_token_required ? self->access.token : "");
    log_info(&self->responder.base.logger, message, log_text("url", url));
    /* Where a person looks, whatever the log is set to. */
    if (isatty(STDOUT_FILENO))
        printf("%s %s\n", message, url);
}

static void exchange_token(struct explore_extension *self, struct http_request *request)
{
    char cookie[ACCESS_COOKIE_BYTES];
    bool is_known =
        !self->access.is_token_required || explore_access_has_session(&self->access, request);
    struct http_response response = {
        .status = 200,
        .headers = {{"content-type", "application/json; charset=utf-8"},
                    {"cache-control", "no-store"}},
        .body = slice_of_text("{\"session\":true}"),
    };
    if (!is_known) {
        if (!explore_access_exchange(&self->access, request, cookie)) {
            respond_error(self, request, 401,
                          "this is not the token that the start has printed, or it has been used: "
                          "the log has the next one");
            return;
        }
        add_header(&response, "set-cookie", cookie);
        print_url(self, "The token of the explore page has been used; for another browser open");
    }
    respond(self, request, &response);
}

static void respond_picture(struct explore_extension *self, struct http_request *request)
{
    struct explore_query *query = mem_alloc(sizeof(*query));
    const char *reason = NULL;
    bool is_known = true;
    bool is_read = explore_query_parse(query, http_request_query(request), &reason);
    struct slice node = is_read ? explore_query_get(query, "node") : slice_of(NULL, 0);
    struct buffer *body = !is_read        ? NULL
                          : node.size > 0 ? explore_picture_detail(&self->picture, node, &is_known)
                                          : explore_picture_write(&self->picture);
    mem_free(query);
    if (body == NULL) {
        if (!is_read)
            respond_error(self, request, 400, reason);
        else if (!is_known)
            respond_error(self, request, 404, "the configuration has no such component in use");
        else
            respond_error(self, request, 503, "no memory at the moment: try again");
        return;
    }
    respond(self, request,
            &(struct http_response){
                .status = 200,
                .headers = {{"content-type", "application/json; charset=utf-8"},
                            {"cache-control", "no-store"}},
                .body = buffer_slice(body),
            });
    buffer_unref(body);
}

static void on_request(struct component *base, struct http_request *request)
{
    struct explore_extension *self = explore_extension_of(base);
    static const char api[] = "/api/v1/";
    struct slice path = http_request_path(request);
    bool is_data = slice_begins_with(path, "/api/");
    unsigned status;
    const char *reason = explore_access_refuse(&self->access, request, is_data, &status);
    if (reason != NULL) {
        respond_error(self, request, status, reason);
        return;
    }
    if (slice_equal_text(path, "/api/v1/session")) {
        exchange_token(self, request);
        return;
    }
    if (is_data && self->access.is_token_required &&
        !explore_access_has_session(&self->access, request)) {
        respond_error(self, request, 401,
                      "a token is required: open the address that the start has printed");
        return;
    }
    if (slice_equal_text(path, "/api/v1/pipelines")) {
        respond_picture(self, request);
        return;
    }
    if (slice_equal_text(path, "/api/v1/live")) {
        if (slice_equal_text(http_request_method(request), "HEAD"))
            begin_events(self, request);
        else if (!explore_live_take(&self->live, request))
            respond_error(self, request, 503,
                          "too many clients wait for news, expected 16 at most");
        return;
    }
    if (slice_begins_with(path, api)) {
        ask(self, request, slice_of(path.data + sizeof(api) - 1, path.size - (sizeof(api) - 1)));
        return;
    }
    if (slice_equal_text(path, "/"))
        path = slice_of_text("/index.html");
    const struct explore_asset *asset = explore_assets;
    while (asset->path != NULL && !slice_equal_text(path, asset->path))
        asset++;
    if (asset->path != NULL)
        respond_asset(self, request, asset);
    else
        respond_error(self, request, 404, "there is no such page");
}

static bool explore_extension_check(const void *section, struct error *error)
{
    const struct explore_extension_config *config = section;
    return http_responder_check(&config->server, "localhost:4620", error);
}

static bool explore_extension_create(struct component *base, struct error *error)
{
    struct explore_extension *self = explore_extension_of(base);
    const struct explore_extension_config *config = base->config;
    const struct server_config *listen = &config->server.listen;
    bool needs_token =
        config->needs_token && !listen->has_auth && explore_access_is_open(listen->endpoint);
    self->hub = explore_hub_get(base->service, base->id);
    self->box = codec_box_create(base->budget);
    explore_live_init(&self->live, base->lane, self->hub, begin_events, self);
    if (!explore_access_init(&self->access, listen->endpoint, needs_token))
        return error_set(error, "the system has no random numbers for a token");
    return http_responder_prepare(base, &config->server, on_request, "Starting explore extension",
                                  error);
}

static bool explore_extension_start(struct component *base, struct error *error)
{
    struct explore_extension *self = explore_extension_of(base);
    const struct explore_extension_config *config = base->config;
    const struct explore_settings settings = {
        .max_bytes = config->max_bytes,
        .directory = config->directory,
        .budget = base->budget,
        .version = SPANFLAME_VERSION,
        .is_token_required = self->access.is_token_required,
        .logger = &base->logger,
    };
    if (!codec_prepare(CODEC_GZIP, error) || !explore_hub_start(self->hub, &settings, error) ||
        !http_responder_start(base, error))
        return false;
    explore_picture_start(&self->picture, base);
    print_url(self, "Traces and profiles are shown at");
    return true;
}

static void on_ended(struct lane_task *task)
{
    struct explore_extension *self =
        (struct explore_extension *)((char *)task - offsetof(struct explore_extension, ended));
    explore_hub_stop(self->hub);
    component_stopped(&self->responder.base);
}

/* The lane has other work, also the deadline of the stop, while the worker saves what it has. */
static void on_stopped(void *arg)
{
    struct explore_extension *self = arg;
    self->ended.fn = on_ended;
    explore_hub_end(self->hub, self->responder.base.lane, &self->ended);
}

/* The last answers are given before the server has stopped. */
static void explore_extension_stop(struct component *base)
{
    struct explore_extension *self = explore_extension_of(base);
    assert(lane_is_current(base->lane));
    explore_live_stop(&self->live);
    explore_picture_stop(&self->picture);
    http_server_stop(self->responder.front.server, on_stopped, self);
}

static void explore_extension_destroy(struct component *base)
{
    struct explore_extension *self = explore_extension_of(base);
    http_responder_destroy(base);
    if (self->hub != NULL)
        explore_hub_stop(self->hub);
    explore_hub_release(self->hub);
    explore_picture_fini(&self->picture);
    codec_box_destroy(self->box);
}

const struct component_factory explore_extension_factory = {
    .type = "explore",
    .kind = EXTENSION,
    .stability = "development",
    .instance_size = sizeof(struct explore_extension),
    .config_size = sizeof(struct explore_extension_config),
    .fields = explore_extension_fields,
    .check = explore_extension_check,
    .create = explore_extension_create,
    .start = explore_extension_start,
    .stop = explore_extension_stop,
    .destroy = explore_extension_destroy,
};
