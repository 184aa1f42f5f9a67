/* SPDX-License-Identifier: Apache-2.0 */
/* How much fits: at least 400 000 spans of 672 bytes, as an instrumented service sends them, in
 * 64 MiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/explore/trace_store.h"
#include "tests/bench/payload.h"

enum { REQUESTS = 420, PAYLOADS = 8, SPANS = 1000, SPAN_BYTES = 672, SPANS_MIN = 400000 };

/* Makes the payload another one: the ids of its traces and spans, which do not compress. The
 * next block begins before the same payload comes again. */
static void change_ids(struct payload *payload, uint64_t request)
{
    uint64_t change = (request + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < payload->spans; i++) {
        uint8_t *span_id = payload->body.data + payload->id_offsets[i];
        uint8_t *trace_id = span_id - 2 - 16;
        uint64_t number;
        for (unsigned j = 0; j < 2; j++) {
            uint8_t *id = j == 0 ? span_id : trace_id;
            memcpy(&number, id, sizeof(number));
            number ^= change;
            memcpy(id, &number, sizeof(number));
        }
    }
}

static void keeps_400_000_spans_in_64_mib(void **state)
{
    (void)state;
    struct error error;
    struct trace_store store;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    trace_store_init(&store, CODEC_ZSTD);
    struct payload payloads[PAYLOADS];
    for (uint64_t i = 0; i < PAYLOADS; i++)
        payloads[i] = payload_make(SPANS, SPAN_BYTES, 1 + i * SPANS);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct payload *payload = &payloads[i % PAYLOADS];
        struct slice request = slice_of(payload->body.data, payload->body.size);
        change_ids(payload, i);
        assert_true(trace_store_add(&store, request, 1 + i));
        while (trace_store_bytes(&store) > 64 * MIB)
            assert_true(trace_store_evict(&store));
    }
    print_message("%llu spans in %.1f MiB\n", (unsigned long long)store.spans,
                  (double)trace_store_bytes(&store) / MIB);
    assert_true(store.spans >= SPANS_MIN);
    assert_true(trace_store_bytes(&store) <= 64 * MIB);
    trace_store_fini(&store);
    for (uint64_t i = 0; i < PAYLOADS; i++)
        payload_free(&payloads[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_400_000_spans_in_64_mib)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
