/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and splitting: bytes 0 and 1 are the limits, byte 2 how often the request is merged with
 * itself, the rest the request. Pieces are within the limits unless they are one sample or many
 * such came before, lose no sample, and their dictionaries have no duplicate or unused entries. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_queue.h"
#include "tests/support/profile_oracle.h"

enum { SETTINGS = 3, COPIES_MAX = 3, ORACLE_BYTES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of bytes that are limited the bound is counted, which is less than 16 times what is written. */
#define OVERSIZE_BYTES_MIN (PROFILE_OVERSIZE_BYTES_MORE / 16)

/* cut_bytes: of the pieces before. */
static void check_piece(const struct batch *piece, struct otlp_limit limit, uint64_t *cut_bytes)
{
    struct otlp_figures figures;
    const char *reason;
    if (piece->parts_count == 0)
        return;
    struct batch_part whole;
    bool is_joined = batch_join(piece, NULL, &whole);
    assert(is_joined);
    struct slice request = whole.bytes;
    bool is_fine = otlp_check(PROFILES, request, &figures, &reason);
    assert(is_fine);
    assert(figures.items == piece->items);
    assert(limit.items_max == 0 || piece->items <= limit.items_max);
    assert(limit.bytes_max == 0 || request.size <= limit.bytes_max || piece->items <= 1 ||
           *cut_bytes > OVERSIZE_BYTES_MIN);
    *cut_bytes += request.size;
    /* Strings with a NUL inside and values with varints that are longer than need be are different
     * here and the same to protobuf-c. */
    const char *complaint =
        request.size <= ORACLE_BYTES_MAX ? profile_oracle_complaint(request) : NULL;
    assert(complaint == NULL || strcmp(complaint, "an entry is there twice") == 0);
    buffer_unref(whole.owner);
}

static void cut_all(struct profile_queue *queue, uint64_t samples, struct otlp_limit limit)
{
    struct batch *model = batch_create(PROFILES, 1);
    uint64_t cut_bytes = 0;
    bool is_last = false;
    while (!is_last) {
        struct batch *piece = profile_queue_cut(queue, model, limit, &is_last);
        check_piece(piece, limit, &cut_bytes);
        assert(piece->items <= samples);
        samples -= piece->items;
        batch_unref(piece);
    }
    assert(samples == 0);
    batch_unref(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_normalized normalized;
    struct profile_queue queue;
    if (size < SETTINGS)
        return 0;
    struct otlp_limit limit = {.items_max = data[0], .bytes_max = 4u * data[1]};
    struct buffer *request = buffer_create(NULL, size - SETTINGS);
    if (size > SETTINGS)
        memcpy(request->data, data + SETTINGS, size - SETTINGS);
    request->size = size - SETTINGS;
    if (profile_normalize(request, buffer_slice(request), LAYOUT_1_10, NULL, &normalized) ==
        PROFILES_TAKEN) {
        struct batch *batch = batch_create(PROFILES, 1);
        uint64_t copies = 1 + data[2] % COPIES_MAX;
        batch_append(batch, normalized.owner, normalized.request);
        batch->items = normalized.samples;
        profile_queue_init(&queue, NULL);
        for (uint64_t i = 0; normalized.profiles > 0 && i < copies; i++)
            profile_queue_add(&queue, batch);
        if (normalized.profiles > 0)
            cut_all(&queue, copies * normalized.samples, limit);
        profile_queue_fini(&queue);
        batch_unref(batch);
        buffer_unref(normalized.owner);
    }
    buffer_unref(request);
    return 0;
}
