/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the owner's thread. */
#include "src/explore/block_bytes.h"

#include <string.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"

enum { COMPRESSION_LEVEL = 1 };

struct buffer *block_bytes_compress(struct slice raw, struct codec_box *box, enum codec codec)
{
    struct buffer *output = NULL;
    struct batch_part part = {.bytes = raw};
    struct codec_input input = {.parts = &part, .parts_count = 1, .level = COMPRESSION_LEVEL};
    if (codec_deflate(box, codec, &input, &output) != CODEC_OK)
        return NULL;
    /* Moved, not shrunk: else each block would stand before the rest of its larger room, which
     * nothing else fits into. */
    struct buffer *bytes = buffer_try_create(NULL, output->size);
    if (bytes != NULL) {
        memcpy(bytes->data, output->data, output->size);
        bytes->size = output->size;
    }
    buffer_unref(output);
    return bytes;
}
