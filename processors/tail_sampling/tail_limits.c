/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets and counts, one lock for all: it is taken once per trace and limit. Any lane. */
#include "processors/tail_sampling/tail_limits.h"

#include <assert.h>
#include <pthread.h>

#include "src/base/clock.h"
#include "src/base/mem.h"

struct slot {
    double per_second;
    double tokens;
    int64_t burst;
    uint64_t last_ns; /* 0: nothing was taken yet */
    uint64_t number;  /* a count, or a second */
};

struct tail_limits {
    pthread_mutex_t lock;
    size_t count;
    struct slot slots[];
};

struct tail_limits *tail_limits_create(size_t slots)
{
    struct tail_limits *limits = mem_zalloc(sizeof(*limits) + slots * sizeof(limits->slots[0]));
    pthread_mutex_init(&limits->lock, NULL);
    limits->count = slots;
    return limits;
}

void tail_limits_destroy(struct tail_limits *limits)
{
    if (limits == NULL)
        return;
    pthread_mutex_destroy(&limits->lock);
    mem_free(limits);
}

void tail_limits_set(struct tail_limits *limits, size_t slot, int64_t per_second, int64_t burst)
{
    assert(slot < limits->count);
    limits->slots[slot].per_second = (double)per_second;
    limits->slots[slot].burst = burst;
    limits->slots[slot].tokens = (double)burst;
}

bool tail_limits_allow(struct tail_limits *limits, size_t slot, uint64_t now_ns, uint64_t tokens)
{
    assert(slot < limits->count);
    struct slot *bucket = &limits->slots[slot];
    pthread_mutex_lock(&limits->lock);
    double left = bucket->tokens;
    if (now_ns > bucket->last_ns && bucket->per_second > 0) {
        uint64_t passed_ns = now_ns - bucket->last_ns;
        double seconds = (double)(passed_ns / NS_PER_S) + (double)(passed_ns % NS_PER_S) / 1e9;
        left += seconds * bucket->per_second;
    }
    if (left > (double)bucket->burst)
        left = (double)bucket->burst;
    left -= (double)tokens;
    /* A debt that is paid within a nanosecond is none, as there. */
    bool is_covered = left >= 0 || (bucket->per_second > 0 && -left / bucket->per_second * 1e9 < 1);
    bool allows = bucket->burst >= 0 && tokens <= (uint64_t)bucket->burst && is_covered;
    if (allows) {
        bucket->tokens = left;
        bucket->last_ns = now_ns;
    }
    pthread_mutex_unlock(&limits->lock);
    return allows;
}

void tail_limits_enter_second(struct tail_limits *limits, size_t slot, size_t first_count,
                              size_t counts, uint64_t second)
{
    assert(slot < limits->count);
    assert(first_count + counts <= limits->count);
    pthread_mutex_lock(&limits->lock);
    if (limits->slots[slot].number != second) {
        limits->slots[slot].number = second;
        for (size_t i = 0; i < counts; i++)
            limits->slots[first_count + i].number = 0;
    }
    pthread_mutex_unlock(&limits->lock);
}

bool tail_limits_count(struct tail_limits *limits, size_t slot, uint64_t amount, int64_t most)
{
    assert(slot < limits->count);
    pthread_mutex_lock(&limits->lock);
    uint64_t after = limits->slots[slot].number + amount;
    bool fits = most >= 0 && after <= (uint64_t)most;
    if (fits)
        limits->slots[slot].number = after;
    pthread_mutex_unlock(&limits->lock);
    return fits;
}
