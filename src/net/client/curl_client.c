/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on a lane: its sockets are uv_poll handles, its one timer is a lane
 * timer. In this order: the data, options from the settings and their tls section, one exchange,
 * and the client. Transfers are added outside of libcurl's callbacks, and ended in act() only.
 *
 * Results of setopt are not checked: they could only fail in a libcurl built without the option,
 * and version 7.88, the oldest supported, has them all. On the client's lane. */
#include "src/net/client/curl_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"
#include "src/net/client/curl_library.h"
#include "src/net/client/http1_response_parser.h"
#include "src/net/client/http_post.h"
#include "src/net/client/proxy.h"
#include "src/net/client/response_body.h"
#include "src/net/syntax/http1_chars.h"
#include "src/net/syntax/http_url.h"
#include "src/net/syntax/retry_after.h"
#include "src/net/tls/tls_context.h"

#include <assert.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <uv.h>

enum {
    /* Easy handles kept between transfers: they hold the TLS sessions. */
    EASY_SPARES_MAX = 4,
    /* Copying a body into the upload buffer is cheapest in few large pieces. */
    UPLOAD_BYTES_MAX = 1 << 20,
    UPLOAD_BYTES_MIN = 64 * 1024,
};

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
    size_t part; /* position of the upload */
    size_t part_offset;
    size_t head_bytes;
    bool has_head;  /* the head of the last response is complete */
    char *location; /* NULL: none */
    bool has_retry_after;
    char retry_after[RETRY_AFTER_BYTES_MAX];
    char content_encoding[CONTENT_ENCODING_BYTES_MAX];
    struct response_notes notes;
    struct response_body body;
    char error[CURL_ERROR_SIZE];
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

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void set_blob(const struct curl_library *library, CURL *easy, CURLoption option,
                     const char *pem)
{
    struct curl_blob blob = {
        .data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    library->easy_setopt(easy, option, &blob);
}

static CURLcode on_context(CURL *easy, void *ssl, void *arg)
{
    (void)easy;
    (void)arg;
    return tls_trust_system(ssl) ? CURLE_OK : CURLE_SSL_CACERT_BADFILE;
}

static long to_ms(uint64_t ns)
{
    uint64_t ms = (ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms > LONG_MAX ? LONG_MAX : (long)ms;
}

/* A back-end that vanishes without a word would cost every request on its HTTP/2 connection the
 * timeout, until TCP gives up a quarter of an hour later: libcurl keeps such a connection. */
static int on_socket(void *arg, curl_socket_t socket, curlsocktype purpose)
{
    const struct exchange *exchange = arg;
    uint64_t timeout_ns = exchange->settings->timeout_ns;
    assert(purpose == CURLSOCKTYPE_IPCXN);
    (void)purpose;
    if (timeout_ns == 0)
        return CURL_SOCKOPT_OK;
    long ms = to_ms(timeout_ns > HTTP2_PROBE_NS ? timeout_ns : HTTP2_PROBE_NS);
    unsigned limit_ms = ms > INT_MAX ? INT_MAX : (unsigned)ms;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
    return CURL_SOCKOPT_OK;
}

static const char *name_override(const struct http_client_settings *settings)
{
    return settings->tls == NULL ? NULL : settings->tls->server_name_override;
}

static void __attribute__((format(printf, 3, 4)))
add_header(const struct curl_library *library, struct curl_slist **list, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&line, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    struct curl_slist *longer = library->slist_append(*list, line);
    free(line);
    *list = longer;
}

/* The headers of a request with edits. */
static struct curl_slist *edited_headers(const struct curl_library *library,
                                         const struct http_client_settings *settings,
                                         const struct http_url *url, const struct http_post *post)
{
    static const char *const own[] = {"Accept", "Content-Type"};
    struct curl_slist *list = NULL;
    struct request_rows rows;
    const char *host = request_header_find(settings, "Host");
    request_rows_init(&rows, settings, url, post);
    if (is_set(host) || is_set(name_override(settings)))
        add_header(library, &list, "Host: %s", is_set(host) ? host : url->authority);
    for (size_t i = 0; i < rows.count; i++)
        add_header(library, &list, is_set(rows.rows[i].value) ? "%s: %s" : "%s;%s",
                   rows.rows[i].key, rows.rows[i].value);
    /* A name without a value removes libcurl's own header. */
    add_header(library, &list, "Expect:");
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        bool is_there = false;
        for (size_t j = 0; j < rows.count; j++)
            is_there |= strcasecmp(rows.rows[j].key, own[i]) == 0;
        if (!is_there)
            add_header(library, &list, "%s:", own[i]);
    }
    request_rows_fini(&rows);
    return list;
}

static struct curl_slist *usual_headers(const struct curl_library *library,
                                        const struct http_client_settings *settings,
                                        const struct http_url *url, const struct http_post *post)
{
    struct curl_slist *list = NULL;
    if (!settings->is_get && request_header_find(settings, "Content-Type") == NULL)
        add_header(library, &list, "Content-Type: %s", post->content_type);
    if (post->content_encoding != NULL && request_header_find(settings, "Content-Encoding") == NULL)
        add_header(library, &list, "Content-Encoding: %s", post->content_encoding);
    if (post->header != NULL)
        add_header(library, &list, "%s: %s", post->header->key, post->header->value);
    if (request_header_find(settings, "User-Agent") == NULL)
        add_header(library, &list, "User-Agent: %s", settings->user_agent);
    if (is_set(name_override(settings)) && request_header_find(settings, "Host") == NULL)
        add_header(library, &list, "Host: %s", url->authority);
    if (url->credentials != NULL && request_header_find(settings, "Authorization") == NULL) {
        char *value = http_url_basic_auth(url->credentials);
        add_header(library, &list, "Authorization: %s", value);
        mem_free(value);
    }
    /* A name without a value removes libcurl's own header. */
    add_header(library, &list, "Expect:");
    if (request_header_find(settings, "Accept") == NULL)
        add_header(library, &list, "Accept:");
    assert(settings->headers != NULL || settings->headers_count == 0);
    for (size_t i = 0; i < settings->headers_count; i++) {
        const struct config_pair *header = &settings->headers[i];
        bool is_host = strcasecmp(header->key, "Host") == 0;
        if (request_header_is_framing(header->key) && !(is_host && is_set(header->value)))
            continue;
        if (request_header_is_replaced(settings, header->key))
            continue;
        if (is_set(header->value))
            add_header(library, &list, "%s: %s", header->key, header->value);
        else
            add_header(library, &list, "%s;", header->key);
    }
    if (settings->credentials.name != NULL)
        add_header(library, &list, "%s: %s", settings->credentials.name,
                   settings->credentials.value(settings->credentials.arg));
    return list;
}

static struct curl_slist *apply_headers(const struct curl_library *library, CURL *easy,
                                        const struct http_client_settings *settings,
                                        const struct http_url *url, const struct http_post *post)
{
    uint64_t upload = post->bytes > UPLOAD_BYTES_MAX ? UPLOAD_BYTES_MAX : post->bytes;
    struct curl_slist *list = post->edits != NULL ? edited_headers(library, settings, url, post)
                                                  : usual_headers(library, settings, url, post);
    library->easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    library->easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE,
                         upload < UPLOAD_BYTES_MIN ? (long)UPLOAD_BYTES_MIN : (long)upload);
    return list;
}

static size_t on_upload(char *data, size_t size, size_t count, void *arg)
{
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

/* Starts the body again, after a kept connection proved stale. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct exchange *exchange = arg;
    if (origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_CANTSEEK;
    exchange->part = 0;
    exchange->part_offset = 0;
    return CURL_SEEKFUNC_OK;
}

/* The value of the header with this name (which ends in a colon); data is NULL for other headers.
 */
static struct slice header_value(struct slice line, const char *name)
{
    size_t size = strlen(name);
    if (line.size < size || strncasecmp((const char *)line.data, name, size) != 0)
        return (struct slice){0};
    while (line.size > size && strchr("\r\n", line.data[line.size - 1]) != NULL)
        line.size--;
    return http1_trim(slice_of(line.data + size, line.size - size));
}

static void note_header(struct exchange *exchange, struct slice line)
{
    const uint8_t *colon = memchr(line.data, ':', line.size);
    if (exchange->post.noted == NULL || colon == NULL)
        return;
    struct slice name = slice_of(line.data, (size_t)(colon - line.data));
    struct slice value = slice_of(colon + 1, line.size - name.size - 1);
    while (value.size > 0 && strchr("\r\n", value.data[value.size - 1]) != NULL)
        value.size--;
    response_notes_take(&exchange->notes, name, http1_trim(value));
}

/* Called for each line of each head, including those of interim responses. */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    struct slice line = slice_of((const uint8_t *)data, size * count);
    struct slice retry_after = header_value(line, "retry-after:");
    struct slice location = header_value(line, "location:");
    struct slice encoding = header_value(line, "content-encoding:");
    size_t bytes = size * count;
    exchange->head_bytes += bytes;
    if (exchange->head_bytes > RESPONSE_HEADER_BYTES_MAX)
        return 0;
    if (bytes > 5 && memcmp(data, "HTTP/", 5) == 0) {
        exchange->has_head = false;
        exchange->has_retry_after = false;
        memset(exchange->retry_after, 0, sizeof(exchange->retry_after));
        memset(exchange->content_encoding, 0, sizeof(exchange->content_encoding));
        response_notes_begin(&exchange->notes, exchange->post.noted);
        mem_free(exchange->location);
        exchange->location = NULL;
    } else if (retry_after.data != NULL) {
        bool is_first = !exchange->has_retry_after;
        exchange->has_retry_after = true;
        if (is_first && retry_after.size > 0 && retry_after.size < sizeof(exchange->retry_after))
            memcpy(exchange->retry_after, retry_after.data, retry_after.size);
    } else if (encoding.data != NULL) {
        if (encoding.size > 0 && encoding.size < sizeof(exchange->content_encoding))
            memcpy(exchange->content_encoding, encoding.data, encoding.size);
    } else if (location.data != NULL) {
        if (exchange->location == NULL && location.size != 0) {
            exchange->location = mem_alloc(location.size + 1);
            memcpy(exchange->location, location.data, location.size);
            exchange->location[location.size] = '\0';
        }
    } else if (bytes <= 2) {
        exchange->has_head = true;
    } else {
        note_header(exchange, line);
    }
    return bytes;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    struct slice bytes = slice_of((const uint8_t *)data, size * count);
    long status = 0;
    exchange->client->library->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 == 2)
        exchange->body.sink = exchange->post.sink;
    return response_body_add(&exchange->body, bytes, RESPONSE_BYTES_MAX) ? bytes.size : 0;
}

/* tls NULL: all defaults. */
static void apply_tls(const struct curl_library *library, CURL *easy,
                      const struct tls_client_config *tls)
{
    static const struct tls_client_config defaults;
    if (tls == NULL)
        tls = &defaults;
    /* As in Go, a configured CA replaces the system's, unless both are asked for; without one,
     * SSL_CERT_FILE and SSL_CERT_DIR replace them. */
    const char *file = getenv("SSL_CERT_FILE");
    const char *folder = getenv("SSL_CERT_DIR");
    if (is_set(tls->common.ca_file))
        library->easy_setopt(easy, CURLOPT_CAINFO, tls->common.ca_file);
    else if (is_set(tls->common.ca_pem))
        set_blob(library, easy, CURLOPT_CAINFO_BLOB, tls->common.ca_pem);
    else if (is_set(file))
        library->easy_setopt(easy, CURLOPT_CAINFO, file);
    if (is_set(tls->common.ca_file) || is_set(tls->common.ca_pem)) {
        library->easy_setopt(easy, CURLOPT_CAPATH, NULL);
        if (tls->common.include_system_ca_certs_pool)
            library->easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
    } else if (is_set(folder)) {
        library->easy_setopt(easy, CURLOPT_CAPATH, folder);
    }
    /* The same suites, curves and strength as tls_context.c. */
    struct error error;
    char list[TLS_LIST_BYTES_MAX];
    char with_level[TLS_LIST_BYTES_MAX + 16];
    int min = tls_config_version(tls->common.min_version);
    bool is_fine = tls_suites_translate(&tls->common.cipher_suites,
                                        tls->common.include_insecure_cipher_suites, list, &error);
    assert(is_fine && "the configuration was checked");
    static const long lowest[] = {CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_TLSv1_0,
                                  CURL_SSLVERSION_TLSv1_1, CURL_SSLVERSION_TLSv1_2,
                                  CURL_SSLVERSION_TLSv1_3};
    static const long highest[] = {CURL_SSLVERSION_MAX_DEFAULT, CURL_SSLVERSION_MAX_TLSv1_0,
                                   CURL_SSLVERSION_MAX_TLSv1_1, CURL_SSLVERSION_MAX_TLSv1_2,
                                   CURL_SSLVERSION_MAX_TLSv1_3};
    int max = tls_config_version(tls->common.max_version);
    assert(min >= 0 && max >= 0);
    library->easy_setopt(easy, CURLOPT_SSLVERSION,
                         lowest[list[0] == '\0' ? 4 : min] | highest[max]);
    snprintf(with_level, sizeof(with_level), "%s:@SECLEVEL=%d", list, min == 1 || min == 2 ? 0 : 1);
    if (list[0] != '\0')
        library->easy_setopt(easy, CURLOPT_SSL_CIPHER_LIST, with_level);
    is_fine = tls_curves_translate(&tls->common.curve_preferences, list, &error);
    assert(is_fine && "the configuration was checked");
    library->easy_setopt(easy, CURLOPT_SSL_EC_CURVES, list);
    if (is_set(tls->common.cert_file))
        library->easy_setopt(easy, CURLOPT_SSLCERT, tls->common.cert_file);
    else if (is_set(tls->common.cert_pem))
        set_blob(library, easy, CURLOPT_SSLCERT_BLOB, tls->common.cert_pem);
    if (is_set(tls->common.key_file))
        library->easy_setopt(easy, CURLOPT_SSLKEY, tls->common.key_file);
    else if (is_set(tls->common.key_pem))
        set_blob(library, easy, CURLOPT_SSLKEY_BLOB, tls->common.key_pem);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, tls->insecure_skip_verify ? 0L : 1L);
    library->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, tls->insecure_skip_verify ? 0L : 2L);
}

/* A response counts once its head is complete, however its body ended. Everything else, including
 * broken status lines, is a transport error. */
static struct http_result result_of(struct exchange *exchange, CURLcode code)
{
    const struct curl_library *library = exchange->client->library;
    long status = 0;
    const char *content_type = NULL;
    library->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    library->easy_getinfo(exchange->easy, CURLINFO_CONTENT_TYPE, &content_type);
    if (!exchange->has_head || status < 200)
        return (struct http_result){
            .error = exchange->error[0] != '\0' ? exchange->error
                     : code == CURLE_OK ? "the connection was closed in the middle of the response"
                                        : library->easy_strerror(code),
            .is_late = code == CURLE_OPERATION_TIMEDOUT,
        };
    struct http_result result = {
        .status = (unsigned)status,
        .content_type = slice_of_text(content_type == NULL ? "" : content_type),
        .content_encoding = slice_of_text(exchange->content_encoding),
        .body = slice_of(exchange->body.data, exchange->body.size),
        .is_cut = exchange->body.is_cut || code != CURLE_OK,
        .location = status / 100 == 3 ? exchange->location : NULL,
        .notes = &exchange->notes,
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
    if (client->spares_count == EASY_SPARES_MAX || client->is_closing) {
        client->library->easy_cleanup(exchange->easy);
    } else {
        client->library->easy_reset(exchange->easy);
        client->spares[client->spares_count++] = exchange->easy;
    }
    client->library->slist_free_all(exchange->headers);
    client->library->slist_free_all(exchange->connect_to);
    mem_free(exchange->location);
    response_body_fini(&exchange->body);
    mem_free(exchange);
}

static void act(struct curl_client *client, curl_socket_t socket, int events)
{
    int running;
    client->library->multi_socket_action(client->multi, socket, events, &running);
    int left;
    CURLMsg *message;
    while (client->multi != NULL &&
           (message = client->library->multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct exchange *exchange = NULL;
        /* Removing the handle frees the message. */
        CURLcode code = message->data.result;
        client->library->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        struct http_result result = result_of(exchange, code);
        exchange_end(exchange, &result);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
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
    if (watch == NULL) {
        watch = mem_zalloc(sizeof(*watch));
        if (uv_poll_init_socket(lane_loop(client->lane), &watch->poll, socket) != 0) {
            mem_free(watch);
            return -1;
        }
        watch->client = client;
        watch->socket = socket;
        watch->poll.data = watch;
        watch->next = client->watches;
        if (watch->next != NULL)
            watch->next->prev = watch;
        client->watches = watch;
        client->library->multi_assign(client->multi, socket, watch);
    }
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

struct curl_client *curl_client_create(const struct http_client_settings *settings,
                                       const struct http_url *url, struct error *error)
{
    const struct curl_library *library = curl_library_load(error);
    if (library == NULL)
        return NULL;
    if (url->is_https && settings->tls != NULL) {
        /* Reports errors in the tls section before the first request: a context of our own, made
         * and thrown away, finds all errors of files and names. */
        struct tls_context *context = tls_context_create_client(
            settings->tls, &(struct tls_context_settings){.protocols = NULL}, error);
        tls_context_destroy(context);
        if (context == NULL)
            return NULL;
    }
    struct curl_client *client = mem_zalloc(sizeof(*client));
    client->settings = settings;
    client->library = library;
    client->lane = settings->lane;
    client->job = (struct lane_job){.fn = on_job, .arg = client};
    timer_init(&client->timer, on_timer, client);
    client->multi = library->multi_init();
    library->multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
    library->multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    library->multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
    library->multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    library->multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                          to_long(settings->connections_max));
    if (settings->idle_connections_max > 0)
        library->multi_setopt(client->multi, CURLMOPT_MAXCONNECTS,
                              to_long(settings->idle_connections_max));
    return client;
}

void curl_client_post(struct curl_client *client, const struct http_client_settings *settings,
                      const struct http_url *url, const struct http_post *post)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
    const struct curl_library *library = client->library;
    struct exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->client = client;
    exchange->settings = settings;
    exchange->body.charge.budget = settings->budget;
    exchange->url = url;
    exchange->post = *post;
    exchange->easy =
        client->spares_count > 0 ? client->spares[--client->spares_count] : library->easy_init();
    exchange->next = client->exchanges;
    if (exchange->next != NULL)
        exchange->next->prev = exchange;
    client->exchanges = exchange;

    /* tls::server_name_override takes the place of the host; its connections go to that host. */
    CURL *easy = exchange->easy;
    const char *target = post->target != NULL ? post->target : url->target;
    const char *override = url->is_https ? name_override(settings) : NULL;
    char *text = NULL;
    assert(target[0] == '/');
    int size = is_set(override)
                   ? asprintf(&text, "https://%s:%u%s", override, (unsigned)url->port, target)
                   : asprintf(&text, "%s://%s%s", url->is_https ? "https" : "http", url->authority,
                              target);
    assert(size > 0);
    library->easy_setopt(easy, CURLOPT_URL, text);
    free(text);
    if (is_set(override)) {
        bool is_v6 = strchr(url->host, ':') != NULL;
        add_header(library, &exchange->connect_to, "%s:%u:%s%s%s:%u", override, (unsigned)url->port,
                   is_v6 ? "[" : "", url->host, is_v6 ? "]" : "", (unsigned)url->port);
        library->easy_setopt(easy, CURLOPT_CONNECT_TO, exchange->connect_to);
    }
    library->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    /* http_client.c follows redirects: it knows which headers each host may get. */
    library->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    const char *proxy = proxy_find(url, settings->proxy_url);
    library->easy_setopt(easy, CURLOPT_PROXY, proxy == NULL ? "" : proxy);
    library->easy_setopt(easy, CURLOPT_NOPROXY, "");
    /* The proxy's response to CONNECT is not the back-end's. */
    library->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    library->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* Else the lane would wait for a look-up that a timeout or the client's end has cut short. */
    library->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    library->easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    library->easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    library->easy_setopt(easy, CURLOPT_SOCKOPTDATA, exchange);
    library->easy_setopt(easy, CURLOPT_TIMEOUT_MS, to_ms(request_timeout_ns(settings, post)));
    library->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, to_ms(CONNECT_TIMEOUT_NS));
    library->easy_setopt(easy, CURLOPT_MAXAGE_CONN, to_ms(settings->idle_timeout_ns) / 1000);
    library->easy_setopt(easy, CURLOPT_FORBID_REUSE, settings->has_keep_alive ? 0L : 1L);
    library->easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    library->easy_setopt(easy, CURLOPT_HTTP_VERSION,
                         settings->forbids_http2 ? (long)CURL_HTTP_VERSION_1_1
                                                 : (long)CURL_HTTP_VERSION_2TLS);
    apply_tls(library, easy, settings->tls);
    exchange->headers = apply_headers(library, easy, settings, url, post);
    library->easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    library->easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    if (settings->is_get) {
        library->easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    } else {
        library->easy_setopt(easy, CURLOPT_POST, 1L);
        library->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->bytes);
        library->easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
        library->easy_setopt(easy, CURLOPT_READDATA, exchange);
        library->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        library->easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
    }
    library->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    library->easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    library->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    library->easy_setopt(easy, CURLOPT_WRITEDATA, exchange);

    /* The timer starts it, so nothing ends before this returns. */
    CURLMcode code = library->multi_add_handle(client->multi, easy);
    assert(code == CURLM_OK);
}

void curl_client_close(struct curl_client *client, void (*closed)(void *arg), void *arg)
{
    assert(lane_is_current(client->lane));
    assert(!client->is_closing);
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
