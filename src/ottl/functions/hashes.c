/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of strings. Runs on the processor's thread. */
#include "src/base/digest.h"
#include "src/base/hex.h"
#include "src/ottl/functions/tables.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool prepare_digest(const struct ottl_preparation *preparation, void **ret_state,
                           struct error *error)
{
    (void)preparation;
    *ret_state = NULL;
    return digest_prepare(error);
}

/* As hexadecimal digits. */
static bool give_hex(struct ottl_call *call, const void *bytes, size_t size, struct ottl_value *ret)
{
    uint8_t *room = ottl_alloc(call, 2 * size);
    if (room == NULL)
        return false;
    *ret = ottl_string(hex_write(bytes, size, room));
    return true;
}

static bool md5(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    uint8_t digest[DIGEST_MD5_BYTES];
    if (!ottl_get_string(call, 0, &text))
        return false;
    digest_md5(text, digest);
    return give_hex(call, digest, sizeof(digest), ret);
}

static bool sha1(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    uint8_t digest[DIGEST_SHA1_BYTES];
    if (!ottl_get_string(call, 0, &text))
        return false;
    digest_sha1(text, digest);
    return give_hex(call, digest, sizeof(digest), ret);
}

static bool sha256(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    uint8_t digest[DIGEST_SHA256_BYTES];
    if (!ottl_get_string(call, 0, &text))
        return false;
    digest_sha256(text, digest);
    return give_hex(call, digest, sizeof(digest), ret);
}

static bool sha512(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    uint8_t digest[DIGEST_SHA512_BYTES];
    if (!ottl_get_string(call, 0, &text))
        return false;
    digest_sha512(text, digest);
    return give_hex(call, digest, sizeof(digest), ret);
}

/* FNV-1a of 64 bits. */
static bool fnv(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    uint64_t hash = 0xcbf29ce484222325;
    if (!ottl_get_string(call, 0, &text))
        return false;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ text.data[i]) * 0x100000001b3;
    *ret = ottl_int((int64_t)hash);
    return true;
}

static bool xxh3(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    XXH64_canonical_t canonical;
    if (!ottl_get_string(call, 0, &text))
        return false;
    XXH64_canonicalFromHash(&canonical,
                            XXH3_64bits(text.size > 0 ? (const void *)text.data : "", text.size));
    return give_hex(call, canonical.digest, sizeof(canonical.digest), ret);
}

static bool xxh128(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    XXH128_canonical_t canonical;
    if (!ottl_get_string(call, 0, &text))
        return false;
    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits(text.size > 0 ? (const void *)text.data : "", text.size));
    return give_hex(call, canonical.digest, sizeof(canonical.digest), ret);
}

/* MurmurHash3 (x86 of 32 bits, x64 of 128), little-endian, seed 0. */

static uint32_t rotate32(uint32_t value, unsigned by)
{
    return value << by | value >> (32 - by);
}

static uint64_t rotate64(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

static uint64_t load(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static void store(uint8_t *bytes, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t mix32(uint32_t block)
{
    return rotate32(block * 0xcc9e2d51, 15) * 0x1b873593;
}

static bool murmur3_hash(struct ottl_call *call, struct ottl_value *ret)
{
    enum { BLOCK = 4 };
    struct slice text;
    uint32_t hash = 0;
    uint8_t digest[BLOCK];
    size_t at = 0;
    if (!ottl_get_string(call, 0, &text))
        return false;
    for (; at + BLOCK <= text.size; at += BLOCK)
        hash = rotate32(hash ^ mix32((uint32_t)load(text.data + at, BLOCK)), 13) * 5 + 0xe6546b64;
    if (at < text.size)
        hash ^= mix32((uint32_t)load(text.data + at, text.size - at));
    hash ^= (uint32_t)text.size;
    hash = (hash ^ hash >> 16) * 0x85ebca6b;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35;
    store(digest, hash ^ hash >> 16, sizeof(digest));
    return give_hex(call, digest, sizeof(digest), ret);
}

static uint64_t finish64(uint64_t hash)
{
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
    return hash ^ hash >> 33;
}

static bool murmur3_hash128(struct ottl_call *call, struct ottl_value *ret)
{
    enum { HALF = 8, BLOCK = 16 };
    const uint64_t first = 0x87c37b91114253d5;
    const uint64_t second = 0x4cf5ad432745937f;
    struct slice text;
    uint64_t low = 0;
    uint64_t high = 0;
    uint8_t digest[BLOCK];
    size_t at = 0;
    if (!ottl_get_string(call, 0, &text))
        return false;
    for (; at + BLOCK <= text.size; at += BLOCK) {
        low ^= rotate64(load(text.data + at, HALF) * first, 31) * second;
        low = (rotate64(low, 27) + high) * 5 + 0x52dce729;
        high ^= rotate64(load(text.data + at + HALF, HALF) * second, 33) * first;
        high = (rotate64(high, 31) + low) * 5 + 0x38495ab5;
    }
    size_t rest = text.size - at;
    if (rest > HALF)
        high ^= rotate64(load(text.data + at + HALF, rest - HALF) * second, 33) * first;
    if (rest > 0)
        low ^= rotate64(load(text.data + at, rest < HALF ? rest : HALF) * first, 31) * second;
    low ^= text.size;
    high ^= text.size;
    low += high;
    high += low;
    low = finish64(low);
    high = finish64(high);
    low += high;
    store(digest, low, HALF);
    store(digest + HALF, high + low, HALF);
    return give_hex(call, digest, sizeof(digest), ret);
}

static const struct ottl_parameter one_string[] = {{"Target", OTTL_STRINGS_ONLY, false, false},
                                                   {.name = NULL}};

const struct ottl_function ottl_hash_functions[] = {
    {.name = "MD5", .parameters = one_string, .evaluate = md5, .prepare = prepare_digest},
    {.name = "SHA1", .parameters = one_string, .evaluate = sha1, .prepare = prepare_digest},
    {.name = "SHA256", .parameters = one_string, .evaluate = sha256, .prepare = prepare_digest},
    {.name = "SHA512", .parameters = one_string, .evaluate = sha512, .prepare = prepare_digest},
    {.name = "FNV", .parameters = one_string, .evaluate = fnv},
    {.name = "XXH3", .parameters = one_string, .evaluate = xxh3},
    {.name = "XXH128", .parameters = one_string, .evaluate = xxh128},
    {.name = "Murmur3Hash", .parameters = one_string, .evaluate = murmur3_hash},
    {.name = "Murmur3Hash128", .parameters = one_string, .evaluate = murmur3_hash128},
    {.name = NULL},
};
