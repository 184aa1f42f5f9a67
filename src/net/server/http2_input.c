/* SPDX-License-Identifier: Apache-2.0 */
/* Large bodies are read where they belong. Once a stream's DATA frames come one behind the other,
 * the next ones most likely do, too: then one readv puts the content of each into the body's buffer
 * and the heads between them aside. nghttp2 is told of every piece in turn, and finds the content
 * in its place. What came otherwise than expected is brought back into one piece first, before
 * anything is done with it. On the connection's lane. */
#include "src/net/server/http2_session.h"

#include "src/base/limits.h"
#include "src/net/server/http_connection.h"
#include "src/net/server/http_server_state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum {
    HEAD_BYTES = 9,
    FRAMES_MAX = 32,
    /* Behind the frames there is room for what nobody knows, such as the next request. */
    TAIL_BYTES = 16 * 1024,
    /* With less to gain, reading in one piece and copying is cheaper. */
    EXPECTED_BYTES_MIN = 4096,
    ROWS_MAX = 1 + 2 * FRAMES_MAX + 1,
};

/* The rest of the frame that is under way, then head and content of each frame that is expected,
 * then the tail. */
struct expected {
    struct iovec rows[ROWS_MAX];
    unsigned count;
    size_t size;
    uint8_t heads[FRAMES_MAX][HEAD_BYTES];
};

void http2_input_begin(struct http2_data_run *run, const nghttp2_frame_hd *head)
{
    assert(head->type == NGHTTP2_DATA);
    bool is_padded = (head->flags & NGHTTP2_FLAG_PADDED) != 0;
    if (run->stream_id != head->stream_id) {
        run->frames_before = run->frames;
        run->frames = 0;
    }
    run->frames++;
    run->stream_id = head->stream_id;
    run->ends_stream = (head->flags & NGHTTP2_FLAG_END_STREAM) != 0;
    run->frame_left = is_padded ? UINT32_MAX : (uint32_t)head->length;
    if (head->length > run->frame_size)
        run->frame_size = (uint32_t)head->length;
}

void http2_input_take(struct http2_data_run *run, const uint8_t *data, size_t size)
{
    bool is_padded = run->frame_left == UINT32_MAX;
    run->is_last = data + size == run->input_end && !is_padded;
    assert(size <= run->frame_left);
    if (!is_padded)
        run->frame_left -= (uint32_t)size;
}

/* The stream whose DATA frame is under way or was the last to end, while its body is read. */
static struct http2_stream *stream_under_way(const struct http2_session *session)
{
    const struct http2_data_run *run = &session->data_run;
    if (!run->is_last || session->is_doomed || session->is_lingering ||
        session->abuse != HTTP2_NO_ABUSE)
        return NULL;
    struct http2_stream *stream =
        nghttp2_session_get_stream_user_data(session->nghttp2, run->stream_id);
    bool is_read = stream != NULL && !stream->is_refused && !stream->has_ended_input &&
                   stream->base.is_reading && http_body_is_announced(&stream->base.body);
    return is_read ? stream : NULL;
}

/* Behind the one that is under way: none when the body, whose room they would be read into, ends
 * with it. */
static unsigned frames_expected(const struct http2_data_run *run)
{
    assert(run->frames > 0);
    if (run->ends_stream)
        return 0;
    unsigned as_seen = run->frames - 1;
    unsigned as_before = run->frames_before > run->frames ? run->frames_before - run->frames : 0;
    unsigned frames = as_seen > as_before ? as_seen : as_before;
    return frames < FRAMES_MAX ? frames : FRAMES_MAX;
}

static void add_row(struct expected *expected, uint8_t *data, size_t size)
{
    assert(expected->count < ROWS_MAX);
    expected->rows[expected->count++] = (struct iovec){.iov_base = data, .iov_len = size};
    expected->size += size;
}

static void add_frames(struct expected *expected, const struct http2_data_run *run, uint8_t *room,
                       size_t left)
{
    unsigned frames = frames_expected(run);
    for (unsigned i = 0; i < frames && left > 0; i++) {
        size_t size = left < run->frame_size ? left : run->frame_size;
        if (expected->size + HEAD_BYTES + size + TAIL_BYTES > LANE_READ_BYTES)
            return;
        add_row(expected, expected->heads[i], HEAD_BYTES);
        add_row(expected, room, size);
        room += size;
        left -= size;
    }
}

/* False when too little is expected. All of it together fits into the lane's buffer, and the tail
 * stands there behind all that may have to move there. */
static bool expect(const struct http2_session *session, struct expected *ret_expected)
{
    const struct http2_data_run *run = &session->data_run;
    struct http2_stream *stream = stream_under_way(session);
    ret_expected->count = 0;
    ret_expected->size = 0;
    if (stream == NULL)
        return false;
    size_t left;
    uint8_t *room = http_body_room(&stream->base.body, &left);
    if (run->frame_left > left)
        return false;
    add_row(ret_expected, room, run->frame_left);
    add_frames(ret_expected, run, room + run->frame_left, left - run->frame_left);
    if (ret_expected->size < EXPECTED_BYTES_MIN)
        return false;
    size_t placed = ret_expected->size;
    uint8_t *buffer = session->connection->server->read_buffer;
    add_row(ret_expected, buffer + placed,
            placed < LANE_READ_BYTES / 2 ? LANE_READ_BYTES - placed : TAIL_BYTES);
    return true;
}

bool http2_input_is_expected(const void *state)
{
    struct expected expected;
    return expect(state, &expected);
}

/* Whether the frame with this head belongs where its content was read. None but the last may end
 * the stream: with it the body goes its way, and its places are no longer ours. */
static bool is_as_expected(const struct http2_session *session, const struct iovec *row,
                           bool is_last)
{
    const uint8_t *head = row->iov_base;
    size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint32_t id =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    unsigned flags = is_last ? NGHTTP2_FLAG_PADDED : NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_END_STREAM;
    return size == row[1].iov_len && head[3] == NGHTTP2_DATA && (head[4] & flags) == 0 &&
           id == (uint32_t)session->data_run.stream_id;
}

/* Brings what came into these rows together in the lane's buffer. */
static size_t join(uint8_t *buffer, const struct iovec *rows, size_t size)
{
    size_t joined = 0;
    for (; joined < size; rows++) {
        size_t piece = size - joined < rows->iov_len ? size - joined : rows->iov_len;
        memcpy(buffer + joined, rows->iov_base, piece);
        joined += piece;
    }
    return joined;
}

/* Gives nghttp2 what came, piece by piece, until it takes no more. */
static void take(struct http2_session *session, const struct expected *expected, size_t size)
{
    const struct iovec *row = expected->rows;
    const struct iovec *tail = row + expected->count - 1;
    size_t placed = expected->size - tail->iov_len;
    size_t tail_size = size > placed ? size - placed : 0;
    size -= tail_size;
    for (; size > 0; row++) {
        bool is_head = (row - expected->rows) % 2 == 1;
        if (is_head && (size < HEAD_BYTES || !is_as_expected(session, row, row + 2 == tail)))
            break;
        size_t piece = size < row->iov_len ? size : row->iov_len;
        if (piece > 0 && !http2_session_feed(session, row->iov_base, piece))
            return;
        size -= piece;
    }
    uint8_t *buffer = session->connection->server->read_buffer;
    if (size > 0 && !http2_session_feed(session, buffer, join(buffer, row, size)))
        return;
    if (tail_size > 0)
        http2_session_feed(session, tail->iov_base, tail_size);
}

ssize_t http2_input_read(struct http2_session *session, int fd)
{
    struct expected expected;
    bool is_expected = expect(session, &expected);
    assert(is_expected);
    (void)is_expected;
    ssize_t size;
    do
        size = readv(fd, expected.rows, (int)expected.count);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return -errno;
    take(session, &expected, (size_t)size);
    return size;
}
