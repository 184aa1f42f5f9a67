/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting any request that passes the walker: byte 0 is the signal, 1 the limit of items, 2 and 3
 * the limit of bytes, 4 where the body is cut into two parts. Pieces are well-formed, keep the
 * limit and hold all items. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/split.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { HEADER_BYTES = 5, PIECES_MAX = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t check_piece(const struct batch *piece, struct otlp_limit limit)
{
    struct otlp_figures figures;
    const char *reason;
    struct slice bytes = joined_parts(piece);
    bool is_fine = otlp_check(piece->signal, bytes, &figures, &reason);
    assert(is_fine);
    assert(figures.items == piece->items);
    assert(limit.items_max == 0 || piece->items <= limit.items_max);
    assert(limit.bytes_max == 0 || piece->items <= 1 || piece->bytes <= limit.bytes_max);
    assert(oracle_decodes(piece->signal, bytes));
    mem_free((void *)(uintptr_t)bytes.data);
    return piece->items;
}

static uint64_t split_all(struct batch *batch, struct otlp_limit limit)
{
    uint64_t items = 0;
    for (unsigned i = 0; batch != NULL && i < PIECES_MAX; i++) {
        struct batch *head;
        struct batch *tail;
        uint64_t left = batch->bytes;
        otlp_split(batch, limit, NULL, &head, &tail);
        assert(tail == NULL || head->items > 0 || tail->bytes < left);
        items += check_piece(head, limit);
        batch_unref(head);
        batch_unref(batch);
        batch = tail;
    }
    items += batch != NULL ? batch->items : 0;
    batch_unref(batch);
    return items;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    if (size < HEADER_BYTES)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % PROFILES);
    struct otlp_limit limit = {.items_max = data[1], .bytes_max = (uint64_t)data[2] << 8 | data[3]};
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(signal, body, &figures, &reason))
        return 0;
    struct batch *batch = two_parts(signal, body, body.size * data[4] / 256);
    batch->items = figures.items;
    uint64_t items = split_all(batch, limit);
    assert(items == figures.items);
    return 0;
}
