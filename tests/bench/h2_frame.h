/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 frame heads (RFC 9113 §4.1) and the HPACK block of the one request that the generator
 * sends again and again (RFC 7541). */
#pragma once

#include "tests/bench/support.h"

#include <nghttp2/nghttp2.h>

enum h2_frame_type {
    H2_DATA = 0,
    H2_HEADERS = 1,
    H2_RST_STREAM = 3,
    H2_SETTINGS = 4,
    H2_PING = 6,
    H2_GOAWAY = 7,
    H2_WINDOW_UPDATE = 8,
};
enum { H2_END_STREAM = 1, H2_ACK = 1, H2_END_HEADERS = 4, H2_PADDED = 8, H2_PRIORITY = 32 };
enum { H2_FRAME_HEAD_BYTES = 9, H2_DEFAULT_WINDOW = 65535, H2_DEFAULT_FRAME_BYTES = 16384 };
enum { H2_REQUEST_HEAD_BYTES_MAX = 512, H2_HPACK_TABLE_BYTES = 4096 };

struct h2_frame {
    uint32_t size; /* of the payload */
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
};

void h2_put_u32(uint8_t *out, uint32_t value);
uint32_t h2_get_u32(const uint8_t *data);
void h2_frame_write(uint8_t out[static H2_FRAME_HEAD_BYTES], const struct h2_frame *frame);
struct h2_frame h2_frame_read(const uint8_t data[static H2_FRAME_HEAD_BYTES]);

/* The head of an OTLP trace export over gRPC. The first block of a connection fills the peer's
 * table, which holds table_bytes; the later ones are indices into it. The messages have a coding
 * (gzip, zstd …) unless it is NULL. Returns the size. */
size_t h2_request_head(uint8_t out[static H2_REQUEST_HEAD_BYTES_MAX], const char *coding,
                       bool is_first, size_t table_bytes);
/* Decodes the block of a HEADERS frame, as must be done with each for the sake of the table.
 * *status is set when the block has a grpc-status. False: it cannot be decoded. */
bool h2_read_grpc_status(nghttp2_hd_inflater *inflater, const struct h2_frame *frame,
                         const uint8_t *payload, unsigned *status);
