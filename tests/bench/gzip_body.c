/* SPDX-License-Identifier: Apache-2.0 */
/* Whole gzip bodies in and out with ISA-L; single-threaded, so one state of each kind is enough. */
#include "tests/bench/gzip_body.h"

#include <assert.h>
#include <string.h>

#include <isa-l/igzip_lib.h>

enum { INFLATED_BYTES_MAX = 256 << 20, OUTPUT_STEP_BYTES = 64 * 1024, DEFLATE_LEVEL = 1 };

static struct inflate_state inflater;
static struct isal_zstream deflater;
static uint8_t level_buffer[ISAL_DEF_LVL1_DEFAULT];

/* One member; false when it is torn or wrong. */
static bool inflate_member(struct byte_buffer *out)
{
    while (inflater.block_state != ISAL_BLOCK_FINISH) {
        byte_buffer_reserve(out, OUTPUT_STEP_BYTES);
        size_t space = out->capacity - out->size;
        inflater.next_out = out->data + out->size;
        inflater.avail_out = (uint32_t)space;
        if (isal_inflate(&inflater) != ISAL_DECOMP_OK)
            return false;
        out->size += space - inflater.avail_out;
        if (out->size > INFLATED_BYTES_MAX)
            return false;
        if (inflater.avail_in == 0 && inflater.avail_out > 0 &&
            inflater.block_state != ISAL_BLOCK_FINISH)
            return false;
    }
    return true;
}

bool gzip_body_inflate(struct bytes body, struct byte_buffer *out)
{
    assert(body.size <= UINT32_MAX);
    out->size = 0;
    do {
        isal_inflate_reset(&inflater);
        inflater.crc_flag = ISAL_GZIP;
        inflater.next_in = (uint8_t *)(uintptr_t)body.data;
        inflater.avail_in = (uint32_t)body.size;
        if (!inflate_member(out))
            return false;
        body.data += body.size - inflater.avail_in;
        body.size = inflater.avail_in;
    } while (body.size > 0);
    return true;
}

void gzip_body_deflate(const struct bytes *parts, size_t parts_count, struct byte_buffer *out)
{
    assert(parts_count > 0);
    out->size = 0;
    isal_deflate_init(&deflater);
    deflater.gzip_flag = IGZIP_GZIP;
    deflater.level = DEFLATE_LEVEL;
    deflater.level_buf = level_buffer;
    deflater.level_buf_size = sizeof level_buffer;
    for (size_t i = 0; i < parts_count; i++) {
        deflater.next_in = (uint8_t *)(uintptr_t)parts[i].data;
        deflater.avail_in = (uint32_t)parts[i].size;
        deflater.end_of_stream = i + 1 == parts_count;
        do {
            byte_buffer_reserve(out, OUTPUT_STEP_BYTES);
            size_t space = out->capacity - out->size;
            deflater.next_out = out->data + out->size;
            deflater.avail_out = (uint32_t)space;
            if (isal_deflate(&deflater) != COMP_OK)
                die("ISA-L cannot compress");
            out->size += space - deflater.avail_out;
        } while (deflater.avail_out == 0 || deflater.avail_in > 0);
    }
    assert(deflater.internal_state.state == ZSTATE_END);
}
