/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a gRPC message (Length-Prefixed-Message of PROTOCOL-HTTP2.md), for both ends: a flag
 * (one byte, 1: compressed) and the size (four bytes, big-endian). */
#pragma once

enum { GRPC_PREFIX_BYTES = 5 };
