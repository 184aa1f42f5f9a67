/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the JSON transcoder on the payload of the whole benchmark, in both directions.
 * Prints the best of several runs, in ns per span and per byte of JSON. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "tests/bench/payload.h"

enum { SPANS = 1000, SPAN_BYTES = 672, ROUNDS = 2, RUNS = 150 };

static uint64_t time_write(struct slice request)
{
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < ROUNDS; i++)
        buffer_unref(json_write(otlp_request(TRACES), request, NULL));
    return clock_now_ns() - begin;
}

static uint64_t time_read(struct slice text)
{
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct buffer *encoded = NULL;
        char reason[JSON_REASON_BYTES_MAX];
        enum json_result result = json_read(otlp_request(TRACES), text, NULL, &encoded, reason);
        assert(result == JSON_READ);
        (void)result;
        buffer_unref(encoded);
    }
    return clock_now_ns() - begin;
}

static void print_best(const char *name, uint64_t (*time)(struct slice), struct slice input,
                       size_t json_bytes)
{
    uint64_t best_ns = UINT64_MAX;
    for (unsigned run = 0; run < RUNS; run++) {
        uint64_t ns = time(input);
        best_ns = ns < best_ns ? ns : best_ns;
    }
    double ns = (double)best_ns / ROUNDS;
    printf("%s: %.1f ns/span, %.3f ns/B (%zu bytes of JSON)\n", name, ns / SPANS,
           ns / (double)json_bytes, json_bytes);
}

int main(int count, char **arguments)
{
    uint32_t span_bytes = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : SPAN_BYTES;
    struct payload payload = payload_make(SPANS, span_bytes, 1);
    struct slice request = slice_of(payload.body.data, payload.body.size);
    struct buffer *text = json_write(otlp_request(TRACES), request, NULL);
    assert(text != NULL);
    print_best("json_write", time_write, request, text->size);
    print_best("json_read", time_read, buffer_slice(text), text->size);
    buffer_unref(text);
    payload_free(&payload);
    return 0;
}
