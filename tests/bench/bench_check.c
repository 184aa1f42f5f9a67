/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the wire walker on the payload of the whole benchmark. Prints the best of
 * several runs, in ns per span and per byte. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/otlp/check.h"
#include "tests/bench/payload.h"

enum { SPANS = 1000, SPAN_BYTES = 672, ROUNDS = 200, RUNS = 15 };

static double time_check(struct slice request)
{
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct otlp_figures figures;
        const char *reason;
        bool is_fine = otlp_check(TRACES, request, &figures, &reason);
        assert(is_fine && figures.items == SPANS);
        (void)is_fine;
    }
    return (double)(clock_now_ns() - begin) / ROUNDS;
}

int main(int count, char **arguments)
{
    uint32_t span_bytes = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : SPAN_BYTES;
    struct payload payload = payload_make(SPANS, span_bytes, 1);
    struct slice request = slice_of(payload.body.data, payload.body.size);
    double best_ns = time_check(request);
    for (unsigned run = 1; run < RUNS; run++) {
        double ns = time_check(request);
        best_ns = ns < best_ns ? ns : best_ns;
    }
    printf("otlp_check: %.1f ns/span, %.4f ns/B (%zu bytes)\n", best_ns / SPANS,
           best_ns / (double)request.size, request.size);
    payload_free(&payload);
    return 0;
}
