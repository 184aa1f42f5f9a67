/* SPDX-License-Identifier: Apache-2.0 */
/* The store of series. Runs on the owner's lane. */
#include "connectors/span_metrics/span_series.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

/* Of a hash table, for each object in it: entries have 16 bytes, and up to 5/8 of them are free. */
enum { TABLE_ENTRY_BYTES = 32 };

void span_series_store_init(struct series_store *store, struct series_settings *settings)
{
    *store = (struct series_store){.settings = settings};
}

/* Memory of the store: charged to its share and to the budget. may_exceed: for what is little. */
static void *take(struct series_settings *settings, size_t bytes, bool may_exceed)
{
    uint64_t before = atomic_fetch_add_explicit(&settings->bytes, bytes, memory_order_relaxed);
    bool has_room = may_exceed || before + bytes <= settings->bytes_max;
    if (may_exceed && settings->budget != NULL)
        budget_take(settings->budget, bytes);
    bool is_given = has_room && (may_exceed || settings->budget == NULL ||
                                 budget_try_take(settings->budget, bytes));
    void *memory = is_given ? mem_try_alloc(bytes) : NULL;
    if (memory == NULL) {
        if (is_given && settings->budget != NULL)
            budget_return(settings->budget, bytes);
        atomic_fetch_sub_explicit(&settings->bytes, bytes, memory_order_relaxed);
    }
    return memory;
}

static void give_back(struct series_settings *settings, void *memory, size_t bytes)
{
    mem_free(memory);
    if (settings->budget != NULL)
        budget_return(settings->budget, bytes);
    atomic_fetch_sub_explicit(&settings->bytes, bytes, memory_order_relaxed);
}

bool span_series_has_histogram(const struct series_settings *settings, enum series_set set)
{
    enum series_set with = settings->has_common_labels ? SERIES_CALLS : SERIES_DURATION;
    return settings->histogram != HISTOGRAM_NONE && set == with;
}

static size_t histogram_bytes(const struct series_settings *settings, enum series_set set)
{
    if (!span_series_has_histogram(settings, set))
        return 0;
    return settings->histogram == HISTOGRAM_EXPLICIT
               ? sizeof(struct explicit_histogram) + (settings->bounds_count + 1) * sizeof(uint64_t)
               : sizeof(struct exponential_histogram);
}

struct explicit_histogram *span_series_explicit(struct series *series)
{
    return (struct explicit_histogram *)series->content;
}

struct exponential_histogram *span_series_exponential(struct series *series)
{
    return (struct exponential_histogram *)series->content;
}

const uint8_t *span_series_labels_of(const struct series_settings *settings, enum series_set set,
                                     const struct series *series)
{
    return (const uint8_t *)series->content + histogram_bytes(settings, set);
}

static size_t labels_bytes(const struct series *series)
{
    return (size_t)series->service_bytes + series->name_bytes + series->others_bytes;
}

static size_t series_bytes(const struct series_settings *settings, enum series_set set,
                           size_t labels)
{
    return sizeof(struct series) + histogram_bytes(settings, set) + labels;
}

static size_t exemplars_bytes(const struct series_settings *settings)
{
    return sizeof(struct series_exemplars) +
           settings->exemplars_max * sizeof(struct point_exemplar);
}

static void free_series(struct series_settings *settings, enum series_set set,
                        struct series *series)
{
    size_t bytes = series_bytes(settings, set, labels_bytes(series)) + TABLE_ENTRY_BYTES;
    if (series->exemplars != NULL)
        give_back(settings, series->exemplars, exemplars_bytes(settings));
    if (span_series_has_histogram(settings, set) && settings->histogram == HISTOGRAM_EXPONENTIAL)
        exponential_histogram_fini(span_series_exponential(series), settings->budget);
    give_back(settings, series, bytes);
}

/* Takes *link out of the list. */
static struct series *unlink_series(struct series_store *store, struct series_list *list,
                                    struct series **link)
{
    struct series *series = *link;
    *link = series->next;
    if (list->end == &series->next)
        list->end = link;
    if (series == list->overflow)
        list->overflow = NULL;
    else
        hash_table_remove(&list->table, series->key.low, series);
    list->count--;
    store->series--;
    return series;
}

void span_series_remove(struct series_store *store, struct series_resource *resource,
                        enum series_set set, struct series **link)
{
    free_series(store->settings, set, unlink_series(store, &resource->sets[set], link));
}

static size_t resource_bytes(size_t attributes)
{
    return sizeof(struct series_resource) + attributes + TABLE_ENTRY_BYTES;
}

static void leave_used(struct series_store *store, struct series_resource *resource)
{
    if (resource->newer != NULL)
        resource->newer->older = resource->older;
    else
        store->newest = resource->older;
    if (resource->older != NULL)
        resource->older->newer = resource->newer;
    else
        store->oldest = resource->newer;
    store->kept--;
}

static void enter_used(struct series_store *store, struct series_resource *resource)
{
    resource->newer = NULL;
    resource->older = store->newest;
    if (store->newest != NULL)
        store->newest->newer = resource;
    else
        store->oldest = resource;
    store->newest = resource;
    store->kept++;
}

void span_series_resource_evict(struct series_store *store, struct series_resource *resource)
{
    assert(!resource->is_evicted);
    leave_used(store, resource);
    resource->is_evicted = true;
    store->evicted++;
}

void span_series_resource_free(struct series_store *store, struct series_resource *resource)
{
    if (resource->is_evicted)
        store->evicted--;
    else
        leave_used(store, resource);
    for (unsigned i = 0; i < SERIES_SETS; i++) {
        struct series_list *list = &resource->sets[i];
        while (list->first != NULL) {
            struct series *series = list->first;
            list->first = series->next;
            free_series(store->settings, (enum series_set)i, series);
        }
        store->series -= list->count;
        hash_table_clear(&list->table);
    }
    if (store->flushing == resource) {
        store->flushing = resource->next;
        store->has_moved_on = true;
    }
    *(resource->prev != NULL ? &resource->prev->next : &store->first) = resource->next;
    *(resource->next != NULL ? &resource->next->prev : &store->last) = resource->prev;
    hash_table_remove(&store->resources, resource->key.low, resource);
    give_back(store->settings, resource, resource_bytes(resource->attributes_bytes));
}

void span_series_store_fini(struct series_store *store)
{
    while (store->first != NULL)
        span_series_resource_free(store, store->first);
    hash_table_clear(&store->resources);
    store->flushing = NULL;
}

static struct series_resource *first_evicted(const struct series_store *store)
{
    struct series_resource *resource = store->first;
    while (resource != NULL && (!resource->is_evicted || resource->is_pinned))
        resource = resource->next;
    return resource;
}

static struct series_resource *create_resource(struct series_store *store, struct text_hash key,
                                               struct slice attributes, bool may_exceed)
{
    struct series_settings *settings = store->settings;
    size_t bytes = resource_bytes(attributes.size);
    struct series_resource *resource = take(settings, bytes, may_exceed);
    if (resource == NULL)
        return NULL;
    *resource = (struct series_resource){
        .key = key, .attributes_bytes = (uint32_t)attributes.size, .prev = store->last};
    if (!hash_table_add(&store->resources, key.low, resource)) {
        give_back(settings, resource, bytes);
        return NULL;
    }
    for (unsigned i = 0; i < SERIES_SETS; i++)
        resource->sets[i].end = &resource->sets[i].first;
    if (attributes.size > 0)
        memcpy(resource->attributes, attributes.data, attributes.size);
    *(store->last != NULL ? &store->last->next : &store->first) = resource;
    store->last = resource;
    enter_used(store, resource);
    return resource;
}

/* Those beyond the limit go: first to the next flush, of these the oldest for good. */
static void keep_limits(struct series_store *store)
{
    uint64_t most = store->settings->resources_max;
    if (store->kept > most)
        span_series_resource_evict(store, store->oldest);
    struct series_resource *evicted = store->evicted > most ? first_evicted(store) : NULL;
    if (evicted != NULL)
        span_series_resource_free(store, evicted);
}

struct series_resource *span_series_resource_get(struct series_store *store, struct text_hash key,
                                                 uint64_t now_ns)
{
    size_t at = 0;
    struct series_resource *resource = store->newest;
    if (resource == NULL || resource->key.low != key.low || resource->key.high != key.high) {
        do
            resource = hash_table_next(&store->resources, key.low, &at);
        while (resource != NULL && resource->key.high != key.high);
        if (resource == NULL)
            return NULL;
    }
    if (resource->is_evicted) {
        resource->is_evicted = false;
        store->evicted--;
        enter_used(store, resource);
        keep_limits(store);
    } else if (resource != store->newest) {
        leave_used(store, resource);
        enter_used(store, resource);
    }
    resource->seen_ns = now_ns;
    return resource;
}

static struct series_resource *add_resource(struct series_store *store, struct text_hash key,
                                            struct slice attributes, uint64_t now_ns,
                                            bool may_exceed)
{
    struct series_resource *resource = create_resource(store, key, attributes, may_exceed);
    /* What is sent once more and gone gives way to what is new. */
    struct series_resource *evicted = resource == NULL ? first_evicted(store) : NULL;
    if (evicted != NULL) {
        span_series_resource_free(store, evicted);
        resource = create_resource(store, key, attributes, may_exceed);
    }
    if (resource == NULL)
        return NULL;
    resource->seen_ns = now_ns;
    keep_limits(store);
    return resource;
}

struct series_resource *span_series_resource_add(struct series_store *store, struct text_hash key,
                                                 struct slice attributes, uint64_t now_ns)
{
    return add_resource(store, key, attributes, now_ns, false);
}

struct series *span_series_find(struct series_resource *resource, enum series_set set,
                                struct text_hash key)
{
    size_t at = 0;
    struct series *series;
    do
        series = hash_table_next(&resource->sets[set].table, key.low, &at);
    while (series != NULL && series->key.high != key.high);
    return series;
}

/* The low bits choose the place in hash tables. */
static _Atomic uint64_t *known_word(struct series_known *known, unsigned set, struct text_hash key)
{
    return &known->sets[set][(key.high % KNOWN_BITS) / 64];
}

static bool is_known(struct series_known *known, struct text_hash key)
{
    unsigned set = atomic_load_explicit(&known->current, memory_order_acquire);
    uint64_t word = atomic_load_explicit(known_word(known, set, key), memory_order_relaxed);
    return (word >> key.high % 64 & 1) != 0;
}

void span_series_known_begin(struct series_known *known)
{
    unsigned set = !atomic_load_explicit(&known->current, memory_order_relaxed);
    for (size_t i = 0; i < KNOWN_BITS / 64; i++)
        atomic_store_explicit(&known->sets[set][i], 0, memory_order_relaxed);
}

void span_series_known_add(struct series_known *known, struct text_hash key)
{
    unsigned set = !atomic_load_explicit(&known->current, memory_order_relaxed);
    atomic_fetch_or_explicit(known_word(known, set, key), UINT64_C(1) << key.high % 64,
                             memory_order_relaxed);
}

void span_series_known_end(struct series_known *known)
{
    unsigned set = !atomic_load_explicit(&known->current, memory_order_relaxed);
    atomic_store_explicit(&known->current, set, memory_order_release);
}

bool span_series_has_room(const struct series_store *store, const struct series_resource *resource,
                          enum series_set set, struct text_hash key)
{
    const struct series_settings *settings = store->settings;
    uint64_t most = settings->series_max;
    uint64_t count = resource->sets[set].count;
    return most == 0 || count < most ||
           (!store->is_main && settings->known != NULL && count < 2 * most &&
            is_known(settings->known, key));
}

static void append(struct series_store *store, struct series_list *list, struct series *series)
{
    *list->end = series;
    list->end = &series->next;
    list->count++;
    store->series++;
}

static struct series *create_series(struct series_store *store, enum series_set set,
                                    struct text_hash key, const struct series_labels *labels,
                                    struct series_time time, bool may_exceed)
{
    const struct series_settings *settings = store->settings;
    size_t histogram = histogram_bytes(settings, set);
    size_t size = labels->service.size + labels->name.size + labels->others.size;
    struct series *series =
        take(store->settings, series_bytes(settings, set, size) + TABLE_ENTRY_BYTES, may_exceed);
    if (series == NULL)
        return NULL;
    *series = (struct series){.key = key,
                              .start_ns = time.wall_ns,
                              .seen_ns = time.now_ns,
                              .service_bytes = (uint32_t)labels->service.size,
                              .name_bytes = (uint32_t)labels->name.size,
                              .others_bytes = (uint32_t)labels->others.size,
                              .kind = labels->kind,
                              .status = labels->status,
                              .born = store->flush};
    memset(series->content, 0, histogram);
    if (histogram > 0 && settings->histogram == HISTOGRAM_EXPONENTIAL)
        exponential_histogram_init(span_series_exponential(series));
    uint8_t *at = (uint8_t *)series->content + histogram;
    const struct slice parts[] = {labels->service, labels->name, labels->others};
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].size > 0)
            memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    return series;
}

bool span_series_fit(const struct series_labels *labels)
{
    return labels->service.size <= SERIES_LABELS_BYTES_MAX &&
           labels->name.size <= SERIES_LABELS_BYTES_MAX &&
           labels->others.size <= SERIES_LABELS_BYTES_MAX;
}

struct series *span_series_add(struct series_store *store, struct series_resource *resource,
                               enum series_set set, struct text_hash key,
                               const struct series_labels *labels, struct series_time time)
{
    struct series_list *list = &resource->sets[set];
    if (!span_series_fit(labels))
        return NULL;
    struct series *series = create_series(store, set, key, labels, time, false);
    if (series == NULL)
        return NULL;
    if (!hash_table_add(&list->table, key.low, series)) {
        free_series(store->settings, set, series);
        return NULL;
    }
    append(store, list, series);
    return series;
}

struct series *span_series_overflow(struct series_store *store, struct series_resource *resource,
                                    enum series_set set, struct series_time time)
{
    const struct series_labels none = {.kind = 0};
    struct series_list *list = &resource->sets[set];
    if (list->overflow != NULL)
        return list->overflow;
    /* Not in the table; but each has a key of its own, for its last time. */
    struct text_hash key = {resource->key.low + set, ~resource->key.high};
    struct series *series = create_series(store, set, key, &none, time, true);
    if (series == NULL)
        return NULL;
    series->is_overflow = true;
    list->overflow = series;
    append(store, list, series);
    return series;
}

void span_series_observe(const struct series_settings *settings, enum series_set set,
                         struct series *series, double duration, uint64_t times)
{
    series->count += times;
    if (!span_series_has_histogram(settings, set))
        return;
    if (settings->histogram == HISTOGRAM_EXPONENTIAL) {
        exponential_histogram_add(span_series_exponential(series), duration, times,
                                  settings->max_size, settings->budget);
        return;
    }
    struct explicit_histogram *histogram = span_series_explicit(series);
    size_t bucket = explicit_bucket(settings->bounds, settings->bounds_count, duration);
    histogram->sum += duration * (double)times;
    histogram->counts[bucket] += times;
}

void span_series_exemplify(struct series_settings *settings, struct series *series,
                           const struct point_exemplar *exemplar)
{
    struct series_exemplars *exemplars = series->exemplars;
    if (settings->exemplars_max == 0 || series->is_overflow)
        return;
    if (exemplars == NULL) {
        exemplars = take(settings, exemplars_bytes(settings), false);
        if (exemplars == NULL)
            return;
        exemplars->count = 0;
        series->exemplars = exemplars;
    }
    if (exemplars->count < settings->exemplars_max)
        exemplars->items[exemplars->count++] = *exemplar;
}

static void merge_series(struct series_settings *settings, enum series_set set, struct series *into,
                         struct series *from)
{
    into->count += from->count;
    into->start_ns =
        from->start_ns < into->start_ns && into->zero_flush == 0 ? from->start_ns : into->start_ns;
    if (!into->is_overflow && from->seen_ns > into->seen_ns)
        into->seen_ns = from->seen_ns;
    if (span_series_has_histogram(settings, set) && settings->histogram == HISTOGRAM_EXPONENTIAL) {
        exponential_histogram_merge(span_series_exponential(into), span_series_exponential(from),
                                    settings->max_size, settings->budget);
    } else if (span_series_has_histogram(settings, set)) {
        const struct explicit_histogram *other = span_series_explicit(from);
        struct explicit_histogram *histogram = span_series_explicit(into);
        histogram->sum += other->sum;
        for (size_t i = 0; i <= settings->bounds_count; i++)
            histogram->counts[i] += other->counts[i];
    }
    for (size_t i = 0; from->exemplars != NULL && i < from->exemplars->count; i++)
        span_series_exemplify(settings, into, &from->exemplars->items[i]);
}

/* Adds the series to the resource, or makes it one of its series. */
static void adopt(struct series_store *store, struct series_resource *resource, enum series_set set,
                  struct series *series, uint64_t *lost)
{
    struct series_list *list = &resource->sets[set];
    struct series *into = series->is_overflow ? NULL : span_series_find(resource, set, series->key);
    bool has_room = !series->is_overflow && span_series_has_room(store, resource, set, series->key);
    if (into == NULL && has_room && hash_table_add(&list->table, series->key.low, series)) {
        append(store, list, series);
        return;
    }
    if (into == NULL)
        into = span_series_overflow(store, resource, set,
                                    (struct series_time){series->start_ns, series->seen_ns});
    if (into != NULL)
        merge_series(store->settings, set, into, series);
    else if (set == SERIES_CALLS)
        *lost += series->count;
    free_series(store->settings, set, series);
}

bool span_series_store_merge(struct series_store *into, struct series_store *from, size_t most,
                             uint64_t *lost)
{
    while (from->first != NULL) {
        struct series_resource *resource = from->first;
        struct slice attributes = slice_of(resource->attributes, resource->attributes_bytes);
        struct series_resource *target =
            span_series_resource_get(into, resource->key, resource->seen_ns);
        /* Beyond the limits if need be: the other one is freed once its series are moved. */
        if (target == NULL)
            target = add_resource(into, resource->key, attributes, resource->seen_ns, true);
        for (unsigned i = 0; i < SERIES_SETS; i++) {
            struct series_list *list = &resource->sets[i];
            while (list->first != NULL && target != NULL) {
                if (most-- == 0)
                    return true;
                struct series *series = unlink_series(from, list, &list->first);
                series->next = NULL;
                adopt(into, target, (enum series_set)i, series, lost);
            }
        }
        for (struct series *series = resource->sets[SERIES_CALLS].first; series != NULL;
             series = series->next)
            *lost += series->count;
        span_series_resource_free(from, resource);
    }
    return false;
}
