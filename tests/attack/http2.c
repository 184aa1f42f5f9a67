/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frames by hand; header blocks are literals without an index (RFC 7541 §6.2.2). */
#include "tests/attack/http2.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"

enum frame_type {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    FRAME_TYPES,
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };
enum { FRAME_BYTES_MAX = 16384 };

static uint64_t below(struct http2_writer *writer, uint64_t bound)
{
    return random_below(&writer->world->random, bound);
}

static void put_number(struct bytes_out *out, uint64_t number, unsigned size)
{
    for (unsigned i = size; i-- > 0;)
        bytes_add(out, &(uint8_t){(uint8_t)(number >> 8 * i)}, 1);
}

static void put_head(struct bytes_out *out, size_t size, unsigned type, unsigned flags,
                     uint32_t stream)
{
    put_number(out, size, 3);
    put_number(out, type, 1);
    put_number(out, flags, 1);
    put_number(out, stream, 4);
}

/* A frame; now and then another one than was meant. */
static void put_frame(struct http2_writer *writer, unsigned type, unsigned flags, uint32_t stream,
                      struct slice payload)
{
    size_t size = payload.size;
    if (writer->spoils && below(writer, 10) == 0) {
        writer->is_spoilt = true;
        switch (below(writer, 7)) {
        case 0:
            type = (unsigned)below(writer, 12);
            break;
        case 1:
            flags ^= 1u << below(writer, 8);
            break;
        case 2:
            stream = (uint32_t)odd_number(writer->world, stream);
            break;
        case 3:
            size = odd_number(writer->world, size) & 0xffffff;
            break;
        case 4:
            payload.size = size = below(writer, payload.size + 1);
            break;
        case 5:
            return;
        default:
            stream = (uint32_t)below(writer, 8);
        }
    }
    put_head(writer->out, size, type, flags, stream);
    size_t begin = writer->out->size;
    bytes_add(writer->out, payload.data, payload.size);
    if (writer->spoils && below(writer, 30) == 0) {
        writer->is_spoilt = true;
        mutate_bytes(writer->world, writer->out, begin);
    }
}

static void put_settings(struct http2_writer *writer, unsigned count)
{
    struct bytes_out payload = {.size = 0};
    for (; count > 0; count--) {
        put_number(&payload, 1 + below(writer, 8), 2);
        put_number(&payload, odd_number(writer->world, 65535), 4);
    }
    put_frame(writer, SETTINGS, 0, 0, slice_of(payload.data, payload.size));
    bytes_fini(&payload);
}

void http2_begin(struct http2_writer *writer)
{
    bytes_add_text(writer->out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    writer->stream = 1;
    if (writer->spoils && below(writer, 4) == 0) {
        writer->is_spoilt = true;
        put_settings(writer, 1 + (unsigned)below(writer, 40));
    } else
        put_frame(writer, SETTINGS, 0, 0, slice_of_text(""));
    put_frame(writer, SETTINGS, ACK, 0, slice_of_text("")); /* the server's own are on their way */
}

static void put_hpack_number(struct bytes_out *out, unsigned prefix, unsigned first,
                             uint64_t number)
{
    uint64_t most = (1u << prefix) - 1;
    if (number < most) {
        put_number(out, first | number, 1);
        return;
    }
    put_number(out, first | most, 1);
    for (number -= most; number > 0x7f; number >>= 7)
        put_number(out, (number & 0x7f) | 0x80, 1);
    put_number(out, number, 1);
}

static void put_field(struct bytes_out *out, const char *name, const char *value)
{
    put_number(out, 0, 1);
    put_hpack_number(out, 7, 0, strlen(name));
    bytes_add_text(out, name);
    put_hpack_number(out, 7, 0, strlen(value));
    bytes_add_text(out, value);
}

/* What a header block should not have. */
static void put_odd_field(struct http2_writer *writer, struct bytes_out *block)
{
    static const char *const fields[][2] = {
        {":path", "/again"},
        {"Upper", "case"},
        {"connection", "close"},
        {"te", "gzip"},
        {"transfer-encoding", "chunked"},
        {"content-length", "1"},
        {"content-length", "99999999999999999999"},
        {":unknown", "x"},
        {"", "no name"},
        {"x", "a\r\nb"},
        {"host", "elsewhere"},
        {"grpc-timeout", "99999999999H"},
        {"grpc-encoding", "none"},
        {"cookie", "a=b"},
    };
    writer->is_spoilt = true;
    uint64_t which = below(writer, sizeof(fields) / sizeof(fields[0]) + 5);
    if (which < sizeof(fields) / sizeof(fields[0]))
        put_field(block, fields[which][0], fields[which][1]);
    else if (which % 5 == 0) /* an index that may not be there */
        put_hpack_number(block, 7, 0x80, odd_number(writer->world, 62));
    else if (which % 5 == 1) /* another size of the table */
        put_hpack_number(block, 5, 0x20, odd_number(writer->world, 4096));
    else if (which % 5 == 2) { /* a length that lies */
        put_number(block, 0, 1);
        put_hpack_number(block, 7, (unsigned)below(writer, 2) << 7, odd_number(writer->world, 10));
    } else { /* one entry of the table, over and over */
        put_number(block, 0x40, 1);
        put_hpack_number(block, 7, 0, 1);
        bytes_add_text(block, "x");
        uint64_t size = below(writer, 4000);
        put_hpack_number(block, 7, 0, size);
        for (uint64_t i = 0; i < size; i++)
            bytes_add_text(block, "v");
        for (uint64_t i = below(writer, 16000); i > 0; i--)
            put_number(block, 0xbe, 1);
    }
}

static void put_block(struct http2_writer *writer, const struct body *body, struct bytes_out *block)
{
    bool is_odd = writer->spoils && below(writer, 4) == 0;
    put_field(block, ":method", body->method);
    put_field(block, ":scheme", "http");
    put_field(block, ":path", body->path);
    put_field(block, ":authority", "localhost");
    if (is_odd)
        put_odd_field(writer, block);
    if (body->type != NULL)
        put_field(block, "content-type", body->type);
    if (body->is_grpc)
        put_field(block, "te", "trailers");
    if (body->encoding != NULL)
        put_field(block, body->is_grpc ? "grpc-encoding" : "content-encoding", body->encoding);
    for (unsigned i = 0; i < body->headers_count; i++)
        put_field(block, body->headers[i].name, body->headers[i].value);
}

static void put_headers(struct http2_writer *writer, const struct body *body, bool is_end)
{
    struct bytes_out block = {.size = 0};
    put_block(writer, body, &block);
    unsigned type = HEADERS;
    unsigned flags = is_end ? END_STREAM : 0;
    for (size_t at = 0; type == HEADERS || at < block.size;) {
        size_t size = block.size - at;
        if (below(writer, 10) == 0 && size > 1)
            size = 1 + below(writer, size - 1);
        if (size > FRAME_BYTES_MAX)
            size = FRAME_BYTES_MAX;
        if (at + size == block.size)
            flags |= END_HEADERS;
        put_frame(writer, type, flags, writer->stream, slice_of(block.data + at, size));
        at += size;
        type = CONTINUATION;
        flags = 0;
    }
    bytes_fini(&block);
}

static void put_data(struct http2_writer *writer, struct slice content)
{
    static const uint8_t zeros[256] = {0};
    bool is_whole = below(writer, 2) == 0;
    for (size_t at = 0, frames = 0; frames == 0 || at < content.size; frames++) {
        size_t left = content.size - at;
        size_t size = left < FRAME_BYTES_MAX - 256 ? left : FRAME_BYTES_MAX - 256;
        if (!is_whole && size > 1 && frames < 40)
            size = 1 + below(writer, size - 1);
        unsigned flags = at + size == content.size ? END_STREAM : 0;
        if (below(writer, 12) != 0) {
            put_frame(writer, DATA, flags, writer->stream, slice_of(content.data + at, size));
        } else {
            struct bytes_out padded = {.size = 0};
            size_t padding = below(writer, 255);
            put_number(&padded, padding, 1);
            bytes_add(&padded, content.data + at, size);
            bytes_add(&padded, zeros, padding);
            put_frame(writer, DATA, flags | PADDED, writer->stream,
                      slice_of(padded.data, padded.size));
            bytes_fini(&padded);
        }
        at += size;
    }
}

/* Unsolicited frames. */
static void put_noise(struct http2_writer *writer)
{
    static const uint8_t bytes[64] = {0, 0, 0, 1};
    static const uint8_t sizes[FRAME_TYPES] = {
        [PRIORITY] = 5, [RST_STREAM] = 4,  [SETTINGS] = 6,      [PUSH_PROMISE] = 20,
        [PING] = 8,     [GOAWAY] = 8,      [WINDOW_UPDATE] = 4, [DATA] = 9,
        [HEADERS] = 9,  [CONTINUATION] = 9};
    writer->is_spoilt = true;
    uint64_t repeats = below(writer, 6) == 0 ? 1 + below(writer, 400) : 1;
    unsigned type = (unsigned)below(writer, FRAME_TYPES);
    uint32_t stream = (uint32_t)below(writer, writer->stream + 4);
    for (; repeats > 0; repeats--)
        put_frame(writer, type, (unsigned)below(writer, 2), stream, slice_of(bytes, sizes[type]));
}

void http2_request(struct http2_writer *writer, const struct body *body)
{
    bool has_body = body->content.size > 0 || strcmp(body->method, "POST") == 0;
    if (writer->spoils && below(writer, 3) == 0)
        put_noise(writer);
    if (!writer->spoils && below(writer, 20) == 0)
        put_frame(writer, PING, 0, 0, slice_of_text("01234567"));
    put_headers(writer, body, !has_body);
    if (has_body)
        put_data(writer, slice_of(body->content.data, body->content.size));
    if (writer->spoils && below(writer, 6) == 0) {
        writer->is_spoilt = true;
        put_frame(writer, RST_STREAM, 0, writer->stream, slice_of_text("\0\0\0\x8"));
    }
    writer->stream += 2;
}

/* A window for responses of so many bytes. */
static void put_window(struct http2_writer *writer, uint32_t bytes)
{
    struct bytes_out payload = {.size = 0};
    put_number(&payload, 4, 2);
    put_number(&payload, bytes, 4);
    put_frame(writer, SETTINGS, 0, 0, slice_of(payload.data, payload.size));
    bytes_fini(&payload);
}

/* A field that goes into the table of the connection the first time, and is an index after that.
 * Without a body: trailers. */
static void put_large_headers(struct http2_writer *writer, const struct body *body, bool is_first,
                              size_t size, uint64_t indices)
{
    struct bytes_out block = {.size = 0};
    if (body != NULL)
        put_block(writer, body, &block);
    if (is_first) {
        put_number(&block, 0x40, 1);
        put_hpack_number(&block, 7, 0, strlen("x-large"));
        bytes_add_text(&block, "x-large");
        put_hpack_number(&block, 7, 0, size);
        for (size_t i = 0; i < size; i++)
            bytes_add_text(&block, "v");
    }
    for (; indices > 0; indices--)
        put_number(&block, 0xbe, 1);
    if (block.size > FRAME_BYTES_MAX)
        block.size = FRAME_BYTES_MAX;
    put_frame(writer, HEADERS, END_HEADERS | (body == NULL ? END_STREAM : 0), writer->stream,
              slice_of(block.data, block.size));
    bytes_fini(&block);
}

void http2_crowd(struct http2_writer *writer, const struct body *body)
{
    enum {
        RESETS_MAX = 3000,
        OPEN_MAX = 150,
        PINGS_MAX = 20000,
        LARGE_MAX = 3900,
        INDICES_MAX = 16000
    };
    uint64_t kind = below(writer, 4);
    bool spoils = writer->spoils;
    writer->spoils = false; /* what follows must come to its end */
    writer->is_spoilt = true;
    if (kind == 0) {
        put_window(writer, (uint32_t)below(writer, 3));
    } else if (kind == 1) {
        for (uint64_t left = below(writer, PINGS_MAX); left > 0; left--)
            put_frame(writer, PING, 0, 0, slice_of_text("01234567"));
    } else {
        bool resets = kind == 2;
        bool has_trailers = below(writer, 4) == 0;
        uint64_t indices = below(writer, below(writer, 4) == 0 ? INDICES_MAX : 12);
        size_t large = below(writer, LARGE_MAX);
        uint64_t count = 1 + below(writer, resets && indices < 12 ? RESETS_MAX : OPEN_MAX);
        for (uint64_t i = 0; i < count; i++, writer->stream += 2) {
            put_large_headers(writer, body, i == 0, large, indices);
            size_t size = body->content.size < 64 ? body->content.size : 1 + below(writer, 64);
            put_frame(writer, DATA, 0, writer->stream, slice_of(body->content.data, size));
            if (has_trailers)
                put_large_headers(writer, NULL, false, 0, indices);
            if (resets)
                put_frame(writer, RST_STREAM, 0, writer->stream,
                          slice_of((const uint8_t[]){0, 0, 0, 8}, 4));
        }
    }
    writer->spoils = spoils;
}

void http2_end(struct http2_writer *writer)
{
    if (writer->spoils && below(writer, 3) == 0)
        put_noise(writer);
}

static void count_frame(struct http2_responses *responses)
{
    unsigned type = responses->head[3];
    bool ends = (type == HEADERS || type == DATA) && (responses->head[4] & END_STREAM) != 0;
    responses->ended += ends || type == RST_STREAM;
    responses->has_goaway |= type == GOAWAY;
}

void http2_count(struct http2_responses *responses, const uint8_t *data, size_t size)
{
    while (size > 0) {
        if (responses->payload_left > 0) {
            size_t taken = size < responses->payload_left ? size : responses->payload_left;
            responses->payload_left -= taken;
            data += taken;
            size -= taken;
            continue;
        }
        responses->head[responses->head_size++] = *data++;
        size--;
        if (responses->head_size < HTTP2_FRAME_HEAD_BYTES)
            continue;
        responses->head_size = 0;
        responses->payload_left =
            (size_t)responses->head[0] << 16 | (size_t)responses->head[1] << 8 | responses->head[2];
        count_frame(responses);
    }
}
