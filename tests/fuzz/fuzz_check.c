/* SPDX-License-Identifier: Apache-2.0 */
/* The wire walker on anything: byte 0 is the signal, the rest the body. What it lets pass
 * protobuf-c must be able to decode, also after former scopes were moved. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/former_scopes.h"
#include "tests/support/otlp_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_moved(enum signal_kind signal, struct slice request,
                        const struct otlp_figures *before)
{
    struct buffer *moved = former_scopes_move(signal, request, NULL);
    struct otlp_figures after;
    const char *reason;
    assert(moved->size <= request.size);
    bool is_fine = otlp_check(signal, buffer_slice(moved), &after, &reason);
    assert(is_fine && !after.has_former_scopes);
    assert(after.items <= before->items && after.resources == before->resources);
    assert(oracle_decodes(signal, buffer_slice(moved)));
    buffer_unref(moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    if (size == 0)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % SIGNAL_KINDS);
    /* An allocation of its own: the sanitizer sees every byte read beyond it. */
    uint8_t *body = mem_copy(data + 1, size - 1);
    struct slice bytes = slice_of(body, size - 1);
    if (otlp_check(signal, bytes, &figures, &reason)) {
        assert(oracle_decodes(signal, bytes));
        if (figures.has_former_scopes)
            check_moved(signal, bytes, &figures);
    }
    mem_free(body);
    return 0;
}
