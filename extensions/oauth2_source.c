/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches tokens as golang.org/x/oauth2 does. In this order: the data, the request for a token, its
 * response, one fetch, and those who wait. Each fetch has an HTTP client of its own, since it is
 * rare. On the lane. */
#include "extensions/oauth2_source.h"

#include "extensions/oauth2_config.h"
#include "extensions/oauth2_form.h"
#include "extensions/oauth2_jwt.h"
#include "extensions/oauth2_response.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"
#include "src/net/client/http_client.h"
#include "src/net/client/request_edits.h"
#include "src/net/client/request_secrets.h"
#include "src/net/client/response_words.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one request for a token, when the configuration has no timeout. */
#define FETCH_TIMEOUT_NS ((uint64_t)60 * NS_PER_S)
/* A token is not used for so long before it expires, whatever expiry_buffer says. */
#define EXPIRY_MIN_NS ((uint64_t)10 * NS_PER_S)

/* Where the client's secret is (RFC 6749 §2.3.1). Servers differ, so that both ways are tried. */
enum oauth2_style { STYLE_UNKNOWN, STYLE_HEADER, STYLE_BODY };

enum { SECRETS_MAX = 4, WORDS_MAX = 512 };

/* One fetch: up to two requests. */
struct oauth2_fetch {
    struct oauth2_source *source;
    struct http_client *client;
    enum oauth2_style style; /* of the request under way */
    bool is_probing;         /* the other style may follow */
    struct oauth2_form form; /* without the secret */
    char *client_id;
    char *client_secret; /* NULL: an assertion instead */
    char *basic;         /* value of the header */
    char *body;
    struct batch_part part;
    struct config_pair secrets[SECRETS_MAX]; /* what no log may show; values are owned */
    size_t secrets_count;
    bool is_over;
};

struct oauth2_closer {
    struct oauth2_closer *next;
    void (*closed)(void *arg);
    void *arg;
};

struct oauth2_source {
    const struct oauth2_config *config;
    struct lane *lane;
    unsigned users;
    struct oauth2_source *next; /* in sources */
    char *shown_url;
    char *authorization; /* the token as a header has it; NULL: none */
    uint64_t expires_ns; /* UINT64_MAX: never */
    uint64_t expires_wall_ns;
    uint64_t half_life_ns;   /* of the token */
    enum oauth2_style style; /* that worked last */
    struct oauth2_fetch *fetch;
    struct credentials_request *first; /* they wait, the oldest first */
    struct credentials_request *last;
    struct oauth2_closer *closers;
    struct lane_job job; /* the end of a fetch */
};

/* Main thread. */
static struct oauth2_source *sources;

static void fetch_start(struct oauth2_source *source);

/* ---- the request for a token ---- */

/* The value, or the content of the file without the blanks around it. NULL: the error says why. */
static char *actual(const char *value, const char *path, const char *missing, struct error *error)
{
    char *text;
    size_t size;
    if (path[0] == '\0')
        return mem_copy_text(value);
    int code = file_read_whole(path, SECRET_FILE_BYTES_MAX, &text, &size);
    if (code < 0) {
        error_set(error, "%s; failed to read credentials file \"%s\": %s", missing, path,
                  strerror(-code));
        return NULL;
    }
    size_t begin = 0;
    while (begin < size && isspace((unsigned char)text[begin]))
        begin++;
    while (size > begin && isspace((unsigned char)text[size - 1]))
        size--;
    char *trimmed = size > begin ? mem_zalloc(size - begin + 1) : NULL;
    if (trimmed != NULL)
        memcpy(trimmed, text + begin, size - begin);
    else
        error_set(error, "%s; empty credentials file \"%s\"", missing, path);
    secret_free(text);
    return trimmed;
}

static void add_secret(struct oauth2_fetch *fetch, char *secret)
{
    assert(fetch->secrets_count < SECRETS_MAX);
    fetch->secrets[fetch->secrets_count++] = (struct config_pair){.key = "", .value = secret};
}

/* endpoint_params; a string is split at commas, as Go's decoder does. */
static void add_params(struct oauth2_form *form, const struct config_value *params)
{
    for (size_t i = 0; params != NULL && i < params->count; i++) {
        const struct config_value *value = &params->items[i];
        oauth2_form_remove(form, params->keys[i]); /* grant_type may be overridden */
        if (value->type == CONFIG_VALUE_LIST) {
            for (size_t j = 0; j < value->count; j++)
                oauth2_form_add(form, params->keys[i], value->items[j].text);
        } else if (value->type == CONFIG_VALUE_TEXT && value->text[0] != '\0') {
            char *copy = mem_copy_text(value->text);
            for (char *rest = copy, *one; (one = strsep(&rest, ",")) != NULL;)
                oauth2_form_add(form, params->keys[i], one);
            secret_free(copy);
        }
    }
}

static bool fill_jwt(struct oauth2_fetch *fetch, struct error *error)
{
    const struct oauth2_config *config = fetch->source->config;
    char *key =
        actual(config->client_certificate_key, config->client_certificate_key_file,
               "no ClientCertificateKey provided in the OAuth2 exporter configuration", error);
    char *assertion = key != NULL
                          ? oauth2_jwt_create(config, fetch->client_id, key, clock_wall_ns(), error)
                          : NULL;
    secret_free(key);
    if (assertion == NULL)
        return false;
    oauth2_form_add(&fetch->form, "grant_type", OAUTH2_GRANT_JWT);
    oauth2_form_add(&fetch->form, "assertion", assertion);
    add_secret(fetch, assertion);
    fetch->style = STYLE_BODY;
    return true;
}

static bool fill_client(struct oauth2_fetch *fetch, struct error *error)
{
    const struct oauth2_config *config = fetch->source->config;
    fetch->client_secret =
        actual(config->client_secret, config->client_secret_file,
               "no ClientSecret provided in OAuth Client Credentials configuration", error);
    if (fetch->client_secret == NULL)
        return false;
    oauth2_form_add(&fetch->form, "grant_type", OAUTH2_GRANT_CLIENT);
    char *id = oauth2_escape(fetch->client_id);
    char *secret = oauth2_escape(fetch->client_secret);
    size_t size = strlen(id) + strlen(secret) + 2;
    char *userinfo = mem_alloc(size);
    snprintf(userinfo, size, "%s:%s", id, secret);
    fetch->basic = http_url_basic_auth(userinfo);
    add_secret(fetch, mem_copy_text(fetch->client_secret));
    add_secret(fetch, secret);
    secret_free(userinfo);
    mem_free(id);
    fetch->is_probing = fetch->source->style == STYLE_UNKNOWN;
    fetch->style = fetch->is_probing ? STYLE_HEADER : fetch->source->style;
    return true;
}

/* False: the error says why there is no request. */
static bool fetch_fill(struct oauth2_fetch *fetch, struct error *error)
{
    const struct oauth2_config *config = fetch->source->config;
    fetch->client_id = actual(config->client_id, config->client_id_file,
                              "no ClientID provided in the OAuth2 exporter configuration", error);
    if (fetch->client_id == NULL)
        return false;
    bool is_jwt = strcmp(config->grant_type, OAUTH2_GRANT_JWT) == 0;
    if (!(is_jwt ? fill_jwt(fetch, error) : fill_client(fetch, error)))
        return false;
    char *scope = oauth2_scopes_text(&config->scopes);
    if (scope[0] != '\0')
        oauth2_form_add(&fetch->form, "scope", scope);
    mem_free(scope);
    add_params(&fetch->form, config->endpoint_params);
    return true;
}

/* The Authorization header of a request for a token. */
static void on_ask(void *arg, struct credentials_request *request)
{
    const struct oauth2_fetch *fetch = arg;
    if (fetch->style == STYLE_HEADER)
        request_edits_add(&request->edits, EDIT_UPSERT, "Authorization", fetch->basic);
    request->done(request, NULL);
}

/* ---- one fetch ---- */

static void on_response(const struct http_result *result, void *arg);

static void fetch_post(struct oauth2_fetch *fetch)
{
    if (fetch->style == STYLE_BODY && fetch->client_secret != NULL) {
        oauth2_form_remove(&fetch->form, "client_id");
        oauth2_form_remove(&fetch->form, "client_secret");
        if (fetch->client_id[0] != '\0')
            oauth2_form_add(&fetch->form, "client_id", fetch->client_id);
        if (fetch->client_secret[0] != '\0')
            oauth2_form_add(&fetch->form, "client_secret", fetch->client_secret);
    }
    secret_free(fetch->body);
    fetch->body = oauth2_form_text(&fetch->form);
    fetch->part = (struct batch_part){.bytes = slice_of_text(fetch->body)};
    http_client_post(fetch->client, &(struct http_post){
                                        .parts = &fetch->part,
                                        .parts_count = 1,
                                        .bytes = fetch->part.bytes.size,
                                        .content_type = "application/x-www-form-urlencoded",
                                        .done = on_response,
                                        .arg = fetch,
                                    });
}

static void fetch_free(struct oauth2_fetch *fetch)
{
    http_client_destroy(fetch->client);
    oauth2_form_fini(&fetch->form);
    mem_free(fetch->client_id);
    secret_free(fetch->client_secret);
    secret_free(fetch->basic);
    secret_free(fetch->body);
    for (size_t i = 0; i < fetch->secrets_count; i++)
        secret_free((char *)(uintptr_t)fetch->secrets[i].value);
    mem_free(fetch);
}

/* In a later turn, once the client has closed. */
static void on_job(void *arg)
{
    struct oauth2_source *source = arg;
    fetch_free(source->fetch);
    source->fetch = NULL;
    if (source->first != NULL) {
        fetch_start(source);
        return;
    }
    while (source->closers != NULL) {
        struct oauth2_closer closer = *source->closers;
        mem_free(source->closers);
        source->closers = closer.next;
        closer.closed(closer.arg);
    }
}

static void on_closed(void *arg)
{
    struct oauth2_source *source = arg;
    lane_defer(source->lane, &source->job);
}

/* Nothing comes of the fetch any more. */
static void fetch_end(struct oauth2_fetch *fetch)
{
    struct oauth2_source *source = fetch->source;
    fetch->is_over = true;
    if (fetch->client != NULL)
        http_client_close(fetch->client, on_closed, source);
    else
        on_closed(source);
}

static void remove_waiting(struct oauth2_source *source, struct credentials_request *request)
{
    *(request->prev == NULL ? &source->first : &request->prev->next) = request->next;
    *(request->next == NULL ? &source->last : &request->next->prev) = request->prev;
}

static void give(const struct oauth2_source *source, struct credentials_request *request)
{
    request_edits_begin(&request->edits, request->is_grpc);
    request_edits_add(&request->edits, EDIT_UPSERT,
                      request->is_grpc ? "authorization" : "Authorization", source->authorization);
    request->done(request, NULL);
}

/* Responds to those who wait now: with the token, or with the error. */
static void settle(struct oauth2_source *source, const struct error *error)
{
    size_t count = 0;
    char text[ERROR_TEXT_MAX + 256];
    if (error != NULL)
        snprintf(text, sizeof(text),
                 "failed to get security token from token endpoint (endpoint \"%s\"): %s",
                 source->shown_url, error->text);
    for (const struct credentials_request *at = source->first; at != NULL; at = at->next)
        count++;
    for (; count > 0; count--) {
        struct credentials_request *request = source->first;
        remove_waiting(source, request);
        request->is_temporary = error != NULL;
        if (error != NULL)
            request->done(request, text);
        else
            give(source, request);
    }
}

/* ---- the response ---- */

static void drop_token(struct oauth2_source *source)
{
    secret_free(source->authorization);
    source->authorization = NULL;
}

/* Takes the token. False: there is none that can be used. */
static bool take_token(struct oauth2_source *source, const struct oauth2_response *response,
                       struct error *error)
{
    if (response->access_token[0] == '\0')
        return error_set(error, "oauth2: server response missing access_token");
    char *authorization = oauth2_response_authorization(response);
    if (authorization == NULL)
        return error_set(error, "oauth2: the token has characters that a header cannot have");
    drop_token(source);
    source->authorization = authorization;
    int64_t seconds = response->expires_in_s < INT32_MAX ? response->expires_in_s : INT32_MAX;
    uint64_t life_ns = seconds > 0 ? (uint64_t)seconds * NS_PER_S : 0;
    source->half_life_ns = life_ns / 2;
    source->expires_ns = seconds == 0 ? UINT64_MAX : clock_now_ns() + life_ns;
    source->expires_wall_ns = seconds == 0 ? UINT64_MAX : clock_wall_ns() + life_ns;
    return true;
}

/* What the endpoint says, without secrets: its error by RFC 6749 §5.2, or its own words. */
static void describe_refusal(const struct oauth2_fetch *fetch, const struct http_result *result,
                             const struct oauth2_response *response, struct error *error)
{
    const struct request_secrets secrets = {
        .headers = fetch->secrets,
        .headers_count = fetch->secrets_count,
        .edits = result->edits,
    };
    char words[RESPONSE_WORDS_MAX + 1];
    char text[WORDS_MAX];
    response_words(result, &secrets, words);
    if (response->error[0] != '\0' && fetch->client_secret != NULL) {
        const char *more[] = {response->error_description, response->error_uri};
        int size = snprintf(text, sizeof(text), "oauth2: \"%s\"", response->error);
        for (size_t i = 0; i < 2; i++)
            if (more[i][0] != '\0' && size < WORDS_MAX)
                size += snprintf(text + size, sizeof(text) - (size_t)size, " \"%s\"", more[i]);
    } else {
        snprintf(text, sizeof(text), "oauth2: cannot fetch token: %u%s%s", result->status,
                 words[0] != '\0' ? " Response: " : "", words);
    }
    for (char *at = text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    request_secrets_redact(&secrets, text, sizeof(text));
    error_set(error, "%s", text);
}

static bool take_response(struct oauth2_fetch *fetch, const struct http_result *result,
                          struct error *error)
{
    if (result->status == 0)
        return error_set(error, "Post \"%s\": %s", fetch->source->shown_url, result->error);
    struct oauth2_response response;
    enum oauth2_format format = oauth2_format_of(result->content_type);
    bool is_success = result->status >= 200 && result->status < 300;
    bool is_read = !result->is_cut && oauth2_response_read(result->body, format, &response);
    bool is_taken = false;
    if (result->is_cut)
        response = (struct oauth2_response){.access_token = NULL};
    if (is_success && !is_read)
        error_set(error, "oauth2: cannot parse %s",
                  result->is_cut          ? "the response: it is too large, or was cut off"
                  : format == OAUTH2_FORM ? "response: it is no form"
                                          : "json: it is no JSON object with a token");
    else if (!is_success && !is_read)
        describe_refusal(fetch, result, &(struct oauth2_response){.error = (char[]){""}}, error);
    else if (!is_success || response.error[0] != '\0')
        describe_refusal(fetch, result, &response, error);
    else
        is_taken = take_token(fetch->source, &response, error);
    oauth2_response_fini(&response);
    return is_taken;
}

static void on_response(const struct http_result *result, void *arg)
{
    struct oauth2_fetch *fetch = arg;
    struct oauth2_source *source = fetch->source;
    struct error error;
    if (fetch->is_over)
        return;
    bool is_taken = take_response(fetch, result, &error);
    if (!is_taken && fetch->is_probing && fetch->style == STYLE_HEADER) {
        fetch->style = STYLE_BODY;
        fetch_post(fetch);
        return;
    }
    source->style = is_taken ? fetch->style : STYLE_UNKNOWN;
    settle(source, is_taken ? NULL : &error);
    fetch_end(fetch);
}

static void fetch_start(struct oauth2_source *source)
{
    const struct oauth2_config *config = source->config;
    struct oauth2_fetch *fetch = mem_zalloc(sizeof(*fetch));
    struct error error;
    assert(source->fetch == NULL);
    source->fetch = fetch;
    fetch->source = source;
    if (fetch_fill(fetch, &error))
        fetch->client = http_client_create(
            &(struct http_client_settings){
                .lane = source->lane,
                .url = config->token_url,
                .user_agent = "spanflame/" SPANFLAME_VERSION,
                .credentials = {.ask = on_ask, .arg = fetch},
                .timeout_ns = config->timeout_ns > 0 ? config->timeout_ns : FETCH_TIMEOUT_NS,
                .connections_max = 1,
                .idle_connections_max = 1,
                .idle_timeout_ns = FETCH_TIMEOUT_NS,
                .has_keep_alive = true,
                .proxy_url = "",
                .tls = &config->tls,
                /* Another server must not get the secret, which may be in the body. */
                .forbids_redirects = true,
            },
            &error);
    if (fetch->client != NULL) {
        fetch_post(fetch);
        return;
    }
    settle(source, &error);
    fetch_end(fetch);
}

/* ---- those who wait ---- */

/* A token that lives shorter than expiry_buffer is used for half of its life; Go would fetch one
 * for each request. */
static bool has_token(const struct oauth2_source *source)
{
    uint64_t buffer_ns = source->config->expiry_buffer_ns;
    uint64_t now_ns = clock_now_ns();
    uint64_t wall_ns = clock_wall_ns();
    if (source->authorization == NULL)
        return false;
    if (source->expires_ns == UINT64_MAX)
        return true;
    if (buffer_ns < EXPIRY_MIN_NS)
        buffer_ns = EXPIRY_MIN_NS;
    if (buffer_ns > source->half_life_ns)
        buffer_ns = source->half_life_ns;
    /* The machine may have slept, or the wall clock may have been set. */
    return now_ns < source->expires_ns && source->expires_ns - now_ns > buffer_ns &&
           wall_ns < source->expires_wall_ns && source->expires_wall_ns - wall_ns > buffer_ns;
}

void oauth2_source_ask(struct oauth2_source *source, struct credentials_request *request)
{
    assert(lane_is_current(source->lane));
    if (has_token(source)) {
        give(source, request);
        return;
    }
    request->next = NULL;
    request->prev = source->last;
    *(request->prev == NULL ? &source->first : &request->prev->next) = request;
    source->last = request;
    if (source->fetch == NULL)
        fetch_start(source);
}

/* A fetch for nobody ends when somebody waits for its end. */
static void end_if_useless(struct oauth2_source *source)
{
    struct oauth2_fetch *fetch = source->fetch;
    if (fetch != NULL && !fetch->is_over && source->first == NULL && source->closers != NULL)
        fetch_end(fetch);
}

void oauth2_source_forget(struct oauth2_source *source, struct credentials_request *request)
{
    remove_waiting(source, request);
    end_if_useless(source);
}

void oauth2_source_close(struct oauth2_source *source, void (*closed)(void *arg), void *arg)
{
    if (source->fetch == NULL) {
        closed(arg);
        return;
    }
    struct oauth2_closer *closer = mem_alloc(sizeof(*closer));
    *closer = (struct oauth2_closer){.next = source->closers, .closed = closed, .arg = arg};
    source->closers = closer;
    end_if_useless(source);
}

struct oauth2_source *oauth2_source_acquire(const struct oauth2_config *config,
                                            const struct component *user)
{
    struct http_url url;
    struct error error;
    struct oauth2_source *source = sources;
    while (source != NULL && (source->config != config || source->lane != user->lane))
        source = source->next;
    if (source == NULL) {
        source = mem_zalloc(sizeof(*source));
        source->config = config;
        source->lane = user->lane;
        source->job = (struct lane_job){.fn = on_job, .arg = source};
        bool is_parsed = http_url_parse(config->token_url, &url, &error);
        assert(is_parsed && "the configuration was checked");
        source->shown_url = mem_copy_text(url.shown);
        http_url_clear(&url);
        source->next = sources;
        sources = source;
    }
    source->users++;
    return source;
}

void oauth2_source_release(struct oauth2_source *source)
{
    if (source == NULL || --source->users > 0)
        return;
    struct oauth2_source **link = &sources;
    while (*link != source)
        link = &(*link)->next;
    *link = source->next;
    assert(source->fetch == NULL);
    assert(source->first == NULL);
    drop_token(source);
    mem_free(source->shown_url);
    mem_free(source);
}
