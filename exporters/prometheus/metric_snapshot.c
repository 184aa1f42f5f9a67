/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a snapshot, sorted, and gives each point the form that Prometheus has for it. Any
 * thread. */
#include <assert.h>
#include <math.h>

#include "exporters/prometheus/metric_series.h"
#include "exporters/prometheus/metric_store.h"
#include "src/base/clock.h"
#include "src/base/merge_sort.h"
#include "src/base/scratch.h"

enum { SCALE_MIN = -4, SCALE_MAX = 8 }; /* of native histograms */
/* For exponential histograms that do not say what they count as zero. */
static const double zero_threshold_default = 1e-128;

/* As series are ordered. What is escaped is compared so. */
static int compare_each_value(struct slice a, struct slice b)
{
    struct slice name;
    struct slice left;
    struct slice right;
    int order = 0;
    for (;;) {
        bool has_left = exposition_label_next(&a, &name, &left);
        bool has_right = exposition_label_next(&b, &name, &right);
        if (has_left != has_right)
            return has_left ? 1 : -1;
        if (!has_left)
            return order;
        if (order == 0)
            order = slice_compare(left, right);
    }
}

/* By target, the last that came first. */
static int compare_resources(const void *a, const void *b)
{
    const struct shown_resource *left = a;
    const struct shown_resource *right = b;
    const struct metric_hash *left_target = &left->resource->target;
    const struct metric_hash *right_target = &right->resource->target;
    if (left_target->low != right_target->low)
        return left_target->low < right_target->low ? -1 : 1;
    if (left_target->high != right_target->high)
        return left_target->high < right_target->high ? -1 : 1;
    return (left->updated_ns < right->updated_ns) - (left->updated_ns > right->updated_ns);
}

static int compare_targets(const void *a, const void *b)
{
    return compare_each_value(((const struct shown_resource *)a)->resource->labels,
                              ((const struct shown_resource *)b)->resource->labels);
}

/* Memory for one series at a time, charged to the budget of the exposition. */
struct rooms {
    struct scratch labels;
    struct scratch buckets;
    struct scratch native;
    struct scratch sort;
};

static void rooms_fini(struct rooms *rooms, struct budget *budget)
{
    scratch_fini(&rooms->labels, budget);
    scratch_fini(&rooms->buckets, budget);
    scratch_fini(&rooms->native, budget);
    scratch_fini(&rooms->sort, budget);
}

/* Room for so many bytes. NULL: no memory, and the exposition fails. */
static void *room_for(struct scratch *scratch, struct exposition *exposition, size_t bytes)
{
    void *memory = scratch_reserve(scratch, exposition->budget, bytes + 1, bytes + 1);
    exposition->has_failed |= memory == NULL;
    return memory;
}

/* False: no memory. */
static bool sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *),
                 struct exposition *exposition, struct rooms *rooms)
{
    void *room = room_for(&rooms->sort, exposition, count * size);
    if (room != NULL)
        merge_sort(items, room, count, size, compare);
    return room != NULL;
}

/* Leaves one resource of each target, in the order of their labels. False: no memory. */
static bool sort_resources(struct metric_snapshot *snapshot, struct exposition *exposition,
                           struct rooms *rooms, size_t *ret_count)
{
    size_t kept = 0;
    struct shown_resource *list = snapshot->resources;
    if (!sort(list, snapshot->resources_count, sizeof(list[0]), compare_resources, exposition,
              rooms))
        return false;
    for (size_t i = 0; i < snapshot->resources_count; i++) {
        const struct shown_resource shown = list[i];
        const struct metric_hash *target = &shown.resource->target;
        bool is_shown = shown.resource->has_target &&
                        (kept == 0 || target->low != list[kept - 1].resource->target.low ||
                         target->high != list[kept - 1].resource->target.high);
        if (!is_shown)
            continue;
        list[i] = list[kept];
        list[kept++] = shown;
    }
    *ret_count = kept;
    return sort(list, kept, sizeof(list[0]), compare_targets, exposition, rooms);
}

static void write_targets(const struct metric_snapshot *snapshot, size_t count, struct slice name,
                          struct exposition *exposition)
{
    exposition_begin(exposition, &(struct exposition_family){
                                     .name = name,
                                     .help = slice_of_text("Target metadata"),
                                     .type = EXPOSITION_GAUGE,
                                 });
    for (size_t i = 0; i < count; i++)
        exposition_add(exposition,
                       &(struct exposition_sample){
                           .labels = snapshot->resources[i].resource->labels,
                           .has_plain_labels = snapshot->resources[i].resource->has_plain_labels,
                           .value = 1,
                       });
}

/* NaN last. */
static int compare_bounds(const void *a, const void *b)
{
    const struct exposition_bucket *left = a;
    const struct exposition_bucket *right = b;
    if (isnan(left->bound) || isnan(right->bound))
        return isnan(left->bound) - isnan(right->bound);
    return (left->bound > right->bound) - (left->bound < right->bound);
}

/* Puts each exemplar into the first bucket whose bound it does not exceed; the last one stays.
 * Beyond all bounds they make one of their own. Returns the number of buckets. */
static size_t place_exemplars(const struct metric_distribution *distribution,
                              struct exposition_bucket *buckets, size_t count)
{
    for (size_t i = 0; i < distribution->exemplars_count; i++) {
        const struct exposition_exemplar *exemplar = &distribution->exemplars[i];
        size_t low = 0;
        size_t high = count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (buckets[middle].bound >= exemplar->value)
                high = middle;
            else
                low = middle + 1;
        }
        /* NaN is beyond that one, too. */
        bool has_infinity = count > 0 && buckets[count - 1].bound == (double)INFINITY;
        if (low == count && has_infinity)
            low--;
        else if (low == count)
            buckets[count++] =
                (struct exposition_bucket){.bound = (double)INFINITY, .count = distribution->count};
        buckets[low].exemplar = exemplar;
    }
    return count;
}

/* Bounds in order, each once (the first of equal ones), with cumulative counts. */
static size_t explicit_buckets(const struct metric_distribution *distribution,
                               struct exposition_bucket *buckets, struct exposition *exposition,
                               struct rooms *rooms)
{
    size_t count = 0;
    bool is_ascending = true;
    for (size_t i = 0; i < distribution->bounds_count; i++) {
        is_ascending =
            is_ascending && (i == 0 || distribution->bounds[i - 1] < distribution->bounds[i]);
        buckets[count++] = (struct exposition_bucket){
            .bound = distribution->bounds[i],
            .count = i < distribution->counts_count ? distribution->counts[i] : 0,
        };
    }
    if (!is_ascending) {
        if (!sort(buckets, count, sizeof(buckets[0]), compare_bounds, exposition, rooms))
            return 0;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (kept == 0 || buckets[kept - 1].bound != buckets[i].bound)
                buckets[kept++] = buckets[i];
        count = kept;
    }
    for (size_t i = 1; i < count; i++)
        buckets[i].count += buckets[i - 1].count;
    return count;
}

static size_t quantile_buckets(const struct metric_quantiles *quantiles,
                               struct exposition_bucket *buckets, struct exposition *exposition,
                               struct rooms *rooms)
{
    size_t kept = 0;
    for (size_t i = 0; i < quantiles->count; i++)
        buckets[i] = (struct exposition_bucket){.bound = quantiles->list[i].quantile,
                                                .value = quantiles->list[i].value};
    if (!sort(buckets, quantiles->count, sizeof(buckets[0]), compare_bounds, exposition, rooms))
        return 0;
    for (size_t i = 0; i < quantiles->count; i++) {
        kept -= kept > 0 && buckets[kept - 1].bound == buckets[i].bound;
        buckets[kept++] = buckets[i];
    }
    return kept;
}

/* At Prometheus's finest scale if need be. Returns how many. */
static size_t native_buckets(const struct metric_buckets *from, unsigned shift,
                             struct exposition_native_bucket *buckets, uint64_t *population)
{
    size_t count = 0;
    for (size_t i = 0; i < from->count; i++) {
        int32_t index = (int32_t)((((int64_t)from->offset + (int64_t)i) >> shift) + 1);
        *population += from->counts[i];
        if (count > 0 && buckets[count - 1].index == index)
            buckets[count - 1].count += from->counts[i];
        else
            buckets[count++] =
                (struct exposition_native_bucket){.index = index, .count = from->counts[i]};
    }
    return count;
}

/* Fills native, with arrays in the room for it. False: it cannot be shown. */
static bool native_of(const struct metric_distribution *distribution,
                      struct exposition_native *native, struct exposition *exposition,
                      struct rooms *rooms)
{
    uint64_t population = distribution->zero_count; /* wraps, as in the Go client */
    int64_t more = (int64_t)distribution->scale - SCALE_MAX;
    unsigned shift = more > 0 ? (unsigned)(more < 40 ? more : 40) : 0;
    size_t positive = distribution->positive.count;
    size_t count = positive + distribution->negative.count;
    if (distribution->scale < SCALE_MIN)
        return false;
    struct exposition_native_bucket *buckets =
        room_for(&rooms->native, exposition, count * sizeof(*buckets));
    if (buckets == NULL)
        return false;
    *native = (struct exposition_native){
        .schema = distribution->scale > SCALE_MAX ? SCALE_MAX : distribution->scale,
        .zero_threshold = distribution->zero_threshold != 0 ? distribution->zero_threshold
                                                            : zero_threshold_default,
        .zero_count = distribution->zero_count,
        .positive = buckets,
        .negative = buckets + positive,
    };
    native->positive_count = native_buckets(&distribution->positive, shift, buckets, &population);
    native->negative_count =
        native_buckets(&distribution->negative, shift, buckets + positive, &population);
    return isnan(distribution->sum) ? (int64_t)population <= (int64_t)distribution->count
                                    : population == distribution->count;
}

/* The labels of a series, in the room for them. NULL: no memory. */
static const char *write_labels(const struct series *series, struct exposition *exposition,
                                struct rooms *rooms, size_t *ret_size)
{
    const struct label_values values = series_values(series);
    char *text = room_for(&rooms->labels, exposition, label_text_max(&values));
    *ret_size = text != NULL ? label_text_write(&values, text) : 0;
    return text;
}

/* Begins the family with its first series that can be shown. Returns whether this one can be. */
static bool write_series(const struct metric_snapshot *snapshot, const struct shown *shown,
                         struct exposition *exposition, struct rooms *rooms, bool is_begun)
{
    size_t labels_bytes;
    const char *labels = write_labels(shown->series, exposition, rooms, &labels_bytes);
    if (labels == NULL)
        return false;
    const struct family *family = shown->series->family;
    const struct metric_distribution *distribution = shown->distribution;
    struct exposition_native native;
    struct exposition_bucket *buckets = NULL;
    struct exposition_sample sample = {
        .labels = slice_of(labels, labels_bytes),
        .has_plain_labels = shown->series->shape->is_plain,
        .has_time = snapshot->has_timestamps,
        .time_ns = shown->time_ns,
        .created_ns = shown->start_ns >= NS_PER_S ? shown->start_ns : 0,
        .value = shown->value,
    };
    bool is_shown = true;
    if (distribution != NULL) {
        size_t room = distribution->bounds_count + distribution->quantiles.count + 1;
        sample.exemplars = distribution->exemplars;
        sample.exemplars_count = distribution->exemplars_count;
        if (distribution->kind != METRIC_SUM) {
            buckets = room_for(&rooms->buckets, exposition, room * sizeof(*buckets));
            is_shown = buckets != NULL;
            sample.value = distribution->sum;
            sample.count = distribution->count;
            sample.buckets = buckets;
        }
    }
    if (buckets != NULL && distribution->kind == METRIC_SUMMARY) {
        sample.buckets_count =
            quantile_buckets(&distribution->quantiles, buckets, exposition, rooms);
    } else if (buckets != NULL && distribution->kind == METRIC_HISTOGRAM) {
        sample.buckets_count = explicit_buckets(distribution, buckets, exposition, rooms);
        sample.buckets_count = place_exemplars(distribution, buckets, sample.buckets_count);
    } else if (buckets != NULL) {
        is_shown = native_of(distribution, &native, exposition, rooms);
        sample.native = &native;
        sample.exemplars_count = distribution->exemplars_count;
    }
    if (is_shown && !is_begun)
        exposition_begin(exposition, &(struct exposition_family){
                                         .name = family->name,
                                         .help = family->help,
                                         .type = family->type,
                                     });
    if (is_shown)
        exposition_add(exposition, &sample);
    return is_shown;
}

/* Of series with equal labels the one whose point came last. They lie side by side. */
static const struct shown *last_of_equal(const struct metric_snapshot *snapshot, size_t *at)
{
    const struct shown *best = &snapshot->shown[*at];
    for (; *at + 1 < snapshot->count; ++*at) {
        const struct shown *next = &snapshot->shown[*at + 1];
        const struct label_values left = series_values(best->series);
        const struct label_values right = series_values(next->series);
        if (next->series->family != best->series->family || !label_values_equal(&left, &right))
            break;
        best = next->updated_ns > best->updated_ns ? next : best;
    }
    return best;
}

void metric_snapshot_write(struct metric_snapshot *snapshot, struct exposition *exposition)
{
    struct slice target_name = slice_of_text(snapshot->target_name);
    const struct family *family = NULL;
    bool is_begun = false;
    size_t targets;
    struct rooms rooms = {.labels = {0}};
    if (!sort_resources(snapshot, exposition, &rooms, &targets) ||
        !metric_snapshot_sort(snapshot, exposition->budget)) {
        exposition->has_failed = true;
        rooms_fini(&rooms, exposition->budget);
        return;
    }
    exposition_expect(exposition, snapshot->text_bytes);
    for (size_t i = 0; i < snapshot->count && !exposition->has_failed; i++) {
        if (i + SERIES_AHEAD < snapshot->count)
            series_prefetch(snapshot->shown[i + SERIES_AHEAD].series);
        const struct shown *shown = last_of_equal(snapshot, &i);
        if (shown->series->family != family) {
            family = shown->series->family;
            if (targets > 0 && slice_compare(target_name, family->name) < 0) {
                write_targets(snapshot, targets, target_name, exposition);
                targets = 0;
            }
            is_begun = false;
        }
        is_begun |= write_series(snapshot, shown, exposition, &rooms, is_begun);
    }
    if (targets > 0)
        write_targets(snapshot, targets, target_name, exposition);
    exposition_end(exposition);
    rooms_fini(&rooms, exposition->budget);
}
