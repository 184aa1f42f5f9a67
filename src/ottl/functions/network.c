/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of network addresses: IsInCIDR (RFC 4632) and CommunityID (version 1). Runs on the
 * processor's thread. */
#include <arpa/inet.h>

#include "src/base/base64.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/ottl/functions/tables.h"

enum { V6_BYTES = 16, V4_BYTES = 4, V4_AT = V6_BYTES - V4_BYTES, BITS = 8 };

/* As 16 bytes; those of version 4 are ::ffff:a.b.c.d. */
struct address {
    uint8_t bytes[V6_BYTES];
};

struct network {
    struct address address;
    struct address mask;
};

static const uint8_t v4_prefix[V4_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const struct address *address)
{
    return memcmp(address->bytes, v4_prefix, V4_AT) == 0;
}

/* *ret_bits: 32 or 128, by the form of the text. */
static bool read_address(struct slice text, struct address *ret, unsigned *ret_bits)
{
    char copy[INET6_ADDRSTRLEN + 1];
    if (text.size == 0 || text.size >= sizeof(copy) || memchr(text.data, '\0', text.size) != NULL)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    memcpy(ret->bytes, v4_prefix, V4_AT);
    *ret_bits = V4_BYTES * BITS;
    if (inet_pton(AF_INET, copy, ret->bytes + V4_AT) == 1)
        return true;
    *ret_bits = V6_BYTES * BITS;
    return inet_pton(AF_INET6, copy, ret->bytes) == 1;
}

static bool read_network(struct slice text, struct network *ret)
{
    unsigned bits;
    unsigned size = 0;
    const uint8_t *slash = text.size > 0 ? memchr(text.data, '/', text.size) : NULL;
    if (slash == NULL)
        return false;
    struct slice digits = slice_of(slash + 1, (size_t)(text.data + text.size - slash - 1));
    if (!read_address(slice_of(text.data, (size_t)(slash - text.data)), &ret->address, &bits) ||
        digits.size == 0)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        size = size * 10 + (digits.data[i] - '0');
        if (size > bits)
            return false;
    }
    size += V6_BYTES * BITS - bits;
    for (unsigned i = 0; i < V6_BYTES; i++) {
        unsigned set = size > i * BITS ? size - i * BITS : 0;
        ret->mask.bytes[i] = (uint8_t)(set >= BITS ? 0xff : 0xff << (BITS - set));
        ret->address.bytes[i] &= ret->mask.bytes[i];
    }
    return true;
}

static bool contains(const struct network *network, const struct address *address)
{
    if (is_v4(&network->address) != is_v4(address))
        return false;
    for (unsigned i = is_v4(address) ? V4_AT : 0; i < V6_BYTES; i++)
        if ((address->bytes[i] & network->mask.bytes[i]) != network->address.bytes[i])
            return false;
    return true;
}

/* Literals are checked at once, as far as no other argument comes before them. */
static bool prepare_is_in_cidr(const struct ottl_preparation *preparation, void **ret_state,
                               struct error *error)
{
    *ret_state = NULL;
    for (unsigned i = 0; i < ottl_literal_items(preparation, 1); i++) {
        struct network network;
        struct slice text = ottl_literal_item(preparation, 1, i);
        if (text.data == NULL)
            return true;
        if (!read_network(text, &network))
            return error_set(error, "invalid CIDR address: %.*s", (int)text.size,
                             (const char *)text.data);
    }
    return true;
}

static bool is_in_cidr(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    struct address address;
    unsigned bits;
    if (!ottl_get_string(call, 0, &text))
        return false;
    *ret = ottl_bool(false);
    if (!read_address(text, &address, &bits))
        return true;
    for (unsigned i = 0; i < ottl_items(call, 1) && !ret->boolean; i++) {
        struct network network;
        if (!ottl_get_item_string(call, 1, i, &text))
            return false;
        if (!read_network(text, &network))
            return ottl_fail(call, "invalid CIDR address: %.*s", (int)text.size,
                             (const char *)text.data);
        *ret = ottl_bool(contains(&network, &address));
    }
    return true;
}

static const struct ottl_parameter is_in_cidr_parameters[] = {
    {"Target", OTTL_STRINGS_ONLY, false, false},
    {"Networks", OTTL_STRINGS_ONLY, false, true},
    {.name = NULL}};

struct endpoint {
    struct address address;
    uint16_t port;
};

static bool get_endpoint(struct ottl_call *call, unsigned parameter, const char *name,
                         struct endpoint *ret)
{
    struct slice text;
    int64_t port;
    unsigned bits;
    if (!ottl_get_string(call, parameter, &text) || !ottl_get_int(call, parameter + 1, &port))
        return false;
    if (port < 0 || port > UINT16_MAX)
        return ottl_fail(call, "%s port must be between 0 and 65535, got %lld", name,
                         (long long)port);
    ret->port = (uint16_t)port;
    return read_address(text, &ret->address, &bits) ||
           ottl_fail(call, "invalid %s IP: %.*s", name, (int)text.size, (const char *)text.data);
}

static struct slice address_bytes(const struct address *address)
{
    return is_v4(address) ? slice_of(address->bytes + V4_AT, V4_BYTES)
                          : slice_of(address->bytes, V6_BYTES);
}

/* Whether a comes first: the shorter address, the lesser one, the lesser port. */
static bool comes_first(const struct endpoint *a, const struct endpoint *b)
{
    struct slice left = address_bytes(&a->address);
    struct slice right = address_bytes(&b->address);
    if (left.size != right.size)
        return left.size < right.size;
    int order = slice_compare(left, right);
    return order != 0 ? order < 0 : a->port <= b->port;
}

static uint8_t *put(uint8_t *at, struct slice bytes)
{
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

static uint8_t *put_16(uint8_t *at, uint16_t number)
{
    *at++ = (uint8_t)(number >> BITS);
    *at++ = (uint8_t)number;
    return at;
}

static bool find_protocol(struct slice name, uint8_t *ret)
{
    static const struct {
        const char *name;
        uint8_t number;
    } protocols[] = {{"ICMP", 1},  {"TCP", 6},    {"UDP", 17},
                     {"RSVP", 46}, {"ICMP6", 58}, {"SCTP", 132}};
    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
        if (slice_equal_text(name, protocols[i].name)) {
            *ret = protocols[i].number;
            return true;
        }
    return false;
}

static bool community_id(struct ottl_call *call, struct ottl_value *ret)
{
    enum { SOURCE = 0, DESTINATION = 2, PROTOCOL = 4, SEED, VERSION_BYTES = 2, AROUND = 8 };
    struct endpoint first, second;
    struct slice name = slice_of_text("TCP");
    uint8_t protocol;
    int64_t seed = 0;
    if (!get_endpoint(call, SOURCE, "source", &first) ||
        !get_endpoint(call, DESTINATION, "destination", &second) ||
        (ottl_has(call, PROTOCOL) && !ottl_get_string(call, PROTOCOL, &name)))
        return false;
    if (!find_protocol(name, &protocol))
        return ottl_fail(call, "unsupported protocol: %.*s", (int)name.size,
                         (const char *)name.data);
    if (ottl_has(call, SEED) && !ottl_get_int(call, SEED, &seed))
        return false;
    if (seed < 0 || seed > UINT16_MAX)
        return ottl_fail(call, "seed must be between 0 and 65535, got %lld", (long long)seed);
    if (!comes_first(&first, &second)) {
        struct endpoint moved = first;
        first = second;
        second = moved;
    }
    uint8_t flow[2 * V6_BYTES + AROUND];
    uint8_t digest[DIGEST_SHA1_BYTES];
    uint8_t *at = put_16(flow, (uint16_t)seed);
    at = put(put(at, address_bytes(&first.address)), address_bytes(&second.address));
    *at++ = protocol;
    *at++ = 0;
    at = put_16(put_16(at, first.port), second.port);
    digest_sha1(slice_of(flow, (size_t)(at - flow)), digest);
    char *room = ottl_alloc(call, VERSION_BYTES + base64_size(sizeof(digest)));
    if (room == NULL)
        return false;
    memcpy(room, "1:", VERSION_BYTES);
    base64_encode(slice_of(digest, sizeof(digest)), room + VERSION_BYTES);
    *ret = ottl_string(slice_of(room, VERSION_BYTES + base64_size(sizeof(digest))));
    return true;
}

static bool prepare_community_id(const struct ottl_preparation *preparation, void **ret_state,
                                 struct error *error)
{
    (void)preparation;
    *ret_state = NULL;
    return digest_prepare(error);
}

static const struct ottl_parameter community_id_parameters[] = {
    {"SourceIP", OTTL_STRINGS_ONLY, false, false},
    {"SourcePort", OTTL_INTS_ONLY, false, false},
    {"DestinationIP", OTTL_STRINGS_ONLY, false, false},
    {"DestinationPort", OTTL_INTS_ONLY, false, false},
    {"Protocol", OTTL_STRINGS_ONLY, true, false},
    {"Seed", OTTL_INTS_ONLY, true, false},
    {.name = NULL}};

const struct ottl_function ottl_network_functions[] = {
    {.name = "IsInCIDR",
     .parameters = is_in_cidr_parameters,
     .evaluate = is_in_cidr,
     .prepare = prepare_is_in_cidr},
    {.name = "CommunityID",
     .parameters = community_id_parameters,
     .evaluate = community_id,
     .prepare = prepare_community_id},
    {.name = NULL},
};
