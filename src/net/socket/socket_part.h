/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes for a write of libuv. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <uv.h>

/* As uv_buf_init, which takes no size of 4 GiB and more. libuv does not change the bytes. */
static inline uv_buf_t socket_part(const void *data, size_t size)
{
    return (uv_buf_t){.base = (char *)(uintptr_t)data, .len = size};
}
