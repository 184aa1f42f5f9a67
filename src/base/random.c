/* SPDX-License-Identifier: Apache-2.0 */
/* splitmix64 per thread. */
#include "src/base/random.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/random.h>

static _Thread_local uint64_t state;
static _Atomic double fixed = -1;

double random_uniform(void)
{
    double value = atomic_load_explicit(&fixed, memory_order_relaxed);
    if (value >= 0)
        return value;
    if (state == 0 && getrandom(&state, sizeof(state), 0) != sizeof(state))
        state = (uint64_t)(uintptr_t)&state;
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

void random_fix(double value)
{
    assert(value < 1);
    atomic_store(&fixed, value);
}

uint64_t random_seed(void)
{
    static _Atomic uint64_t seed;
    uint64_t known = atomic_load_explicit(&seed, memory_order_relaxed);
    uint64_t made = 0;
    if (known != 0)
        return known;
    if (getrandom(&made, sizeof(made), 0) != sizeof(made) || made == 0)
        made = (uint64_t)(uintptr_t)&made;
    return atomic_compare_exchange_strong(&seed, &known, made) ? made : known;
}
