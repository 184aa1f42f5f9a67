/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked bodies, byte by byte but for the payload. One owner, any thread. */
#include "src/net/server/http1_chunks.h"

#include "src/net/syntax/http1_chars.h"

#include <assert.h>

/* Up to 2^64 - 1; sizes above 2^63 - 1 are refused, too. */
enum { SIZE_DIGITS_MAX = 16 };

static bool refuse(struct http1_chunks *chunks, const char *reason)
{
    chunks->reason = reason;
    return false;
}

static bool move_if(struct http1_chunks *chunks, bool is_right, enum http1_chunk_state state,
                    const char *reason)
{
    if (!is_right)
        return refuse(chunks, reason);
    chunks->state = state;
    return true;
}

/* One byte of framing. */
static bool take_byte(struct http1_chunks *chunks, uint8_t byte)
{
    switch (chunks->state) {
    case CHUNK_SIZE: {
        int digit = http1_hex_digit(byte);
        if (digit < 0)
            return move_if(chunks, chunks->digits > 0 && (byte == ';' || byte == '\r'),
                           byte == ';' ? CHUNK_EXTENSION_NAME : CHUNK_SIZE_LF,
                           "invalid chunk size");
        chunks->digits++;
        chunks->left = chunks->left << 4 | (uint64_t)digit;
        if (chunks->digits > SIZE_DIGITS_MAX || chunks->left > INT64_MAX)
            return refuse(chunks, "chunk size too large");
        return true;
    }
    case CHUNK_EXTENSION_NAME:
    case CHUNK_EXTENSION: {
        chunks->extension_bytes++;
        if (chunks->extension_bytes > HTTP_CHUNK_EXTENSION_BYTES_MAX)
            return refuse(chunks, "chunk extensions too large");
        if (chunks->state == CHUNK_EXTENSION_NAME)
            return move_if(chunks, http1_is(byte, HTTP1_TOKEN), CHUNK_EXTENSION,
                           "chunk extension without name");
        if (byte == '\r')
            return move_if(chunks, true, CHUNK_SIZE_LF, NULL);
        return move_if(chunks, http1_is(byte, HTTP1_VALUE), CHUNK_EXTENSION,
                       "control character in chunk extension");
    }
    case CHUNK_SIZE_LF: {
        assert(chunks->digits > 0);
        chunks->digits = 0;
        return move_if(chunks, byte == '\n', chunks->left == 0 ? CHUNK_TRAILER : CHUNK_DATA,
                       "chunk size line does not end in CR LF");
    }
    case CHUNK_DATA_CR:
        return move_if(chunks, byte == '\r', CHUNK_DATA_LF, "chunk does not end in CR LF");
    case CHUNK_DATA_LF:
        return move_if(chunks, byte == '\n', CHUNK_SIZE, "chunk does not end in CR LF");
    case CHUNK_TRAILER:
    case CHUNK_TRAILER_NAME:
    case CHUNK_TRAILER_VALUE: {
        chunks->trailer_bytes++;
        if (chunks->trailer_bytes > HTTP_TRAILER_BYTES_MAX)
            return refuse(chunks, "trailers too large");
        if (chunks->state == CHUNK_TRAILER)
            return move_if(chunks, byte == '\r' || http1_is(byte, HTTP1_TOKEN),
                           byte == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER_NAME,
                           "invalid trailer name");
        if (chunks->state == CHUNK_TRAILER_NAME)
            return move_if(chunks, byte == ':' || http1_is(byte, HTTP1_TOKEN),
                           byte == ':' ? CHUNK_TRAILER_VALUE : CHUNK_TRAILER_NAME,
                           "invalid trailer name");
        return move_if(chunks, byte == '\r' || http1_is(byte, HTTP1_VALUE),
                       byte == '\r' ? CHUNK_TRAILER_LF : CHUNK_TRAILER_VALUE,
                       "control character in trailer");
    }
    case CHUNK_TRAILER_LF:
        return move_if(chunks, byte == '\n', CHUNK_TRAILER, "trailer does not end in CR LF");
    case CHUNK_LAST_LF:
        return move_if(chunks, byte == '\n', CHUNK_END, "body does not end in CR LF");
    case CHUNK_DATA:
    case CHUNK_END:
        break;
    }
    assert(false && "a state that takes framing");
    return false;
}

void http1_chunks_init(struct http1_chunks *chunks)
{
    *chunks = (struct http1_chunks){.state = CHUNK_SIZE};
}

enum http1_result http1_chunks_feed(struct http1_chunks *chunks, const uint8_t *data, size_t size,
                                    size_t *ret_used, struct slice *ret_payload)
{
    assert(chunks->state != CHUNK_END);
    assert(chunks->reason == NULL);
    *ret_payload = slice_of(data, 0);
    for (size_t used = 0; used < size; used++) {
        if (chunks->state == CHUNK_DATA) {
            size_t taken = size - used < chunks->left ? size - used : (size_t)chunks->left;
            chunks->left -= taken;
            if (chunks->left == 0)
                chunks->state = CHUNK_DATA_CR;
            *ret_payload = slice_of(data + used, taken);
            *ret_used = used + taken;
            return HTTP1_MORE;
        }
        bool is_right = take_byte(chunks, data[used]);
        *ret_used = used + 1;
        if (!is_right)
            return HTTP1_REFUSED;
        if (chunks->state == CHUNK_END)
            return HTTP1_COMPLETE;
    }
    *ret_used = size;
    return HTTP1_MORE;
}
