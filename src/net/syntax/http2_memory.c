/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's memory comes from the one allocator entry, and may be refused where that is safe. Any
 * thread. */
#include "src/net/syntax/http2_memory.h"

#include "src/base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FRAME_PAYLOAD_BYTES = 16384 };

static void *allocate(size_t size, void *arg)
{
    (void)arg;
    return mem_try_alloc(size);
}

static void *allocate_zeroed(size_t count, size_t size, void *arg)
{
    (void)arg;
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = mem_try_alloc(count * size);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

/* It is the first that begins by a resize and is larger than a frame's payload; http2_connection.c
 * looks whether frames lie there. */
static bool is_frame_buffer(const struct http2_frame_buffer *buffer, const void *old, size_t size)
{
    return buffer != NULL && buffer->data == NULL && old == NULL && size > FRAME_PAYLOAD_BYTES;
}

/* Never refused but at the session's beginning: when its queue of frames cannot grow, nghttp2 1.52
 * frees an answer's data twice. What it resizes is bounded: that queue, and its buffers of one
 * frame or header. */
static void *reallocate(void *old, size_t size, void *arg)
{
    struct http2_frame_buffer *buffer = arg;
    if (is_frame_buffer(buffer, old, size)) {
        buffer->data = mem_try_alloc_pages(size);
        buffer->size = size;
        return buffer->data;
    }
    if (buffer != NULL && old != NULL && old == buffer->data)
        buffer->data = NULL;
    return mem_resize(old, size);
}

static void release(void *memory, void *arg)
{
    struct http2_frame_buffer *buffer = arg;
    if (buffer != NULL && memory != NULL && memory == buffer->data)
        buffer->data = NULL;
    mem_free(memory);
}

nghttp2_mem http2_memory = {
    .malloc = allocate,
    .free = release,
    .calloc = allocate_zeroed,
    .realloc = reallocate,
};

nghttp2_mem http2_memory_with(struct http2_frame_buffer *buffer)
{
    nghttp2_mem memory = http2_memory;
    memory.mem_user_data = buffer;
    return memory;
}
