/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses as strings, read as Go's net.ParseIP does and written as net.IP.String does. Pure
 * functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { IP_ADDRESS_STRING_MAX = 48, IPV4_BYTES = 4, IPV6_BYTES = 16 };

/* False: text is no address. An IPv4 address becomes the IPv6 address that stands for it
 * (::ffff:1.2.3.4). */
bool ip_address_parse(struct slice text, uint8_t ret_address[IPV6_BYTES]);
/* address has IPV4_BYTES or IPV6_BYTES. Returns the length. IPv4 addresses in IPv6 are written as
 * those of IPv4. */
size_t ip_address_print(struct slice address, char text[IP_ADDRESS_STRING_MAX]);
