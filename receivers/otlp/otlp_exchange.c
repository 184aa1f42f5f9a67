/* SPDX-License-Identifier: Apache-2.0 */
/* One OTLP request from its body to its response: inflate, check, batch, offer, receipt. Runs on
 * its receiver's lane. */
#include "receivers/otlp/otlp_receiver.h"

#include "receivers/shared/request_pieces.h"

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
#include "src/otlp/former_scopes.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"
#include "src/otlp/split.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_pieces.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REASON_BYTES_MAX = 512, GZIP_HEADER_BYTES = 10 };

static void release(struct otlp_exchange *exchange)
{
    struct otlp_receiver *receiver = exchange->receiver;
    if (exchange->request != NULL || exchange->is_pending || exchange->is_helped)
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
    struct otlp_receiver_counters *counters = exchange->receiver->base.counters;
    counter(*cells)[SIGNAL_KINDS] =
        outcome->verdict == ACCEPTED ? counters->accepted : counters->refused;
    counter_add(&cells[exchange->transport][exchange->signal], exchange->items);
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct otlp_exchange *exchange = arg;
    assert(receipt == &exchange->receipt);
    exchange->is_pending = false;
    count(exchange, outcome);
    /* The response may end the request at once, and the exchange with it. */
    if (exchange->request != NULL && !exchange->is_responded)
        otlp_exchange_respond(exchange, outcome);
    else
        release(exchange);
}

static void on_deadline(struct timer *timer, void *arg)
{
    struct otlp_exchange *exchange = arg;
    struct outcome outcome = outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert(timer == &exchange->deadline);
    otlp_exchange_respond(exchange, &outcome);
}

struct otlp_exchange *otlp_exchange_create(struct otlp_receiver *receiver,
                                           struct http_request *request,
                                           enum otlp_transport transport)
{
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
    (void)arg;
    if (exchange == NULL)
        return;
    exchange->request = NULL;
    release(exchange);
}

void otlp_exchange_respond(struct otlp_exchange *exchange, const struct outcome *outcome)
{
    if (exchange->is_responded)
        return;
    exchange->is_responded = true;
    lane_timer_stop(exchange->receiver->base.lane, &exchange->deadline);
    struct outcome response = *outcome;
    /* Jitter: clients refused together must not retry together. */
    if (response.verdict == REFUSED && response.retry_after_ns > 0)
        response.retry_after_ns += (uint64_t)(random_uniform() * (double)response.retry_after_ns);
    if (exchange->transport == OTLP_GRPC)
        otlp_grpc_respond(exchange, &response);
    else
        otlp_http_respond(exchange, &response);
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

/* A set but empty partial_success, as in the Go collector, or how much was rejected and why. */
size_t otlp_response_encode(const struct otlp_exchange *exchange, const struct outcome *outcome,
                            uint8_t room[OTLP_RESPONSE_BYTES_MAX])
{
    enum { PARTIAL_SUCCESS = 1, REJECTED = 1, ERROR_MESSAGE = 2, CONTENT_BYTES_MAX = 400 };
    uint8_t content[CONTENT_BYTES_MAX];
    struct wire_writer inner = wire_writer_of(content, sizeof(content));
    struct wire_writer out = wire_writer_of(room, OTLP_RESPONSE_BYTES_MAX);
    /* Of several exporters each may have rejected the same items. */
    uint64_t rejected =
        outcome->rejected_items < exchange->items ? outcome->rejected_items : exchange->items;
    rejected += exchange->rejected_profiles;
    if (rejected > 0)
        wire_write_number(&inner, REJECTED, rejected);
    if (exchange->rejected_reason != NULL)
        wire_write_bytes(&inner, ERROR_MESSAGE, slice_of_text(exchange->rejected_reason));
    wire_write_bytes(&out, PARTIAL_SUCCESS, wire_written(&inner));
    return wire_written(&out).size;
}

static void refuse(struct otlp_exchange *exchange, enum status_code code, const char *message)
{
    struct outcome outcome = outcome_refused(code, message);
    otlp_exchange_respond(exchange, &outcome);
}

static void refuse_busy(struct otlp_exchange *exchange)
{
    struct outcome outcome = otlp_body_failure(HTTP_BODY_NO_BUDGET, NULL);
    otlp_exchange_respond(exchange, &outcome);
}

static struct client_info *client_of(const struct otlp_exchange *exchange)
{
    struct otlp_receiver *receiver = exchange->receiver;
    const struct otlp_protocols_config *config = receiver->config;
    const char *address = http_request_peer_address(exchange->request);
    bool wants_metadata = exchange->transport == OTLP_GRPC
                              ? config->grpc.listen.include_metadata
                              : config->http.server.listen.include_metadata;
    if (wants_metadata)
        return http_request_client(exchange->request, exchange->transport == OTLP_GRPC);
    /* Without metadata consecutive requests of a client share one. */
    struct client_info *last = receiver->last_client;
    if (last == NULL || strcmp(last->address, address) != 0) {
        client_info_unref(last);
        receiver->last_client = client_info_create(address, NULL, 0);
    }
    return client_info_ref(receiver->last_client);
}

/* The client of a request whose body is read: charged. NULL: the budget has no room. */
static struct client_info *charged_client_of(const struct otlp_exchange *exchange)
{
    if (exchange->client != NULL)
        return client_info_ref(exchange->client);
    struct client_info *client = client_of(exchange);
    return client == exchange->receiver->last_client
               ? client
               : client_info_charge(client, exchange->receiver->base.budget);
}

bool otlp_exchange_identify(struct otlp_exchange *exchange, const struct auth_result *result)
{
    assert(exchange->client == NULL);
    if (result->attributes_count == 0)
        return true;
    struct client_info *client = client_of(exchange);
    exchange->client =
        client_info_charge(server_auth_client(result, client), exchange->receiver->base.budget);
    client_info_unref(client);
    if (exchange->client != NULL)
        return true;
    refuse_busy(exchange); /* may end the exchange */
    return false;
}

static void refuse_too_large(struct otlp_exchange *exchange, const char *reason)
{
    struct outcome outcome = otlp_body_failure(HTTP_BODY_TOO_LARGE, reason);
    exchange->http_status = OTLP_HTTP_TOO_LARGE;
    otlp_exchange_respond(exchange, &outcome);
}

/* Reading a body: its input and its result. Touches nothing of the lane, so that the helper can do
 * it too. */
struct reading {
    enum signal_kind signal;
    enum otlp_encoding encoding;
    enum profile_layout layout; /* of profiles: PROFILE_LAYOUTS to detect it */
    struct budget *budget;
    struct buffer *owner; /* of message */
    bool is_owner_ours;   /* owner is a reference of ours, which end_reading releases */
    struct slice message;
    enum { READ, MALFORMED, TOO_LARGE, BUSY } result;
    bool is_normalized; /* profiles: `normalized` and `verdict` are set */
    struct otlp_figures figures;
    struct request_pieces *pieces; /* of a dense request; NULL: it stays whole */
    struct profile_normalized normalized;
    enum profile_verdict verdict;
    char reason[JSON_REASON_BYTES_MAX]; /* MALFORMED, TOO_LARGE */
};

static void set_reason(struct reading *reading, const char *reason)
{
    snprintf(reading->reason, sizeof(reading->reason), "%s", reason);
}

static void read_profiles(struct reading *reading)
{
    struct profile_normalized *normalized = &reading->normalized;
    reading->verdict = profile_normalize(reading->owner, reading->message, reading->layout,
                                         reading->budget, normalized);
    reading->is_normalized = true;
    switch (reading->verdict) {
    case PROFILES_TAKEN:
        if (profile_pieces_are_needed(normalized->request.size, normalized->profiles,
                                      reading->budget)) {
            struct batch *batch = request_batch(PROFILES, normalized->samples, normalized->owner,
                                                normalized->request);
            reading->pieces = mem_zalloc(sizeof(*reading->pieces));
            profile_pieces_cut(batch, DENSE_PROFILES_MAX, reading->budget, request_pieces_add,
                               reading->pieces);
            batch_unref(batch);
        }
        return;
    case PROFILES_REFUSED:
        reading->result = MALFORMED;
        set_reason(reading, normalized->reason);
        return;
    case PROFILES_TOO_LARGE:
        reading->result = TOO_LARGE;
        set_reason(reading, normalized->reason);
        return;
    case PROFILES_BUSY:
        break;
    }
    reading->result = BUSY;
}

/* False: there is no memory for it. */
static bool move_former_scopes(struct reading *reading)
{
    const char *reason;
    struct buffer *moved = former_scopes_move(reading->signal, reading->message, reading->budget);
    if (moved == NULL) {
        bool can_never_fit = 2 * reading->message.size > budget_limit(reading->budget);
        reading->result = can_never_fit ? TOO_LARGE : BUSY;
        set_reason(reading, "the request with its deprecated scopes moved is more than the whole "
                            "memory budget (service::budget_mib); send less at a time");
        return false;
    }
    if (reading->is_owner_ours)
        buffer_unref(reading->owner);
    reading->owner = moved;
    reading->is_owner_ours = true;
    reading->message = buffer_slice(moved);
    bool is_fine = otlp_check(reading->signal, reading->message, &reading->figures, &reason);
    assert(is_fine && !reading->figures.has_former_scopes);
    (void)is_fine;
    return true;
}

/* Turns JSON into protobuf, checks the message, and cuts it if it would block the lane. */
static void read_message(struct reading *reading)
{
    const char *reason = NULL;
    if (reading->encoding == OTLP_JSON) {
        struct buffer *encoded;
        switch (json_read(otlp_request(reading->signal), reading->message, reading->budget,
                          &encoded, reading->reason)) {
        case JSON_READ:
            if (reading->is_owner_ours)
                buffer_unref(reading->owner);
            reading->owner = encoded;
            reading->is_owner_ours = true;
            reading->message = buffer_slice(encoded);
            break;
        case JSON_MALFORMED:
            reading->result = MALFORMED;
            return;
        case JSON_TOO_LARGE:
            reading->result = TOO_LARGE;
            set_reason(reading, "the JSON text becomes more than 4 GiB, or than the whole memory "
                                "budget (service::budget_mib), as protobuf; send less at a time");
            return;
        case JSON_NO_BUDGET:
            reading->result = BUSY;
            return;
        }
    }
    if (reading->signal == PROFILES) {
        read_profiles(reading);
        return;
    }
    if (!otlp_check(reading->signal, reading->message, &reading->figures, &reason)) {
        reading->result = MALFORMED;
        set_reason(reading, reason);
        return;
    }
    if (reading->figures.has_former_scopes && !move_former_scopes(reading))
        return;
    reading->pieces = request_pieces_cut(reading->signal, reading->owner, reading->message,
                                         &reading->figures, reading->budget);
}

/* Offers the message that was read to the pipelines, or responds at once. */
static void offer_reading(struct otlp_exchange *exchange, struct reading *reading)
{
    const struct profile_normalized *normalized = &reading->normalized;
    struct buffer *owner = reading->owner;
    struct slice message = reading->message;
    if (reading->signal == PROFILES) {
        exchange->items = normalized->samples;
        exchange->rejected_profiles = normalized->rejected_profiles;
        if (normalized->rejected_profiles > 0)
            exchange->rejected_reason = mem_copy_text(normalized->reason);
        owner = normalized->owner;
        message = normalized->request;
    } else {
        exchange->items = reading->figures.items;
    }
    /* Profiles without samples may have a payload: they count as nothing but go on. */
    if ((reading->signal == PROFILES ? normalized->profiles : exchange->items) == 0) {
        otlp_exchange_respond(exchange, &outcome_accepted);
        return;
    }
    if (reading->signal != PROFILES) {
        char reason[REASON_BYTES_MAX];
        switch (request_charge(owner, message, &reading->figures)) {
        case BUDGET_GIVEN:
            break;
        case BUDGET_TOO_SMALL:
            snprintf(reason, sizeof(reason),
                     "%zu bytes hold %" PRIu64 " messages, which take more than the whole memory "
                     "budget (service::budget_mib); send less at a time",
                     message.size, reading->figures.messages);
            refuse_too_large(exchange, reason);
            return;
        case BUDGET_FULL:
            refuse_busy(exchange);
            return;
        }
    }
    struct client_info *client = charged_client_of(exchange);
    if (client == NULL) {
        refuse_busy(exchange);
        return;
    }
    assert(!exchange->is_pending);
    exchange->is_pending = true;
    receipt_init(&exchange->receipt, on_receipt, exchange);
    struct outlet *outlet = exchange->receiver->base.outlets[exchange->signal];
    if (reading->pieces != NULL) {
        struct request_pieces *pieces = reading->pieces;
        reading->pieces = NULL;
        request_pieces_offer(pieces, exchange->receiver->base.lane, outlet, client,
                             &exchange->receipt);
        client_info_unref(client);
        return;
    }
    struct batch *batch = request_batch(exchange->signal, exchange->items, owner, message);
    batch->client = client;
    outlet_offer(outlet, batch, &exchange->receipt);
    batch_unref(batch);
}

/* Offers or refuses the message, and frees the reading, which may have outlived its request. */
static void end_reading(struct otlp_exchange *exchange, struct reading *reading)
{
    if (reading->is_normalized) {
        const struct profile_normalized *normalized = &reading->normalized;
        struct otlp_receiver_counters *counters = exchange->receiver->base.counters;
        counter_add(&counters->layouts[normalized->layout], 1);
        if (reading->verdict == PROFILES_TAKEN) {
            counter_add(&counters->profiles_rejected, normalized->rejected_profiles);
            counter_add(&counters->profile_attributes_dropped, normalized->dropped_attributes);
            counter_add(&counters->refused[exchange->transport][PROFILES],
                        normalized->rejected_samples);
        }
    }
    if (exchange->request != NULL && !exchange->is_responded) {
        char text[JSON_REASON_BYTES_MAX + 64];
        switch (reading->result) {
        case READ:
            offer_reading(exchange, reading);
            break;
        case MALFORMED:
            snprintf(text, sizeof(text), "%s%s",
                     exchange->transport == OTLP_GRPC ? "grpc: error unmarshalling request: " : "",
                     reading->reason);
            refuse(exchange, STATUS_INVALID_ARGUMENT, text);
            break;
        case TOO_LARGE:
            refuse_too_large(exchange, reading->reason);
            break;
        case BUSY:
            refuse_busy(exchange);
            break;
        }
    }
    if (reading->is_normalized && reading->verdict == PROFILES_TAKEN)
        buffer_unref(reading->normalized.owner);
    request_pieces_free(reading->pieces);
    if (reading->is_owner_ours)
        buffer_unref(reading->owner);
}

/* A body that is compressed, and what became of it. */
struct coded {
    enum codec codec; /* CODEC_NONE: it is not */
    struct slice bytes;
    uint64_t bytes_max;
    enum codec_result result;
    const char *reason;
};

/* Says why the body could not be inflated. */
static void refuse_coded(struct otlp_exchange *exchange, const struct coded *coded)
{
    const struct otlp_receiver *receiver = exchange->receiver;
    bool is_grpc = exchange->transport == OTLP_GRPC;
    const char *reason = coded->reason;
    char text[REASON_BYTES_MAX];
    assert(coded->result != CODEC_OK);
    if (exchange->request == NULL || exchange->is_responded)
        return;
    switch (coded->result) {
    case CODEC_OK:
    case CODEC_NO_BUDGET:
        break;
    case CODEC_TOO_LARGE:
        snprintf(text, sizeof(text),
                 "grpc: received message after decompression larger than max %" PRIu64,
                 coded->bytes_max);
        refuse_too_large(exchange, is_grpc ? text : "http: request body too large");
        return;
    case CODEC_MALFORMED:
        if (!is_grpc) {
            refuse(exchange, STATUS_INVALID_ARGUMENT, reason);
            return;
        }
        /* grpc-go distinguishes an unreadable gzip header from later errors. */
        bool is_header =
            coded->codec == CODEC_GZIP &&
            (coded->bytes.size < GZIP_HEADER_BYTES || strcmp(reason, "gzip: invalid header") == 0);
        snprintf(text, sizeof(text), "grpc: failed to %s: %s",
                 is_header ? "decompress the message" : "read decompressed data", reason);
        refuse(exchange, STATUS_INTERNAL, text);
        return;
    case CODEC_MISSING: {
        /* Not the client's fault: another daemon, or this one once fixed, can read it. */
        struct outcome outcome = outcome_busy(reason);
        log_error(&receiver->base.logger, "A compressed request cannot be read",
                  log_text("error", reason));
        otlp_exchange_respond(exchange, &outcome);
        return;
    }
    }
    refuse_busy(exchange);
}

/* A reading that the helper does. */
struct helped_reading {
    struct helper_work work; /* first */
    struct otlp_exchange *exchange;
    struct codec_box *codecs; /* the helper's */
    struct coded coded;
    struct reading reading;
};

static void on_help(struct helper_work *work)
{
    struct helped_reading *helped = (struct helped_reading *)work;
    struct reading *reading = &helped->reading;
    struct coded *coded = &helped->coded;
    if (coded->codec != CODEC_NONE) {
        struct buffer *plain = NULL;
        coded->result =
            codec_inflate(helped->codecs, coded->codec, coded->bytes, coded->bytes_max, &plain);
        coded->reason = codec_reason(helped->codecs);
        if (coded->result != CODEC_OK)
            return;
        buffer_unref(reading->owner);
        reading->owner = plain;
        reading->message = buffer_slice(plain);
    }
    read_message(reading);
}

static void on_helped(struct helper_work *work)
{
    struct helped_reading *helped = (struct helped_reading *)work;
    struct otlp_exchange *exchange = helped->exchange;
    exchange->is_helped = false;
    bool is_gone = exchange->request == NULL;
    if (helped->coded.result == CODEC_OK) {
        end_reading(exchange, &helped->reading);
    } else {
        refuse_coded(exchange, &helped->coded);
        buffer_unref(helped->reading.owner);
    }
    mem_free(helped);
    if (is_gone)
        release(exchange);
}

/* The size from which a message is the helper's. */
static size_t helped_min(const struct otlp_exchange *exchange)
{
    return exchange->signal == PROFILES ? HELPED_PROFILES_BYTES_MIN : HELPED_BYTES_MIN;
}

static void begin_reading(struct reading *reading, const struct otlp_exchange *exchange,
                          struct buffer *owner, struct slice message)
{
    const struct otlp_receiver *receiver = exchange->receiver;
    assert(exchange->encoding != OTLP_NO_ENCODING);
    reading->signal = exchange->signal;
    reading->encoding = exchange->encoding;
    /* The names of fields in JSON are those of the current layout. */
    reading->layout = exchange->encoding == OTLP_JSON ? LAYOUT_1_10 : receiver->layout;
    reading->budget = receiver->base.budget;
    reading->owner = owner;
    reading->is_owner_ours = false;
    reading->message = message;
    reading->result = READ;
    reading->pieces = NULL;
    reading->is_normalized = false;
}

/* The lane's helper inflates what is coded, and reads the message. */
static void help(struct otlp_exchange *exchange, struct buffer *owner, struct slice message,
                 const struct coded *coded)
{
    struct helped_reading *helped = mem_alloc(sizeof(*helped));
    helped->work = (struct helper_work){.run = on_help, .done = on_helped};
    helped->exchange = exchange;
    helped->codecs = exchange->receiver->helper_codecs;
    helped->coded = *coded;
    begin_reading(&helped->reading, exchange, buffer_ref(owner), message);
    helped->reading.is_owner_ours = true;
    exchange->is_helped = true;
    lane_help(exchange->receiver->base.lane, &helped->work);
}

/* message is inflated and lies in owner. The lane's helper reads large messages. */
static void take_plain(struct otlp_exchange *exchange, struct buffer *owner, struct slice message)
{
    if (message.size >= helped_min(exchange)) {
        help(exchange, owner, message, &(struct coded){.codec = CODEC_NONE, .result = CODEC_OK});
        return;
    }
    struct reading reading;
    begin_reading(&reading, exchange, owner, message);
    read_message(&reading);
    end_reading(exchange, &reading);
}

void otlp_exchange_take(struct otlp_exchange *exchange, struct buffer *owner, struct slice message,
                        enum codec codec, uint64_t bytes_max)
{
    assert(!exchange->is_pending);
    assert(bytes_max > 0);
    if (codec == CODEC_NONE) {
        take_plain(exchange, owner, message);
        return;
    }
    struct codec_box *codecs = exchange->receiver->codecs;
    struct coded coded = {.codec = codec, .bytes = message, .bytes_max = bytes_max};
    struct buffer *plain = NULL;
    if (!codec_inflate_little(codecs, codec, message, bytes_max, helped_min(exchange),
                              &coded.result, &plain)) {
        help(exchange, owner, message, &coded);
        return;
    }
    if (coded.result != CODEC_OK) {
        coded.reason = codec_reason(codecs);
        refuse_coded(exchange, &coded);
        return;
    }
    take_plain(exchange, plain, buffer_slice(plain));
    buffer_unref(plain);
}
