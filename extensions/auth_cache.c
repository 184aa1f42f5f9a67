/* SPDX-License-Identifier: Apache-2.0 */
/* Two rings of digests. A flood of wrong passwords costs each lane's helper AUTH_CHECK_SHARE of its
 * time at most; clients whose credentials are cached are not affected. Runs on the owner's lane. */
#include "extensions/auth_cache.h"

#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/mem.h"
#include "src/listen/authenticator.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>

enum { KEY_BYTES = 32 };

struct digest {
    uint8_t bytes[DIGEST_SHA256_BYTES];
};

/* The newest ones. */
struct digest_ring {
    struct digest *digests;
    size_t capacity;
    size_t count;
    size_t next;
};

struct auth_cache {
    uint8_t key[KEY_BYTES]; /* of this process, so digests are useless elsewhere */
    struct digest_ring right;
    struct digest_ring wrong;
    int64_t time_left_ns; /* for checks; negative after one that took long */
    uint64_t counted_ns;  /* when time_left_ns was last increased */
};

static struct digest_ring digest_ring_create(size_t capacity)
{
    return (struct digest_ring){.digests = mem_alloc(capacity * sizeof(struct digest)),
                                .capacity = capacity};
}

static bool digest_ring_has(const struct digest_ring *ring, const struct digest *digest)
{
    assert(ring->count <= ring->capacity);
    for (size_t i = 0; i < ring->count; i++)
        if (memcmp(&ring->digests[i], digest, sizeof(*digest)) == 0)
            return true;
    return false;
}

static struct digest digest_of(const struct auth_cache *cache, struct slice credentials)
{
    struct digest digest;
    uint8_t *keyed = mem_alloc(KEY_BYTES + credentials.size);
    memcpy(keyed, cache->key, KEY_BYTES);
    memcpy(keyed + KEY_BYTES, credentials.data, credentials.size);
    digest_sha256(slice_of(keyed, KEY_BYTES + credentials.size), digest.bytes);
    explicit_bzero(keyed, KEY_BYTES + credentials.size);
    mem_free(keyed);
    return digest;
}

struct auth_cache *auth_cache_create(void)
{
    struct auth_cache *cache = mem_zalloc(sizeof(*cache));
    ssize_t got = getrandom(cache->key, KEY_BYTES, 0);
    assert(got == KEY_BYTES);
    cache->right = digest_ring_create(AUTH_RIGHT_KEPT_MAX);
    cache->wrong = digest_ring_create(AUTH_WRONG_KEPT_MAX);
    cache->time_left_ns = AUTH_CHECK_BURST_NS;
    cache->counted_ns = clock_now_ns();
    return cache;
}

void auth_cache_destroy(struct auth_cache *cache)
{
    if (cache == NULL)
        return;
    explicit_bzero(cache->key, KEY_BYTES);
    mem_free(cache->right.digests);
    mem_free(cache->wrong.digests);
    mem_free(cache);
}

enum auth_cached auth_cache_find(struct auth_cache *cache, struct slice credentials)
{
    struct digest digest = digest_of(cache, credentials);
    if (digest_ring_has(&cache->right, &digest))
        return AUTH_WAS_RIGHT;
    return digest_ring_has(&cache->wrong, &digest) ? AUTH_WAS_WRONG : AUTH_UNKNOWN;
}

void auth_cache_add(struct auth_cache *cache, struct slice credentials, bool is_right)
{
    struct digest digest = digest_of(cache, credentials);
    assert(!digest_ring_has(&cache->right, &digest));
    struct digest_ring *ring = is_right ? &cache->right : &cache->wrong;
    ring->digests[ring->next] = digest;
    ring->next = (ring->next + 1) % ring->capacity;
    if (ring->count < ring->capacity)
        ring->count++;
}

void auth_cache_clear(struct auth_cache *cache)
{
    cache->right.count = cache->right.next = 0;
    cache->wrong.count = cache->wrong.next = 0;
}

bool auth_cache_may_check(struct auth_cache *cache, uint64_t under_way_ns)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t gained_ns = (now_ns - cache->counted_ns) / AUTH_CHECK_SHARE;
    assert(now_ns >= cache->counted_ns);
    cache->counted_ns = now_ns;
    if (gained_ns > (uint64_t)AUTH_CHECK_BURST_NS)
        gained_ns = AUTH_CHECK_BURST_NS;
    cache->time_left_ns += (int64_t)gained_ns;
    if (cache->time_left_ns > AUTH_CHECK_BURST_NS)
        cache->time_left_ns = AUTH_CHECK_BURST_NS;
    return cache->time_left_ns > 0 && (uint64_t)cache->time_left_ns > under_way_ns;
}

void auth_cache_spend(struct auth_cache *cache, uint64_t spent_ns)
{
    assert(spent_ns < INT64_MAX);
    cache->time_left_ns -= (int64_t)spent_ns;
}
