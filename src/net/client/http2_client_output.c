/* SPDX-License-Identifier: Apache-2.0 */
/* Turns nghttp2's frames into the parts of one write. Bodies are pointed to where they lie; what is
 * small is copied behind the frame heads, so that neither the number of parts nor the room for
 * copies can run out within a frame. On the owner's lane. */
#include "src/net/client/http2_client_state.h"

#include "src/base/mem.h"

#include <assert.h>
#include <string.h>

static bool has_room(const struct http2_output *output)
{
    return HTTP2_OUTPUT_BYTES - output->used >= HTTP2_FRAME_BYTES_MAX &&
           output->parts_count + 2 < HTTP2_OUTPUT_PARTS;
}

/* Joins the last part when that is a copy too. */
static void append_copy(struct http2_output *output, const uint8_t *data, size_t size)
{
    assert(size <= HTTP2_OUTPUT_BYTES - output->used);
    uint8_t *room = output->bytes + output->used;
    memcpy(room, data, size);
    output->used += size;
    size_t count = output->parts_count;
    if (count > 0 && output->parts[count - 1].owner == NULL) {
        output->parts[count - 1].bytes.size += size;
        return;
    }
    assert(count < HTTP2_OUTPUT_PARTS);
    output->parts[output->parts_count++] = (struct batch_part){.bytes = slice_of(room, size)};
}

static void append(struct http2_output *output, struct buffer *owner, struct slice bytes)
{
    bool has_parts = output->parts_count + 2 < HTTP2_OUTPUT_PARTS;
    assert(bytes.size > 0);
    if (owner != NULL && bytes.size > HTTP2_COPY_BYTES_MAX && has_parts)
        output->parts[output->parts_count++] = (struct batch_part){.owner = owner, .bytes = bytes};
    else
        append_copy(output, bytes.data, bytes.size);
}

int http2_client_output_data(struct http2_client_stream *stream, const uint8_t *head, size_t size)
{
    struct http2_output *output = stream->client->output;
    assert(output != NULL);
    assert(size <= stream->left);
    if (!has_room(output)) {
        output->is_full = true;
        stream->client->stalled = stream;
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    stream->client->stalled = NULL;
    append_copy(output, head, HTTP2_FRAME_HEAD_BYTES);
    stream->left -= size;
    while (size > 0) {
        const struct batch_part *part = &stream->parts[stream->at];
        assert(stream->at < stream->parts_count);
        size_t left = part->bytes.size - stream->offset;
        size_t step = left < size ? left : size;
        if (step > 0)
            append(output, part->owner, slice_of(part->bytes.data + stream->offset, step));
        size -= step;
        stream->offset += step;
        if (step == left) {
            stream->at++;
            stream->offset = 0;
        }
    }
    return 0;
}

int http2_client_output_gather(struct http2_client *client, struct http2_output *output)
{
    assert(client->output == NULL);
    output->used = 0;
    output->parts_count = 0;
    output->is_full = false;
    client->output = output;
    ssize_t size = 1;
    while (size > 0 && has_room(output)) {
        const uint8_t *data = NULL;
        size = nghttp2_session_mem_send(client->nghttp2, &data);
        if (size > 0)
            append_copy(output, data, (size_t)size);
    }
    client->output = NULL;
    return size < 0 ? (int)size : 0;
}
