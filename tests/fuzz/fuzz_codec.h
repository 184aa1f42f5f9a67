/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of all codecs do: inflate anything under a small limit and budget; nothing
 * leaks, and what is accepted survives a round trip. */
#pragma once

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static inline void fuzz_codec_check_round_trip(struct codec_box *box, enum codec codec,
                                               const struct buffer *plain)
{
    struct buffer *packed = NULL;
    struct buffer *again = NULL;
    struct batch_part parts[2] = {
        {.bytes = slice_of(plain->data, plain->size / 2)},
        {.bytes = slice_of(plain->data + plain->size / 2, plain->size - plain->size / 2)},
    };
    const struct codec_input input = {
        .parts = parts, .parts_count = 2, .level = (int)(plain->size % 10)};
    enum codec_result result = codec_deflate(box, codec, &input, &packed);
    assert(result == CODEC_OK);
    result = codec_inflate(box, codec, buffer_slice(packed), plain->size + 1, &again);
    assert(result == CODEC_OK);
    assert(slice_equal(buffer_slice(plain), buffer_slice(again)));
    buffer_unref(packed);
    buffer_unref(again);
}

static inline void fuzz_codec(enum codec codec, const uint8_t *data, size_t size)
{
    enum { BODY_BYTES_MAX = 256 * 1024 };
    static struct codec_box *box; /* kept, as in the daemon: a bad body may not spoil the next */
    static struct budget budget;
    struct buffer *plain = NULL;
    if (box == NULL) {
        budget_init(&budget, 16 * MIB);
        box = codec_box_create(&budget);
    }
    enum codec_result result =
        codec_inflate(box, codec, slice_of(data, size), BODY_BYTES_MAX, &plain);
    if (result == CODEC_OK) {
        assert(plain->size <= BODY_BYTES_MAX);
        fuzz_codec_check_round_trip(box, codec, plain);
        buffer_unref(plain);
    } else if (result != CODEC_NO_BUDGET) {
        assert(strlen(codec_reason(box)) > 0);
    }
    assert(budget_used(&budget) == 0);
}
