/* SPDX-License-Identifier: Apache-2.0 */
/* One OTLP request from its body to its answer: inflate, check, batch, offer, receipt. Runs on its
 * receiver's lane. */
#include "receivers/otlp/otlp_receiver.h"

#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/net/server/http_request_client.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_door.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REASON_BYTES_MAX = 512, GZIP_HEADER_BYTES = 10 };

static void release(struct otlp_exchange *exchange)
{
    assert(exchange != NULL);
    struct otlp_receiver *receiver = exchange->receiver;
    if (exchange->request != NULL || exchange->is_pending)
        return;
    lane_timer_stop(receiver->base.lane, &exchange->deadline);
    client_info_unref(exchange->client);
    mem_free(exchange->rejected_reason);
    mem_free(exchange);
    assert(receiver->exchanges > 0);
    receiver->exchanges--;
    otlp_receiver_check_stopped(receiver);
}

static void count(struct otlp_exchange *exchange, const struct outcome *outcome)
{
    assert(exchange->signal < SIGNAL_KINDS);
    assert(outcome != NULL);
    struct otlp_receiver_counters *counters = exchange->receiver->base.counters;
    counter(*cells)[SIGNAL_KINDS] =
        outcome->verdict == ACCEPTED ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->transport][exchange->signal], exchange->items);
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct otlp_exchange *exchange = arg;
    assert(receipt == &exchange->receipt);
    (void)receipt;
    exchange->is_pending = false;
    count(exchange, outcome);
    /* Answering may end the request at once, and the exchange with it. */
    if (exchange->request != NULL && !exchange->is_answered)
        otlp_exchange_answer(exchange, outcome);
    else
        release(exchange);
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct otlp_exchange *exchange = arg;
    struct outcome outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert(timer == &exchange->deadline);
    (void)timer;
    otlp_exchange_answer(exchange, &outcome);
}

struct otlp_exchange *otlp_exchange_create(struct otlp_receiver *receiver,
                                           struct http_request *request,
                                           enum otlp_transport transport)
{
    assert(request != NULL);
    assert(transport < OTLP_TRANSPORTS);
    assert(lane_is_current(receiver->base.lane));
    struct otlp_exchange *exchange = mem_zalloc(sizeof(*exchange));
    exchange->receiver = receiver;
    exchange->request = request;
    exchange->transport = transport;
    timer_init(&exchange->deadline, on_deadline, exchange);
    http_request_set_context(request, exchange);
    receiver->exchanges++;
    return exchange;
}

void otlp_exchange_on_end(struct http_request *request, void *arg)
{
    struct otlp_exchange *exchange = http_request_context(request);
    assert(arg != NULL);
    (void)arg;
    if (exchange == NULL)
        return;
    exchange->request = NULL;
    release(exchange);
}

void otlp_exchange_answer(struct otlp_exchange *exchange, const struct outcome *outcome)
{
    assert(outcome != NULL);
    assert(exchange->request != NULL);
    if (exchange->is_answered)
        return;
    exchange->is_answered = true;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    struct outcome told = *outcome;
    /* Clients that were refused together must not come back together. */
    if (told.verdict == REFUSED && told.retry_after_ns > 0)
        told.retry_after_ns += (uint64_t)(random_uniform() * (double)told.retry_after_ns);
    if (exchange->transport == OTLP_GRPC)
        otlp_grpc_answer(exchange, &told);
    else
        otlp_http_answer(exchange, &told);
}

struct outcome otlp_body_failure(enum http_failure failure, const char *too_large)
{
    assert(failure != HTTP_BODY_TOO_LARGE || too_large != NULL);
    switch (failure) {
    case HTTP_BODY_TOO_LARGE:
        return outcome_refused(STATUS_RESOURCE_EXHAUSTED, too_large);
    case HTTP_BODY_NO_BUDGET:
        return outcome_busy("the memory budget is used up, try again later");
    case HTTP_BODY_TOO_SLOW:
        return outcome_refused(STATUS_DEADLINE_EXCEEDED, "the request body came too slowly");
    case HTTP_BODY_MALFORMED:
        break;
    }
    return outcome_refused(STATUS_INVALID_ARGUMENT, "the request body is malformed");
}

/* What an accepted request is told: a set but empty partial_success, as the Go collector says it,
 * or how much was not taken and why. */
size_t otlp_response_encode(const struct otlp_exchange *exchange, const struct outcome *outcome,
                            uint8_t room[OTLP_RESPONSE_BYTES_MAX])
{
    enum { PARTIAL_SUCCESS = 1, REJECTED = 1, ERROR_MESSAGE = 2, CONTENT_BYTES_MAX = 400 };
    uint8_t content[CONTENT_BYTES_MAX];
    struct wire_writer inner = wire_writer_of(content, sizeof(content));
    struct wire_writer out = wire_writer_of(room, OTLP_RESPONSE_BYTES_MAX);
    uint64_t rejected = outcome->rejected_items + exchange->rejected_profiles;
    if (rejected > 0)
        wire_write_number(&inner, REJECTED, rejected);
    if (exchange->rejected_reason != NULL)
        wire_write_bytes(&inner, ERROR_MESSAGE, slice_of_text(exchange->rejected_reason));
    wire_write_bytes(&out, PARTIAL_SUCCESS, wire_written(&inner));
    return wire_written(&out).size;
}

static void refuse(struct otlp_exchange *exchange, enum status_code code, const char *message)
{
    assert(message != NULL);
    struct outcome outcome = outcome_refused(code, message);
    otlp_exchange_answer(exchange, &outcome);
}

/* The address alone is shared by all requests of a client. */
static struct client_info *client_by_address(struct otlp_receiver *receiver, const char *address)
{
    assert(address != NULL);
    struct client_info *last = receiver->last_client;
    if (last == NULL || strcmp(last->address, address) != 0) {
        client_info_unref(last);
        receiver->last_client = client_info_create(address, NULL, 0);
    }
    return client_info_ref(receiver->last_client);
}

static struct client_info *client_of(const struct otlp_exchange *exchange)
{
    assert(exchange->request != NULL);
    const struct otlp_protocols_config *config = exchange->receiver->config;
    const char *address = http_request_peer_address(exchange->request);
    bool wants_metadata = exchange->transport == OTLP_GRPC
                              ? config->grpc.listen.include_metadata
                              : config->http.server.listen.include_metadata;
    if (!wants_metadata)
        return client_by_address(exchange->receiver, address);
    return http_request_client(exchange->request, exchange->transport == OTLP_GRPC);
}

void otlp_exchange_identify(struct otlp_exchange *exchange, const struct auth_answer *answer)
{
    assert(exchange->client == NULL);
    if (answer->attributes_count == 0)
        return;
    struct client_info *client = client_of(exchange);
    exchange->client = listen_auth_client(answer, client);
    client_info_unref(client);
}

static void offer(struct otlp_exchange *exchange, struct buffer *owner, struct slice message)
{
    assert(!exchange->is_pending);
    struct outlet *outlet = exchange->receiver->base.outlets[exchange->signal];
    assert(outlet != NULL);
    struct batch *batch = batch_create(exchange->signal, 1);
    batch_append(batch, owner, message);
    batch->items = exchange->items;
    batch->client =
        exchange->client != NULL ? client_info_ref(exchange->client) : client_of(exchange);
    exchange->is_pending = true;
    receipt_init(&exchange->receipt, on_receipt, exchange);
    outlet_offer(outlet, batch, &exchange->receipt);
    batch_unref(batch);
}

static void refuse_malformed(struct otlp_exchange *exchange, const char *reason)
{
    char text[REASON_BYTES_MAX];
    snprintf(text, sizeof(text), "%s%s",
             exchange->transport == OTLP_GRPC ? "grpc: error unmarshalling request: " : "", reason);
    refuse(exchange, STATUS_INVALID_ARGUMENT, text);
}

static void refuse_too_large(struct otlp_exchange *exchange, const char *reason)
{
    struct outcome outcome = otlp_body_failure(HTTP_BODY_TOO_LARGE, reason);
    exchange->http_status = OTLP_HTTP_TOO_LARGE;
    otlp_exchange_answer(exchange, &outcome);
}

static void count_profiles(struct otlp_exchange *exchange, const struct profile_passed *passed,
                           enum profile_verdict verdict)
{
    struct otlp_receiver_counters *counters = exchange->receiver->base.counters;
    assert(passed->layout < PROFILE_LAYOUTS);
    counter_add(&counters->layouts[passed->layout], 1);
    if (verdict != PROFILES_TAKEN)
        return;
    counter_add(&counters->profiles_rejected, passed->rejected_profiles);
    counter_add(&counters->profile_attributes_dropped, passed->dropped_attributes);
    counter_add(&counters->refused[exchange->transport][PROFILES], passed->rejected_samples);
}

/* Profiles without samples may have a payload: they count as nothing but go on. */
static void check_and_offer_profiles(struct otlp_exchange *exchange, struct buffer *owner,
                                     struct slice message)
{
    struct profile_passed passed;
    const struct otlp_receiver *receiver = exchange->receiver;
    /* The names of fields in JSON are those of the current layout. */
    enum profile_layout layout = exchange->encoding == OTLP_JSON ? LAYOUT_1_10 : receiver->layout;
    enum profile_verdict verdict =
        profile_door(owner, message, layout, receiver->base.budget, &passed);
    count_profiles(exchange, &passed, verdict);
    if (verdict == PROFILES_REFUSED) {
        refuse_malformed(exchange, passed.reason);
        return;
    }
    if (verdict == PROFILES_TOO_LARGE) {
        refuse_too_large(exchange, passed.reason);
        return;
    }
    if (verdict == PROFILES_BUSY) {
        struct outcome outcome = otlp_body_failure(HTTP_BODY_NO_BUDGET, NULL);
        otlp_exchange_answer(exchange, &outcome);
        return;
    }
    exchange->items = passed.samples;
    exchange->rejected_profiles = passed.rejected_profiles;
    if (passed.rejected_profiles > 0)
        exchange->rejected_reason = mem_copy_text(passed.reason);
    if (passed.profiles == 0)
        otlp_exchange_answer(exchange, &outcome_accepted);
    else
        offer(exchange, passed.owner, passed.request);
    buffer_unref(passed.owner);
}

/* Messages without content cost those who edit or index them more than their two bytes. False: the
 * budget has no room, and the request is answered. */
static bool charge_messages(struct otlp_exchange *exchange, struct buffer *owner,
                            struct slice message, const struct otlp_figures *figures)
{
    char reason[REASON_BYTES_MAX];
    struct outcome outcome;
    uint64_t bytes =
        figures->messages * WIRE_MESSAGE_BYTES_MIN + figures->items * WIRE_ITEM_BYTES_MIN;
    if (bytes <= message.size)
        return true;
    switch (buffer_try_charge(owner, (size_t)(bytes - message.size))) {
    case BUDGET_GIVEN:
        return true;
    case BUDGET_TOO_SMALL:
        snprintf(reason, sizeof(reason),
                 "%zu bytes hold %" PRIu64 " messages, which take more than the whole memory "
                 "budget (service::budget_mib); send less at a time",
                 message.size, figures->messages);
        refuse_too_large(exchange, reason);
        return false;
    case BUDGET_FULL:
        break;
    }
    outcome = otlp_body_failure(HTTP_BODY_NO_BUDGET, NULL);
    otlp_exchange_answer(exchange, &outcome);
    return false;
}

/* message is protobuf and lies in owner. */
static void check_and_offer(struct otlp_exchange *exchange, struct buffer *owner,
                            struct slice message)
{
    struct otlp_figures figures = {.items = 0};
    const char *reason = NULL;
    if (exchange->signal == PROFILES) {
        check_and_offer_profiles(exchange, owner, message);
        return;
    }
    if (!otlp_check(exchange->signal, message, &figures, &reason)) {
        refuse_malformed(exchange, reason);
        return;
    }
    exchange->items = figures.items;
    if (figures.items == 0)
        otlp_exchange_answer(exchange, &outcome_accepted);
    else if (charge_messages(exchange, owner, message, &figures))
        offer(exchange, owner, message);
}

/* JSON becomes protobuf, and goes the way of all protobuf. */
static void transcode_and_offer(struct otlp_exchange *exchange, struct slice text)
{
    struct buffer *encoded;
    struct outcome outcome;
    char reason[JSON_REASON_BYTES_MAX];
    assert(exchange->encoding == OTLP_JSON);
    switch (json_read(otlp_request(exchange->signal), text, exchange->receiver->base.budget,
                      &encoded, reason)) {
    case JSON_READ:
        check_and_offer(exchange, encoded, buffer_slice(encoded));
        buffer_unref(encoded);
        return;
    case JSON_MALFORMED:
        refuse_malformed(exchange, reason);
        return;
    case JSON_TOO_LARGE:
        refuse_too_large(exchange, "the JSON text becomes more than the whole memory budget "
                                   "(service::budget_mib) has as protobuf; send less at a time");
        return;
    case JSON_NO_BUDGET:
        break;
    }
    outcome = otlp_body_failure(HTTP_BODY_NO_BUDGET, NULL);
    otlp_exchange_answer(exchange, &outcome);
}

/* message has been inflated and lies in owner. */
static void take_plain(struct otlp_exchange *exchange, struct buffer *owner, struct slice message)
{
    assert(exchange->encoding != OTLP_NO_ENCODING);
    if (exchange->encoding == OTLP_JSON)
        transcode_and_offer(exchange, message);
    else
        check_and_offer(exchange, owner, message);
}

static void answer_too_large(struct otlp_exchange *exchange, uint64_t bytes_max)
{
    char text[REASON_BYTES_MAX];
    assert(bytes_max > 0);
    snprintf(text, sizeof(text),
             "grpc: received message after decompression larger than max %" PRIu64, bytes_max);
    bool is_grpc = exchange->transport == OTLP_GRPC;
    refuse_too_large(exchange, is_grpc ? text : "http: request body too large");
}

/* grpc-go tells a gzip header that it cannot read from what comes later. */
static void answer_undecodable(struct otlp_exchange *exchange, enum codec codec, size_t size)
{
    char text[REASON_BYTES_MAX];
    const char *reason = codec_reason(exchange->receiver->codecs);
    assert(codec != CODEC_NONE);
    if (exchange->transport == OTLP_HTTP) {
        refuse(exchange, STATUS_INVALID_ARGUMENT, reason);
        return;
    }
    bool is_header = codec == CODEC_GZIP &&
                     (size < GZIP_HEADER_BYTES || strcmp(reason, "gzip: invalid header") == 0);
    snprintf(text, sizeof(text), "grpc: failed to %s: %s",
             is_header ? "decompress the message" : "read decompressed data", reason);
    refuse(exchange, STATUS_INTERNAL, text);
}

/* The sender can do nothing about it, but another daemon, or this one once it is mended, can. */
static void answer_missing(struct otlp_exchange *exchange)
{
    const struct otlp_receiver *receiver = exchange->receiver;
    const char *reason = codec_reason(receiver->codecs);
    struct outcome outcome = outcome_busy(reason);
    assert(exchange->request != NULL);
    log_error(&receiver->base.logger, "A compressed request cannot be read",
              log_text("error", reason));
    otlp_exchange_answer(exchange, &outcome);
}

static void inflate_and_take(struct otlp_exchange *exchange, struct slice message, enum codec codec,
                             uint64_t bytes_max)
{
    assert(bytes_max > 0);
    struct buffer *plain = NULL;
    struct outcome outcome;
    switch (codec_inflate(exchange->receiver->codecs, codec, message, bytes_max, &plain)) {
    case CODEC_OK:
        take_plain(exchange, plain, buffer_slice(plain));
        buffer_unref(plain);
        return;
    case CODEC_TOO_LARGE:
        answer_too_large(exchange, bytes_max);
        return;
    case CODEC_MALFORMED:
        answer_undecodable(exchange, codec, message.size);
        return;
    case CODEC_MISSING:
        answer_missing(exchange);
        return;
    case CODEC_NO_BUDGET:
        break;
    }
    outcome = otlp_body_failure(HTTP_BODY_NO_BUDGET, NULL);
    otlp_exchange_answer(exchange, &outcome);
}

void otlp_exchange_take(struct otlp_exchange *exchange, struct buffer *owner, struct slice message,
                        enum codec codec, uint64_t bytes_max)
{
    assert(owner != NULL);
    assert(!exchange->is_pending);
    if (codec != CODEC_NONE)
        inflate_and_take(exchange, message, codec, bytes_max);
    else
        take_plain(exchange, owner, message);
}
