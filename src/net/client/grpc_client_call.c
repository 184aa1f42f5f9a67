/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a gRPC client: its headers and message out, its answer in, its deadline. On the
 * client's lane. */
#include "src/net/client/grpc_client_state.h"

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/net/client/http2_client.h"
#include "src/net/syntax/grpc_frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OWN_FIELDS_MAX = 11, TIMEOUT_TEXT_MAX = 16, WORDS_MAX = GRPC_ERROR_MAX + 128 };

void grpc_call_list_append(struct grpc_call_list *list, struct grpc_client_call *call)
{
    assert(call->stream == NULL);
    call->next = NULL;
    call->prev = list->last;
    *(call->prev == NULL ? &list->first : &call->prev->next) = call;
    list->last = call;
}

void grpc_call_list_prepend(struct grpc_call_list *list, struct grpc_client_call *call)
{
    assert(call->stream == NULL);
    call->prev = NULL;
    call->next = list->first;
    *(call->next == NULL ? &list->last : &call->next->prev) = call;
    list->first = call;
}

void grpc_call_list_remove(struct grpc_call_list *list, struct grpc_client_call *call)
{
    assert(list->first != NULL);
    *(call->prev == NULL ? &list->first : &call->prev->next) = call->next;
    *(call->next == NULL ? &list->last : &call->next->prev) = call->prev;
}

void grpc_client_call_end(struct grpc_client_call *call, const struct grpc_result *result)
{
    struct grpc_client *client = call->client;
    assert(result->message != NULL);
    grpc_call_list_remove(call->http2 != NULL ? &client->running : &client->waiting, call);
    lane_timer_stop(client->lane, &call->deadline);
    if (call->stream != NULL)
        http2_client_cancel(call->stream);
    lane_defer(client->lane, &client->job);
    call->post.done(result, call->post.arg);
    grpc_answer_fini(&call->answer);
    mem_free(call);
}

void grpc_client_call_fail(struct grpc_client_call *call, enum status_code code,
                           const char *message)
{
    assert(code != STATUS_OK);
    grpc_client_call_end(
        call, &(struct grpc_result){.code = code, .wire_code = code, .message = message});
}

void grpc_client_call_on_deadline(struct timer *timer, void *arg)
{
    struct grpc_client_call *call = arg;
    struct grpc_client *client = call->client;
    assert(timer == &call->deadline);
    (void)timer;
    char words[WORDS_MAX];
    if (call->http2 != NULL) {
        /* A peer that has vanished without a word would cost every call its timeout. */
        http2_client_probe(call->http2);
        grpc_client_call_fail(call, STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        return;
    }
    bool has_error = client->error[0] != '\0';
    snprintf(words, sizeof(words),
             "context deadline exceeded while waiting for connections to become ready%s%s",
             has_error ? "; last error: " : "", client->error);
    grpc_client_call_fail(call, STATUS_DEADLINE_EXCEEDED, words);
}

static void on_header(void *arg, struct slice name, struct slice value)
{
    struct grpc_client_call *call = arg;
    assert(call->stream != NULL);
    if (!grpc_answer_add_header(&call->answer, name, value))
        grpc_client_call_fail(call, STATUS_INTERNAL,
                              "peer header list size exceeded limit: the answer's headers are "
                              "larger than 64 KiB");
}

static void on_headers_end(void *arg)
{
    struct grpc_client_call *call = arg;
    assert(call->stream != NULL);
    grpc_answer_end_headers(&call->answer);
}

static void on_data(void *arg, struct slice data)
{
    struct grpc_client_call *call = arg;
    assert(call->stream != NULL);
    if (!grpc_answer_add_data(&call->answer, data))
        grpc_client_call_fail(call, STATUS_RESOURCE_EXHAUSTED,
                              "grpc: received message larger than max: the answer is larger than "
                              "4 MiB");
}

/* The server has not looked at the call: once, it is sent again at once, before all others. */
static void repeat(struct grpc_client_call *call)
{
    struct grpc_client *client = call->client;
    assert(!call->was_repeated);
    call->was_repeated = true;
    grpc_call_list_remove(&client->running, call);
    grpc_answer_fini(&call->answer);
    call->http2 = NULL;
    grpc_call_list_prepend(&client->waiting, call);
    lane_defer(client->lane, &client->job);
}

static void on_end(void *arg, enum http2_stream_end end, uint32_t code, const char *reason)
{
    struct grpc_client_call *call = arg;
    struct grpc_result result;
    char words[WORDS_MAX];
    assert(call->stream != NULL);
    call->stream = NULL;
    if (end == HTTP2_STREAM_UNPROCESSED && !call->was_repeated && !call->client->is_closing) {
        repeat(call);
    } else if (end == HTTP2_STREAM_COMPLETE) {
        grpc_answer_result(&call->answer, &result);
        grpc_client_call_end(call, &result);
    } else if (reason[0] == '\0') {
        grpc_answer_reset_result(&call->answer, code, &result);
        grpc_client_call_end(call, &result);
    } else {
        snprintf(words, sizeof(words), "error reading from server: %s", reason);
        grpc_client_call_fail(
            call, call->client->is_closing ? STATUS_CANCELLED : STATUS_UNAVAILABLE, words);
    }
}

static const struct http2_stream_events stream_events = {
    .on_header = on_header,
    .on_headers_end = on_headers_end,
    .on_data = on_data,
    .on_end = on_end,
};

/* At most eight digits and a unit, rounded up (PROTOCOL-HTTP2.md). */
static void print_timeout(uint64_t timeout_ns, char text[TIMEOUT_TEXT_MAX])
{
    static const struct {
        uint64_t ns;
        char unit;
    } units[] = {{1, 'n'},
                 {NS_PER_US, 'u'},
                 {NS_PER_MS, 'm'},
                 {NS_PER_S, 'S'},
                 {60 * (uint64_t)NS_PER_S, 'M'},
                 {3600 * (uint64_t)NS_PER_S, 'H'}};
    size_t at = 0;
    while (timeout_ns / units[at].ns > 99999998)
        at++;
    assert(at < sizeof(units) / sizeof(units[0]));
    uint64_t number = timeout_ns / units[at].ns + (timeout_ns % units[at].ns != 0);
    snprintf(text, TIMEOUT_TEXT_MAX, "%" PRIu64 "%c", number, units[at].unit);
}

/* Returns how many fields it has filled. */
static size_t fill_fields(const struct grpc_client_call *call, nghttp2_nv *fields,
                          char timeout[TIMEOUT_TEXT_MAX])
{
    const struct grpc_client *client = call->client;
    size_t count = 0;
    fields[count++] = grpc_metadata_field(":method", "POST");
    fields[count++] =
        grpc_metadata_field(":scheme", client->settings.tls != NULL ? "https" : "http");
    fields[count++] = grpc_metadata_field(":path", call->post.path);
    fields[count++] = grpc_metadata_field(":authority", client->settings.authority);
    fields[count++] = grpc_metadata_field("content-type", "application/grpc");
    fields[count++] = grpc_metadata_field("user-agent", client->settings.user_agent);
    fields[count++] = grpc_metadata_field("te", "trailers");
    if (call->post.is_compressed)
        fields[count++] = grpc_metadata_field("grpc-encoding", client->settings.encoding);
    fields[count++] = grpc_metadata_field("grpc-accept-encoding", "gzip");
    if (call->deadline_ns != 0) {
        print_timeout(call->deadline_ns - clock_now_ns(), timeout);
        fields[count++] = grpc_metadata_field("grpc-timeout", timeout);
    }
    const struct request_credentials *credentials = &client->settings.credentials;
    if (credentials->name != NULL)
        fields[count++] =
            grpc_metadata_field(credentials->name, credentials->value(credentials->arg));
    assert(count <= OWN_FIELDS_MAX);
    for (size_t i = 0; i < client->metadata.count; i++)
        if (credentials->name == NULL ||
            !grpc_metadata_is(&client->metadata.fields[i], credentials->name))
            fields[count++] = client->metadata.fields[i];
    return count;
}

void grpc_client_call_start(struct grpc_client_call *call, struct http2_client *http2)
{
    struct grpc_client *client = call->client;
    uint64_t size = call->post.bytes;
    assert(size <= UINT32_MAX);
    const uint8_t prefix[GRPC_PREFIX_BYTES] = {call->post.is_compressed, (uint8_t)(size >> 24),
                                               (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                                               (uint8_t)size};
    char timeout[TIMEOUT_TEXT_MAX];
    nghttp2_nv *fields = mem_alloc((OWN_FIELDS_MAX + client->metadata.count) * sizeof(nghttp2_nv));
    const struct http2_request request = {
        .headers = fields,
        .headers_count = fill_fields(call, fields, timeout),
        .prefix = slice_of(prefix, sizeof(prefix)),
        .parts = call->post.parts,
        .parts_count = call->post.parts_count,
        .events = &stream_events,
        .arg = call,
    };
    grpc_call_list_append(&client->running, call);
    call->http2 = http2;
    call->stream = http2_client_submit(http2, &request);
    mem_free(fields);
    if (call->stream == NULL)
        grpc_client_call_fail(call, STATUS_RESOURCE_EXHAUSTED, "no memory left for a stream");
}
