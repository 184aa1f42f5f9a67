/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the client of each request: http1_client for cleartext HTTP/1.1, curl_client for https,
 * proxies and targets of redirects; and follows redirects. On the client's lane. */
#include "src/net/client/http_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/client/curl_client.h"
#include "src/net/client/http1_client.h"
#include "src/net/client/proxy.h"
#include "src/net/client/request_edits.h"
#include "src/net/client/request_secrets.h"
#include "src/net/syntax/http_url.h"

#include <assert.h>
#include <stdio.h>

struct exchange;

struct http_client {
    struct http_client_settings settings;
    struct http_url url;
    struct http1_client *http1; /* NULL: all requests go through libcurl */
    struct curl_client *curl;   /* NULL: not needed yet */
    struct exchange *asking;    /* for their credentials */
    bool is_closing;
    unsigned closing; /* clients that have not closed yet */
    void (*closed)(void *arg);
    void *closed_arg;
    struct lane_job job; /* the end of closing */
};

/* The target of a redirect. */
struct redirect {
    struct http_url url;
    struct http_client_settings settings;
    bool has_left; /* this or an earlier redirect left the configured origin */
};

/* A POST of a caller: one request, and one more per redirect. Before, it may have to wait for its
 * credentials. */
struct exchange {
    struct http_client *client;
    struct http_post post;
    uint64_t started_ns;
    unsigned requests;
    struct redirect *redirect; /* the last one; NULL: none */
    struct credentials_request request;
    struct exchange *next; /* in client->asking */
    struct exchange *prev;
    struct timer deadline; /* while it asks */
    struct lane_job failure;
    char *refusal; /* why it gets no credentials */
};

static void on_done(const struct http_result *result, void *arg);

static void redirect_free(struct redirect *redirect)
{
    if (redirect == NULL)
        return;
    http_url_clear(&redirect->url);
    mem_free(redirect);
}

static void exchange_end(struct exchange *exchange, const struct http_result *result)
{
    struct http_post post = exchange->post;
    struct redirect *redirect = exchange->redirect;
    struct request_edits edits = exchange->request.edits;
    struct http_result whole = *result;
    whole.edits = &edits;
    mem_free(exchange);
    post.done(&whole, post.arg);
    redirect_free(redirect);
    request_edits_fini(&edits);
}

/* Permanent: the same request would get the same redirect again. */
static void exchange_fail(struct exchange *exchange, const char *why)
{
    exchange_end(exchange, &(struct http_result){.error = why, .is_permanent = true});
}

static const struct http_url *url_of(const struct exchange *exchange)
{
    return exchange->redirect != NULL ? &exchange->redirect->url : &exchange->client->url;
}

/* False: error says why it is not followed. */
static bool redirect_parse(const struct exchange *exchange, const char *location,
                           struct redirect *redirect, struct error *error)
{
    const struct http_url *from = url_of(exchange);
    const char *target = exchange->post.target != NULL ? exchange->post.target : from->target;
    char *text = http_url_resolve(from, target, location);
    bool is_parsed = http_url_parse(text, &redirect->url, error);
    mem_free(text);
    if (!is_parsed)
        return error_prefix(error, "the back-end redirects to an invalid address");
    if (from->is_https && !redirect->url.is_https)
        return error_set(error,
                         "the back-end redirects from https to %s, where the data would be "
                         "readable on the way; it is not followed",
                         redirect->url.shown);
    /* Another origin gets no credentials, none of the configured headers (each may be a secret),
     * and not the request's own. */
    const struct http_client *client = exchange->client;
    redirect->settings = client->settings;
    redirect->has_left = (exchange->redirect != NULL && exchange->redirect->has_left) ||
                         !http_url_is_same_origin(&client->url, &redirect->url);
    if (redirect->has_left) {
        redirect->settings.headers_count = 0;
        redirect->settings.credentials = (struct request_credentials){.name = NULL};
    } else if (redirect->url.credentials == NULL && client->url.credentials != NULL) {
        redirect->url.credentials = mem_copy_text(client->url.credentials);
    }
    return true;
}

static void post_by_curl(struct exchange *exchange)
{
    struct http_client *client = exchange->client;
    const struct redirect *redirect = exchange->redirect;
    struct http_post post = exchange->post;
    post.done = on_done;
    post.arg = exchange;
    if (redirect != NULL)
        post.spent_ns = 0; /* the settings' timeout is what is left */
    if (redirect != NULL && redirect->has_left) {
        post.header = NULL;
        post.edits = NULL;
    }
    curl_client_post(client->curl, redirect != NULL ? &redirect->settings : &client->settings,
                     url_of(exchange), &post);
}

static void on_done(const struct http_result *result, void *arg)
{
    struct exchange *exchange = arg;
    assert(exchange->requests > 0);
    struct http_client *client = exchange->client;
    static const unsigned redirects[] = {301, 302, 303, 307, 308};
    bool is_redirect = false;
    for (size_t i = 0; i < sizeof(redirects) / sizeof(redirects[0]); i++)
        is_redirect |= result->status == redirects[i];
    if (!is_redirect || result->location == NULL || client->is_closing ||
        client->settings.forbids_redirects) {
        exchange_end(exchange, result);
        return;
    }
    struct error error;
    if (exchange->requests >= BACKEND_REQUESTS_MAX) {
        error_set(&error, "stopped after %d redirects", BACKEND_REQUESTS_MAX);
        exchange_fail(exchange, error.text);
        return;
    }
    struct redirect *redirect = mem_zalloc(sizeof(*redirect));
    bool is_followed =
        redirect_parse(exchange, result->location, redirect, &error) &&
        (client->curl != NULL ||
         (client->curl = curl_client_create(&client->settings, &redirect->url, &error)) != NULL);
    if (!is_followed) {
        redirect_free(redirect);
        exchange_fail(exchange, error.text);
        return;
    }
    /* The timeout covers all requests of the exchange; 0: none. */
    uint64_t timeout_ns = redirect->settings.timeout_ns;
    uint64_t passed_ns = clock_now_ns() - exchange->started_ns;
    bool is_in_time = timeout_ns == 0 || passed_ns < timeout_ns;
    redirect->settings.timeout_ns = timeout_ns != 0 && is_in_time ? timeout_ns - passed_ns : 0;
    redirect_free(exchange->redirect);
    exchange->redirect = redirect;
    exchange->post.target = NULL; /* the redirect's URL has it */
    exchange->requests++;
    if (is_in_time)
        post_by_curl(exchange);
    else
        exchange_end(exchange,
                     &(struct http_result){.error = "context deadline exceeded (Client.Timeout "
                                                    "exceeded while awaiting headers)",
                                           .is_late = true});
}

static void on_part_closed(void *arg)
{
    struct http_client *client = arg;
    assert(client->closing > 0);
    if (--client->closing == 0)
        client->closed(client->closed_arg);
}

struct http_client *http_client_create(const struct http_client_settings *settings,
                                       struct error *error)
{
    struct http_client *client = mem_zalloc(sizeof(*client));
    client->settings = *settings;
    client->job = (struct lane_job){.fn = on_part_closed, .arg = client};
    if (http_url_parse(settings->url, &client->url, error) &&
        request_headers_check(settings, error)) {
        bool has_proxy = proxy_find(&client->url, client->settings.proxy_url) != NULL;
        if (!client->url.is_https && !has_proxy)
            client->http1 = http1_client_create(&client->settings, &client->url);
        else
            client->curl = curl_client_create(&client->settings, &client->url, error);
    }
    if (client->http1 != NULL || client->curl != NULL)
        return client;
    http_client_destroy(client);
    return NULL;
}

static void exchange_send(struct exchange *exchange)
{
    struct http_client *client = exchange->client;
    if (client->http1 == NULL) {
        post_by_curl(exchange);
        return;
    }
    struct http_post wrapped = exchange->post;
    wrapped.done = on_done;
    wrapped.arg = exchange;
    http1_client_post(client->http1, &wrapped);
}

/* Ends its wait. */
static void stop_asking(struct exchange *exchange)
{
    struct http_client *client = exchange->client;
    *(exchange->prev == NULL ? &client->asking : &exchange->prev->next) = exchange->next;
    if (exchange->next != NULL)
        exchange->next->prev = exchange->prev;
    lane_timer_stop(client->settings.lane, &exchange->deadline);
    lane_defer_cancel(client->settings.lane, &exchange->failure);
}

/* Before the credentials have responded, or after they have refused. */
static void give_up_asking(struct exchange *exchange, const struct http_result *result)
{
    const struct request_credentials *credentials = &exchange->client->settings.credentials;
    char *refusal = exchange->refusal;
    if (refusal == NULL)
        credentials->forget(credentials->arg, &exchange->request);
    stop_asking(exchange);
    exchange_end(exchange, result);
    mem_free(refusal);
}

static void on_refused(void *arg)
{
    struct exchange *exchange = arg;
    give_up_asking(exchange, &(struct http_result){.error = exchange->refusal});
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct exchange *exchange = arg;
    assert(timer == &exchange->deadline);
    give_up_asking(exchange, &(struct http_result){
                                 .error = "context deadline exceeded (Client.Timeout exceeded "
                                          "while awaiting headers): waited for credentials",
                                 .is_late = true,
                             });
}

static void on_credentials(struct credentials_request *request, const char *error)
{
    struct exchange *exchange = request->arg;
    char text[ERROR_TEXT_MAX];
    const char *name;
    if (error == NULL && !request_edits_check(&request->edits, false, &name)) {
        snprintf(text, sizeof(text), "the name or the value of the header \"%s\" cannot be sent",
                 name);
        error = text;
    }
    if (error != NULL) {
        exchange->refusal = mem_copy_text(error);
        lane_defer(exchange->client->settings.lane, &exchange->failure);
        return;
    }
    stop_asking(exchange);
    exchange->post.edits = &request->edits;
    exchange->post.spent_ns = clock_now_ns() - exchange->started_ns;
    exchange_send(exchange);
}

void http_client_post(struct http_client *client, const struct http_post *post)
{
    const struct request_credentials *credentials = &client->settings.credentials;
    assert(!client->is_closing);
    struct exchange *exchange = mem_zalloc(sizeof(*exchange));
    *exchange = (struct exchange){
        .client = client, .post = *post, .started_ns = clock_now_ns(), .requests = 1};
    if (credentials->ask == NULL) {
        exchange_send(exchange);
        return;
    }
    exchange->request = (struct credentials_request){
        .client = post->client, .done = on_credentials, .arg = exchange};
    exchange->failure = (struct lane_job){.fn = on_refused, .arg = exchange};
    timer_init(&exchange->deadline, on_deadline, exchange);
    if (client->settings.timeout_ns > 0)
        lane_timer_start(client->settings.lane, &exchange->deadline, client->settings.timeout_ns);
    exchange->next = client->asking;
    if (exchange->next != NULL)
        exchange->next->prev = exchange;
    client->asking = exchange;
    credentials->ask(credentials->arg, &exchange->request);
}

struct request_secrets http_client_secrets(const struct http_client *client,
                                           const struct http_result *result)
{
    return (struct request_secrets){
        .headers = client->settings.headers,
        .headers_count = client->settings.headers_count,
        .credentials = client->settings.credentials,
        .edits = result->edits,
        .userinfo = client->url.credentials,
    };
}

void http_client_close(struct http_client *client, void (*closed)(void *arg), void *arg)
{
    assert(!client->is_closing);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    /* One more than the clients, so that closed is called in a later turn in every case. */
    client->closing = 1;
    lane_defer(client->settings.lane, &client->job);
    if (client->http1 != NULL) {
        client->closing++;
        http1_client_close(client->http1, on_part_closed, client);
    }
    if (client->curl != NULL) {
        client->closing++;
        curl_client_close(client->curl, on_part_closed, client);
    }
    while (client->asking != NULL)
        give_up_asking(client->asking,
                       &(struct http_result){.error = "the client is shutting down"});
    if (client->settings.credentials.close != NULL) {
        client->closing++;
        client->settings.credentials.close(client->settings.credentials.arg, on_part_closed,
                                           client);
    }
}

void http_client_destroy(struct http_client *client)
{
    if (client == NULL)
        return;
    assert(client->closing == 0);
    assert(client->asking == NULL);
    http1_client_destroy(client->http1);
    curl_client_destroy(client->curl);
    http_url_clear(&client->url);
    mem_free(client);
}
