/* SPDX-License-Identifier: Apache-2.0 */
/* Reads HTTP/1.1 messages from a socket, one at a time, each whole and in one piece: requests for
 * the sink and the relay, responses for the generator and the relay. It trusts its peers, which are
 * programs of this rig or collectors under test. */
#pragma once

#include "tests/bench/body_coding.h"
#include "tests/bench/support.h"

#include <sys/types.h>
#include <sys/uio.h>

enum http1_state { HTTP1_MORE, HTTP1_COMPLETE, HTTP1_CLOSED, HTTP1_BROKEN };

struct http1_message {
    struct byte_buffer received;
    size_t head_size; /* 0: the head is not complete yet */
    size_t body_size; /* so far, when chunked; as announced otherwise */
    size_t scanned;   /* chunked: behind the last byte looked at */
    size_t chunk_left;
    size_t wire_size; /* head and body as they came */
    unsigned status;  /* of a response, else 0 */
    bool is_chunked;
    enum body_coding coding;
    bool is_chunk_tail; /* chunked: the line end after the content is due */
};

/* Takes what one recv() can give. HTTP1_COMPLETE: the message can be used until http1_consume(). */
enum http1_state http1_receive(struct http1_message *message, int fd);
/* The same for callers that read themselves: where the next bytes belong, and what came of it, with
 * errno where it is negative. */
struct iovec http1_room(struct http1_message *message);
enum http1_state http1_received(struct http1_message *message, ssize_t count);
struct bytes http1_body(const struct http1_message *message);
/* True when the request line begins with this, such as "GET /stats ". */
bool http1_starts_with(const struct http1_message *message, const char *text);
/* Forgets the message but not what came behind it. */
void http1_consume(struct http1_message *message);
void http1_free(struct http1_message *message);
