/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's memory comes from our allocator, which may refuse it where that is safe. Any thread. */
#include "src/net/syntax/nghttp2_session.h"

#include "src/base/limits.h"
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

/* Refused only at the start of a session: when its queue of frames cannot grow, nghttp2 1.52 frees
 * a response's data twice. What it resizes is bounded: that queue, and buffers of one frame or
 * header. */
static void *reallocate(void *old, size_t size, void *arg)
{
    struct http2_frame_buffer *buffer = arg;
    if (buffer != NULL && buffer->data == NULL && old == NULL && size > FRAME_PAYLOAD_BYTES) {
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

int http2_session_create(nghttp2_session **ret_session,
                         void (*fill)(nghttp2_session_callbacks *callbacks),
                         struct http2_frame_buffer *buffer, void *arg)
{
    nghttp2_mem memory = {
        .mem_user_data = buffer,
        .malloc = allocate,
        .free = release,
        .calloc = allocate_zeroed,
        .realloc = reallocate,
    };
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int result = nghttp2_session_callbacks_new(&callbacks);
    if (result == 0)
        result = nghttp2_option_new(&option);
    if (result == 0) {
        bool is_server = buffer != NULL;
        fill(callbacks);
        /* Frames of unknown types reach on_begin_frame of a server, which counts them, and no
         * further. */
        /* Closed streams are kept for a priority tree only, which we do not use. */
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_settings(option, HTTP2_SETTINGS_ENTRIES_MAX);
        nghttp2_option_set_max_continuations(option, HTTP2_CONTINUATIONS_MAX);
        for (unsigned type = NGHTTP2_CONTINUATION + 1; is_server && type <= UINT8_MAX; type++)
            nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type);
        result = is_server
                     ? nghttp2_session_server_new3(ret_session, callbacks, arg, option, &memory)
                     : nghttp2_session_client_new3(ret_session, callbacks, arg, option, &memory);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return result;
}
