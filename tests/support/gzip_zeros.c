/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gzip_zeros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"

struct buffer *gzip_zeros(size_t size)
{
    uint8_t *zeros = mem_zalloc(size);
    struct codec_box *box = codec_box_create(NULL);
    struct batch_part part = {.bytes = slice_of(zeros, size)};
    const struct codec_input input = {.parts = &part, .parts_count = 1, .level = -1};
    struct buffer *packed = NULL;
    assert_int_equal(codec_deflate(box, CODEC_GZIP, &input, &packed), CODEC_OK);
    codec_box_destroy(box);
    mem_free(zeros);
    return packed;
}
