/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are short and inflate to much. */
#pragma once

#include <stddef.h>

struct buffer;

/* So many zero bytes in gzip. The caller releases the buffer. */
struct buffer *gzip_zeros(size_t size);
