/* SPDX-License-Identifier: Apache-2.0 */
/* One connection's worth of bytes: requests to one endpoint, pipelined over HTTP/1.1 or side by
 * side over HTTP/2, sometimes with the protocol itself spoilt. A session is made from the seed and
 * its number alone, whatever was made before. One thread. */
#pragma once

#include "tests/attack/body.h"

/* How a client behaves beside what it says. */
enum habit {
    HABIT_PROMPT,
    HABIT_SLOW, /* pauses between pieces */
    HABIT_DEAF, /* reads nothing, and stays for a while */
};

struct session {
    enum endpoint endpoint;
    enum habit habit;
    bool is_http2;
    bool is_packets;   /* each follows its size, as session_packet_size reads it */
    bool is_sound;     /* the protocol is kept: each request gets a response, without our closing */
    unsigned requests; /* that are in it */
    size_t sent_max;   /* the connection is dropped when so much has been sent */
    size_t piece_bytes; /* sent at once */
    struct bytes_out bytes;
};

/* Owned by the caller. now_ns: what requests take for the present. is_valid: nothing is spoilt. */
struct session_maker *session_maker_create(uint64_t now_ns, bool is_valid);
void session_maker_destroy(struct session_maker *maker);
/* Of the packet at bytes->data + at, without the 4 bytes of the size itself, which come first. */
size_t session_packet_size(const struct session *session, size_t at);
/* session->bytes is used again. */
void session_make(struct session_maker *maker, uint64_t seed, uint64_t number,
                  struct session *session);
