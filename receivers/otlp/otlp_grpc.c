/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over gRPC: one service per signal, each with the method Export. Runs on its receiver's lane.
 */
#include "receivers/otlp/otlp_receiver.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/limits.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Requests of profiles exceed grpc-go's default: profilers send up to 32 MiB, and servers should
 * accept 64 (OTLP specification 1.11). */
enum { MESSAGE_MIB_DEFAULT = 4, PROFILES_MIB_DEFAULT = 64, NAME_SHOWN_MAX = 200 };

static const char *const services[SIGNAL_KINDS] = {
    [TRACES] = "opentelemetry.proto.collector.trace.v1.TraceService",
    [METRICS] = "opentelemetry.proto.collector.metrics.v1.MetricsService",
    [LOGS] = "opentelemetry.proto.collector.logs.v1.LogsService",
    [PROFILES] = "opentelemetry.proto.collector.profiles.v1development.ProfilesService",
};

static uint64_t message_bytes_max(const struct otlp_exchange *exchange)
{
    assert(exchange->transport == OTLP_GRPC);
    uint64_t bytes = grpc_server_config_message_max(&exchange->receiver->config->grpc);
    if (bytes > 0)
        return bytes;
    return (exchange->signal == PROFILES ? PROFILES_MIB_DEFAULT : MESSAGE_MIB_DEFAULT) * MIB;
}

static uint64_t on_peek(struct http_request *request, const uint8_t *data, void *arg)
{
    struct otlp_exchange *exchange = http_request_context(request);
    char text[GRPC_TEXT_MAX];
    (void)arg;
    uint64_t size = grpc_body_size(data, message_bytes_max(exchange), text);
    if (size == 0) {
        struct outcome outcome = outcome_refused(STATUS_RESOURCE_EXHAUSTED, text);
        otlp_exchange_respond(exchange, &outcome);
    }
    return size;
}

static void on_request(struct http_request *request, void *arg)
{
    struct otlp_receiver *receiver = arg;
    assert(receiver->config->has_grpc);
    struct grpc_call call;
    struct auth_result result;
    if (!grpc_accept(request, &call))
        return;
    if (!server_auth_admits_call(&receiver->servers[OTLP_GRPC].auth, request, &call, &result))
        return;
    struct slice service;
    struct slice method;
    if (!grpc_split_path(request, &call, &service, &method))
        return;
    enum signal_kind signal = TRACES;
    while (signal < SIGNAL_KINDS && !slice_equal_text(service, services[signal]))
        signal++;
    bool is_known = signal < SIGNAL_KINDS && receiver->base.outlets[signal] != NULL;
    if (!is_known || !slice_equal_text(method, "Export")) {
        char text[2 * NAME_SHOWN_MAX + 64];
        struct slice name = is_known ? method : service;
        snprintf(text, sizeof(text), "unknown %s %.*s%s%s", is_known ? "method" : "service",
                 (int)(name.size < NAME_SHOWN_MAX ? name.size : NAME_SHOWN_MAX),
                 (const char *)name.data, is_known ? " for service " : "",
                 is_known ? services[signal] : "");
        grpc_respond_status(request, &call,
                            &(struct rpc_status){.code = STATUS_UNIMPLEMENTED, .message = text});
        return;
    }
    struct otlp_exchange *exchange = otlp_exchange_create(receiver, request, OTLP_GRPC);
    exchange->call = call;
    exchange->signal = signal;
    if (!otlp_exchange_identify(exchange, &result))
        return;
    if (call.timeout_ns == 0) {
        struct outcome outcome =
            outcome_refused(STATUS_DEADLINE_EXCEEDED, "context deadline exceeded");
        otlp_exchange_respond(exchange, &outcome);
        return;
    }
    if (call.timeout_ns != GRPC_NO_TIMEOUT)
        lane_timer_start(receiver->base.lane, &exchange->deadline, call.timeout_ns);
    http_request_read_body(request,
                           &(struct http_body_plan){
                               .max_bytes = message_bytes_max(exchange) + GRPC_PREFIX_BYTES,
                               .peek_bytes = GRPC_PREFIX_BYTES,
                               .on_peek = on_peek,
                           });
}

static void on_body(struct http_request *request, void *arg)
{
    struct otlp_exchange *exchange = http_request_context(request);
    struct buffer *body = http_request_body(request);
    struct grpc_message message;
    assert(exchange->receiver == arg);
    if (grpc_unframe(request, &exchange->call, buffer_slice(body), &message)) {
        enum codec codec = message.is_compressed ? exchange->call.codec : CODEC_NONE;
        otlp_exchange_take(exchange, body, message.bytes, codec, message_bytes_max(exchange));
        return;
    }
    struct outcome outcome = outcome_refused(message.refusal.code, message.refusal.message);
    otlp_exchange_respond(exchange, &outcome);
}

static void on_body_failed(struct http_request *request, enum http_failure failure, void *arg)
{
    struct outcome outcome =
        otlp_body_failure(failure, "grpc: received more bytes than the largest message may have");
    (void)arg;
    otlp_exchange_respond(http_request_context(request), &outcome);
}

void otlp_grpc_respond(struct otlp_exchange *exchange, const struct outcome *outcome)
{
    uint8_t body[OTLP_RESPONSE_BYTES_MAX];
    assert(exchange->transport == OTLP_GRPC);
    if (outcome->verdict == ACCEPTED) {
        size_t size = otlp_response_encode(exchange, outcome, body);
        grpc_respond(exchange->request, &exchange->call, slice_of(body, size));
        return;
    }
    grpc_respond_status(exchange->request, &exchange->call,
                        &(struct rpc_status){
                            .code = outcome->code,
                            .message = outcome->message,
                            .details = outcome->details,
                            .retry_after_ns = outcome->is_permanent ? 0 : outcome->retry_after_ns,
                        });
}

const struct http_handler otlp_grpc_handler = {
    .on_request = on_request,
    .on_body = on_body,
    .on_body_failed = on_body_failed,
    .on_end = otlp_exchange_on_end,
};
