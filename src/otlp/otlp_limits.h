/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of reading, writing and editing OTLP. Sizes in bytes, times in nanoseconds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/limits.h"

/* Protobuf. */
enum {
    WIRE_DEPTH_MAX = 64, /* messages in one another; the request is the first */
    /* The minimum charged for a message, and additionally for an item: edits and indexes need that
     * much for each. Real ones are larger. */
    WIRE_MESSAGE_BYTES_MIN = 16,
    WIRE_ITEM_BYTES_MIN = 16
};

/* OTLP/JSON: nesting; the largest ratio of protobuf to JSON (lists of one-digit doubles), and of
 * JSON to protobuf (empty profiles). */
enum { JSON_DEPTH_MAX = 512, JSON_READ_RATIO_MAX = 4, JSON_WRITE_RATIO_MAX = 20 };
/* Protobuf that JSON may become: as much as a body may have. */
#define JSON_READ_BYTES_MAX ((size_t)UINT32_MAX)

/* What actions may add to one Resource; beyond it values stay unchanged. */
enum { EDIT_BYTES_MAX = 64 << 20 };
