/* SPDX-License-Identifier: Apache-2.0 */
/* An open table of hashes; slots of older epochs count as empty. Any thread. */
#include "src/join/value_cap.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/join/join_limits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { EPOCH_MASK = 0xff };

bool value_cap_init(struct value_cap *cap, uint64_t most)
{
    assert(most > 0 && most <= JOIN_VALUES_MAX);
    *cap = (struct value_cap){.most = most, .slots_count = 8};
    while (cap->slots_count < 2 * most)
        cap->slots_count *= 2;
    cap->seed = (uint64_t)(random_uniform() * 0x1p53);
    cap->slots = mem_try_zalloc(cap->slots_count * sizeof(cap->slots[0]));
    return cap->slots != NULL;
}

void value_cap_fini(struct value_cap *cap)
{
    mem_free((void *)(uintptr_t)cap->slots);
    cap->slots = NULL;
}

/* Counts one more value of the epoch, if there is room; the first one resets the count. */
static bool take_room(struct value_cap *cap, uint32_t epoch)
{
    uint64_t state = atomic_load(&cap->state);
    uint64_t next;
    do {
        bool is_old = (uint32_t)(state >> 32) != epoch;
        uint64_t count = is_old ? 0 : (uint32_t)state;
        if (count >= cap->most)
            return false;
        next = (uint64_t)epoch << 32 | (count + 1);
    } while (!atomic_compare_exchange_weak(&cap->state, &state, next));
    return true;
}

bool value_cap_admits(struct value_cap *cap, struct slice value, uint32_t epoch)
{
    uint64_t hash = XXH3_64bits_withSeed(value.data, value.size, cap->seed);
    uint64_t wanted = (hash & ~(uint64_t)EPOCH_MASK) | ((epoch + 1) & EPOCH_MASK);
    uint64_t mask = cap->slots_count - 1;
    bool has_room = false;
    if (wanted == 0)
        wanted = EPOCH_MASK + 1;
    for (uint64_t i = 0; i <= mask; i++) {
        _Atomic uint64_t *slot = &cap->slots[(hash / (EPOCH_MASK + 1) + i) & mask];
        uint64_t found = atomic_load(slot);
        if (found == wanted)
            return true;
        if (found != 0 && (found & EPOCH_MASK) == (wanted & EPOCH_MASK))
            continue;
        if (!has_room && !take_room(cap, epoch))
            return false;
        has_room = true;
        if (atomic_compare_exchange_strong(slot, &found, wanted) || found == wanted)
            return true;
    }
    return false;
}
