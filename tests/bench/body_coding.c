/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole compressed bodies; single-threaded, so one state of each kind is enough. */
#include "tests/bench/body_coding.h"

#include "tests/bench/gzip_body.h"

#include <assert.h>
#include <strings.h>

#include <zstd.h>

enum { OUTPUT_STEP_BYTES = 128 * 1024, DECODED_BYTES_MAX = 256 << 20 };

enum body_coding body_coding_of(const char *text)
{
    assert(text != NULL);
    if (strncasecmp(text, "gzip", 4) == 0)
        return BODY_GZIP;
    if (strncasecmp(text, "zstd", 4) == 0)
        return BODY_ZSTD;
    return strncasecmp(text, "identity", 8) == 0 ? BODY_PLAIN : BODY_UNKNOWN;
}

/* One frame or more; false when the last is torn. */
static bool decode_zstd(struct bytes body, struct byte_buffer *out)
{
    static ZSTD_DCtx *context;
    ZSTD_inBuffer input = {body.data, body.size, 0};
    size_t left = 0;

    if (context == NULL)
        context = ZSTD_createDCtx();
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    out->size = 0;
    do {
        byte_buffer_reserve(out, OUTPUT_STEP_BYTES);
        ZSTD_outBuffer output = {out->data, out->capacity, out->size};
        size_t before = out->size + input.pos;
        left = ZSTD_decompressStream(context, &output, &input);
        if (ZSTD_isError(left) || output.pos > DECODED_BYTES_MAX ||
            output.pos + input.pos == before)
            return false;
        out->size = output.pos;
    } while (left > 0 || input.pos < input.size);
    return true;
}

bool body_decode(enum body_coding coding, struct bytes body, struct byte_buffer *out)
{
    assert(body.data != NULL);
    if (coding == BODY_PLAIN) {
        out->size = 0;
        byte_buffer_append(out, body.data, body.size);
        return true;
    }
    if (coding == BODY_GZIP)
        return gzip_body_inflate(body, out);
    return coding == BODY_ZSTD && decode_zstd(body, out);
}
