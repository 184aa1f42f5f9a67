/* SPDX-License-Identifier: Apache-2.0 */
/* What nghttp2 allocates with, on servers and clients. Constant; any thread. */
#pragma once

#include <nghttp2/nghttp2.h>

extern nghttp2_mem http2_memory;
