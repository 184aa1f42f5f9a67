/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses as strings. Pure functions; any thread. */
#include "src/net/syntax/ip_address.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

/* RFC 4291 §2.5.5.2. */
static const uint8_t mapped[IPV6_BYTES - IPV4_BYTES] = {[10] = 0xff, [11] = 0xff};

bool ip_address_parse(struct slice text, uint8_t ret_address[IPV6_BYTES])
{
    char copy[IP_ADDRESS_STRING_MAX];
    uint8_t address[IPV6_BYTES];
    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    memcpy(address, mapped, sizeof(mapped));
    bool is_v6 = strchr(copy, ':') != NULL;
    if (inet_pton(is_v6 ? AF_INET6 : AF_INET, copy, address + (is_v6 ? 0 : sizeof(mapped))) != 1)
        return false;
    memcpy(ret_address, address, sizeof(address));
    return true;
}

/* RFC 5952: the longest run of zeros, of two groups or more, is "::". Unlike inet_ntop's, no
 * address ends as one of IPv4. */
static size_t print_v6(const uint8_t address[IPV6_BYTES], char text[IP_ADDRESS_STRING_MAX])
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
            used += (size_t)snprintf(text + used, IP_ADDRESS_STRING_MAX - used, "::");
            i += run_size - 1;
            continue;
        }
        bool has_colon = i > 0 && i != run + run_size;
        used += (size_t)snprintf(text + used, IP_ADDRESS_STRING_MAX - used, "%s%x",
                                 has_colon ? ":" : "",
                                 (unsigned)address[2 * i] << 8 | address[2 * i + 1]);
    }
    return used;
}

size_t ip_address_print(struct slice address, char text[IP_ADDRESS_STRING_MAX])
{
    assert(address.size == IPV4_BYTES || address.size == IPV6_BYTES);
    const uint8_t *bytes = address.data;
    if (address.size == IPV6_BYTES) {
        if (memcmp(bytes, mapped, sizeof(mapped)) != 0)
            return print_v6(bytes, text);
        bytes += sizeof(mapped);
    }
    return (size_t)snprintf(text, IP_ADDRESS_STRING_MAX, "%u.%u.%u.%u", bytes[0], bytes[1],
                            bytes[2], bytes[3]);
}
