/* SPDX-License-Identifier: Apache-2.0 */
/* A UDP socket that receives packets for one lane (udp(7)). Everything runs on that lane. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;
struct lane;
struct packet_socket;

/* The largest payload of a packet: UDP's length field has 16 bits. */
enum { PACKET_BYTES_MAX = 65535 };

struct packet_socket_settings {
    struct lane *lane;
    const char *endpoint;  /* "host:port", as those of TCP */
    uint64_t bytes_max;    /* of a packet; what is beyond it is cut off */
    uint64_t buffer_bytes; /* of the socket in the kernel; 0: the system's default */
    /* packet is valid during the call; size: its bytes as it was sent, which may be more. */
    void (*on_packet)(void *arg, struct slice packet, size_t size);
    void *arg;
};

/* NULL: error has the reason. After a reload it is the socket of the last service on that endpoint,
 * so that packets wait instead of being lost. */
struct packet_socket *packet_socket_open(const struct packet_socket_settings *settings,
                                         struct error *error);
/* "127.0.0.1:6831", port 0 resolved. */
const char *packet_socket_address(const struct packet_socket *socket);
/* No packet comes any more. Calls closed(arg) in a later turn, and frees the socket. */
void packet_socket_close(struct packet_socket *socket, void (*closed)(void *arg), void *arg);
