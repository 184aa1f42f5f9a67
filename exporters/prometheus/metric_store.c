/* SPDX-License-Identifier: Apache-2.0 */
/* Series are found by a hash over what the Go collector's exporter identifies them by: the metric's
 * name and kind, its scope, the attributes in any order, job and instance. Their labels are written
 * once, when they first come. */
#include "exporters/prometheus/metric_store.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "exporters/prometheus/metric_series.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/hash_table.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

/* A piece of a request: about a hundred ns for each unit, which is a message, COST_BYTES of one or
 * of buckets, a label, or LABEL_COST_BYTES of names and labels that are translated, checked and
 * copied. A new series is SERIES_COST of them. */
enum { COST_MAX = 4096, COST_BYTES = 512, LABEL_COST_BYTES = 32, SERIES_COST = 5 };

/* Metrics with a longer name and unit are left out: each new series translates and compares them,
 * and no client of Prometheus takes such names. */
enum { METRIC_NAME_BYTES_MAX = 4096 };

/* Buckets that deltas are added to in a copy, in times of the request; and what may be in any case:
 * 13 000 sums of 320 buckets. */
#define SUM_COPY_FACTOR_MAX ((uint64_t)64)
#define SUM_COPY_BYTES_MIN  ((uint64_t)32 << 20)

/* So many series, or places of a table, are gone through at once: a millisecond or two. */
enum { PIECE_MAX = 8192 };

/* Of a line, besides name and labels. */
enum { LINE_BYTES = 16 };

struct metric_store {
    struct metric_store_settings settings;
    uint64_t seed;
    char *target_name;
    pthread_mutex_t lock; /* guards all below */
    struct hash_table series;
    struct hash_table families;
    struct hash_table resources;
    struct hash_table shapes;
    uint64_t text_bytes; /* of the names and labels of those that are shown */
    uint64_t help_bytes; /* of the families */
    uint64_t bytes;      /* charged */
    uint64_t live_series;
    struct series **order; /* of the last scrape; NULL: removed since */
    size_t order_count;
    size_t order_bytes;              /* charged for it */
    struct metric_snapshot *at_work; /* being taken or released; NULL: none */
    uint32_t walk;                   /* number of the last snapshot */
    uint64_t series_untaken;         /* by the one that is being taken, and in the table */
    uint64_t resources_untaken;      /* the same */
};

/* The namespace is translated like a label here. */
static char *target_name_of(const struct prometheus_naming *naming)
{
    static const char name[] = "target_info";
    struct slice space = slice_of_text(naming->name_space);
    char *text = mem_zalloc(prometheus_label_name_max(space) + 1 + sizeof(name));
    size_t size = space.size > 0 ? prometheus_label_name(naming, space, text) : 0;
    if (size > 0)
        text[size++] = '_';
    memcpy(text + size, name, sizeof(name));
    return text;
}

struct metric_store *metric_store_create(const struct metric_store_settings *settings)
{
    struct metric_store *store = mem_zalloc(sizeof(*store));
    store->settings = *settings;
    if (getrandom(&store->seed, sizeof(store->seed), 0) != sizeof(store->seed))
        store->seed = clock_wall_ns();
    store->target_name = target_name_of(&settings->labels.naming);
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* Whether the share has room, once freed bytes of it are given back. */
static bool has_room(const struct metric_store *store, size_t bytes, size_t freed)
{
    assert(store->bytes >= freed);
    return store->settings.bytes_max == 0 ||
           store->bytes - freed + bytes <= store->settings.bytes_max;
}

/* Also beyond the share: for what a scrape needs. */
static bool charge_beyond(struct metric_store *store, size_t bytes)
{
    if (!budget_try_take(store->settings.budget, bytes))
        return false;
    store->bytes += bytes;
    return true;
}

static bool charge(struct metric_store *store, size_t bytes)
{
    return has_room(store, bytes, 0) && charge_beyond(store, bytes);
}

static void discharge(struct metric_store *store, size_t bytes)
{
    assert(store->bytes >= bytes);
    store->bytes -= bytes;
    budget_return(store->settings.budget, bytes);
}

static void distribution_unref(struct metric_store *store, struct metric_distribution *distribution)
{
    if (distribution == NULL || --distribution->refs > 0)
        return;
    discharge(store, distribution->bytes);
    metric_distribution_free(distribution);
}

static size_t family_bytes(const struct family *family)
{
    return sizeof(*family) + family->name.size + family->help.size;
}

static void family_unref(struct metric_store *store, struct family *family)
{
    if (--family->refs > 0)
        return;
    discharge(store, family_bytes(family));
    mem_free(family);
}

static void resource_unref(struct metric_store *store, struct resource *resource)
{
    if (--resource->refs > 0)
        return;
    discharge(store, sizeof(*resource) + resource->labels.size);
    mem_free(resource);
}

static void shape_unref(struct metric_store *store, struct label_shape *shape)
{
    if (--shape->refs > 0)
        return;
    hash_table_remove(&store->shapes, shape->hash.low, shape);
    discharge(store, shape->bytes);
    mem_free(shape);
}

static size_t series_bytes(const struct series *series)
{
    /* And its place in the table. */
    return sizeof(*series) + series->values_bytes + 2 * sizeof(struct hash_entry);
}

static bool is_shown(const struct series *series)
{
    return series->family != NULL;
}

static size_t series_text_bytes(const struct series *series)
{
    return series->family->name.size + series->shape->text_bytes + series->values_bytes;
}

/* Of all lines that show it: a bucket, a quantile, or an exemplar has one at the most. */
static uint64_t series_line_bytes(const struct series *series)
{
    const struct metric_distribution *distribution = series->distribution;
    uint64_t lines = 1;
    if (distribution != NULL)
        lines += distribution->bounds_count + distribution->quantiles.count +
                 distribution->positive.count + distribution->negative.count +
                 distribution->exemplars_count;
    return lines * (series_text_bytes(series) + LINE_BYTES);
}

static void series_unref(struct metric_store *store, struct series *series)
{
    if (--series->refs > 0)
        return;
    distribution_unref(store, series->distribution);
    if (is_shown(series)) {
        shape_unref(store, series->shape);
        family_unref(store, series->family);
    }
    resource_unref(store, series->resource);
    discharge(store, series_bytes(series));
    mem_free(series);
}

static bool is_being_taken(const struct metric_store *store)
{
    return store->at_work != NULL && store->at_work->stage <= SNAPSHOT_RESOURCES;
}

static void resource_leave(struct metric_store *store, struct resource *resource)
{
    if (--resource->live > 0)
        return;
    hash_table_remove(&store->resources, resource->hash.low, resource);
    store->resources_untaken -= is_being_taken(store) && resource->walk != store->walk;
}

static void family_leave(struct metric_store *store, struct family *family)
{
    hash_table_remove(&store->families, family->hash, family);
    store->help_bytes -= family->help.size;
}

static void series_remove(struct metric_store *store, struct series *series)
{
    hash_table_remove(&store->series, series->hash.low, series);
    if (is_shown(series)) {
        store->live_series--;
        store->series_untaken -= is_being_taken(store) && series->walk != store->walk;
        store->text_bytes -= series_text_bytes(series);
    }
    if (series->place != PLACE_NONE)
        store->order[series->place] = NULL;
    series->is_removed = true;
    if (is_shown(series) && --series->family->live == 0)
        family_leave(store, series->family);
    resource_leave(store, series->resource);
    series_unref(store, series);
}

/* Removes what did not come since (UINT64_MAX: everything) from so many places of the table before
 * `at`. Removing moves others to places before theirs, so it goes from the end to the beginning.
 * Returns where it ended. */
static size_t remove_older(struct metric_store *store, uint64_t since_ns, size_t at, size_t places)
{
    const size_t capacity = store->series.capacity;
    if (!hash_table_settle(&store->series, places))
        return at;
    at = at < capacity ? at : capacity;
    while (at > 0 && places-- > 0) {
        at--;
        if (at >= SERIES_AHEAD)
            __builtin_prefetch(store->series.entries[at - SERIES_AHEAD].object);
        /* Another one may come to the place. */
        struct series *series;
        while ((series = store->series.entries[at].object) != NULL && series->updated_ns < since_ns)
            series_remove(store, series);
    }
    return at;
}

/* An order that is empty yet, and charged. */
static void set_order(struct metric_store *store, struct series **order, size_t bytes)
{
    discharge(store, store->order_bytes);
    mem_free(store->order);
    store->order = order;
    store->order_count = 0;
    store->order_bytes = bytes;
}

void metric_store_destroy(struct metric_store *store)
{
    if (store == NULL)
        return;
    while (store->series.count > 0)
        remove_older(store, UINT64_MAX, SIZE_MAX, SIZE_MAX);
    set_order(store, NULL, 0);
    assert(store->bytes == 0 && store->live_series == 0);
    hash_table_clear(&store->series);
    hash_table_clear(&store->families);
    hash_table_clear(&store->resources);
    hash_table_clear(&store->shapes);
    pthread_mutex_destroy(&store->lock);
    mem_free(store->target_name);
    mem_free(store);
}

/* What came before that has expired. */
static uint64_t expiry_ns(const struct metric_store *store, uint64_t now_ns)
{
    const uint64_t expiration_ns = store->settings.expiration_ns;
    return now_ns >= expiration_ns ? now_ns - expiration_ns : 0;
}

size_t metric_store_expire(struct metric_store *store, uint64_t now_ns, size_t at)
{
    enum { PLACES_MAX = 16384 }; /* of a piece */
    pthread_mutex_lock(&store->lock);
    at = remove_older(store, expiry_ns(store, now_ns), at, PLACES_MAX);
    if (store->live_series == 0)
        set_order(store, NULL, 0);
    pthread_mutex_unlock(&store->lock);
    return at;
}

struct metric_store_figures metric_store_figures(struct metric_store *store)
{
    pthread_mutex_lock(&store->lock);
    struct metric_store_figures figures = {
        .series = store->live_series, .families = store->families.count, .bytes = store->bytes};
    pthread_mutex_unlock(&store->lock);
    return figures;
}

/* A request on its way into the store, as far as it was read. */
struct metric_addition {
    struct metric_store *store;
    uint64_t now_ns;
    struct metric_store_losses losses;
    size_t cost; /* of the piece at hand so far */
    uint64_t request_bytes;
    uint64_t copied_bytes; /* of buckets */
    struct metric_items resources;
    struct resource_view resource;
    struct metric_items scopes;
    struct scope_view scope;
    struct metric_items metrics;
    struct metric metric;
    struct metric_hash name;
    struct slice help; /* of the metric, once it is needed */
    bool has_help;
    uint32_t form;      /* see struct series */
    const char *reason; /* why Prometheus has nothing for the metric; NULL: it has */
    struct metric_items points;
    const char *unusable; /* why the series that is being made can have no points; NULL: it can */
    /* What was made for points of the resource and of the metric at hand, and the last shape; NULL:
     * nothing. References, so that it is made once for all of them, also if their series find no
     * room. */
    struct resource *resource_made;
    bool has_no_resource; /* there was no room for it: this holds for its later points, too */
    struct family *family_made;
    struct label_shape *shape_made;
    struct metric_labels labels; /* large */
};

static void forget_family(struct metric_addition *addition)
{
    if (addition->family_made != NULL)
        family_unref(addition->store, addition->family_made);
    addition->family_made = NULL;
}

static void forget_resource(struct metric_addition *addition)
{
    if (addition->resource_made != NULL)
        resource_unref(addition->store, addition->resource_made);
    addition->resource_made = NULL;
    addition->has_no_resource = false;
    metric_labels_forget_resource(&addition->labels);
}

static void forget_shape(struct metric_addition *addition)
{
    if (addition->shape_made != NULL)
        shape_unref(addition->store, addition->shape_made);
    addition->shape_made = NULL;
}

static void lose(struct metric_addition *addition, const struct metric *metric, const char *reason,
                 bool is_memory)
{
    if (is_memory)
        addition->losses.no_room++;
    else
        addition->losses.unusable++;
    addition->losses.reason = reason;
    addition->losses.name = metric->name;
}

/* With a reference. NULL: no memory. */
static struct resource *resource_create(struct metric_addition *addition,
                                        const struct resource_view *view)
{
    struct metric_store *store = addition->store;
    struct metric_labels *labels = &addition->labels;
    struct resource *resource = NULL;
    metric_labels_init(labels);
    addition->cost += view->attributes.size / LABEL_COST_BYTES;
    bool has_target = view->target.service.data != NULL && view->target.instance.data != NULL &&
                      view->target.instance.size > 0 && view->target.service.size > 0;
    if (has_target)
        metric_labels_of_target(labels, view);
    if (labels->failure != NULL) {
        has_target = false;
        labels->count = 0;
    }
    size_t room = has_target ? metric_labels_bytes_max(labels) : 0;
    char *text = arena_try_alloc(&labels->arena, room + 1);
    bool is_plain = true;
    size_t size = text != NULL && has_target ? metric_labels_write(labels, text, &is_plain) : 0;
    if (text != NULL && charge(store, sizeof(*resource) + size)) {
        resource = mem_try_zalloc(sizeof(*resource) + size);
        if (resource == NULL)
            discharge(store, sizeof(*resource) + size);
    }
    if (resource != NULL) {
        resource->refs = 1;
        resource->hash = view->hash;
        resource->target = view->target_hash;
        resource->has_target = has_target;
        resource->has_plain_labels = is_plain;
        if (size > 0)
            memcpy(resource + 1, text, size);
        resource->labels = slice_of(resource + 1, size);
    }
    metric_labels_fini(labels);
    return resource;
}

static struct resource *resource_find(const struct metric_store *store,
                                      const struct metric_hash *hash)
{
    size_t at = 0;
    struct resource *resource;
    while ((resource = hash_table_next(&store->resources, hash->low, &at)) != NULL)
        if (resource->hash.high == hash->high)
            return resource;
    return NULL;
}

/* With a reference. NULL: no memory. */
static struct resource *resource_get(struct metric_addition *addition,
                                     const struct resource_view *view)
{
    struct metric_store *store = addition->store;
    struct resource *resource = resource_find(store, &view->hash);
    if (resource == NULL) {
        if (addition->resource_made == NULL && !addition->has_no_resource)
            addition->resource_made = resource_create(addition, view);
        resource = addition->resource_made;
        addition->has_no_resource = resource == NULL;
        if (resource == NULL || !hash_table_add(&store->resources, view->hash.low, resource))
            return NULL;
        resource->walk = store->walk;
    }
    resource->refs++;
    resource->live++;
    resource->updated_ns = addition->now_ns;
    return resource;
}

static enum exposition_type type_of(const struct metric *metric)
{
    return metric->kind == METRIC_GAUGE ? EXPOSITION_GAUGE
           : metric->kind == METRIC_SUM
               ? metric->is_monotonic ? EXPOSITION_COUNTER : EXPOSITION_GAUGE
           : metric->kind == METRIC_SUMMARY ? EXPOSITION_SUMMARY
                                            : EXPOSITION_HISTOGRAM;
}

static struct family *family_find(const struct metric_store *store, struct slice name)
{
    uint64_t hash = XXH3_64bits_withSeed(name.data, name.size, store->seed);
    size_t at = 0;
    struct family *family;
    while ((family = hash_table_next(&store->families, hash, &at)) != NULL)
        if (slice_equal(family->name, name))
            return family;
    return NULL;
}

static bool cut_end(struct slice *name, const char *suffix)
{
    size_t size = strlen(suffix);
    if (name->size <= size || memcmp(name->data + name->size - size, suffix, size) != 0)
        return false;
    name->size -= size;
    return true;
}

/* Whether a name would be that of a line of another family. text has room for 8 bytes behind the
 * name. */
static bool has_collision(const struct metric_store *store, char *text, size_t size,
                          enum exposition_type type)
{
    static const char *const suffixes[] = {"_count", "_sum", "_bucket"};
    for (size_t i = 0; i < 3; i++) {
        bool is_bucket = i == 2;
        struct slice base = slice_of(text, size);
        const struct family *other = cut_end(&base, suffixes[i]) ? family_find(store, base) : NULL;
        if (other != NULL && (other->type == EXPOSITION_HISTOGRAM ||
                              (other->type == EXPOSITION_SUMMARY && !is_bucket)))
            return true;
        if (type != EXPOSITION_HISTOGRAM && (type != EXPOSITION_SUMMARY || is_bucket))
            continue;
        size_t suffix = strlen(suffixes[i]);
        memcpy(text + size, suffixes[i], suffix);
        if (family_find(store, slice_of(text, size + suffix)) != NULL)
            return true;
    }
    return false;
}

/* With a reference. NULL: no memory. */
static struct family *family_create(struct metric_store *store, struct slice name,
                                    struct slice help, enum exposition_type type)
{
    const size_t bytes = sizeof(struct family) + name.size + help.size;
    if (!charge(store, bytes))
        return NULL;
    struct family *family = mem_try_zalloc(bytes);
    if (family == NULL) {
        discharge(store, bytes);
        return NULL;
    }
    uint8_t *copy = (uint8_t *)(family + 1);
    memcpy(copy, name.data, name.size);
    if (help.size > 0)
        memcpy(copy + name.size, help.data, help.size);
    family->name = slice_of(copy, name.size);
    family->help = slice_of(copy + name.size, help.size);
    family->type = type;
    family->hash = XXH3_64bits_withSeed(name.data, name.size, store->seed);
    family->refs = 1;
    return family;
}

/* The description of the metric at hand. If it is not UTF-8, Prometheus would refuse all of the
 * scrape. */
static struct slice help_of(struct metric_addition *addition)
{
    if (!addition->has_help)
        addition->help = utf8_is_valid(addition->metric.description) ? addition->metric.description
                                                                     : slice_of(NULL, 0);
    addition->has_help = true;
    return addition->help;
}

/* With a reference. NULL: no memory, or addition->unusable says why. */
static struct family *family_get(struct metric_addition *addition, const struct metric *metric,
                                 bool *ret_has_memory)
{
    enum { SUFFIX_BYTES_MAX = 8 };
    struct metric_store *store = addition->store;
    const struct prometheus_naming *naming = &store->settings.labels.naming;
    struct arena *arena = &addition->labels.arena;
    enum exposition_type type = type_of(metric);
    char *text =
        arena_try_alloc(arena, prometheus_metric_name_max(naming, metric) + SUFFIX_BYTES_MAX);
    if (text == NULL) {
        *ret_has_memory = false;
        return NULL;
    }
    struct slice name = slice_of(text, prometheus_metric_name(naming, metric, text));
    if (name.size == 0) {
        addition->unusable = "it has no name that Prometheus could take";
        return NULL;
    }
    if (!utf8_is_valid(name)) {
        addition->unusable = "its name is not UTF-8";
        return NULL;
    }
    struct family *family = family_find(store, name);
    if (family != NULL && family->type != type) {
        addition->unusable = "another metric has its name and another type";
        return NULL;
    }
    if (family != NULL) {
        family->refs++;
        return family;
    }
    if (has_collision(store, text, name.size, type)) {
        addition->unusable = "its name is that of a part of another metric";
        return NULL;
    }
    if (addition->family_made == NULL)
        addition->family_made = family_create(store, name, help_of(addition), type);
    family = addition->family_made;
    if (family == NULL || !hash_table_add(&store->families, family->hash, family)) {
        *ret_has_memory = false;
        return NULL;
    }
    family->refs++;
    store->help_bytes += family->help.size;
    return family;
}

/* Gives a reference back of a family that no series has taken. */
static void family_drop(struct metric_store *store, struct family *family)
{
    if (family->live == 0)
        family_leave(store, family);
    family_unref(store, family);
}

/* Where a point belongs. */
struct place {
    const struct resource_view *resource;
    const struct scope_view *scope;
    const struct metric *metric;
    struct metric_hash hash; /* of the series */
    uint32_t form;
};

/* The shape of the labels that are there, with a reference. Their bytes are read only if there is
 * none yet. NULL: no memory. */
static struct label_shape *shape_get(struct metric_addition *addition)
{
    struct metric_store *store = addition->store;
    struct metric_labels *labels = &addition->labels;
    const struct metric_hash *hash = &labels->names_hash;
    struct label_shape *shape;
    size_t at = 0;
    while ((shape = hash_table_next(&store->shapes, hash->low, &at)) != NULL) {
        if (shape->hash.high == hash->high) {
            shape->refs++;
            return shape;
        }
    }
    const size_t bytes = label_shape_bytes_max(labels);
    if (bytes > LABEL_SHAPE_BYTES_MAX || !charge(store, bytes))
        return NULL;
    addition->cost += labels->shared_count + bytes / LABEL_COST_BYTES;
    shape = mem_try_alloc(bytes);
    if (shape == NULL) {
        discharge(store, bytes);
        return NULL;
    }
    label_shape_make(labels, shape);
    struct label_shape *shrunk = mem_try_resize(shape, shape->bytes);
    shape = shrunk != NULL ? shrunk : shape;
    shape->bytes = shrunk != NULL ? shape->bytes : bytes;
    discharge(store, bytes - shape->bytes);
    if (!hash_table_add(&store->shapes, hash->low, shape)) {
        discharge(store, shape->bytes);
        mem_free(shape);
        return NULL;
    }
    shape->refs = 2;
    forget_shape(addition);
    addition->shape_made = shape;
    return shape;
}

/* Takes over the references to family, which is NULL if the series is not to be shown, and to
 * resource. NULL: no memory. */
static struct series *series_create(struct metric_addition *addition, const struct place *place,
                                    struct family *family, struct resource *resource)
{
    struct metric_store *store = addition->store;
    struct label_shape *shape = family != NULL ? shape_get(addition) : NULL;
    size_t size = family != NULL ? label_values_bytes(&addition->labels) : 0;
    const struct series model = {.values_bytes = (uint32_t)size};
    if (family != NULL && shape == NULL)
        return NULL;
    struct series *series =
        charge(store, series_bytes(&model)) ? mem_zalloc(sizeof(*series) + size) : NULL;
    if (series == NULL || !hash_table_add(&store->series, place->hash.low, series)) {
        if (series != NULL)
            discharge(store, series_bytes(&model));
        if (shape != NULL)
            shape_unref(store, shape);
        mem_free(series);
        return NULL;
    }
    series->refs = 1;
    series->place = PLACE_NONE;
    series->walk = store->walk;
    series->hash = place->hash;
    series->form = place->form;
    series->values_bytes = (uint32_t)size;
    series->family = family;
    series->resource = resource;
    if (family != NULL) {
        series->shape = shape;
        series->has_escapes = label_values_write(&addition->labels, series->values);
        family->live++;
        store->live_series++;
        store->text_bytes += series_text_bytes(series);
    } else {
        series->unusable = addition->unusable;
    }
    return series;
}

/* Makes the series of a point. One that Prometheus cannot get is kept too, without labels, so that
 * its later points cost little. NULL: no memory; the point is counted. */
static struct series *series_begin(struct metric_addition *addition, const struct place *place,
                                   const struct metric_point *point)
{
    struct metric_store *store = addition->store;
    struct metric_labels *labels = &addition->labels;
    struct resource *resource = resource_get(addition, place->resource);
    if (resource == NULL) {
        lose(addition, place->metric, "the budget has no room for another resource", true);
        return NULL;
    }
    metric_labels_init(labels);
    addition->unusable = NULL;
    addition->cost += SERIES_COST + place->metric->name.size / LABEL_COST_BYTES;
    bool has_memory = true;
    struct family *family = family_get(addition, place->metric, &has_memory);
    if (family != NULL) {
        const bool had_resource = labels->resource.is_made;
        const bool had_shared = labels->has_shared;
        metric_labels_of_series(labels, place->resource, place->scope, point);
        addition->cost += labels->count;
        if (!had_resource)
            addition->cost += labels->resource.bytes / LABEL_COST_BYTES;
        if (!had_shared)
            addition->cost += labels->shared_count + labels->scope.bytes / LABEL_COST_BYTES;
        has_memory = !labels->is_memory;
        addition->unusable = labels->failure;
    }
    if (family != NULL && addition->unusable != NULL) {
        family_drop(store, family);
        family = NULL;
    }
    struct series *series = has_memory ? series_create(addition, place, family, resource) : NULL;
    if (series == NULL) {
        lose(addition, place->metric, "the budget has no room for another series", true);
        if (family != NULL)
            family_drop(store, family);
        resource_leave(store, resource);
        resource_unref(store, resource);
    } else if (!is_shown(series)) {
        series->time_ns = addition->now_ns;
    }
    metric_labels_fini(labels);
    return series;
}

static struct series *series_find(const struct metric_store *store, const struct metric_hash *hash)
{
    size_t at = 0;
    struct series *series;
    while ((series = hash_table_next(&store->series, hash->low, &at)) != NULL)
        if (series->hash.high == hash->high)
            return series;
    return NULL;
}

/* Points of a series with another unit have another name. A series that clashed with another one is
 * tried again after a while. Points of another process of the same job and instance belong to
 * another target_info. */
static struct series *series_adapt(struct metric_addition *addition, struct series *series,
                                   const struct place *place)
{
    struct metric_store *store = addition->store;
    bool is_over =
        !is_shown(series) && addition->now_ns - series->time_ns >= store->settings.expiration_ns;
    if (series->form != place->form || is_over) {
        series_remove(store, series);
        return NULL;
    }
    if (series->resource->hash.low != place->resource->hash.low ||
        series->resource->hash.high != place->resource->hash.high) {
        struct resource *resource = resource_get(addition, place->resource);
        if (resource == NULL)
            return series;
        resource_leave(store, series->resource);
        resource_unref(store, series->resource);
        series->resource = resource;
    }
    return series;
}

static void series_set_number(struct series *series, const struct metric_point *point,
                              bool is_added)
{
    int64_t integer = is_added && series->is_integer ? series->integer : 0;
    double real = is_added && !series->is_integer ? series->real : 0;
    series->is_integer = point->is_integer;
    if (point->is_integer)
        series->integer = (int64_t)((uint64_t)integer + (uint64_t)point->integer);
    else
        series->real = real + point->real;
}

static size_t bytes_of(const struct metric_distribution *distribution)
{
    return distribution != NULL ? distribution->bytes : 0;
}

/* Takes the place of the old one, which may be NULL. Charged before it is made: a point of few
 * bytes may need many. NULL: no memory. */
static struct metric_distribution *distribution_read(struct metric_addition *addition,
                                                     const struct metric_point *point,
                                                     const struct metric_distribution *old)
{
    struct metric_store *store = addition->store;
    const struct metric_distribution_sizes sizes = metric_distribution_measure(point);
    const size_t bytes = metric_distribution_bytes(&sizes);
    if (!has_room(store, bytes, bytes_of(old)) || !charge_beyond(store, bytes))
        return NULL;
    addition->cost += bytes / COST_BYTES;
    struct metric_distribution *distribution = metric_distribution_of(point, &sizes);
    if (distribution == NULL)
        discharge(store, bytes);
    return distribution;
}

/* Whether the request may copy so many more buckets. */
static bool may_copy(struct metric_addition *addition,
                     const struct metric_distribution_sizes *sizes)
{
    const uint64_t bytes =
        addition->copied_bytes + (sizes->positive + sizes->negative) * sizeof(uint64_t);
    if (bytes > SUM_COPY_BYTES_MIN &&
        (bytes - SUM_COPY_BYTES_MIN) / SUM_COPY_FACTOR_MAX > addition->request_bytes)
        return false;
    addition->copied_bytes = bytes;
    return true;
}

/* What the old one is after a delta: it takes its place, and is the old one itself where it can be.
 * A point of few bytes may be added to many buckets. NULL: no memory, or too many are copied. */
static struct metric_distribution *distribution_add(struct metric_addition *addition,
                                                    struct metric_distribution *old,
                                                    const struct metric_distribution *delta,
                                                    bool is_delta_newer)
{
    struct metric_store *store = addition->store;
    struct metric_distribution_sizes sizes;
    if (metric_distribution_stays(old, delta, is_delta_newer)) {
        old->refs++;
        return old;
    }
    if (!metric_distribution_measure_sum(old, delta, is_delta_newer, &sizes))
        return NULL;
    if (old->refs == 1 && metric_distribution_add(old, delta)) {
        old->refs++;
        return old;
    }
    if (!may_copy(addition, &sizes))
        return NULL;
    const size_t bytes = metric_distribution_bytes(&sizes);
    if (!has_room(store, bytes, old->bytes + delta->bytes) || !charge_beyond(store, bytes))
        return NULL;
    addition->cost += (old->bytes + bytes) / COST_BYTES;
    struct metric_distribution *sum = metric_distribution_sum(old, delta, is_delta_newer, &sizes);
    if (sum == NULL)
        discharge(store, bytes);
    return sum;
}

/* Sets what the point has besides a number. False: no memory. */
static bool series_set_distribution(struct metric_addition *addition, struct series *series,
                                    const struct metric_point *point, bool is_added)
{
    struct metric_store *store = addition->store;
    struct metric_distribution *old = series->distribution;
    struct metric_distribution *made = NULL;
    bool is_number = point->kind == METRIC_GAUGE || point->kind == METRIC_SUM;
    struct metric_items exemplars =
        metric_items_of(point->bytes, metric_point_exemplars(METRIC_SUM));
    struct slice bytes;
    if (!is_number ||
        (series->family->type == EXPOSITION_COUNTER && metric_items_next(&exemplars, &bytes))) {
        made = distribution_read(addition, point, old);
        if (made != NULL && is_added && !is_number) {
            struct metric_distribution *delta = made;
            made = distribution_add(addition, old, delta,
                                    (int64_t)point->time_ns >= (int64_t)series->time_ns);
            distribution_unref(store, delta);
        }
        if (made == NULL)
            return false;
    }
    series->distribution = made;
    distribution_unref(store, old);
    return true;
}

/* The rules of the Go collector: the last point counts; a delta is added if it begins where the
 * last one ended, and begins anew otherwise. An older delta of a histogram is dropped. */
static void take_point(struct metric_addition *addition, const struct place *place,
                       const struct metric_point *point)
{
    struct metric_store *store = addition->store;
    const struct metric *metric = place->metric;
    bool is_delta = metric->temporality == TEMPORALITY_DELTA;
    bool is_histogram = point->kind == METRIC_HISTOGRAM || point->kind == METRIC_EXPONENTIAL;
    struct series *series = series_find(store, &place->hash);
    bool is_added = false;
    if (series != NULL)
        series = series_adapt(addition, series, place);
    if (series == NULL) {
        series = series_begin(addition, place, point);
        if (series == NULL)
            return;
    } else if (is_shown(series)) {
        bool is_older = (int64_t)point->time_ns < (int64_t)series->time_ns;
        bool follows = is_delta && point->start_ns == series->time_ns;
        if (is_histogram && is_delta) {
            if (!follows && (int64_t)point->start_ns <= (int64_t)series->time_ns) {
                lose(addition, metric,
                     "a delta of a histogram does not begin where the last one ended", false);
                return;
            }
        } else if (is_older || (is_histogram && metric->temporality != TEMPORALITY_CUMULATIVE)) {
            return;
        }
        is_added = follows && (is_histogram || metric->kind == METRIC_SUM);
    }
    if (!is_shown(series)) {
        series->updated_ns = series->resource->updated_ns = addition->now_ns;
        lose(addition, metric, series->unusable, false);
        return;
    }
    if (!series_set_distribution(addition, series, point, is_added)) {
        lose(addition, metric, "there is no memory for its buckets or exemplars", true);
        if (series->updated_ns == 0)
            series_remove(store, series);
        return;
    }
    bool is_number = point->kind == METRIC_GAUGE || point->kind == METRIC_SUM;
    if (is_number)
        series_set_number(series, point, is_added);
    if (!is_added)
        series->start_ns = point->start_ns;
    if (!is_added || (int64_t)point->time_ns > (int64_t)series->time_ns)
        series->time_ns = point->time_ns;
    series->updated_ns = addition->now_ns;
    series->resource->updated_ns = addition->now_ns;
}

/* Whether Prometheus has something for the metric. */
static const char *unusable_reason(const struct metric *metric)
{
    if (metric->kind == METRIC_NONE)
        return "it has no data, or is of an unknown type";
    if (metric->name.size + metric->unit.size > METRIC_NAME_BYTES_MAX)
        return "its name and unit are too long";
    if (metric->kind != METRIC_SUM)
        return NULL;
    if (metric->temporality == TEMPORALITY_UNSPECIFIED)
        return "it is a sum without aggregation temporality";
    return metric->temporality == TEMPORALITY_DELTA && !metric->is_monotonic
               ? "it is a delta of a sum that is not monotonic"
               : NULL;
}

static void begin_metric(struct metric_addition *addition, struct slice bytes)
{
    forget_family(addition);
    addition->has_help = false;
    addition->metric = metric_read(bytes);
    const struct metric *metric = &addition->metric;
    addition->reason = unusable_reason(metric);
    addition->name = metric_hash_of(addition->store->seed, metric->name);
    addition->form = (uint32_t)XXH3_64bits(metric->unit.data, metric->unit.size) + type_of(metric);
    addition->points = metric_items_of(addition->metric.data, 1);
}

/* ScopeMetrics: 1 scope, 2 metrics, 3 schema_url. */
static void begin_scope(struct metric_addition *addition, struct slice bytes)
{
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    struct slice scope = {0};
    struct slice schema_url = {0};
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            scope = field.bytes;
        else if (field.number == 3)
            schema_url = field.bytes;
    }
    metric_labels_forget_scope(&addition->labels);
    addition->scope = scope_view_of(addition->store->seed, scope, schema_url);
    addition->metrics = metric_items_of(bytes, 2);
}

/* ResourceMetrics: 1 resource, 2 scope_metrics. */
static void begin_resource(struct metric_addition *addition, struct slice bytes)
{
    struct metric_items found = metric_items_of(bytes, 1);
    struct slice resource = {0};
    while (metric_items_next(&found, &resource))
        continue;
    forget_resource(addition);
    addition->resource = resource_view_of(addition->store->seed, resource);
    addition->scopes = metric_items_of(bytes, 2);
}

static void add_point(struct metric_addition *addition, struct slice bytes)
{
    struct metric_store *store = addition->store;
    const struct metric *metric = &addition->metric;
    const struct resource_view *resource = &addition->resource;
    if (addition->reason != NULL) {
        lose(addition, metric, addition->reason, false);
        return;
    }
    struct metric_point point = metric_point_read(metric->kind, bytes);
    struct {
        struct metric_hash name;
        struct metric_hash scope;
        struct metric_hash attributes;
        struct metric_hash target;
        struct metric_hash resource;
        uint64_t kind;
    } parts = {
        .name = addition->name,
        .scope = addition->scope.hash,
        .attributes =
            metric_hash_of_attributes(store->seed, bytes, metric_point_attributes(metric->kind)),
        .target = resource->target_hash,
        .resource = store->settings.labels.has_resource ? resource->hash : (struct metric_hash){0},
        .kind = metric->kind,
    };
    struct place place = {
        .resource = resource,
        .scope = &addition->scope,
        .metric = metric,
        .hash = metric_hash_of(store->seed, slice_of(&parts, sizeof(parts))),
        .form = addition->form,
    };
    if (!point.is_absent) {
        take_point(addition, &place, &point);
        return;
    }
    /* As in the Go collector, the rest of the metric is passed over. */
    struct series *series = series_find(store, &place.hash);
    if (series != NULL)
        series_remove(store, series);
    addition->points = metric_items_of((struct slice){0}, 1);
}

/* Reads one message. False: there is none left. */
static bool take_step(struct metric_addition *addition)
{
    struct slice bytes;
    if (metric_items_next(&addition->points, &bytes))
        add_point(addition, bytes);
    else if (metric_items_next(&addition->metrics, &bytes))
        begin_metric(addition, bytes);
    else if (metric_items_next(&addition->scopes, &bytes))
        begin_scope(addition, bytes);
    else if (metric_items_next(&addition->resources, &bytes))
        begin_resource(addition, bytes);
    else
        return false;
    addition->cost += 1 + bytes.size / COST_BYTES;
    return true;
}

/* ExportMetricsServiceRequest: 1 resource_metrics. */
struct metric_addition *metric_addition_create(struct metric_store *store, struct slice request,
                                               uint64_t now_ns)
{
    const struct metric_items none = metric_items_of((struct slice){0}, 1);
    struct metric_addition *addition = mem_alloc(sizeof(*addition));
    addition->store = store;
    addition->now_ns = now_ns;
    addition->request_bytes = request.size;
    addition->copied_bytes = 0;
    addition->losses = (struct metric_store_losses){.reason = NULL};
    addition->resources = metric_items_of(request, 1);
    addition->scopes = addition->metrics = addition->points = none;
    addition->resource_made = NULL;
    addition->has_no_resource = false;
    addition->family_made = NULL;
    addition->shape_made = NULL;
    metric_labels_begin(&addition->labels, &store->settings.labels, store->seed,
                        store->settings.budget);
    return addition;
}

bool metric_addition_go_on(struct metric_addition *addition)
{
    bool has_more = true;
    addition->cost = 0;
    pthread_mutex_lock(&addition->store->lock);
    while (has_more && addition->cost < COST_MAX)
        has_more = take_step(addition);
    pthread_mutex_unlock(&addition->store->lock);
    return has_more;
}

struct metric_store_losses metric_addition_end(struct metric_addition *addition)
{
    struct metric_store_losses losses = addition->losses;
    pthread_mutex_lock(&addition->store->lock);
    forget_family(addition);
    forget_resource(addition);
    forget_shape(addition);
    pthread_mutex_unlock(&addition->store->lock);
    metric_labels_end(&addition->labels);
    mem_free(addition);
    return losses;
}

static double value_of(const struct series *series)
{
    return series->is_integer ? (double)series->integer : series->real;
}

static void take_series(struct metric_store *store, struct metric_snapshot *snapshot,
                        struct series *series)
{
    /* It was taken, or came since. */
    if (!is_shown(series) || series->walk == store->walk)
        return;
    series->walk = store->walk;
    store->series_untaken--;
    if (series->updated_ns < snapshot->since_ns)
        return;
    series->refs++;
    snapshot->line_bytes += series_line_bytes(series);
    if (series->distribution != NULL)
        series->distribution->refs++;
    snapshot->shown[snapshot->count++] = (struct shown){
        .series = series,
        .distribution = series->distribution,
        .updated_ns = series->updated_ns,
        .time_ns = series->time_ns,
        .start_ns = series->start_ns,
        .value = value_of(series),
    };
}

static void take_resource(struct metric_store *store, struct metric_snapshot *snapshot,
                          struct resource *resource)
{
    if (resource->walk == store->walk)
        return;
    resource->walk = store->walk;
    store->resources_untaken--;
    if (resource->updated_ns < snapshot->since_ns)
        return;
    resource->refs++;
    snapshot->line_bytes += resource->labels.size + LINE_BYTES;
    snapshot->resources[snapshot->resources_count++] =
        (struct shown_resource){.resource = resource, .updated_ns = resource->updated_ns};
}

static void go_to_stage(struct metric_snapshot *snapshot, enum snapshot_stage stage)
{
    snapshot->stage = stage;
    snapshot->at = 0;
    snapshot->passes = 0;
    snapshot->capacity = 0;
}

/* Where this piece of a list of so many ends. */
static size_t piece_end(const struct metric_snapshot *snapshot, size_t count, size_t *left)
{
    const size_t more = snapshot->at < count ? count - snapshot->at : 0;
    const size_t taken = more < *left ? more : *left;
    *left -= taken;
    return snapshot->at + taken;
}

/* Those that the last scrape has shown, in their order. */
static void take_order(struct metric_store *store, struct metric_snapshot *snapshot, size_t *left)
{
    const size_t end = piece_end(snapshot, store->order_count, left);
    for (; snapshot->at < end; snapshot->at++) {
        if (snapshot->at + SERIES_AHEAD < store->order_count)
            series_prefetch(store->order[snapshot->at + SERIES_AHEAD]);
        if (store->order[snapshot->at] != NULL)
            take_series(store, snapshot, store->order[snapshot->at]);
    }
    if (snapshot->at < store->order_count)
        return;
    snapshot->sorted_count = snapshot->count;
    go_to_stage(snapshot, SNAPSHOT_NEWS);
}

/* The next place of a table, from its end to its beginning, since removals move objects to places
 * before theirs. A table that has grown, or whose first objects have moved to its end, is gone
 * through again. False: it was, often enough. */
static bool next_place(struct metric_snapshot *snapshot, const struct hash_table *table)
{
    enum { PASSES_MAX = 8 };
    if (snapshot->at == 0 || snapshot->capacity != table->capacity) {
        if (snapshot->passes++ == PASSES_MAX || table->capacity == 0)
            return false;
        snapshot->at = snapshot->capacity = table->capacity;
    }
    snapshot->at--;
    if (snapshot->at >= SERIES_AHEAD)
        series_prefetch(table->entries[snapshot->at - SERIES_AHEAD].object);
    return true;
}

/* False: so many of the table's objects still move that the piece at hand is over. */
static bool begin_table(struct hash_table *table, uint64_t untaken, size_t *left)
{
    if (untaken == 0 || hash_table_settle(table, *left))
        return true;
    *left = 0;
    return false;
}

/* Those that no scrape has shown. */
static void take_news(struct metric_store *store, struct metric_snapshot *snapshot, size_t *left)
{
    const struct hash_table *table = &store->series;
    if (!begin_table(&store->series, store->series_untaken, left))
        return;
    for (; store->series_untaken > 0 && *left > 0; --*left) {
        if (!next_place(snapshot, table))
            store->series_untaken = 0;
        else if (table->entries[snapshot->at].object != NULL)
            take_series(store, snapshot, table->entries[snapshot->at].object);
    }
    if (store->series_untaken == 0)
        go_to_stage(snapshot, SNAPSHOT_RESOURCES);
}

static void take_resources(struct metric_store *store, struct metric_snapshot *snapshot,
                           size_t *left)
{
    const struct hash_table *table = &store->resources;
    if (!begin_table(&store->resources, store->resources_untaken, left))
        return;
    for (; store->resources_untaken > 0 && *left > 0; --*left) {
        if (!next_place(snapshot, table))
            store->resources_untaken = 0;
        else if (table->entries[snapshot->at].object != NULL)
            take_resource(store, snapshot, table->entries[snapshot->at].object);
    }
    if (store->resources_untaken == 0)
        go_to_stage(snapshot, SNAPSHOT_TAKEN);
}

struct metric_snapshot *metric_store_snapshot(struct metric_store *store, uint64_t now_ns)
{
    pthread_mutex_lock(&store->lock);
    assert(store->at_work == NULL);
    size_t series_count = store->live_series;
    size_t resources_count = store->resources.count;
    size_t bytes = sizeof(struct metric_snapshot) + series_count * sizeof(struct shown) +
                   resources_count * sizeof(struct shown_resource);
    struct metric_snapshot *snapshot = NULL;
    if (charge_beyond(store, bytes)) {
        snapshot = mem_try_alloc_large(bytes);
        if (snapshot == NULL)
            discharge(store, bytes);
    }
    if (snapshot != NULL) {
        *snapshot = (struct metric_snapshot){
            .bytes = bytes,
            .since_ns = expiry_ns(store, now_ns),
            .has_timestamps = store->settings.has_timestamps,
            .target_name = store->target_name,
            .text_bytes = store->text_bytes + store->help_bytes + store->live_series * LINE_BYTES,
            .line_bytes = store->help_bytes,
            .shown = (struct shown *)(snapshot + 1),
            .resources = (struct shown_resource *)((struct shown *)(snapshot + 1) + series_count),
        };
        store->walk++;
        store->series_untaken = series_count;
        store->resources_untaken = resources_count;
        store->at_work = snapshot;
    }
    pthread_mutex_unlock(&store->lock);
    return snapshot;
}

bool metric_store_take(struct metric_store *store, struct metric_snapshot *snapshot)
{
    size_t left = PIECE_MAX;
    pthread_mutex_lock(&store->lock);
    assert(store->at_work == snapshot);
    if (snapshot->stage == SNAPSHOT_ORDER)
        take_order(store, snapshot, &left);
    if (snapshot->stage == SNAPSHOT_NEWS)
        take_news(store, snapshot, &left);
    if (snapshot->stage == SNAPSHOT_RESOURCES)
        take_resources(store, snapshot, &left);
    bool has_more = snapshot->stage != SNAPSHOT_TAKEN;
    if (!has_more)
        store->at_work = NULL;
    pthread_mutex_unlock(&store->lock);
    return has_more;
}

/* The order of a snapshot that is sorted is kept, for the next one. Without room for it the next
 * one is sorted again. */
static void begin_release(struct metric_store *store, struct metric_snapshot *snapshot)
{
    assert(store->at_work == NULL || store->at_work == snapshot);
    store->at_work = snapshot;
    if (!snapshot->is_sorted || !snapshot->has_news) {
        go_to_stage(snapshot, SNAPSHOT_RELEASE);
        return;
    }
    size_t bytes = snapshot->count * sizeof(struct series *);
    if (charge_beyond(store, bytes)) {
        snapshot->order = mem_try_alloc(bytes + 1);
        if (snapshot->order == NULL)
            discharge(store, bytes);
    }
    go_to_stage(snapshot, SNAPSHOT_FORGET_ORDER);
}

static void forget_order(struct metric_store *store, struct metric_snapshot *snapshot, size_t *left)
{
    const size_t end = piece_end(snapshot, store->order_count, left);
    for (; snapshot->at < end; snapshot->at++) {
        struct series **place = &store->order[snapshot->at];
        if (snapshot->at + SERIES_AHEAD < store->order_count)
            __builtin_prefetch(store->order[snapshot->at + SERIES_AHEAD]);
        if (*place == NULL)
            continue;
        (*place)->place = PLACE_NONE;
        *place = NULL;
    }
    if (snapshot->at < store->order_count)
        return;
    snapshot->keeps_order = snapshot->order != NULL;
    set_order(store, snapshot->order,
              snapshot->keeps_order ? snapshot->count * sizeof(struct series *) : 0);
    go_to_stage(snapshot, SNAPSHOT_RELEASE);
}

/* Unless the store has dropped the order since. */
static void keep_place(struct metric_store *store, struct series *series, size_t place)
{
    if (store->order == NULL || store->order_count != place)
        return;
    store->order[store->order_count++] = series->is_removed ? NULL : series;
    if (!series->is_removed)
        series->place = (uint32_t)place;
}

static void release_series(struct metric_store *store, struct metric_snapshot *snapshot,
                           size_t *left)
{
    const size_t end = piece_end(snapshot, snapshot->count, left);
    for (; snapshot->at < end; snapshot->at++) {
        const struct shown *shown = &snapshot->shown[snapshot->at];
        if (snapshot->at + SERIES_AHEAD < snapshot->count)
            __builtin_prefetch(shown[SERIES_AHEAD].series);
        if (snapshot->keeps_order)
            keep_place(store, shown->series, snapshot->at);
        distribution_unref(store, shown->distribution);
        series_unref(store, shown->series);
    }
    if (snapshot->at == snapshot->count)
        go_to_stage(snapshot, SNAPSHOT_RELEASE_RESOURCES);
}

static void release_resources(struct metric_store *store, struct metric_snapshot *snapshot,
                              size_t *left)
{
    const size_t end = piece_end(snapshot, snapshot->resources_count, left);
    for (; snapshot->at < end; snapshot->at++)
        resource_unref(store, snapshot->resources[snapshot->at].resource);
    if (snapshot->at == snapshot->resources_count)
        go_to_stage(snapshot, SNAPSHOT_RELEASED);
}

uint64_t metric_snapshot_bytes(const struct metric_snapshot *snapshot)
{
    return snapshot->line_bytes;
}

bool metric_store_release(struct metric_store *store, struct metric_snapshot *snapshot)
{
    size_t left = PIECE_MAX;
    if (snapshot == NULL)
        return false;
    pthread_mutex_lock(&store->lock);
    if (snapshot->stage <= SNAPSHOT_TAKEN)
        begin_release(store, snapshot);
    if (snapshot->stage == SNAPSHOT_FORGET_ORDER)
        forget_order(store, snapshot, &left);
    if (snapshot->stage == SNAPSHOT_RELEASE)
        release_series(store, snapshot, &left);
    if (snapshot->stage == SNAPSHOT_RELEASE_RESOURCES)
        release_resources(store, snapshot, &left);
    bool has_more = snapshot->stage != SNAPSHOT_RELEASED;
    if (!has_more) {
        store->at_work = NULL;
        discharge(store, snapshot->bytes);
    }
    pthread_mutex_unlock(&store->lock);
    if (!has_more)
        mem_free_large(snapshot, snapshot->bytes);
    return has_more;
}
