/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a line of a file, and any request with the attributes of a file: what comes out is a
 * request with as many items. */
#include <assert.h>
#include <stdint.h>

#include "receivers/otlp_json_file/json_file_line.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void give(struct batch *batch, void *arg)
{
    struct otlp_figures figures;
    struct batch_part whole;
    const char *reason;
    (void)arg;
    assert(batch_join(batch, NULL, &whole));
    if (batch->signal != PROFILES) {
        assert(otlp_check(batch->signal, whole.bytes, &figures, &reason));
        assert(figures.items == batch->items && figures.items > 0);
    }
    buffer_unref(whole.owner);
    batch_unref(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { ALL = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES };
    static const struct json_file_attributes attributes = {
        .count = 2,
        .list = {{.key = {(const uint8_t *)"log.file.name", 13},
                  .value = {(const uint8_t *)"a.json", 6}},
                 {.key = {(const uint8_t *)"k", 1}, .value = {(const uint8_t *)"", 0}}},
    };
    char reason[JSON_REASON_BYTES_MAX];
    struct slice input = slice_of(data, size);
    (void)json_line_read(input, ALL, true, &attributes, NULL, give, NULL, reason);
    for (int signal = 0; signal < PROFILES; signal++) {
        struct otlp_figures before;
        struct otlp_figures after;
        const char *why;
        bool is_never;
        if (signal == PROFILES || !otlp_check((enum signal_kind)signal, input, &before, &why))
            continue;
        struct buffer *edited =
            json_line_add_attributes((enum signal_kind)signal, input, &attributes, NULL, &is_never);
        if (edited == NULL) {
            assert(size == 0);
            continue;
        }
        assert(otlp_check((enum signal_kind)signal, buffer_slice(edited), &after, &why));
        assert(before.items == after.items);
        buffer_unref(edited);
    }
    return 0;
}
