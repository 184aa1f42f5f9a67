/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the wire walker: 1000 spans of about 672 bytes in one request, as in the
 * daemon's own benchmark. Prints the best of several runs in ns per span and per byte. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/clock.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"

enum { SPANS = 1000, SPAN_BYTES_MAX = 1024, ATTRIBUTES = 13, ROUNDS = 200, RUNS = 15 };

static void write_attribute(struct wire_writer *out, uint32_t number, const char *key,
                            const char *value)
{
    uint8_t room[256];
    struct wire_writer inner = wire_writer_of(room, sizeof(room));
    struct slice text = slice_of_text(value);
    wire_write_bytes(&inner, 1, slice_of_text(key));
    wire_write_header(&inner, 2, wire_field_size(1, text.size));
    wire_write_bytes(&inner, 1, text);
    wire_write_bytes(out, number, wire_written(&inner));
}

static void write_event(struct wire_writer *out, unsigned seed)
{
    uint8_t room[256];
    struct wire_writer inner = wire_writer_of(room, sizeof(room));
    wire_write_fixed64(&inner, 1, 1700000000000000000u + seed);
    wire_write_bytes(&inner, 2, slice_of_text("cache.miss"));
    write_attribute(&inner, 3, "cache.key", "user:4711");
    write_attribute(&inner, 3, "cache.tier", "l2");
    wire_write_bytes(out, 11, wire_written(&inner));
}

/* Attributes differ in number and kind from span to span, so that the branch predictor cannot learn
 * one shape by heart. */
static void write_span(struct wire_writer *out, unsigned seed)
{
    static const char *const keys[ATTRIBUTES] = {
        "http.request.method", "url.path",          "http.response.status_code",
        "server.address",      "client.address",    "user_agent.original",
        "http.route",          "network.peer.port", "thread.name",
        "code.function.name",  "deployment.ring",   "tenant.id",
        "queue.name"};
    uint8_t room[SPAN_BYTES_MAX];
    struct wire_writer span = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&span, 1, slice_of_text("0123456789abcdef"));
    wire_write_bytes(&span, 2, slice_of_text("01234567"));
    if (seed % 3 != 0)
        wire_write_bytes(&span, 4, slice_of_text("76543210"));
    wire_write_bytes(&span, 5, slice_of_text("GET /api/v1/users/{id}"));
    wire_write_number(&span, 6, 2);
    wire_write_fixed64(&span, 7, 1700000000000000000u + seed);
    wire_write_fixed64(&span, 8, 1700000000000900000u + seed);
    for (unsigned i = 0; i < ATTRIBUTES - seed % 2; i++)
        write_attribute(&span, 9, keys[i],
                        &"a value of some length or other"[(seed * 7 + i * 5) % 24]);
    write_event(&span, seed);
    wire_write_bytes(&span, 15, slice_of_text("\x18\x01"));
    wire_write_varint(&span, wire_tag(16, WIRE_FIXED32));
    wire_write_raw(&span, slice_of("\1\1\0\0", 4));
    wire_write_bytes(out, 2, wire_written(&span));
}

static struct slice make_request(void)
{
    size_t size = SPANS * (SPAN_BYTES_MAX);
    struct wire_writer spans = wire_writer_of(malloc(size), size);
    for (unsigned i = 0; i < SPANS; i++)
        write_span(&spans, (unsigned)rand());
    struct slice inner = wire_written(&spans);
    struct wire_writer out = wire_writer_of(malloc(size + 64), size + 64);
    wire_write_header(&out, 1, wire_field_size(2, inner.size));
    wire_write_bytes(&out, 2, inner);
    free(spans.begin);
    return wire_written(&out);
}

int main(void)
{
    struct slice request = make_request();
    double best = 1e9;
    for (unsigned run = 0; run < RUNS; run++) {
        uint64_t begin = clock_now_ns();
        for (unsigned i = 0; i < ROUNDS; i++) {
            struct otlp_figures figures;
            const char *reason;
            bool is_fine = otlp_check(TRACES, request, &figures, &reason);
            assert(is_fine && figures.items == SPANS);
            (void)is_fine;
        }
        double ns = (double)(clock_now_ns() - begin) / ROUNDS;
        best = ns < best ? ns : best;
    }
    printf("otlp_check: %.1f ns/span, %.4f ns/B (%zu bytes)\n", best / SPANS,
           best / (double)request.size, request.size);
    free((void *)(uintptr_t)request.data);
    return 0;
}
