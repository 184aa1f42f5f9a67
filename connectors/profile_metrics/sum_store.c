/* SPDX-License-Identifier: Apache-2.0 */
#include "connectors/profile_metrics/sum_store.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/otlp/metrics/metric_writer.h"

/* A table's entries are at most 8/3 of its objects. */
#define TABLE_SHARE (3 * sizeof(struct hash_entry))

void sum_store_init(struct sum_store *store, struct budget *budget)
{
    *store = (struct sum_store){.budget = budget};
    store->seed = (uint64_t)(random_uniform() * 0x1p53);
    store->end = &store->resources;
}

static size_t resource_bytes(size_t attributes_bytes)
{
    return sizeof(struct sum_resource) + attributes_bytes;
}

static size_t series_bytes(size_t labels_bytes)
{
    return sizeof(struct sum_series) + labels_bytes;
}

/* Zeroed, and charged with its share of a table. NULL: no memory. */
static void *take(struct sum_store *store, size_t bytes)
{
    const size_t charge = bytes + TABLE_SHARE;
    if (store->bytes + charge > budget_limit(store->budget) / SUM_BUDGET_PART ||
        !budget_try_take(store->budget, charge))
        return NULL;
    void *object = mem_try_zalloc(bytes);
    if (object != NULL)
        store->bytes += charge;
    else
        budget_return(store->budget, charge);
    return object;
}

static void give_back(struct sum_store *store, void *object, size_t bytes)
{
    mem_free(object);
    assert(store->bytes >= bytes + TABLE_SHARE);
    store->bytes -= bytes + TABLE_SHARE;
    budget_return(store->budget, bytes + TABLE_SHARE);
}

static struct sum_resource *find_resource(struct sum_store *store, struct slice attributes)
{
    struct sum_resource *resource;
    size_t at = 0;
    if (attributes.size > SUM_RESOURCE_BYTES_MAX)
        return NULL;
    uint64_t hash = XXH3_64bits_withSeed(attributes.data, attributes.size, store->seed);
    while ((resource = hash_table_next(&store->resources_table, hash, &at)) != NULL)
        if (slice_equal(slice_of(resource->attributes, resource->attributes_bytes), attributes))
            return resource;
    resource = take(store, resource_bytes(attributes.size));
    if (resource == NULL)
        return NULL;
    if (!hash_table_add(&store->resources_table, hash, resource)) {
        give_back(store, resource, resource_bytes(attributes.size));
        return NULL;
    }
    resource->hash = hash;
    resource->end = &resource->series;
    resource->attributes_bytes = (uint32_t)attributes.size;
    if (attributes.size > 0)
        memcpy(resource->attributes, attributes.data, attributes.size);
    *store->end = resource;
    store->end = &resource->next;
    return resource;
}

static uint64_t series_hash(const struct sum_store *store, struct slice labels,
                            const struct sum_resource *resource)
{
    return XXH3_64bits_withSeed(labels.data, labels.size, store->seed ^ resource->hash);
}

static struct sum_series *find_series(const struct sum_store *store,
                                      const struct sum_resource *resource, struct slice labels,
                                      uint64_t hash)
{
    struct sum_series *series;
    size_t at = 0;
    while ((series = hash_table_next(&store->series_table, hash, &at)) != NULL)
        if (series->resource == resource &&
            slice_equal(slice_of(series->labels, series->labels_bytes), labels))
            return series;
    return NULL;
}

static struct sum_series *add_series(struct sum_store *store, struct sum_resource *resource,
                                     struct slice labels, uint64_t hash, uint64_t wall_ns)
{
    struct sum_series *series;
    if (store->series_max > 0 && store->count >= store->series_max)
        return NULL;
    series = take(store, series_bytes(labels.size));
    if (series == NULL)
        return NULL;
    if (!hash_table_add(&store->series_table, hash, series)) {
        give_back(store, series, series_bytes(labels.size));
        return NULL;
    }
    series->hash = hash;
    series->resource = resource;
    series->start_ns = wall_ns;
    series->labels_bytes = (uint32_t)labels.size;
    if (labels.size > 0)
        memcpy(series->labels, labels.data, labels.size);
    *resource->end = series;
    resource->end = &series->next;
    store->count++;
    return series;
}

static void add_up(uint64_t *values, const uint64_t *more)
{
    for (size_t i = 0; i < MEASURES; i++)
        if (__builtin_add_overflow(values[i], more[i], &values[i]))
            values[i] = UINT64_MAX;
}

void sum_store_begin(struct sum_store *store)
{
    store->has_last = false;
}

/* Sums of a resource follow each other, and its text may be long: it is looked up once. */
static struct sum_resource *resource_of(struct sum_store *store, const struct sample_sum *sum)
{
    if (sum->is_overflow)
        return NULL;
    if (!store->has_last || store->last_attributes.data != sum->resource.data ||
        store->last_attributes.size != sum->resource.size)
        store->last = find_resource(store, sum->resource);
    store->last_attributes = sum->resource;
    store->has_last = true;
    return store->last;
}

void sum_store_add(struct sum_store *store, const struct sample_sum *sum, uint64_t now_ns,
                   uint64_t wall_ns)
{
    struct sum_resource *resource = resource_of(store, sum);
    struct sum_series *series = NULL;
    if (resource != NULL) {
        uint64_t hash = series_hash(store, sum->labels, resource);
        series = find_series(store, resource, sum->labels, hash);
        if (series == NULL)
            series = add_series(store, resource, sum->labels, hash, wall_ns);
    }
    if (series == NULL) {
        if (store->overflow_start_ns == 0)
            store->overflow_start_ns = wall_ns;
        add_up(store->overflow, sum->values);
        return;
    }
    series->seen_ns = now_ns;
    add_up(series->values, sum->values);
}

/* ---- Removing ---- */

static void remove_series(struct sum_store *store, struct sum_resource *resource,
                          struct sum_series **link)
{
    struct sum_series *series = *link;
    *link = series->next;
    if (resource->end == &series->next)
        resource->end = link;
    hash_table_remove(&store->series_table, series->hash, series);
    give_back(store, series, series_bytes(series->labels_bytes));
    assert(store->count > 0);
    store->count--;
}

static void remove_resource(struct sum_store *store, struct sum_resource **link)
{
    struct sum_resource *resource = *link;
    assert(resource->series == NULL);
    store->has_last = false;
    *link = resource->next;
    if (store->end == &resource->next)
        store->end = link;
    hash_table_remove(&store->resources_table, resource->hash, resource);
    give_back(store, resource, resource_bytes(resource->attributes_bytes));
}

void sum_store_clear(struct sum_store *store)
{
    while (store->resources != NULL) {
        while (store->resources->series != NULL)
            remove_series(store, store->resources, &store->resources->series);
        remove_resource(store, &store->resources);
    }
    hash_table_clear(&store->resources_table);
    hash_table_clear(&store->series_table);
    store->overflow_start_ns = 0;
    memset(store->overflow, 0, sizeof(store->overflow));
    store->resource_at = NULL;
    store->series_at = NULL;
}

/* ---- Writing ---- */

static void put_value(struct metric_writer *writer, enum measure measure,
                      const struct point_head *head, uint64_t value)
{
    if (measure == MEASURE_ALLOCATED)
        metric_writer_put_integer(writer, head, value < INT64_MAX ? (int64_t)value : INT64_MAX);
    else
        metric_writer_put_double(writer, head, (double)value / NS_PER_S);
}

static void begin_metric(struct metric_writer *writer, const struct sum_store *store,
                         enum measure measure)
{
    static const char *const descriptions[MEASURES] = {
        [MEASURE_CPU] = "Time on a CPU, as sampled.",
        [MEASURE_ALLOCATED] = "Bytes allocated, freed ones included, as sampled.",
        [MEASURE_LOCK] = "Time that others waited for a mutex, as sampled.",
        [MEASURE_BLOCKED] = "Time blocked on locks, channels and the like, as sampled.",
    };
    metric_writer_begin_metric(writer,
                               &(struct metric_head){
                                   .name = slice_of_text(store->names[measure]),
                                   .description = slice_of_text(descriptions[measure]),
                                   .unit = slice_of_text(measure == MEASURE_ALLOCATED ? "By" : "s"),
                                   .kind = METRIC_SUM,
                                   .temporality = TEMPORALITY_CUMULATIVE,
                                   .is_monotonic = true,
                               });
}

static void begin_scope(struct metric_writer *writer, struct slice attributes)
{
    metric_writer_begin_resource(writer, attributes);
    metric_writer_begin_scope(writer, slice_of_text("profile_metrics"), slice_of(NULL, 0));
}

/* Series of one resource. */
static void write_run(struct metric_writer *writer, const struct sum_store *store,
                      const struct sum_resource *resource, struct sum_series *const *series,
                      size_t count, uint64_t wall_ns)
{
    begin_scope(writer, slice_of(resource->attributes, resource->attributes_bytes));
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        bool is_begun = false;
        for (size_t i = 0; i < count; i++) {
            if (series[i]->values[measure] == 0)
                continue;
            if (!is_begun)
                begin_metric(writer, store, measure);
            is_begun = true;
            const struct point_head head = {
                .attributes = slice_of(series[i]->labels, series[i]->labels_bytes),
                .start_ns = series[i]->start_ns,
                .time_ns = wall_ns,
            };
            put_value(writer, measure, &head, series[i]->values[measure]);
        }
    }
}

static void write_overflow(struct metric_writer *writer, const struct sum_store *store,
                           uint64_t wall_ns)
{
    struct nested_output labels = {.budget = store->budget};
    metric_attribute_put_bool(&labels, slice_of_text("otel.metric.overflow"), true);
    const struct point_head head = {
        .attributes = labels.buffer != NULL
                          ? slice_of(labels.buffer->data, nested_output_size(&labels))
                          : slice_of(NULL, 0),
        .start_ns = store->overflow_start_ns,
        .time_ns = wall_ns,
    };
    begin_scope(writer, slice_of(NULL, 0));
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        if (store->overflow[measure] == 0)
            continue;
        begin_metric(writer, store, measure);
        put_value(writer, measure, &head, store->overflow[measure]);
    }
    nested_output_fini(&labels);
}

static bool has_expired(const struct sum_store *store, const struct sum_series *series,
                        uint64_t now_ns)
{
    return store->expiration_ns > 0 && now_ns - series->seen_ns >= store->expiration_ns;
}

enum metric_piece sum_store_write(struct sum_store *store, bool is_first, uint64_t now_ns,
                                  uint64_t wall_ns, struct batch **ret_batch)
{
    struct sum_series *run[SUM_PIECE_SERIES];
    struct metric_writer writer;
    size_t looked_at = 0;
    size_t bytes = 0;
    if (is_first) {
        store->resource_at = &store->resources;
        store->series_at = NULL;
        store->has_overflow_left = store->overflow_start_ns > 0;
    }
    metric_writer_init(&writer, store->budget);
    bool is_empty = true;
    while (store->resource_at != NULL && *store->resource_at != NULL &&
           looked_at < SUM_PIECE_SERIES && bytes < SUM_PIECE_BYTES) {
        struct sum_resource *resource = *store->resource_at;
        struct sum_series **at = store->series_at != NULL ? store->series_at : &resource->series;
        size_t count = 0;
        while (*at != NULL && looked_at < SUM_PIECE_SERIES && bytes < SUM_PIECE_BYTES) {
            looked_at++;
            if (has_expired(store, *at, now_ns)) {
                remove_series(store, resource, at);
                continue;
            }
            bytes += (*at)->labels_bytes;
            run[count++] = *at;
            at = &(*at)->next;
        }
        if (count > 0) {
            write_run(&writer, store, resource, run, count, wall_ns);
            bytes += resource->attributes_bytes;
            is_empty = false;
        }
        store->series_at = at;
        if (*at != NULL)
            break;
        store->series_at = NULL;
        looked_at++;
        if (resource->series == NULL)
            remove_resource(store, store->resource_at);
        else
            store->resource_at = &resource->next;
    }
    if (store->has_overflow_left && looked_at < SUM_PIECE_SERIES && bytes < SUM_PIECE_BYTES) {
        store->has_overflow_left = false;
        write_overflow(&writer, store, wall_ns);
        is_empty = false;
    }
    bool is_end = looked_at == 0;
    *ret_batch = is_empty ? NULL : metric_writer_finish(&writer);
    metric_writer_fini(&writer);
    if (*ret_batch == NULL && !is_empty)
        return PIECE_NO_ROOM;
    return is_empty && is_end ? PIECE_END : PIECE_WRITTEN;
}
