/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a client's streams, in the order of its frames. On the connection's lane. */
#include "src/net/server/http2_frames.h"

#include <assert.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

/* The client's half of a stream. */
enum state {
    STATE_UNUSED, /* skipped by a higher id, which closes it (RFC 9113 §5.1.1) */
    STATE_OPEN,
    STATE_ENDED, /* END_STREAM was received */
    STATE_RESET, /* RST_STREAM was received */
};

enum { STATE_BITS = 2, STATES_PER_WORD = 64 / STATE_BITS, STATE_MASK = 3 };

static enum state state_of(const struct http2_frames *frames, uint32_t number)
{
    uint32_t place = number % HTTP2_STREAMS_REMEMBERED;
    uint64_t word = frames->states[place / STATES_PER_WORD];
    return (enum state)(word >> (place % STATES_PER_WORD * STATE_BITS) & STATE_MASK);
}

static void set_state(struct http2_frames *frames, uint32_t number, enum state state)
{
    uint32_t place = number % HTTP2_STREAMS_REMEMBERED;
    uint64_t *word = &frames->states[place / STATES_PER_WORD];
    uint32_t shift = place % STATES_PER_WORD * STATE_BITS;
    *word = (*word & ~((uint64_t)STATE_MASK << shift)) | (uint64_t)state << shift;
}

static struct http2_fault fault_of(uint32_t code, uint32_t stream_id, const char *reason)
{
    return (struct http2_fault){.code = code, .stream_id = stream_id, .reason = reason};
}

static uint32_t read_id(const uint8_t *data)
{
    return ((uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3]) &
           INT32_MAX;
}

static uint32_t payload_of(const uint8_t *head)
{
    return (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
}

/* nghttp2 refuses PRIORITY frames of other sizes. */
static bool names_parent(const uint8_t *head)
{
    return head[3] == NGHTTP2_PRIORITY && payload_of(head) == HTTP2_PRIORITY_BYTES;
}

/* Checks a complete header. nghttp2 refuses even stream ids, which are the server's. */
static struct http2_fault take_head(struct http2_frames *frames, const uint8_t *head)
{
    uint32_t id = read_id(head + 5);
    frames->skip = payload_of(head);
    frames->is_block = head[3] == NGHTTP2_HEADERS || head[3] == NGHTTP2_CONTINUATION;
    frames->is_continued = frames->is_block && (head[4] & NGHTTP2_FLAG_END_HEADERS) == 0;
    if ((head[3] == NGHTTP2_HEADERS || head[3] == NGHTTP2_DATA) && id % 2 == 1) {
        uint32_t number = (id + 1) / 2;
        if (number > frames->newest) {
            /* nghttp2 refuses DATA on idle streams. */
            if (head[3] == NGHTTP2_DATA)
                return fault_of(NGHTTP2_NO_ERROR, 0, NULL);
            /* Streams between the newest and this one become unused. */
            if (number - frames->newest >= HTTP2_STREAMS_REMEMBERED)
                memset(frames->states, 0, sizeof(frames->states));
            else
                for (uint32_t passed = frames->newest + 1; passed < number; passed++)
                    set_state(frames, passed, STATE_UNUSED);
            frames->newest = number;
            set_state(frames, number, STATE_OPEN);
        }
        if (frames->newest - number >= HTTP2_STREAMS_REMEMBERED)
            return fault_of(NGHTTP2_NO_ERROR, 0, NULL);
        switch (state_of(frames, number)) {
        case STATE_UNUSED:
            return fault_of(NGHTTP2_PROTOCOL_ERROR, 0,
                            "the stream id is below that of a stream before");
        case STATE_ENDED:
            return fault_of(NGHTTP2_STREAM_CLOSED, 0, "a frame follows END_STREAM");
        case STATE_RESET:
            return fault_of(NGHTTP2_STREAM_CLOSED, id, "a frame follows RST_STREAM");
        case STATE_OPEN:
            if ((head[4] & NGHTTP2_FLAG_END_STREAM) != 0)
                set_state(frames, number, STATE_ENDED);
            return fault_of(NGHTTP2_NO_ERROR, 0, NULL);
        }
        return fault_of(NGHTTP2_INTERNAL_ERROR, 0, "");
    }
    if (head[3] == NGHTTP2_RST_STREAM && id % 2 == 1) {
        uint32_t number = (id + 1) / 2;
        if (number <= frames->newest && frames->newest - number < HTTP2_STREAMS_REMEMBERED &&
            state_of(frames, number) != STATE_UNUSED)
            set_state(frames, number, STATE_RESET);
    }
    if (head[3] == NGHTTP2_PRIORITY && id == 0)
        return fault_of(NGHTTP2_PROTOCOL_ERROR, 0, "PRIORITY is for a stream, not for stream 0");
    if (names_parent(head)) {
        frames->skip -= HTTP2_HEAD_BYTES_MAX - HTTP2_HEAD_BYTES;
        /* Not a fault of the stream, which may be idle: idle streams must not be reset. */
        if (read_id(head + HTTP2_HEAD_BYTES) == id)
            return fault_of(NGHTTP2_PROTOCOL_ERROR, 0, "PRIORITY makes a stream depend on itself");
    }
    return fault_of(NGHTTP2_NO_ERROR, 0, NULL);
}

void http2_frames_init(struct http2_frames *frames)
{
    *frames = (struct http2_frames){.skip = NGHTTP2_CLIENT_MAGIC_LEN};
}

size_t http2_frames_read(struct http2_frames *frames, const uint8_t *data, size_t size,
                         struct http2_fault *ret_fault)
{
    assert(data != NULL || size == 0);
    size_t head_at = 0; /* where the frame begins in data; 0 if it began earlier */
    size_t at = 0;
    *ret_fault = fault_of(NGHTTP2_NO_ERROR, 0, NULL);
    while (at < size) {
        if (frames->skip > 0) {
            uint32_t skipped = size - at < frames->skip ? (uint32_t)(size - at) : frames->skip;
            frames->skip -= skipped;
            at += skipped;
            continue;
        }
        if (frames->head_size == 0)
            head_at = at;
        /* Bytes of the header. */
        size_t wanted =
            frames->head_size < HTTP2_HEAD_BYTES ? HTTP2_HEAD_BYTES : HTTP2_HEAD_BYTES_MAX;
        size_t missing = wanted - frames->head_size;
        size_t taken = size - at < missing ? size - at : missing;
        memcpy(frames->head + frames->head_size, data + at, taken);
        frames->head_size += (uint8_t)taken;
        at += taken;
        if (frames->head_size != HTTP2_HEAD_BYTES_MAX &&
            (frames->head_size != HTTP2_HEAD_BYTES || names_parent(frames->head)))
            continue;
        frames->head_size = 0;
        *ret_fault = take_head(frames, frames->head);
        if (ret_fault->code != NGHTTP2_NO_ERROR)
            return ret_fault->stream_id == 0 ? head_at : at;
    }
    return at;
}

bool http2_frames_in_block(const struct http2_frames *frames)
{
    return frames->is_continued || (frames->is_block && frames->skip > 0);
}
