/* SPDX-License-Identifier: Apache-2.0 */
/* Reads HTTP/1.1 messages, RFC 9112 as far as the peers of the rig use it. */
#include "tests/bench/http1_message.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sys/socket.h>

enum { READ_BYTES = 64 * 1024, HEAD_BYTES_MAX = 64 * 1024, BODY_BYTES_MAX = 256 << 20 };

/* The value of a header within the head, or NULL. The head ends in an empty line and a NUL. */
static const char *find_header(const char *head, const char *name)
{
    size_t name_size = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_size) == 0 && line[name_size] == ':')
            return line + name_size + 1 + strspn(line + name_size + 1, " ");
    }
    return NULL;
}

static bool read_head(struct http1_message *message, size_t head_size)
{
    char head[HEAD_BYTES_MAX + 1];

    assert(head_size <= HEAD_BYTES_MAX);
    memcpy(head, message->received.data, head_size);
    head[head_size] = '\0';
    const char *length = find_header(head, "content-length");
    const char *transfer = find_header(head, "transfer-encoding");
    const char *content = find_header(head, "content-encoding");
    message->head_size = head_size;
    message->scanned = head_size;
    message->is_chunked = transfer != NULL && strncasecmp(transfer, "chunked", 7) == 0;
    message->coding = content == NULL ? BODY_PLAIN : body_coding_of(content);
    message->body_size = length == NULL || message->is_chunked ? 0 : strtoull(length, NULL, 10);
    message->status = strncmp(head, "HTTP/1.", 7) == 0 ? (unsigned)strtoul(head + 9, NULL, 10) : 0;
    return message->body_size <= BODY_BYTES_MAX;
}

/* A line of the chunked framing: its end behind the CR LF, or 0 while it is not complete. */
static size_t line_end(const struct http1_message *message)
{
    const uint8_t *from = message->received.data + message->scanned;
    const uint8_t *end = memchr(from, '\n', message->received.size - message->scanned);

    return end == NULL ? 0 : (size_t)(end - message->received.data) + 1;
}

/* Moves the content of chunks down, so that the body is in one piece behind the head. */
static enum http1_state read_chunks(struct http1_message *message)
{
    for (;;) {
        uint8_t *data = message->received.data;
        assert(message->scanned <= message->received.size);
        size_t available = message->received.size - message->scanned;
        size_t content = available < message->chunk_left ? available : message->chunk_left;
        memmove(data + message->head_size + message->body_size, data + message->scanned, content);
        message->body_size += content;
        message->scanned += content;
        message->chunk_left -= content;
        size_t end = message->chunk_left > 0 ? 0 : line_end(message);
        if (end == 0)
            return message->body_size > BODY_BYTES_MAX ? HTTP1_BROKEN : HTTP1_MORE;
        if (message->is_chunk_tail) {
            message->is_chunk_tail = false;
            message->scanned = end;
            continue;
        }
        message->chunk_left = strtoull((char *)data + message->scanned, NULL, 16);
        if (message->chunk_left == 0) {
            /* The empty line behind the last chunk; trailers are not expected here. */
            message->wire_size = end + 2;
            return message->received.size >= end + 2 ? HTTP1_COMPLETE : HTTP1_MORE;
        }
        message->scanned = end;
        message->is_chunk_tail = true;
    }
}

static enum http1_state parse(struct http1_message *message)
{
    if (message->head_size == 0) {
        uint8_t *end = memmem(message->received.data, message->received.size, "\r\n\r\n", 4);
        if (end == NULL)
            return message->received.size > HEAD_BYTES_MAX ? HTTP1_BROKEN : HTTP1_MORE;
        size_t head_size = (size_t)(end - message->received.data) + 4;
        if (head_size > HEAD_BYTES_MAX || !read_head(message, head_size))
            return HTTP1_BROKEN;
    }
    if (message->is_chunked)
        return read_chunks(message);
    message->wire_size = message->head_size + message->body_size;
    return message->received.size >= message->wire_size ? HTTP1_COMPLETE : HTTP1_MORE;
}

struct iovec http1_room(struct http1_message *message)
{
    struct byte_buffer *received = &message->received;
    size_t wanted = READ_BYTES;

    if (message->head_size > 0 && message->wire_size > received->size + wanted)
        wanted = message->wire_size - received->size;
    byte_buffer_reserve(received, wanted + 1);
    return (struct iovec){received->data + received->size, wanted};
}

enum http1_state http1_received(struct http1_message *message, ssize_t count)
{
    struct byte_buffer *received = &message->received;

    if (count == 0)
        return HTTP1_CLOSED;
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? HTTP1_MORE : HTTP1_BROKEN;
    assert(received->capacity - received->size > (size_t)count);
    received->size += (size_t)count;
    received->data[received->size] = '\0';
    return parse(message);
}

enum http1_state http1_receive(struct http1_message *message, int fd)
{
    struct iovec room = http1_room(message);

    assert(fd >= 0);
    return http1_received(message, recv(fd, room.iov_base, room.iov_len, 0));
}

struct bytes http1_body(const struct http1_message *message)
{
    assert(message->head_size > 0);
    return (struct bytes){message->received.data + message->head_size, message->body_size};
}

bool http1_starts_with(const struct http1_message *message, const char *text)
{
    size_t size = strlen(text);

    assert(message->head_size > 0);
    return message->received.size >= size && memcmp(message->received.data, text, size) == 0;
}

void http1_consume(struct http1_message *message)
{
    struct byte_buffer received = message->received;

    assert(received.size >= message->wire_size);
    received.size -= message->wire_size;
    memmove(received.data, received.data + message->wire_size, received.size);
    *message = (struct http1_message){.received = received};
}

void http1_free(struct http1_message *message)
{
    byte_buffer_free(&message->received);
    *message = (struct http1_message){0};
}
