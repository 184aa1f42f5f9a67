/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of cumulative profiles. Pure functions on the owner's thread. */
#include "src/profiles/pprof/pprof_delta.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/arena.h"
#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/profiles/pprof/pprof.h"

enum { ENTRIES_MIN = 64 };

void pprof_delta_init(struct pprof_delta *delta, struct budget *budget)
{
    *delta = (struct pprof_delta){.budget = budget};
}

static size_t table_bytes(const struct pprof_delta *delta)
{
    return delta->capacity * (1 + delta->types_count) * sizeof(uint64_t);
}

void pprof_delta_fini(struct pprof_delta *delta)
{
    if (delta->entries != NULL && delta->budget != NULL)
        budget_return(delta->budget, table_bytes(delta));
    mem_free(delta->entries);
    delta->entries = NULL;
    delta->capacity = 0;
    delta->count = 0;
    delta->has_profile = false;
}

/* The table */

static bool open_table(struct pprof_delta *delta, size_t samples)
{
    delta->capacity = ENTRIES_MIN;
    while (delta->capacity < samples + samples / 2)
        delta->capacity *= 2;
    size_t bytes = table_bytes(delta);
    if (delta->budget != NULL && !budget_try_take(delta->budget, bytes))
        return false;
    delta->entries = mem_try_zalloc(bytes);
    if (delta->entries == NULL && delta->budget != NULL)
        budget_return(delta->budget, bytes);
    return delta->entries != NULL;
}

/* Where that hash is, or belongs. */
static uint64_t *place_of(const struct pprof_delta *delta, uint64_t hash)
{
    size_t stride = 1 + delta->types_count;
    size_t at = (size_t)hash & (delta->capacity - 1);
    while (delta->entries[at * stride] != 0 && delta->entries[at * stride] != hash)
        at = (at + 1) & (delta->capacity - 1);
    return &delta->entries[at * stride];
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > (uint64_t)INT64_MAX - b ? (uint64_t)INT64_MAX : a + b;
}

/* What of it becomes differences */

struct columns {
    size_t places[PPROF_DELTA_TYPES_MAX];
    size_t count;
    uint64_t hash;
};

static struct columns find_columns(const struct pprof *pprof)
{
    static const struct {
        const char *type;
        const char *unit;
    } wanted[] = {{"alloc_objects", "count"},
                  {"alloc_space", "bytes"},
                  {"contentions", "count"},
                  {"delay", "nanoseconds"}};
    struct columns columns = {.count = 0};
    for (size_t i = 0; i < pprof->sample_types_count; i++) {
        struct slice type = pprof->strings[pprof->sample_types[i].type];
        struct slice unit = pprof->strings[pprof->sample_types[i].unit];
        for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++)
            if (columns.count < PPROF_DELTA_TYPES_MAX && slice_equal_text(type, wanted[k].type) &&
                slice_equal_text(unit, wanted[k].unit)) {
                columns.places[columns.count++] = i;
                columns.hash = columns.hash * (sizeof(wanted) / sizeof(wanted[0]) + 1) + k + 1;
                break;
            }
    }
    return columns;
}

/* Hashes. A location is its address, which is the same in each profile of a process; without one,
 * its functions and lines. Each text is hashed once, however many samples have it. */

struct hashes {
    uint64_t *strings;
    uint64_t *locations;
    uint64_t *samples;
};

static uint64_t mix(uint64_t hash, uint64_t more)
{
    const uint64_t both[] = {hash, more};
    return XXH3_64bits(both, sizeof(both));
}

static uint64_t hash_location(const struct pprof *pprof, const struct pprof_location *location,
                              const uint64_t *strings)
{
    uint64_t hash = location->mapping;
    if (location->address != 0)
        return mix(hash, location->address);
    for (size_t i = 0; i < location->lines_count; i++) {
        const struct pprof_line *line = &location->lines[i];
        if (line->function != 0) {
            const struct pprof_function *function = &pprof->functions[line->function - 1];
            hash = mix(mix(hash, strings[function->name]), strings[function->filename]);
        }
        hash = mix(hash, (uint64_t)line->line);
    }
    return hash;
}

static uint64_t hash_sample(const struct pprof_sample *sample, const struct hashes *hashes)
{
    uint64_t hash = sample->locations_count;
    for (size_t i = 0; i < sample->locations_count; i++) {
        uint32_t place = sample->locations[i];
        hash = mix(hash, place != 0 ? hashes->locations[place - 1] : 0);
    }
    for (size_t i = 0; i < sample->labels_count; i++) {
        const struct pprof_label *label = &sample->labels[i];
        hash = mix(mix(hash, hashes->strings[label->key]), hashes->strings[label->text]);
        hash = mix(mix(hash, hashes->strings[label->unit]), (uint64_t)label->number);
    }
    return hash != 0 ? hash : 1;
}

/* False: no memory. */
static bool make_hashes(const struct pprof *pprof, struct arena *arena, struct hashes *hashes)
{
    hashes->strings = arena_try_alloc(arena, pprof->strings_count * sizeof(uint64_t));
    hashes->locations = arena_try_alloc(arena, (pprof->locations_count + 1) * sizeof(uint64_t));
    hashes->samples = arena_try_alloc(arena, (pprof->samples_count + 1) * sizeof(uint64_t));
    if (hashes->strings == NULL || hashes->locations == NULL || hashes->samples == NULL)
        return false;
    for (size_t i = 0; i < pprof->strings_count; i++) {
        struct slice text = pprof->strings[i];
        hashes->strings[i] = XXH3_64bits(text.size > 0 ? (const void *)text.data : "", text.size);
    }
    for (size_t i = 0; i < pprof->locations_count; i++)
        hashes->locations[i] = hash_location(pprof, &pprof->locations[i], hashes->strings);
    for (size_t i = 0; i < pprof->samples_count; i++)
        hashes->samples[i] = hash_sample(&pprof->samples[i], hashes);
    return true;
}

/* Sums the values of the profile, by stack. */
static void fill(struct pprof_delta *next, const struct pprof *pprof, const struct columns *columns,
                 const uint64_t *hashes)
{
    for (size_t i = 0; i < pprof->samples_count; i++) {
        uint64_t *entry = place_of(next, hashes[i]);
        next->count += entry[0] == 0;
        entry[0] = hashes[i];
        for (size_t k = 0; k < columns->count; k++)
            entry[1 + k] =
                add_up(entry[1 + k], (uint64_t)pprof->samples[i].values[columns->places[k]]);
    }
}

/* Counts that fell are those of another process. */
static bool has_fallen(const struct pprof_delta *former, const struct pprof_delta *next)
{
    size_t stride = 1 + next->types_count;
    for (size_t i = 0; i < next->capacity; i++) {
        const uint64_t *entry = &next->entries[i * stride];
        const uint64_t *before = entry[0] != 0 ? place_of(former, entry[0]) : entry;
        for (size_t k = 1; before[0] != 0 && k < stride; k++)
            if (entry[k] < before[k])
                return true;
    }
    return false;
}

/* Gives each sample its values: differences for the first one of a stack, none for its others. Of
 * next, what was given is marked by the sign of its first value. */
static bool edit(const struct pprof_delta *former, struct pprof_delta *next, struct pprof *pprof,
                 const struct columns *columns, const uint64_t *hashes, struct arena *arena)
{
    const uint64_t given = (uint64_t)1 << 63;
    size_t kept = 0;
    for (size_t i = 0; i < pprof->samples_count; i++) {
        struct pprof_sample sample = pprof->samples[i];
        int64_t *values = arena_try_alloc(arena, pprof->sample_types_count * sizeof(*values));
        if (values == NULL)
            return false;
        memcpy(values, sample.values, pprof->sample_types_count * sizeof(*values));
        uint64_t *entry = place_of(next, hashes[i]);
        const uint64_t *before = former->has_profile ? place_of(former, hashes[i]) : NULL;
        for (size_t k = 0; k < columns->count; k++) {
            bool is_first = (entry[1] & given) == 0 && former->has_profile;
            uint64_t base = before != NULL && before[0] != 0 ? before[1 + k] : 0;
            values[columns->places[k]] = is_first ? (int64_t)(entry[1 + k] - base) : 0;
        }
        entry[1] |= given;
        bool has_value = false;
        for (size_t k = 0; k < pprof->sample_types_count; k++)
            has_value |= values[k] != 0;
        sample.values = values;
        if (has_value)
            pprof->samples[kept++] = sample;
    }
    pprof->samples_count = kept;
    for (size_t i = 0; i < next->capacity; i++)
        next->entries[i * (1 + next->types_count) + 1] &= ~given;
    return true;
}

static void set_times(const struct pprof_delta *former, struct pprof *pprof)
{
    if (!former->has_profile || pprof->time_ns <= former->time_ns)
        return;
    pprof->duration_ns = pprof->time_ns - former->time_ns;
    pprof->time_ns = former->time_ns;
}

enum pprof_delta_result pprof_delta_take(struct pprof_delta *delta, struct pprof *pprof,
                                         struct arena *arena)
{
    struct columns columns = find_columns(pprof);
    if (columns.count == 0)
        return PPROF_DELTA_TAKEN;
    struct pprof_delta next = {
        .budget = delta->budget,
        .types_count = columns.count,
        .types_hash = columns.hash,
        .time_ns = pprof->time_ns,
        .has_profile = true,
    };
    struct hashes made;
    bool is_hashed = make_hashes(pprof, arena, &made);
    const uint64_t *hashes = made.samples;
    if (!is_hashed || pprof->samples_count > PPROF_DELTA_STACKS_MAX ||
        !open_table(&next, pprof->samples_count)) {
        pprof_delta_fini(delta);
        return PPROF_DELTA_NO_MEMORY;
    }
    fill(&next, pprof, &columns, hashes);
    if (delta->has_profile && (delta->types_hash != next.types_hash || has_fallen(delta, &next)))
        pprof_delta_fini(delta);
    bool has_former = delta->has_profile;
    bool is_edited = edit(delta, &next, pprof, &columns, hashes, arena);
    set_times(delta, pprof);
    pprof_delta_fini(delta);
    *delta = next;
    if (!is_edited) {
        pprof_delta_fini(delta);
        return PPROF_DELTA_NO_MEMORY;
    }
    return has_former ? PPROF_DELTA_TAKEN : PPROF_DELTA_FIRST;
}
