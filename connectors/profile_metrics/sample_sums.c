/* SPDX-License-Identifier: Apache-2.0 */
/* A sample belongs to a group: its resource and, for each dimension, the id of a value. Each
 * attribute of the dictionary is looked at once. */
#include "connectors/profile_metrics/sample_sums.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/random.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/metrics/metric_writer.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/profile_amount.h"

/* Fields of Resource and KeyValue. */
enum { RESOURCE_ATTRIBUTES = 1, PAIR_KEY = 1, PAIR_VALUE = 2 };

/* What an attribute of the dictionary is: not looked at yet, or no dimension's, or the id of a
 * value plus ATTRIBUTE_VALUE. */
enum { ATTRIBUTE_UNKNOWN, ATTRIBUTE_OTHER, ATTRIBUTE_VALUE };
enum { NO_VALUE = 0, PLACES_MIN = 64, KEPT_BYTES_MAX = 16 * 1024 };

/* A value of a dimension. */
struct label_value {
    struct slice text;
    size_t dimension;
};

struct group {
    uint64_t hash;
    uint64_t values[MEASURES];
    size_t resource;
    size_t labels; /* where they begin in texts */
    size_t labels_bytes;
    bool is_overflow;
    uint32_t ids[]; /* of values, NO_VALUE: none; one for each dimension */
};

struct text_range {
    size_t begin;
    size_t size;
};

/* One request being read. */
struct reading {
    struct sample_sums *sums;
    struct profile_dictionary dictionary;
    struct arena arena; /* the dictionary's index, and texts of values that were none */
    uint32_t resource_ids[SUM_NAMES_MAX];
    bool has_failed;
};

/* How a profile's values count. */
struct counting {
    enum measure measure;
    uint64_t factor;
};

void sample_sums_init(struct sample_sums *sums, const struct sum_names *names,
                      struct budget *budget)
{
    assert(names->dimensions_count <= SUM_NAMES_MAX && names->resources_count <= SUM_NAMES_MAX);
    *sums = (struct sample_sums){.names = names, .budget = budget, .texts.budget = budget};
    sums->seed = (uint64_t)(random_uniform() * 0x1p53);
}

void sample_sums_fini(struct sample_sums *sums)
{
    nested_output_fini(&sums->texts);
    scratch_fini(&sums->groups, sums->budget);
    scratch_fini(&sums->places, sums->budget);
    scratch_fini(&sums->values, sums->budget);
    scratch_fini(&sums->ids, sums->budget);
    scratch_fini(&sums->resources, sums->budget);
}

/* ---- Groups ---- */

static size_t group_bytes(const struct sample_sums *sums)
{
    size_t bytes = sizeof(struct group) + sums->names->dimensions_count * sizeof(uint32_t);
    return (bytes + 7) / 8 * 8;
}

static struct group *group_at(const struct sample_sums *sums, size_t i)
{
    return (struct group *)((uint8_t *)sums->groups.memory + i * group_bytes(sums));
}

static size_t *place_of(const struct sample_sums *sums, uint64_t hash)
{
    return (size_t *)sums->places.memory + (hash & (sums->places_count - 1));
}

/* Makes room for one more. Places hold the group's number plus 1. */
static bool reserve_place(struct sample_sums *sums)
{
    if (4 * (sums->count + 1) <= 3 * sums->places_count)
        return true;
    size_t wanted = sums->places_count > 0 ? 2 * sums->places_count : PLACES_MIN;
    size_t *places = scratch_room(&sums->places, sums->budget, wanted * sizeof(*places));
    if (places == NULL)
        return false;
    memset(places, 0, wanted * sizeof(*places));
    sums->places_count = wanted;
    for (size_t i = 0; i < sums->count; i++) {
        uint64_t hash = group_at(sums, i)->hash;
        size_t *place = place_of(sums, hash);
        while (*place != 0)
            place = place_of(sums, ++hash);
        *place = i + 1;
    }
    return true;
}

/* The group of a sample of the present resource; NULL: no memory. */
static struct group *find_group(struct reading *reading, const uint32_t *ids)
{
    struct sample_sums *sums = reading->sums;
    size_t ids_bytes = sums->names->dimensions_count * sizeof(*ids);
    size_t resource = sums->resources_count - 1;
    uint64_t hash = XXH3_64bits_withSeed(ids, ids_bytes, sums->seed ^ resource);
    if (!reserve_place(sums))
        return NULL;
    uint64_t at = hash;
    size_t *place = place_of(sums, at);
    for (; *place != 0; place = place_of(sums, ++at)) {
        struct group *group = group_at(sums, *place - 1);
        if (group->hash == hash && group->resource == resource &&
            memcmp(group->ids, ids, ids_bytes) == 0)
            return group;
    }
    if (scratch_room(&sums->groups, sums->budget, (sums->count + 1) * group_bytes(sums)) == NULL)
        return NULL;
    struct group *group = group_at(sums, sums->count++);
    *place = sums->count;
    *group = (struct group){.hash = hash, .resource = resource};
    memcpy(group->ids, ids, ids_bytes);
    return group;
}

/* ---- Values of dimensions ---- */

/* Adds a value; returns its id, NO_VALUE: no memory. */
static uint32_t add_value(struct reading *reading, size_t dimension, struct slice encoded)
{
    struct sample_sums *sums = reading->sums;
    struct label_value *values;
    struct slice text;
    if (!value_to_string(&reading->arena, encoded, &text) ||
        (values = scratch_room(&sums->values, sums->budget,
                               (sums->values_count + 1) * sizeof(*values))) == NULL) {
        reading->has_failed = true;
        return NO_VALUE;
    }
    if (text.size > SUM_LABEL_BYTES_MAX) {
        text.size = SUM_LABEL_BYTES_MAX;
        while (text.size > 0 && (text.data[text.size] & 0xc0) == 0x80)
            text.size--; /* not in the middle of a character */
    }
    values[sums->values_count] = (struct label_value){.text = text, .dimension = dimension};
    return (uint32_t)++sums->values_count;
}

static size_t dimension_of(const struct sum_names *names, struct slice key)
{
    size_t i = 0;
    while (i < names->dimensions_count && !slice_equal(names->dimensions[i], key))
        i++;
    return i;
}

static uint32_t look_at(struct reading *reading, struct profile_index index)
{
    const struct profile_dictionary *dictionary = &reading->dictionary;
    const struct sum_names *names = reading->sums->names;
    struct profile_attribute attribute = profile_attribute_at(dictionary, index);
    size_t dimension = dimension_of(names, profile_string_at(dictionary, attribute.key));
    if (dimension == names->dimensions_count)
        return ATTRIBUTE_OTHER;
    uint32_t id = add_value(reading, dimension, attribute.value);
    return id == NO_VALUE ? ATTRIBUTE_OTHER : id + ATTRIBUTE_VALUE;
}

/* Sets the ids of those attributes that are dimensions. */
static void read_attributes(struct reading *reading, const struct profile_indices *attributes,
                            uint32_t *ids)
{
    uint32_t *states = reading->sums->ids.memory;
    struct profile_indices_reader indices = profile_indices_read(attributes);
    struct profile_index index;
    while (profile_indices_next(&indices, &index)) {
        uint32_t *state = &states[profile_place(&reading->dictionary, PROFILE_ATTRIBUTES, index)];
        if (*state == ATTRIBUTE_UNKNOWN)
            *state = look_at(reading, index);
        if (*state < ATTRIBUTE_VALUE)
            continue;
        uint32_t id = *state - ATTRIBUTE_VALUE;
        const struct label_value *values = reading->sums->values.memory;
        ids[values[id - 1].dimension] = id;
    }
}

/* ---- Profiles ---- */

/* False: what it measures is none of ours. */
static bool counting_of(const struct reading *reading, const struct profile *profile,
                        bool has_cpu_time, struct counting *ret_counting)
{
    static const struct {
        const char *name;
        const char *type;
        enum measure measure;
    } rows[] = {
        {"process_cpu", "cpu", MEASURE_CPU},
        {"mutex", "delay", MEASURE_LOCK},
        {"block", "delay", MEASURE_BLOCKED},
        {"lock_time", "lock_time", MEASURE_BLOCKED},
        {"lock_duration", "lock_duration", MEASURE_BLOCKED},
    };
    const struct profile_type_texts texts = profile_type_texts_of(&reading->dictionary, profile);
    struct profile_type type = profile_type_canonical(&texts, profile->period > 0, has_cpu_time);
    if (strcmp(type.name, "memory") == 0 && strncmp(type.type, "alloc_", 6) == 0 &&
        strcmp(type.unit, "bytes") == 0 && profile_type_stem_bytes(texts.type) == texts.type.size) {
        *ret_counting = (struct counting){.measure = MEASURE_ALLOCATED, .factor = 1};
        return true;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(type.name, rows[i].name) != 0 || strcmp(type.type, rows[i].type) != 0)
            continue;
        *ret_counting = (struct counting){
            .measure = rows[i].measure,
            .factor = type.counts_periods ? (uint64_t)profile->period : profile_unit_ns(type.unit),
        };
        return ret_counting->factor > 0;
    }
    return false;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void read_profile(struct reading *reading, const struct profile *profile, bool has_cpu_time)
{
    struct wire_reader samples = wire_reader_of(profile->bytes);
    uint32_t common[SUM_NAMES_MAX];
    uint32_t ids[SUM_NAMES_MAX];
    struct profile_sample sample;
    struct counting counting;
    if (!counting_of(reading, profile, has_cpu_time, &counting))
        return;
    memcpy(common, reading->resource_ids, sizeof(common));
    read_attributes(reading, &profile->attributes, common);
    while (!reading->has_failed && profile_next_sample(&samples, &sample)) {
        uint64_t total = profile_sample_total(&sample, counting.factor);
        if (total == 0)
            continue;
        memcpy(ids, common, sizeof(ids));
        read_attributes(reading, &sample.attributes, ids);
        struct group *group = find_group(reading, ids);
        if (group == NULL)
            reading->has_failed = true;
        else
            group->values[counting.measure] = add_up(group->values[counting.measure], total);
    }
}

static void read_scope(struct reading *reading, const struct profile_scope *scope)
{
    bool has_cpu_time = profile_scope_has_cpu_time(&reading->dictionary, scope);
    struct wire_reader profiles = wire_reader_of(scope->bytes);
    struct profile profile;
    while (!reading->has_failed && profile_next_profile(&profiles, &profile))
        read_profile(reading, &profile, has_cpu_time);
}

/* ---- Resources ---- */

struct pair {
    struct slice key;
    struct slice value;
};

static struct pair pair_of(struct slice encoded)
{
    struct wire_reader fields = wire_reader_of(encoded);
    struct wire_field field;
    struct pair pair = {.value = slice_of(NULL, 0)};
    while (wire_next_field(&fields, &field)) {
        if (field.number == PAIR_KEY)
            pair.key = field.bytes;
        else if (field.number == PAIR_VALUE)
            pair.value = field.bytes;
    }
    return pair;
}

/* Of equal keys the first counts. */
static void begin_resource(struct reading *reading, struct slice resource)
{
    struct sample_sums *sums = reading->sums;
    const struct sum_names *names = sums->names;
    struct slice found[SUM_NAMES_MAX];
    bool has[SUM_NAMES_MAX] = {false};
    struct wire_reader fields = wire_reader_of(resource);
    struct wire_field field;
    memset(reading->resource_ids, 0, sizeof(reading->resource_ids));
    while (resource.size > 0 && wire_next_field(&fields, &field)) {
        if (field.number != RESOURCE_ATTRIBUTES)
            continue;
        struct pair pair = pair_of(field.bytes);
        size_t dimension = dimension_of(names, pair.key);
        if (dimension < names->dimensions_count && reading->resource_ids[dimension] == NO_VALUE)
            reading->resource_ids[dimension] = add_value(reading, dimension, pair.value);
        for (size_t i = 0; i < names->resources_count; i++) {
            if (has[i] || !slice_equal(names->resources[i], pair.key))
                continue;
            has[i] = true;
            found[i] = pair.value;
        }
    }
    struct text_range *resources = scratch_room(&sums->resources, sums->budget,
                                                (sums->resources_count + 1) * sizeof(*resources));
    if (resources == NULL) {
        reading->has_failed = true;
        return;
    }
    size_t begin = nested_output_size(&sums->texts);
    for (size_t i = 0; i < names->resources_count; i++)
        if (has[i])
            metric_attribute_put_value(&sums->texts, names->resources[i], found[i]);
    resources[sums->resources_count++] = (struct text_range){
        .begin = begin,
        .size = nested_output_size(&sums->texts) - begin,
    };
}

static void write_labels(struct sample_sums *sums, size_t bytes_max)
{
    const struct sum_names *names = sums->names;
    const struct label_value *values = sums->values.memory;
    const size_t begin = nested_output_size(&sums->texts);
    for (size_t i = 0; i < sums->count; i++) {
        struct group *group = group_at(sums, i);
        group->is_overflow = nested_output_size(&sums->texts) - begin > bytes_max;
        if (group->is_overflow)
            continue;
        group->labels = nested_output_size(&sums->texts);
        for (size_t k = 0; k < names->dimensions_count; k++)
            if (group->ids[k] != NO_VALUE)
                metric_attribute_put_string(&sums->texts, names->dimensions[k],
                                            values[group->ids[k] - 1].text);
        group->labels_bytes = nested_output_size(&sums->texts) - group->labels;
    }
}

bool sample_sums_read(struct sample_sums *sums, struct slice request)
{
    struct reading reading = {.sums = sums};
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    /* Texts of values that are maps or lists are at most six times as long as their bytes. */
    size_t index_bytes = 8 * request.size + 4096;
    nested_output_fini(&sums->texts);
    sums->texts = (struct nested_output){.budget = sums->budget};
    sums->count = 0;
    sums->places_count = 0;
    sums->values_count = 0;
    sums->resources_count = 0;
    arena_init_charged(&reading.arena, 2 * index_bytes, sums->budget);
    bool is_open = profile_dictionary_open(&reading.dictionary, &reading.arena, request);
    size_t ids_bytes =
        is_open ? ((size_t)reading.dictionary.counts[PROFILE_ATTRIBUTES] + 1) * sizeof(uint32_t)
                : 0;
    void *ids = is_open ? scratch_room(&sums->ids, sums->budget, ids_bytes) : NULL;
    reading.has_failed = ids == NULL;
    if (ids != NULL)
        memset(ids, 0, ids_bytes);
    while (!reading.has_failed && profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        begin_resource(&reading, resource.resource);
        while (!reading.has_failed && profile_next_scope(&scopes, &scope))
            read_scope(&reading, &scope);
    }
    if (!reading.has_failed)
        write_labels(sums, request.size + SUM_LABELS_BYTES_MIN);
    arena_clear(&reading.arena);
    return !reading.has_failed && sums->texts.refused_bytes == 0;
}

static void clear_large(struct scratch *scratch, struct budget *budget)
{
    if (scratch->bytes > KEPT_BYTES_MAX)
        scratch_fini(scratch, budget);
}

void sample_sums_clear(struct sample_sums *sums)
{
    sums->count = 0;
    sums->places_count = 0;
    nested_output_fini(&sums->texts);
    sums->texts = (struct nested_output){.budget = sums->budget};
    clear_large(&sums->groups, sums->budget);
    clear_large(&sums->places, sums->budget);
    clear_large(&sums->values, sums->budget);
    clear_large(&sums->ids, sums->budget);
    clear_large(&sums->resources, sums->budget);
}

struct sample_sum sample_sums_at(const struct sample_sums *sums, size_t i)
{
    static const uint8_t nothing;
    assert(i < sums->count);
    const struct group *group = group_at(sums, i);
    const struct text_range *resource =
        (const struct text_range *)sums->resources.memory + group->resource;
    const uint8_t *texts = sums->texts.buffer != NULL ? sums->texts.buffer->data : &nothing;
    struct sample_sum sum = {
        .resource = slice_of(texts + resource->begin, resource->size),
        .labels = slice_of(texts + group->labels, group->labels_bytes),
        .is_overflow = group->is_overflow,
    };
    memcpy(sum.values, group->values, sizeof(sum.values));
    return sum;
}
