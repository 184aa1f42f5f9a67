/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of Jaeger's clients, as a Jaeger agent takes them: each is a call of emitBatch, and
 * nobody waits for a response. So what cannot be taken is lost, which is logged and counted. Runs
 * on lane 0. */
#include "receivers/jaeger/jaeger_receiver.h"

#include <assert.h>
#include <stdio.h>

#include "receivers/shared/request_pieces.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"
#include "src/jaeger/jaeger_read.h"
#include "src/net/socket/packet_socket.h"
#include "src/otlp/check.h"

/* One that is on its way to the pipelines. */
struct packet {
    struct jaeger_packets *packets;
    uint64_t spans;
    struct receipt receipt;
};

static void drop(const struct jaeger_packets *packets, const char *reason)
{
    const struct component *base = &packets->receiver->base;
    struct jaeger_receiver_counters *counters = base->counters;
    counter_add(&counters->dropped_packets[packets->transport][TRACES], 1);
    log_error(&base->logger, "A packet is dropped", log_text("error", reason),
              log_text("endpoint", packet_socket_address(packets->socket)));
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct packet *packet = arg;
    struct jaeger_packets *packets = packet->packets;
    struct jaeger_receiver *receiver = packets->receiver;
    struct jaeger_receiver_counters *counters = receiver->base.counters;
    bool is_accepted = outcome->verdict == ACCEPTED;
    assert(receipt == &packet->receipt);
    assert(packets->pending > 0 && receiver->exchanges > 0);
    counter(*cells)[SIGNAL_KINDS] = is_accepted ? counters->accepted : counters->refused;
    counter_add(&cells[packets->transport][TRACES], packet->spans);
    if (!is_accepted)
        log_error(&receiver->base.logger, "The spans of a packet are refused, and lost",
                  log_text("error", outcome->message), log_int("spans", (int64_t)packet->spans));
    mem_free(packet);
    packets->pending--;
    receiver->exchanges--;
    jaeger_receiver_check_stopped(receiver);
}

/* Offers what was read to the pipelines. */
static void offer(struct jaeger_packets *packets, const struct converted_spans *read)
{
    struct jaeger_receiver *receiver = packets->receiver;
    struct outlet *outlet = receiver->base.outlets[TRACES];
    struct slice message = buffer_slice(read->request);
    const struct otlp_figures figures = {.items = read->spans, .messages = read->messages};
    if (request_charge(read->request, message, &figures) != BUDGET_GIVEN) {
        drop(packets, "the memory budget has no room: raise service::budget_mib");
        return;
    }
    struct packet *packet = mem_alloc(sizeof(*packet));
    packet->packets = packets;
    packet->spans = figures.items;
    receipt_init(&packet->receipt, on_receipt, packet);
    packets->pending++;
    receiver->exchanges++;
    struct batch *batch = request_batch(TRACES, figures.items, read->request, message);
    outlet_offer(outlet, batch, &packet->receipt);
    batch_unref(batch);
}

static void on_packet(void *arg, struct slice content, size_t size)
{
    struct jaeger_packets *packets = arg;
    const struct jaeger_udp_protocol *config = packets->config;
    char reason[CONVERSION_REASON_BYTES_MAX];
    struct converted_spans read;
    if (size > content.size) {
        snprintf(reason, sizeof(reason), "found %zu bytes, expected at most max_packet_size (%zu)",
                 size, content.size);
        drop(packets, reason);
        return;
    }
    /* The sum of two large settings must not wrap. */
    if (packets->pending >= config->queue_size &&
        packets->pending - config->queue_size >= config->workers) {
        drop(packets, "queue_size packets wait for the pipelines");
        return;
    }
    enum jaeger_form form =
        packets->transport == JAEGER_COMPACT ? JAEGER_COMPACT_CALL : JAEGER_BINARY_CALL;
    switch (jaeger_read(form, content, packets->receiver->base.budget, &read, reason)) {
    case CONVERTED:
        if (read.spans > 0)
            offer(packets, &read);
        buffer_unref(read.request);
        return;
    case CONVERSION_BUSY:
        drop(packets, "the memory budget has no room: raise service::budget_mib");
        return;
    case CONVERSION_MALFORMED:
    case CONVERSION_OVERSIZED:
        drop(packets, reason);
        return;
    }
}

bool jaeger_packets_open(struct jaeger_packets *packets, struct error *error)
{
    const struct component *base = &packets->receiver->base;
    uint64_t bytes_max = packets->config->packet_bytes_max;
    const struct packet_socket_settings settings = {
        .lane = base->lane,
        .endpoint = packets->config->endpoint,
        .bytes_max = bytes_max < PACKET_BYTES_MAX ? bytes_max : PACKET_BYTES_MAX,
        .buffer_bytes = packets->config->socket_buffer_bytes,
        .on_packet = on_packet,
        .arg = packets,
    };
    packets->socket = packet_socket_open(&settings, error);
    if (packets->socket == NULL)
        return false;
    log_info(&base->logger,
             packets->transport == JAEGER_COMPACT ? "Starting UDP server for Compact Thrift"
                                                  : "Starting UDP server for Binary Thrift",
             log_text("endpoint", packet_socket_address(packets->socket)));
    return true;
}
