/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file from a place on, inflated if it is gzip. Blocking; of the follower's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct follow_source;

struct follow_source *follow_source_create(void);
/* NULL is a no-op. */
void follow_source_destroy(struct follow_source *source);
/* Begins at the offset and ends at `end`, both of the bytes in the file. */
void follow_source_begin(struct follow_source *source, int fd, bool is_gzip, uint64_t offset,
                         uint64_t end);
/* Up to size bytes; 0 at the end. Negative errno; of gzip -EBADMSG: malformed, -ENODATA: it ends
 * too early, as while it is being written. */
int64_t follow_source_read(struct follow_source *source, void *data, size_t size);
/* gzip: the members before this offset of the file have been read whole. */
uint64_t follow_source_members_end(const struct follow_source *source);

/* Whether the file begins as gzip does. Negative errno. */
int follow_source_is_gzip(int fd);
