/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the nghttp2 sessions of servers and clients: memory, options, callbacks. Any thread. */
#pragma once

#include <nghttp2/nghttp2.h>

#include <stddef.h>
#include <stdint.h>

/* Where nghttp2 puts the next frame to send: 16 KiB, of which most connections use the first few
 * bytes. Its pages are its own, so that an idle connection can release them. */
struct http2_frame_buffer {
    uint8_t *data; /* NULL: there is none */
    size_t size;
};

/* Creates a server's session, or a client's if buffer is NULL. fill sets the callbacks, which get
 * arg. buffer must outlive the session. Returns 0, or an error of nghttp2. */
int http2_session_create(nghttp2_session **ret_session,
                         void (*fill)(nghttp2_session_callbacks *callbacks),
                         struct http2_frame_buffer *buffer, void *arg);
