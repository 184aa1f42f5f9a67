/* SPDX-License-Identifier: Apache-2.0 */
/* The sink's side of one gRPC connection: hands each message over and responds with OK at once. It
 * trusts its peers, which are collectors under test. */
#pragma once

#include "tests/bench/support.h"

struct sink_grpc;

/* wire_size: the message with its prefix. */
typedef void (*sink_grpc_fn)(void *arg, struct bytes message, bool is_gzip, size_t wire_size);

/* True when what waits on the socket begins as HTTP/2 does. */
bool sink_grpc_is_next(int fd);
struct sink_grpc *sink_grpc_open(int fd, sink_grpc_fn take, void *arg);
/* Takes what one recv() can give. False: the peer has gone. */
bool sink_grpc_receive(struct sink_grpc *grpc);
/* NULL is tolerated; the socket stays its owner's. */
void sink_grpc_close(struct sink_grpc *grpc);
