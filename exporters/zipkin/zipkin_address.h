/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ports of endpoints, read as Go's net.ParseIP and strconv.ParseUint do and written
 * as net.IP.String does. Pure functions; any thread. */
#pragma once

#include <arpa/inet.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { ZIPKIN_ADDRESS_TEXT_MAX = INET6_ADDRSTRLEN };

struct zipkin_address {
    bool is_v6;        /* written like one: it has a colon */
    uint8_t bytes[16]; /* of IPv4 the first 4 */
};

/* False: text is no address. */
bool zipkin_address_read(struct slice text, struct zipkin_address *ret_address);
/* The bytes of the address: 4 or 16. */
struct slice zipkin_address_bytes(const struct zipkin_address *address);
/* Returns the length. IPv4 addresses in IPv6 (::ffff:1.2.3.4) are written as those of IPv4. */
size_t zipkin_address_text(const struct zipkin_address *address,
                           char text[ZIPKIN_ADDRESS_TEXT_MAX]);
/* 0 when text is no number; the largest port when it is a larger one. */
uint16_t zipkin_port_read(struct slice text);
