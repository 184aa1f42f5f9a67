/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted list that is thinned out when it is full. Plain data; its user locks. */
#include "src/journal/journal_ages.h"

#include <assert.h>
#include <string.h>

#include "src/base/clock.h"

#define SPACING_MIN_NS ((uint64_t)100 * NS_PER_MS)
enum { MARKS_FEW = JOURNAL_MARKS_MAX / 16, MARKS_ENOUGH = JOURNAL_MARKS_MAX * 3 / 4 };

void journal_ages_init(struct journal_ages *ages)
{
    ages->count = 0;
    ages->spacing_ns = SPACING_MIN_NS;
}

/* Marks at or before the id. */
static size_t count_until(const struct journal_ages *ages, uint64_t id)
{
    size_t low = 0;
    size_t high = ages->count;
    if (high > 0 && ages->marks[high - 1].id <= id)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ages->marks[middle].id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The clock may have been set back. */
static uint64_t between(const struct journal_mark *earlier, uint64_t wall_ns)
{
    return wall_ns > earlier->wall_ns ? wall_ns - earlier->wall_ns : 0;
}

/* The first mark stays: it tells how old the oldest record is. */
static void thin_out(struct journal_ages *ages)
{
    while (ages->count > MARKS_ENOUGH && ages->spacing_ns < UINT64_MAX / 2) {
        size_t kept = 1;
        ages->spacing_ns *= 2;
        for (size_t i = 1; i < ages->count; i++)
            if (between(&ages->marks[kept - 1], ages->marks[i].wall_ns) >= ages->spacing_ns)
                ages->marks[kept++] = ages->marks[i];
        ages->count = kept;
    }
}

void journal_ages_note(struct journal_ages *ages, uint64_t id, uint64_t wall_ns)
{
    size_t place = count_until(ages, id);
    if (place > 0 && (ages->marks[place - 1].id == id ||
                      between(&ages->marks[place - 1], wall_ns) < ages->spacing_ns))
        return;
    if (ages->count == JOURNAL_MARKS_MAX) {
        thin_out(ages);
        place = count_until(ages, id);
    }
    assert(ages->count < JOURNAL_MARKS_MAX);
    memmove(ages->marks + place + 1, ages->marks + place,
            (ages->count - place) * sizeof(ages->marks[0]));
    ages->marks[place] = (struct journal_mark){.id = id, .wall_ns = wall_ns};
    ages->count++;
}

void journal_ages_forget(struct journal_ages *ages, uint64_t id)
{
    size_t count = count_until(ages, id);
    if (count < 2)
        return;
    ages->count -= count - 1;
    memmove(ages->marks, ages->marks + count - 1, ages->count * sizeof(ages->marks[0]));
    if (ages->count < MARKS_FEW)
        ages->spacing_ns = SPACING_MIN_NS;
}

uint64_t journal_ages_find(const struct journal_ages *ages, uint64_t id)
{
    size_t count = count_until(ages, id);
    if (ages->count == 0)
        return 0;
    return ages->marks[count > 0 ? count - 1 : 0].wall_ns;
}
