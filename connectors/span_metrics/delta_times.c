/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the owner's lane. */
#include "connectors/span_metrics/delta_times.h"

#include <stddef.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

struct delta_time {
    struct text_hash key;
    uint64_t wall_ns;
    struct delta_time *newer;
    struct delta_time *older;
};

/* With its entry in the table. */
enum { DELTA_TIME_BYTES = sizeof(struct delta_time) + 32 };

void delta_times_init(struct delta_times *times, uint64_t max, struct budget *budget)
{
    *times = (struct delta_times){.max = max, .budget = budget};
}

static struct delta_time *find(const struct delta_times *times, struct text_hash key)
{
    size_t at = 0;
    struct delta_time *time;
    do
        time = hash_table_next(&times->table, key.low, &at);
    while (time != NULL && time->key.high != key.high);
    return time;
}

static void leave(struct delta_times *times, struct delta_time *time)
{
    *(time->newer != NULL ? &time->newer->older : &times->newest) = time->older;
    *(time->older != NULL ? &time->older->newer : &times->oldest) = time->newer;
}

static void enter(struct delta_times *times, struct delta_time *time)
{
    time->newer = NULL;
    time->older = times->newest;
    *(times->newest != NULL ? &times->newest->newer : &times->oldest) = time;
    times->newest = time;
}

static void forget(struct delta_times *times, struct delta_time *time)
{
    leave(times, time);
    hash_table_remove(&times->table, time->key.low, time);
    mem_free(time);
    if (times->budget != NULL)
        budget_return(times->budget, DELTA_TIME_BYTES);
}

void delta_times_fini(struct delta_times *times)
{
    while (times->oldest != NULL)
        forget(times, times->oldest);
    hash_table_clear(&times->table);
}

uint64_t delta_times_get(const struct delta_times *times, struct text_hash key)
{
    const struct delta_time *time = find(times, key);
    return time != NULL ? time->wall_ns : 0;
}

void delta_times_set(struct delta_times *times, struct text_hash key, uint64_t wall_ns)
{
    struct delta_time *time = find(times, key);
    if (time != NULL) {
        leave(times, time);
    } else {
        while (times->table.count >= times->max)
            forget(times, times->oldest);
        if (times->budget != NULL && !budget_try_take(times->budget, DELTA_TIME_BYTES))
            return;
        time = mem_try_alloc(sizeof(*time));
        if (time != NULL)
            *time = (struct delta_time){.key = key};
        if (time == NULL || !hash_table_add(&times->table, key.low, time)) {
            mem_free(time);
            if (times->budget != NULL)
                budget_return(times->budget, DELTA_TIME_BYTES);
            return;
        }
    }
    time->wall_ns = wall_ns;
    enter(times, time);
}
