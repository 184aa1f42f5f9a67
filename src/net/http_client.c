/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the writer of each exchange: our own for cleartext HTTP/1.1, libcurl for https, proxies and
 * back-ends that redirect. Runs on the client's lane. */
#include "src/net/http_client.h"

#include "src/error.h"
#include "src/lane.h"
#include "src/mem.h"
#include "src/net/curl_client.h"
#include "src/net/http1_client.h"
#include "src/net/http_request_head.h"
#include "src/net/http_url.h"
#include "src/net/proxy.h"

#include <assert.h>

struct http_client {
    struct http_client_settings settings;
    struct http_url url;
    struct http1_client *http1; /* NULL: libcurl from the start */
    struct curl_client *curl;   /* NULL: not needed so far */
    bool is_redirected;         /* the back-end redirected once: libcurl from now on */
    bool is_closing;
    unsigned closing; /* writers that have not closed yet */
    void (*closed)(void *arg);
    void *closed_arg;
    struct lane_job job; /* closing without writers */
};

/* An exchange with our own writer, which may go on to libcurl. */
struct hop {
    struct http_client *client;
    struct http_post post;
};

static bool is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Sends the same request through libcurl, which follows the redirect with all its rules (loops,
 * schemes, credentials of other hosts). The redirecting server took nothing, so it is asked again;
 * later requests spare the first round. */
static void follow_redirect(struct http_client *client, const struct http_post *post)
{
    assert(!client->is_closing);
    struct error error;
    if (client->curl == NULL)
        client->curl = curl_client_create(&client->settings, &client->url, &error);
    if (client->curl == NULL) {
        struct http_result result = {.error = error.text, .is_permanent = true};
        post->done(&result, post->arg);
        return;
    }
    client->is_redirected = true;
    curl_client_post(client->curl, post);
}

static void on_done(const struct http_result *result, void *arg)
{
    assert(result != NULL);
    struct hop *hop = arg;
    struct http_client *client = hop->client;
    struct http_post post = hop->post;
    mem_free(hop);
    if (is_redirect(result->status) && !client->is_closing)
        follow_redirect(client, &post);
    else
        post.done(result, post.arg);
}

static void on_writer_closed(void *arg)
{
    struct http_client *client = arg;
    assert(client->closing > 0);
    if (--client->closing == 0)
        client->closed(client->closed_arg);
}

static bool client_set_up(struct http_client *client, struct error *error)
{
    assert(client->url.host != NULL);
    bool has_proxy = proxy_find(&client->url, client->settings.proxy_url) != NULL;
    if (!client->url.is_https && !has_proxy)
        client->http1 = http1_client_create(&client->settings, &client->url);
    else
        client->curl = curl_client_create(&client->settings, &client->url, error);
    return client->http1 != NULL || client->curl != NULL;
}

struct http_client *http_client_create(const struct http_client_settings *settings,
                                       struct error *error)
{
    assert(settings->lane != NULL);
    assert(settings->url != NULL);
    assert(settings->user_agent != NULL);
    struct http_client *client = mem_zalloc(sizeof(*client));
    client->settings = *settings;
    client->job = (struct lane_job){.fn = on_writer_closed, .arg = client};
    if (!http_url_parse(settings->url, &client->url, error) ||
        !request_headers_check(settings, error) || !client_set_up(client, error)) {
        http_client_destroy(client);
        return NULL;
    }
    return client;
}

void http_client_post(struct http_client *client, const struct http_post *post)
{
    assert(client != NULL);
    assert(post->done != NULL);
    assert(!client->is_closing);
    if (client->http1 == NULL || client->is_redirected) {
        curl_client_post(client->curl, post);
        return;
    }
    struct hop *hop = mem_alloc(sizeof(*hop));
    *hop = (struct hop){.client = client, .post = *post};
    struct http_post wrapped = *post;
    wrapped.done = on_done;
    wrapped.arg = hop;
    http1_client_post(client->http1, &wrapped);
}

void http_client_close(struct http_client *client, void (*closed)(void *arg), void *arg)
{
    assert(client != NULL);
    assert(closed != NULL);
    assert(!client->is_closing);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    /* One more than the writers, so that the answer comes from a later turn in every case. */
    client->closing = 1;
    lane_defer(client->settings.lane, &client->job);
    if (client->http1 != NULL) {
        client->closing++;
        http1_client_close(client->http1, on_writer_closed, client);
    }
    if (client->curl != NULL) {
        client->closing++;
        curl_client_close(client->curl, on_writer_closed, client);
    }
}

void http_client_destroy(struct http_client *client)
{
    if (client == NULL)
        return;
    assert(client->closing == 0);
    http1_client_destroy(client->http1);
    curl_client_destroy(client->curl);
    http_url_clear(&client->url);
    mem_free(client);
}
