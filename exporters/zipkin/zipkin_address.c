/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and ports. Pure functions; any thread. */
#include "exporters/zipkin/zipkin_address.h"

#include <stdio.h>
#include <string.h>

bool zipkin_address_read(struct slice text, struct zipkin_address *ret_address)
{
    char copy[ZIPKIN_ADDRESS_TEXT_MAX];
    struct zipkin_address address = {.is_v6 = false};
    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    address.is_v6 = strchr(copy, ':') != NULL;
    if (inet_pton(address.is_v6 ? AF_INET6 : AF_INET, copy, address.bytes) != 1)
        return false;
    *ret_address = address;
    return true;
}

struct slice zipkin_address_bytes(const struct zipkin_address *address)
{
    return slice_of(address->bytes,
                    address->is_v6 ? sizeof(struct in6_addr) : sizeof(struct in_addr));
}

/* RFC 5952: the longest run of zeros, of two groups or more, is "::". Unlike inet_ntop's, no
 * address ends as one of IPv4. */
static size_t ipv6_text(const uint8_t address[16], char text[ZIPKIN_ADDRESS_TEXT_MAX])
{
    enum { GROUPS = 8 };
    size_t run = GROUPS;
    size_t run_size = 1;
    size_t used = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        size_t size = 0;
        while (i + size < GROUPS && address[2 * (i + size)] == 0 &&
               address[2 * (i + size) + 1] == 0)
            size++;
        if (size > run_size) {
            run = i;
            run_size = size;
        }
    }
    for (size_t i = 0; i < GROUPS; i++) {
        if (i == run) {
            used += (size_t)snprintf(text + used, ZIPKIN_ADDRESS_TEXT_MAX - used, "::");
            i += run_size - 1;
            continue;
        }
        bool has_colon = i > 0 && i != run + run_size;
        used += (size_t)snprintf(text + used, ZIPKIN_ADDRESS_TEXT_MAX - used, "%s%x",
                                 has_colon ? ":" : "",
                                 (unsigned)address[2 * i] << 8 | address[2 * i + 1]);
    }
    return used;
}

size_t zipkin_address_text(const struct zipkin_address *address, char text[ZIPKIN_ADDRESS_TEXT_MAX])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *bytes = address->bytes;
    bool is_mapped = address->is_v6 && memcmp(bytes, mapped, sizeof(mapped)) == 0;
    if (address->is_v6 && !is_mapped)
        return ipv6_text(bytes, text);
    bytes += is_mapped ? sizeof(mapped) : 0;
    return (size_t)snprintf(text, ZIPKIN_ADDRESS_TEXT_MAX, "%u.%u.%u.%u", bytes[0], bytes[1],
                            bytes[2], bytes[3]);
}

uint16_t zipkin_port_read(struct slice text)
{
    uint32_t port = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9)
            return 0;
        port = port * 10 + digit;
        if (port > UINT16_MAX)
            return UINT16_MAX;
    }
    return (uint16_t)port;
}
