/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over two hashes. Runs wherever its owner does. */
#include "receivers/prometheus/series_set.h"

#include "src/base/budget.h"
#include "src/base/mem.h"

#include <assert.h>

enum { CAPACITY_MIN = 16 };

void series_set_init(struct series_set *set, struct budget *budget)
{
    *set = (struct series_set){.budget = budget};
}

void series_set_fini(struct series_set *set)
{
    mem_free(set->entries);
    if (set->budget != NULL && set->capacity > 0)
        budget_return(set->budget, set->capacity * sizeof(*set->entries));
    series_set_init(set, set->budget);
}

void series_set_move(struct series_set *set, struct series_set *from)
{
    assert(set->budget == from->budget);
    series_set_fini(set);
    *set = *from;
    series_set_init(from, set->budget);
}

/* Where it is, or belongs. */
static struct series *place_of(const struct series_set *set, uint64_t written)
{
    size_t mask = set->capacity - 1;
    size_t at = (size_t)written & mask;
    while (set->entries[at].written != 0 && set->entries[at].written != written)
        at = (at + 1) & mask;
    return &set->entries[at];
}

struct series *series_set_find(const struct series_set *set, uint64_t written)
{
    if (set->count == 0)
        return NULL;
    struct series *series = place_of(set, written);
    return series->written != 0 ? series : NULL;
}

static bool grow(struct series_set *set)
{
    struct series_set larger = {
        .budget = set->budget,
        .capacity = set->capacity > 0 ? set->capacity * 2 : CAPACITY_MIN,
        .count = set->count,
    };
    size_t bytes = larger.capacity * sizeof(*larger.entries);
    if (set->budget != NULL && !budget_try_take(set->budget, bytes))
        return false;
    larger.entries = mem_try_zalloc(bytes);
    if (larger.entries == NULL) {
        if (set->budget != NULL)
            budget_return(set->budget, bytes);
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++)
        if (set->entries[i].written != 0)
            *place_of(&larger, set->entries[i].written) = set->entries[i];
    series_set_fini(set);
    *set = larger;
    return true;
}

struct series *series_set_add(struct series_set *set, uint64_t written)
{
    assert(written != 0);
    if (set->count + 1 > set->capacity / 4 * 3 && !grow(set))
        return NULL;
    struct series *series = place_of(set, written);
    assert(series->written == 0);
    series->written = written;
    set->count++;
    return series;
}
