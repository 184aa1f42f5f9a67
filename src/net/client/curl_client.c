/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on a lane: its sockets are uv_poll handles, its one timer is a lane
 * timer. Transfers are added from outside its callbacks and ended in check_messages only. Runs on
 * the client's lane. */
#include "src/net/client/curl_client.h"

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/net/client/curl_library.h"
#include "src/net/client/curl_options.h"
#include "src/net/client/curl_tls.h"
#include "src/net/client/http_answer.h"
#include "src/net/client/http_client.h"
#include "src/net/syntax/http1_chars.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/retry_after.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <uv.h>

/* Easy handles kept between transfers: they hold the TLS sessions. */
enum { EASY_SPARES_MAX = 4 };

struct exchange {
    struct curl_client *client;
    const struct http_client_settings *settings;
    const struct http_url *url;
    struct http_post post;
    struct exchange *next;
    struct exchange *prev;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    size_t part; /* where the upload stands */
    size_t part_offset;
    size_t head_bytes;
    bool has_head;  /* the head of the last answer is whole */
    char *location; /* NULL: none */
    bool has_retry_after;
    char retry_after[ANSWER_RETRY_AFTER_MAX];
    uint8_t *body;
    size_t body_size;
    size_t body_capacity;
    uint64_t body_seen;
    bool is_cut;
    char words[CURL_ERROR_SIZE];
};

struct watch {
    struct curl_client *client;
    uv_poll_t poll;
    curl_socket_t socket;
    struct watch *next;
    struct watch *prev;
};

struct curl_client {
    const struct http_client_settings *settings;
    const struct curl_library *library;
    struct lane *lane;
    CURLM *multi;
    struct timer timer;
    struct exchange *exchanges;
    struct watch *watches;
    uint64_t watches_closing;
    CURL *spares[EASY_SPARES_MAX];
    size_t spares_count;
    struct lane_job job; /* the end of closing */
    bool is_closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

static size_t on_upload(char *data, size_t size, size_t count, void *arg)
{
    assert(data != NULL);
    struct exchange *exchange = arg;
    assert(exchange->part <= exchange->post.parts_count);
    size_t room = size * count;
    size_t copied = 0;
    while (copied < room && exchange->part < exchange->post.parts_count) {
        struct slice bytes = exchange->post.parts[exchange->part].bytes;
        size_t left = bytes.size - exchange->part_offset;
        size_t step = left < room - copied ? left : room - copied;
        if (step > 0)
            memcpy(data + copied, bytes.data + exchange->part_offset, step);
        copied += step;
        exchange->part_offset += step;
        if (exchange->part_offset == bytes.size) {
            exchange->part++;
            exchange->part_offset = 0;
        }
    }
    return copied;
}

/* A kept connection that proves stale begins the body again. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct exchange *exchange = arg;
    assert(exchange != NULL);
    if (origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_CANTSEEK;
    exchange->part = 0;
    exchange->part_offset = 0;
    return CURL_SEEKFUNC_OK;
}

static void take_retry_after(struct exchange *exchange, struct slice value)
{
    if (exchange->has_retry_after)
        return;
    exchange->has_retry_after = true;
    if (value.size > 0 && value.size < sizeof(exchange->retry_after))
        memcpy(exchange->retry_after, value.data, value.size);
}

static void take_location(struct exchange *exchange, struct slice value)
{
    if (exchange->location != NULL || value.size == 0)
        return;
    exchange->location = mem_alloc(value.size + 1);
    memcpy(exchange->location, value.data, value.size);
    exchange->location[value.size] = '\0';
}

static void forget_head(struct exchange *exchange)
{
    exchange->has_head = false;
    exchange->has_retry_after = false;
    memset(exchange->retry_after, 0, sizeof(exchange->retry_after));
    mem_free(exchange->location);
    exchange->location = NULL;
}

/* The value of that header, whose name ends in a colon; no data: the line is another one. */
static struct slice header_value(struct slice line, const char *name)
{
    size_t size = strlen(name);
    if (line.size < size || strncasecmp((const char *)line.data, name, size) != 0)
        return (struct slice){0};
    while (line.size > size && strchr("\r\n", line.data[line.size - 1]) != NULL)
        line.size--;
    return http1_trim(slice_of(line.data + size, line.size - size));
}

/* Called for each line of each head: interim answers come before the one that counts. */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    assert(arg != NULL);
    struct exchange *exchange = arg;
    struct slice line = slice_of((const uint8_t *)data, size * count);
    struct slice retry_after = header_value(line, "retry-after:");
    struct slice location = header_value(line, "location:");
    size_t bytes = size * count;
    exchange->head_bytes += bytes;
    if (exchange->head_bytes > RESPONSE_HEADER_BYTES_MAX)
        return 0;
    if (bytes > 5 && memcmp(data, "HTTP/", 5) == 0) {
        forget_head(exchange);
    } else if (retry_after.data != NULL) {
        take_retry_after(exchange, retry_after);
    } else if (location.data != NULL) {
        take_location(exchange, location);
    } else if (bytes <= 2) {
        exchange->has_head = true;
    }
    return bytes;
}

static size_t body_room(struct exchange *exchange, size_t size)
{
    assert(exchange->body_size <= exchange->body_capacity);
    size_t wanted = exchange->body_size + size;
    if (wanted > RESPONSE_BYTES_MAX)
        wanted = RESPONSE_BYTES_MAX;
    if (wanted > exchange->body_capacity) {
        size_t capacity = exchange->body_capacity == 0 ? 1024 : exchange->body_capacity;
        while (capacity < wanted)
            capacity *= 2;
        uint8_t *body = mem_try_alloc(capacity);
        if (body == NULL)
            return 0;
        if (exchange->body_size > 0)
            memcpy(body, exchange->body, exchange->body_size);
        mem_free(exchange->body);
        exchange->body = body;
        exchange->body_capacity = capacity;
    }
    return wanted - exchange->body_size;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    assert(exchange->body_size <= RESPONSE_BYTES_MAX);
    size_t bytes = size * count;
    size_t kept = exchange->is_cut ? 0 : body_room(exchange, bytes);
    if (kept > 0)
        memcpy(exchange->body + exchange->body_size, data, kept);
    exchange->body_size += kept;
    exchange->is_cut |= kept < bytes;
    exchange->body_seen += bytes;
    return exchange->body_seen > RESPONSE_DRAIN_BYTES_MAX ? 0 : bytes;
}

static CURL *easy_take(struct curl_client *client)
{
    CURL *easy = client->spares_count > 0 ? client->spares[--client->spares_count]
                                          : client->library->easy_init();
    assert(easy != NULL);
    return easy;
}

static void easy_give_back(struct curl_client *client, CURL *easy)
{
    assert(easy != NULL);
    if (client->spares_count == EASY_SPARES_MAX || client->is_closing) {
        client->library->easy_cleanup(easy);
        return;
    }
    client->library->easy_reset(easy);
    client->spares[client->spares_count++] = easy;
}

static void exchange_set_up(struct exchange *exchange)
{
    struct curl_client *client = exchange->client;
    const struct curl_library *library = client->library;
    CURL *easy = exchange->easy;
    curl_options_apply(library, easy, exchange->settings, exchange->url, exchange->post.target);
    exchange->headers =
        curl_options_headers(library, easy, exchange->settings, exchange->url, &exchange->post);
    exchange->connect_to =
        curl_options_connect_to(library, easy, exchange->settings, exchange->url);
    library->easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    library->easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->words);
    library->easy_setopt(easy, CURLOPT_POST, 1L);
    library->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->post.bytes);
    library->easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
    library->easy_setopt(easy, CURLOPT_READDATA, exchange);
    library->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    library->easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
    library->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    library->easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    library->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    library->easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
}

/* What the transfer came to. An answer whose head is whole counts, however its body ended; anything
 * else, broken status lines included, is an error of the transport. */
static struct http_result result_of(struct exchange *exchange, CURLcode code)
{
    const struct curl_library *library = exchange->client->library;
    long status = 0;
    const char *content_type = NULL;
    library->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    library->easy_getinfo(exchange->easy, CURLINFO_CONTENT_TYPE, &content_type);
    if (!exchange->has_head || status < 200)
        return (struct http_result){
            .error = exchange->words[0] != '\0' ? exchange->words
                     : code == CURLE_OK ? "the connection was closed in the middle of the answer"
                                        : library->easy_strerror(code),
            .is_late = code == CURLE_OPERATION_TIMEDOUT,
        };
    struct http_result result = {
        .status = (unsigned)status,
        .content_type = slice_of_text(content_type == NULL ? "" : content_type),
        .body = slice_of(exchange->body, exchange->body_size),
        .is_cut = exchange->is_cut || code != CURLE_OK,
        .location = status / 100 == 3 ? exchange->location : NULL,
    };
    if ((status == 429 || status == 503) && exchange->has_retry_after)
        result.has_retry_after =
            retry_after_parse(exchange->retry_after, clock_wall_ns(), &result.retry_after_ns);
    return result;
}

static void exchange_end(struct exchange *exchange, const struct http_result *result)
{
    assert(result->status != 0 || result->error != NULL);
    struct curl_client *client = exchange->client;
    *(exchange->prev == NULL ? &client->exchanges : &exchange->prev->next) = exchange->next;
    if (exchange->next != NULL)
        exchange->next->prev = exchange->prev;
    client->library->multi_remove_handle(client->multi, exchange->easy);
    exchange->post.done(result, exchange->post.arg);
    easy_give_back(client, exchange->easy);
    client->library->slist_free_all(exchange->headers);
    client->library->slist_free_all(exchange->connect_to);
    mem_free(exchange->location);
    mem_free(exchange->body);
    mem_free(exchange);
}

static void check_messages(struct curl_client *client)
{
    int left;
    CURLMsg *message;
    while (client->multi != NULL &&
           (message = client->library->multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct exchange *exchange = NULL;
        /* The message dies with the handle's removal. */
        CURLcode code = message->data.result;
        client->library->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        assert(exchange != NULL);
        struct http_result result = result_of(exchange, code);
        exchange_end(exchange, &result);
    }
}

static void act(struct curl_client *client, curl_socket_t socket, int events)
{
    assert(client->multi != NULL);
    int running;
    client->library->multi_socket_action(client->multi, socket, events, &running);
    check_messages(client);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    assert(watch->client != NULL);
    int actions = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE)
        actions |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        actions |= CURL_CSELECT_OUT;
    act(watch->client, watch->socket, actions);
}

static void on_timer(struct timer *timer, void *arg)
{
    (void)timer;
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_change(CURLM *multi, long timeout_ms, void *arg)
{
    struct curl_client *client = arg;
    assert(client->multi == NULL || client->multi == multi);
    (void)multi;
    if (timeout_ms < 0)
        lane_timer_stop(client->lane, &client->timer);
    else
        lane_timer_start(client->lane, &client->timer, (uint64_t)timeout_ms * NS_PER_MS);
    return 0;
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct curl_client *client = watch->client;
    assert(client->watches_closing > 0);
    client->watches_closing--;
    if (client->is_closing)
        lane_defer(client->lane, &client->job);
    mem_free(watch);
}

static void watch_close(struct watch *watch)
{
    struct curl_client *client = watch->client;
    *(watch->prev == NULL ? &client->watches : &watch->prev->next) = watch->next;
    if (watch->next != NULL)
        watch->next->prev = watch->prev;
    client->watches_closing++;
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static struct watch *watch_create(struct curl_client *client, curl_socket_t socket)
{
    struct watch *watch = mem_zalloc(sizeof(*watch));
    if (uv_poll_init_socket(lane_loop(client->lane), &watch->poll, socket) != 0) {
        mem_free(watch);
        return NULL;
    }
    watch->client = client;
    watch->socket = socket;
    watch->poll.data = watch;
    watch->next = client->watches;
    if (watch->next != NULL)
        watch->next->prev = watch;
    client->watches = watch;
    client->library->multi_assign(client->multi, socket, watch);
    return watch;
}

static int on_socket_change(CURL *easy, curl_socket_t socket, int what, void *arg, void *socket_arg)
{
    struct curl_client *client = arg;
    struct watch *watch = socket_arg;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL)
            watch_close(watch);
        return 0;
    }
    if (watch == NULL)
        watch = watch_create(client, socket);
    if (watch == NULL)
        return -1;
    int events = 0;
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

static void on_job(void *arg)
{
    struct curl_client *client = arg;
    void (*closed)(void *arg) = client->closed;
    if (client->watches_closing == 0 && closed != NULL) {
        client->closed = NULL;
        closed(client->closed_arg);
    }
}

static long to_long(uint64_t number)
{
    return number > LONG_MAX ? LONG_MAX : (long)number;
}

static void multi_set_up(struct curl_client *client)
{
    const struct curl_library *library = client->library;
    const struct http_client_settings *settings = client->settings;
    client->multi = library->multi_init();
    assert(client->multi != NULL);
    library->multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
    library->multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    library->multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
    library->multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    library->multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                          to_long(settings->connections_max));
    if (settings->idle_connections_max > 0)
        library->multi_setopt(client->multi, CURLMOPT_MAXCONNECTS,
                              to_long(settings->idle_connections_max));
}

struct curl_client *curl_client_create(const struct http_client_settings *settings,
                                       const struct http_url *url, struct error *error)
{
    assert(settings != NULL);
    assert(url != NULL);
    const struct curl_library *library = curl_library_load(error);
    if (library == NULL)
        return NULL;
    if (url->is_https && settings->tls != NULL && !curl_tls_check(settings->tls, error))
        return NULL;
    struct curl_client *client = mem_zalloc(sizeof(*client));
    client->settings = settings;
    client->library = library;
    client->lane = settings->lane;
    client->job = (struct lane_job){.fn = on_job, .arg = client};
    timer_init(&client->timer, on_timer, client);
    multi_set_up(client);
    return client;
}

void curl_client_post(struct curl_client *client, const struct http_client_settings *settings,
                      const struct http_url *url, const struct http_post *post)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    assert(post->done != NULL);
    struct exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->client = client;
    exchange->settings = settings;
    exchange->url = url;
    exchange->post = *post;
    exchange->easy = easy_take(client);
    exchange->next = client->exchanges;
    if (exchange->next != NULL)
        exchange->next->prev = exchange;
    client->exchanges = exchange;
    exchange_set_up(exchange);
    /* Starts by its timer, so nothing ends before this returns. */
    CURLMcode code = client->library->multi_add_handle(client->multi, exchange->easy);
    assert(code == CURLM_OK);
}

void curl_client_close(struct curl_client *client, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    assert(closed != NULL);
    client->is_closing = true;
    client->closed = closed;
    client->closed_arg = arg;
    while (client->exchanges != NULL)
        exchange_end(client->exchanges,
                     &(struct http_result){.error = "the client is shutting down"});
    while (client->spares_count > 0)
        client->library->easy_cleanup(client->spares[--client->spares_count]);
    client->library->multi_cleanup(client->multi);
    client->multi = NULL;
    lane_timer_stop(client->lane, &client->timer);
    while (client->watches != NULL)
        watch_close(client->watches);
    lane_defer(client->lane, &client->job);
}

void curl_client_destroy(struct curl_client *client)
{
    if (client == NULL)
        return;
    assert(client->exchanges == NULL);
    assert(client->watches_closing == 0);
    lane_defer_cancel(client->lane, &client->job);
    while (client->spares_count > 0)
        client->library->easy_cleanup(client->spares[--client->spares_count]);
    if (client->multi != NULL)
        client->library->multi_cleanup(client->multi);
    mem_free(client);
}
