/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a trace's id for tables in memory. Clients choose ids: with a seed of the table's own
 * they cannot choose ones that collide. Any thread. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "src/base/random.h"

struct tail_seed {
    uint64_t halves[2];
};

static inline struct tail_seed tail_seed_make(void)
{
    /* Dense ones, with any random number: a factor with few bits would leave ids as they are. */
    struct tail_seed seed = {{UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93)}};
    for (unsigned i = 0; i < 2; i++)
        seed.halves[i] ^= (uint64_t)(random_uniform() * 0x1p53) << 8;
    return seed;
}

/* id: 16 bytes. */
static inline uint64_t tail_hash(const struct tail_seed *seed, const uint8_t *id)
{
    uint64_t halves[2];
    memcpy(halves, id, sizeof(halves));
    const unsigned __int128 product =
        (unsigned __int128)(halves[0] ^ seed->halves[0]) * (halves[1] ^ seed->halves[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
