/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts by digest. A flood of wrong passwords costs each lane AUTH_CHECK_SHARE of its time and
 * no more; who was let in before does not notice. On the owner's lane. */
#include "extensions/auth_verdicts.h"

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

/* The last few, in a circle. */
struct circle {
    struct digest *digests;
    size_t capacity;
    size_t count;
    size_t next;
};

struct auth_verdicts {
    uint8_t key[KEY_BYTES]; /* of this process: digests tell nothing outside of it */
    struct circle right;
    struct circle wrong;
    int64_t time_left_ns; /* for checks; below 0 when the last one took long */
    uint64_t counted_ns;  /* until then time was given */
};

static struct circle circle_create(size_t capacity)
{
    assert(capacity > 0);
    return (struct circle){.digests = mem_alloc(capacity * sizeof(struct digest)),
                           .capacity = capacity};
}

static bool circle_has(const struct circle *circle, const struct digest *digest)
{
    assert(circle->count <= circle->capacity);
    for (size_t i = 0; i < circle->count; i++)
        if (memcmp(&circle->digests[i], digest, sizeof(*digest)) == 0)
            return true;
    return false;
}

static void circle_add(struct circle *circle, const struct digest *digest)
{
    assert(circle->next < circle->capacity);
    circle->digests[circle->next] = *digest;
    circle->next = (circle->next + 1) % circle->capacity;
    if (circle->count < circle->capacity)
        circle->count++;
}

static struct digest digest_of(const struct auth_verdicts *verdicts, struct slice credentials)
{
    struct digest digest;
    assert(credentials.data != NULL);
    uint8_t *keyed = mem_alloc(KEY_BYTES + credentials.size);
    memcpy(keyed, verdicts->key, KEY_BYTES);
    memcpy(keyed + KEY_BYTES, credentials.data, credentials.size);
    digest_sha256(slice_of(keyed, KEY_BYTES + credentials.size), digest.bytes);
    explicit_bzero(keyed, KEY_BYTES + credentials.size);
    mem_free(keyed);
    return digest;
}

struct auth_verdicts *auth_verdicts_create(void)
{
    struct auth_verdicts *verdicts = mem_zalloc(sizeof(*verdicts));
    ssize_t got = getrandom(verdicts->key, KEY_BYTES, 0);
    assert(got == KEY_BYTES);
    (void)got;
    verdicts->right = circle_create(AUTH_RIGHT_KEPT_MAX);
    verdicts->wrong = circle_create(AUTH_WRONG_KEPT_MAX);
    verdicts->time_left_ns = AUTH_CHECK_BURST_NS;
    verdicts->counted_ns = clock_now_ns();
    return verdicts;
}

void auth_verdicts_destroy(struct auth_verdicts *verdicts)
{
    if (verdicts == NULL)
        return;
    explicit_bzero(verdicts->key, KEY_BYTES);
    mem_free(verdicts->right.digests);
    mem_free(verdicts->wrong.digests);
    mem_free(verdicts);
}

enum auth_memory auth_verdicts_find(struct auth_verdicts *verdicts, struct slice credentials)
{
    struct digest digest = digest_of(verdicts, credentials);
    assert(verdicts->right.count <= verdicts->right.capacity);
    if (circle_has(&verdicts->right, &digest))
        return AUTH_WAS_RIGHT;
    return circle_has(&verdicts->wrong, &digest) ? AUTH_WAS_WRONG : AUTH_UNKNOWN;
}

void auth_verdicts_keep(struct auth_verdicts *verdicts, struct slice credentials, bool is_right)
{
    struct digest digest = digest_of(verdicts, credentials);
    assert(!circle_has(&verdicts->right, &digest));
    circle_add(is_right ? &verdicts->right : &verdicts->wrong, &digest);
}

void auth_verdicts_clear(struct auth_verdicts *verdicts)
{
    assert(verdicts != NULL);
    verdicts->right.count = verdicts->right.next = 0;
    verdicts->wrong.count = verdicts->wrong.next = 0;
}

bool auth_verdicts_may_check(struct auth_verdicts *verdicts)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t gained_ns = (now_ns - verdicts->counted_ns) / AUTH_CHECK_SHARE;
    assert(now_ns >= verdicts->counted_ns);
    verdicts->counted_ns = now_ns;
    if (gained_ns > (uint64_t)AUTH_CHECK_BURST_NS)
        gained_ns = AUTH_CHECK_BURST_NS;
    verdicts->time_left_ns += (int64_t)gained_ns;
    if (verdicts->time_left_ns > AUTH_CHECK_BURST_NS)
        verdicts->time_left_ns = AUTH_CHECK_BURST_NS;
    return verdicts->time_left_ns > 0;
}

void auth_verdicts_spend(struct auth_verdicts *verdicts, uint64_t spent_ns)
{
    assert(spent_ns < INT64_MAX);
    verdicts->time_left_ns -= (int64_t)spent_ns;
}
