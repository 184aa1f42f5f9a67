/* SPDX-License-Identifier: Apache-2.0 */
/* What the heads of a client's frames say of its streams, whole and cut into single bytes. */
#include "src/net/server/http2_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include <cmocka.h>

enum {
    FRAMES_MAX = 5,
    WIRE_MAX = 256,
    LAST = 0xff, /* of the frames of a row */
    PREFACE_BYTES = 24,
    FAR = 2 * HTTP2_STREAMS_REMEMBERED,
    END = NGHTTP2_FLAG_END_STREAM,
};

struct frame {
    uint32_t id;
    uint8_t type;
    uint8_t flags;
    uint8_t size;
    uint8_t parent; /* last byte of the payload's first four */
};

/* The fault is that of the last frame. */
static const struct {
    const char *what;
    struct frame frames[FRAMES_MAX + 1];
    uint32_t code;
    uint32_t stream_id;
} rows[] = {
    {"nothing but the preface", {{.type = LAST}}, 0, 0},
    {"a request with a body and trailers",
     {{1, NGHTTP2_HEADERS, 0, 3, 0},
      {1, NGHTTP2_DATA, 0, 7, 0},
      {1, NGHTTP2_DATA, 0, 0, 0},
      {1, NGHTTP2_HEADERS, END, 3, 0},
      {.type = LAST}},
     0,
     0},
    {"streams side by side",
     {{1, NGHTTP2_HEADERS, 0, 3, 0},
      {3, NGHTTP2_HEADERS, 0, 3, 0},
      {1, NGHTTP2_DATA, END, 7, 0},
      {3, NGHTTP2_DATA, END, 7, 0},
      {.type = LAST}},
     0,
     0},
    {"what may follow the end",
     {{1, NGHTTP2_HEADERS, END, 3, 0},
      {1, NGHTTP2_WINDOW_UPDATE, 0, 4, 0},
      {1, NGHTTP2_PRIORITY, 0, 5, 3},
      {1, NGHTTP2_RST_STREAM, 0, 4, 0},
      {1, NGHTTP2_RST_STREAM, 0, 4, 0},
      {.type = LAST}},
     0,
     0},
    {"DATA of an idle stream is nghttp2's",
     {{1, NGHTTP2_HEADERS, END, 3, 0}, {3, NGHTTP2_DATA, 0, 7, 0}, {.type = LAST}},
     0,
     0},
    {"DATA behind END_STREAM of HEADERS",
     {{1, NGHTTP2_HEADERS, END, 3, 0}, {1, NGHTTP2_DATA, 0, 7, 0}, {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     0},
    {"HEADERS behind END_STREAM of DATA",
     {{1, NGHTTP2_HEADERS, 0, 3, 0},
      {1, NGHTTP2_DATA, END, 7, 0},
      {1, NGHTTP2_HEADERS, END, 3, 0},
      {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     0},
    {"DATA behind RST_STREAM",
     {{1, NGHTTP2_HEADERS, 0, 3, 0},
      {1, NGHTTP2_RST_STREAM, 0, 4, 0},
      {1, NGHTTP2_DATA, 0, 7, 0},
      {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     1},
    {"HEADERS behind RST_STREAM",
     {{1, NGHTTP2_HEADERS, 0, 3, 0},
      {1, NGHTTP2_RST_STREAM, 0, 4, 0},
      {1, NGHTTP2_HEADERS, END, 3, 0},
      {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     1},
    {"HEADERS of a stream that was passed over",
     {{5, NGHTTP2_HEADERS, END, 3, 0}, {3, NGHTTP2_HEADERS, END, 3, 0}, {.type = LAST}},
     NGHTTP2_PROTOCOL_ERROR,
     0},
    {"the same far on",
     {{FAR + 1, NGHTTP2_HEADERS, END, 3, 0},
      {2 * FAR - 1, NGHTTP2_HEADERS, END, 3, 0},
      {FAR + 3, NGHTTP2_HEADERS, END, 3, 0},
      {.type = LAST}},
     NGHTTP2_PROTOCOL_ERROR,
     0},
    {"places of a ring are used again",
     {{1, NGHTTP2_HEADERS, END, 3, 0},
      {FAR + 1, NGHTTP2_HEADERS, 0, 3, 0},
      {FAR + 1, NGHTTP2_DATA, END, 3, 0},
      {.type = LAST}},
     0,
     0},
    {"of old streams nothing is judged",
     {{1, NGHTTP2_HEADERS, END, 3, 0},
      {FAR + 1, NGHTTP2_HEADERS, END, 3, 0},
      {1, NGHTTP2_DATA, 0, 7, 0},
      {1, NGHTTP2_RST_STREAM, 0, 4, 0},
      {.type = LAST}},
     0,
     0},
    {"the oldest stream that is remembered",
     {{1, NGHTTP2_HEADERS, END, 3, 0},
      {FAR - 1, NGHTTP2_HEADERS, END, 3, 0},
      {1, NGHTTP2_DATA, 0, 7, 0},
      {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     0},
    {"the last stream that there can be",
     {{INT32_MAX, NGHTTP2_HEADERS, END, 3, 0}, {INT32_MAX, NGHTTP2_DATA, 0, 7, 0}, {.type = LAST}},
     NGHTTP2_STREAM_CLOSED,
     0},
    {"PRIORITY on stream 0",
     {{0, NGHTTP2_PRIORITY, 0, 5, 1}, {.type = LAST}},
     NGHTTP2_PROTOCOL_ERROR,
     0},
    {"PRIORITY on itself",
     {{7, NGHTTP2_PRIORITY, 0, 5, 7}, {.type = LAST}},
     NGHTTP2_PROTOCOL_ERROR,
     0},
    {"PRIORITY of a wrong size is nghttp2's",
     {{7, NGHTTP2_PRIORITY, 0, 4, 7}, {7, NGHTTP2_HEADERS, END, 3, 0}, {.type = LAST}},
     0,
     0},
};

/* Returns where the last frame's head begins; *ret_size: where it ends. */
static size_t write_row(const struct frame *frames, uint8_t wire[WIRE_MAX], size_t *ret_size)
{
    size_t begin = PREFACE_BYTES;
    size_t size = PREFACE_BYTES;
    memset(wire, 'p', PREFACE_BYTES);
    for (const struct frame *frame = frames; frame->type != LAST; frame++) {
        begin = size;
        const uint8_t head[] = {0,
                                0,
                                frame->size,
                                frame->type,
                                frame->flags,
                                (uint8_t)(frame->id >> 24),
                                (uint8_t)(frame->id >> 16),
                                (uint8_t)(frame->id >> 8),
                                (uint8_t)frame->id};
        memcpy(wire + size, head, sizeof(head));
        size += sizeof(head);
        memset(wire + size, 0, frame->size);
        if (frame->size >= 4)
            wire[size + 3] = frame->parent;
        size += frame->size;
    }
    assert_true(size <= WIRE_MAX);
    *ret_size = size;
    return begin;
}

/* Reads on until there is a fault; returns the bytes that were found sound. */
static size_t read_in_pieces(const uint8_t *wire, size_t size, size_t piece,
                             struct http2_fault *ret_fault)
{
    struct http2_frames frames;
    size_t sound = 0;
    http2_frames_init(&frames);
    *ret_fault = (struct http2_fault){.code = 0};
    while (sound < size && ret_fault->code == 0) {
        size_t given = size - sound < piece ? size - sound : piece;
        size_t taken = http2_frames_read(&frames, wire + sound, given, ret_fault);
        assert_true(taken == given || (taken < given && ret_fault->code != 0));
        sound += taken;
    }
    return sound;
}

static void frames_are_judged(void **state)
{
    static const size_t pieces[] = {WIRE_MAX, 1, 2, 11};
    uint8_t wire[WIRE_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t size;
        size_t begin = write_row(rows[i].frames, wire, &size);
        for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            struct http2_fault fault;
            size_t sound = read_in_pieces(wire, size, pieces[j], &fault);
            if (fault.code != rows[i].code || fault.stream_id != rows[i].stream_id)
                fail_msg("%s, in pieces of %zu: code %u, stream %u", rows[i].what, pieces[j],
                         fault.code, fault.stream_id);
            if (fault.code == 0)
                assert_int_equal(sound, size);
            else if (fault.stream_id != 0)
                assert_true(sound >= begin + HTTP2_HEAD_BYTES);
            else if (pieces[j] == WIRE_MAX)
                assert_int_equal(sound, begin);
        }
    }
}

/* The rest behind the fault of a stream is read as if nothing had been. */
static void a_streams_fault_is_that_of_the_stream_alone(void **state)
{
    static const struct frame frames[] = {
        {1, NGHTTP2_HEADERS, 0, 3, 0},
        {1, NGHTTP2_RST_STREAM, 0, 4, 0},
        {1, NGHTTP2_DATA, END, 7, 0},
        {3, NGHTTP2_HEADERS, 0, 3, 0},
        {1, NGHTTP2_DATA, 0, 7, 0},
        {3, NGHTTP2_DATA, END, 3, 0},
        {.type = LAST},
    };
    uint8_t wire[WIRE_MAX];
    size_t size;
    unsigned faults = 0;
    struct http2_frames read;
    (void)state;
    write_row(frames, wire, &size);
    http2_frames_init(&read);
    for (size_t at = 0; at < size;) {
        struct http2_fault fault;
        at += http2_frames_read(&read, wire + at, size - at, &fault);
        faults += fault.code == NGHTTP2_STREAM_CLOSED && fault.stream_id == 1;
        assert_true(fault.code == 0 || fault.stream_id == 1);
    }
    assert_int_equal(faults, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_judged),
        cmocka_unit_test(a_streams_fault_is_that_of_the_stream_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
