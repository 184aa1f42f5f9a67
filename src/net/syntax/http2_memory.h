/* SPDX-License-Identifier: Apache-2.0 */
/* What nghttp2 allocates with, on servers and clients. Constant; any thread. */
#pragma once

#include <nghttp2/nghttp2.h>

#include <stddef.h>
#include <stdint.h>

extern nghttp2_mem http2_memory;

/* Where nghttp2 puts the frame that it sends next: 16 KiB, of which most connections touch the
 * first few bytes. It lies in pages of its own, which an idle connection can do without. */
struct http2_frame_buffer {
    uint8_t *data; /* NULL: there is none */
    size_t size;
};

/* What a session allocates with whose frame buffer is to be known. buffer lives as long. */
nghttp2_mem http2_memory_with(struct http2_frame_buffer *buffer);
