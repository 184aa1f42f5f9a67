/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles dimensions. Main thread. */
#include "connectors/span_metrics/dimensions.h"

#include <assert.h>
#include <string.h>

#include "connectors/span_metrics/name_glob.h"
#include "connectors/span_metrics/span_metrics_config.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/otlp/value.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct text_hash text_hash_of(uint64_t seed, struct slice text)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(text.data, text.size, seed);
    return (struct text_hash){hash.low64, hash.high64};
}

static size_t intern(struct dimensions *dimensions, const char *name)
{
    struct slice text = slice_of_text(name);
    size_t index = dimensions_find(dimensions, text);
    if (index != NAME_NONE)
        return index;
    size_t *last = &dimensions->last[name_place(text)];
    index = dimensions->names_count++;
    dimensions->names[index] =
        (struct dimension_name){.name = text, .tail = name_tail(text), .before = *last};
    dimensions->size_bits |= name_size_bit(text);
    *last = index;
    return index;
}

static void compile(struct dimensions *dimensions, struct dimension_set *set,
                    const struct config_sections *sections)
{
    const struct dimension_config *configs = sections->items;
    set->items = mem_alloc(sections->count * sizeof(set->items[0]));
    set->globs = (struct pattern **)mem_alloc(sections->count * sizeof(struct pattern *));
    for (size_t i = 0; i < sections->count; i++) {
        const struct dimension_config *config = &configs[i];
        struct error error;
        if (config->glob[0] != '\0') {
            struct pattern *glob = name_glob_create(config->glob, &error);
            assert(glob != NULL);
            set->globs[set->globs_count++] = glob;
            dimensions->has_globs = true;
            dimensions->size_bits = UINT64_MAX;
            continue;
        }
        struct dimension *dimension = &set->items[set->count++];
        size_t name = intern(dimensions, config->name);
        assert(name < DIMENSION_BY_GLOB);
        dimension->standard =
            (struct span_label){.key = dimensions->names[name].name, .name = name};
        if (config->standard != NULL && config->standard->type == CONFIG_VALUE_TEXT)
            dimension->standard.value = value_from_config(config->standard);
    }
}

struct dimensions *dimensions_create(const struct span_metrics_config *config)
{
    const struct config_sections none = {.count = 0};
    const struct config_sections *const sections[DIMENSION_LISTS] = {
        [DIMENSIONS_ALL] = &config->dimensions,
        [DIMENSIONS_CALLS] = &config->calls_dimensions,
        [DIMENSIONS_DURATION] = &config->histogram.dimensions,
        [DIMENSIONS_EVENTS] = config->events.enabled ? &config->events.dimensions : &none,
    };
    struct dimensions *dimensions = mem_zalloc(sizeof(*dimensions));
    size_t count = 0;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        count += sections[i]->count;
    dimensions->names = mem_alloc(count * sizeof(dimensions->names[0]));
    for (size_t i = 0; i < NAME_BITS; i++)
        dimensions->last[i] = NAME_NONE;
    dimensions->seed = (uint64_t)(random_uniform() * 0x1p53);
    for (unsigned i = 0; i < DIMENSION_LISTS; i++)
        compile(dimensions, &dimensions->lists[i], sections[i]);
    return dimensions;
}

void dimensions_destroy(struct dimensions *dimensions)
{
    if (dimensions == NULL)
        return;
    for (unsigned i = 0; i < DIMENSION_LISTS; i++) {
        struct dimension_set *set = &dimensions->lists[i];
        for (size_t j = 0; j < set->count; j++)
            mem_free((void *)(uintptr_t)set->items[j].standard.value.data);
        for (size_t j = 0; j < set->globs_count; j++)
            pattern_destroy(set->globs[j]);
        mem_free(set->items);
        mem_free((void *)set->globs);
    }
    mem_free(dimensions->names);
    mem_free(dimensions);
}

bool dimensions_are_none(const struct dimensions *dimensions, enum dimension_list list)
{
    return dimensions->lists[list].count == 0 && dimensions->lists[list].globs_count == 0;
}
