/* SPDX-License-Identifier: Apache-2.0 */
/* Labels from attributes. Under the lock of the store. */
#include "exporters/prometheus/metric_labels.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/utf8.h"
#include "src/config/field.h"
#include "src/otlp/json/value_string.h"
#include "src/prometheus/exposition.h"
#include "src/prometheus/metric_target.h"

enum { SCRATCH_BYTES_MAX = 64 << 20 }; /* for the labels of one series */

static const char too_many[] = "it has too many labels";
static const char a_name_twice[] = "two of its labels have the same name";
static const char a_quantile[] = "it is a summary with a label named quantile";

struct metric_hash metric_hash_of(uint64_t seed, struct slice bytes)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data, bytes.size, seed);
    return (struct metric_hash){.low = hash.low64, .high = hash.high64};
}

static void hash_add(struct metric_hash *sum, struct metric_hash more)
{
    sum->low += more.low;
    sum->high += more.high;
}

struct metric_hash metric_hash_of_attributes(uint64_t seed, struct slice message, uint32_t number)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    struct metric_hash sum = {0};
    while (metric_items_next(&items, &bytes))
        hash_add(&sum, metric_hash_of(seed, bytes));
    return sum;
}

struct resource_view resource_view_of(uint64_t seed, struct slice resource)
{
    struct resource_view view = {.attributes = resource};
    struct metric_items items = metric_items_of(resource, 1);
    struct slice bytes;
    while (metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        hash_add(&view.hash, metric_hash_of(seed, bytes));
        view.count++;
        metric_target_take(&view.target, &attribute);
    }
    struct {
        struct metric_hash service;
        struct metric_hash name_space;
        struct metric_hash instance;
        uint64_t has;
    } target = {.has =
                    (view.target.service.data != NULL) + 2u * (view.target.instance.data != NULL)};
    if (view.target.service.data != NULL) {
        target.service = metric_hash_of(seed, view.target.service);
        target.name_space = metric_hash_of(seed, view.target.name_space);
    }
    if (view.target.instance.data != NULL)
        target.instance = metric_hash_of(seed, view.target.instance);
    view.target_hash = metric_hash_of(seed, slice_of(&target, sizeof(target)));
    return view;
}

static void fail_memory(struct metric_labels *labels)
{
    labels->failure = "there is no memory for its labels";
    labels->is_memory = true;
}

static void labels_add_named(struct metric_labels *labels, struct slice name, struct slice value)
{
    if (labels->count == METRIC_LABELS_MAX)
        labels->failure = too_many;
    else
        labels->list[labels->count++] = (struct metric_label){.name = name, .value = value};
}

static struct slice labels_text(struct metric_labels *labels, struct slice value)
{
    struct slice text = {0};
    if (!value_to_string(&labels->arena, value, &text))
        fail_memory(labels);
    return text;
}

/* prefix: of the key before it is translated. */
static void labels_add(struct metric_labels *labels, const char *prefix,
                       const struct metric_attribute *attribute)
{
    size_t prefix_bytes = strlen(prefix);
    struct slice key = attribute->key;
    if (prefix_bytes > 0) {
        char *whole = arena_try_alloc(&labels->arena, prefix_bytes + key.size);
        if (whole == NULL) {
            fail_memory(labels);
            return;
        }
        memcpy(whole, prefix, prefix_bytes);
        if (key.size > 0)
            memcpy(whole + prefix_bytes, key.data, key.size);
        key = slice_of(whole, prefix_bytes + key.size);
    }
    char *name = arena_try_alloc(&labels->arena, prometheus_label_name_max(key));
    if (name == NULL) {
        fail_memory(labels);
        return;
    }
    size_t size = prometheus_label_name(&labels->settings->naming, key, name);
    if (size == 0)
        labels->failure = "an attribute has no name that could be a label";
    labels_add_named(labels, slice_of(name, size), labels_text(labels, attribute->value));
}

static int compare_labels(const void *a, const void *b)
{
    const struct metric_label *left = a;
    const struct metric_label *right = b;
    int order = slice_compare(left->name, right->name);
    return order != 0 ? order : (left > right) - (left < right);
}

static void labels_add_attributes(struct metric_labels *labels, struct slice message,
                                  uint32_t number, const char *prefix)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        labels_add(labels, prefix, &attribute);
    }
}

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Once for all series of the resource. */
static void labels_sort_keys(struct metric_labels *labels, const struct resource_view *resource)
{
    struct metric_items items = metric_items_of(resource->attributes, 1);
    struct slice bytes;
    if (labels->keys_of == resource->attributes.data)
        return;
    labels->keys_of = resource->attributes.data;
    labels->keys_count = 0;
    while (metric_items_next(&items, &bytes)) {
        struct slice key = metric_attribute_read(bytes).key;
        if (labels->settings->has_service || !metric_target_has(key))
            labels->keys[labels->keys_count++] = key;
    }
    qsort(labels->keys, labels->keys_count, sizeof(labels->keys[0]), compare_keys);
}

static bool replaces_points(const struct metric_labels *labels,
                            const struct resource_view *resource)
{
    return labels->settings->has_resource && resource->count > 0;
}

/* Resource attributes take the place of the point's of the same key. */
static void labels_add_point(struct metric_labels *labels, const struct resource_view *resource,
                             const struct metric_point *point)
{
    struct metric_items items = metric_items_of(point->bytes, metric_point_attributes(point->kind));
    struct slice bytes;
    if (!replaces_points(labels, resource)) {
        labels_add_attributes(labels, point->bytes, metric_point_attributes(point->kind), "");
        return;
    }
    labels_sort_keys(labels, resource);
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (bsearch(&attribute.key, labels->keys, labels->keys_count, sizeof(labels->keys[0]),
                    compare_keys) == NULL)
            labels_add(labels, "", &attribute);
    }
}

static void labels_add_resource(struct metric_labels *labels, const struct resource_view *resource)
{
    struct metric_items items = metric_items_of(resource->attributes, 1);
    struct slice bytes;
    if (!replaces_points(labels, resource))
        return;
    if (resource->count > METRIC_LABELS_MAX + METRIC_SERVICE_KEYS)
        labels->failure = too_many;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (labels->settings->has_service || !metric_target_has(attribute.key))
            labels_add(labels, "", &attribute);
    }
}

struct scope_view scope_view_of(uint64_t seed, struct slice scope, struct slice schema_url)
{
    struct scope_view view = {.attributes = scope, .schema_url = schema_url};
    struct wire_reader reader = wire_reader_of(scope);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            view.name = field.bytes;
        else if (field.number == 2)
            view.version = field.bytes;
    }
    const struct metric_hash parts[] = {
        metric_hash_of(seed, view.name), metric_hash_of(seed, view.version),
        metric_hash_of(seed, view.schema_url), metric_hash_of_attributes(seed, scope, 3)};
    view.hash = metric_hash_of(seed, slice_of(parts, sizeof(parts)));
    return view;
}

static void labels_add_scope(struct metric_labels *labels, const struct scope_view *scope)
{
    struct metric_items items = metric_items_of(scope->attributes, 3);
    struct slice bytes;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (!slice_equal_text(attribute.key, "name") &&
            !slice_equal_text(attribute.key, "version") &&
            !slice_equal_text(attribute.key, "schema_url"))
            labels_add(labels, "otel_scope_", &attribute);
    }
    labels_add_named(labels, slice_of_text("otel_scope_name"), scope->name);
    labels_add_named(labels, slice_of_text("otel_scope_version"), scope->version);
    labels_add_named(labels, slice_of_text("otel_scope_schema_url"), scope->schema_url);
}

static void labels_add_target(struct metric_labels *labels, const struct resource_view *resource)
{
    const struct metric_target *target = &resource->target;
    struct slice job = {0};
    if (target->service.data != NULL) {
        if (!metric_target_job(target, &labels->arena, &job))
            fail_memory(labels);
        labels_add_named(labels, slice_of_text("job"), job);
    }
    if (target->instance.data != NULL)
        labels_add_named(labels, slice_of_text("instance"), labels_text(labels, target->instance));
}

static void labels_sort(struct metric_labels *labels)
{
    qsort(labels->list, labels->count, sizeof(labels->list[0]), compare_labels);
}

/* Whether a client takes them at all. */
static void labels_check(struct metric_labels *labels, bool is_summary)
{
    for (size_t i = 0; labels->failure == NULL && i < labels->count; i++) {
        struct slice name = labels->list[i].name;
        if (i > 0 && slice_equal(name, labels->list[i - 1].name))
            labels->failure = a_name_twice;
        else if (name.size == 0 || slice_begins_with(name, "__"))
            labels->failure = "a label begins with \"__\", which is reserved";
        else if (is_summary && slice_equal_text(name, "quantile"))
            labels->failure = a_quantile;
        else if (!utf8_is_valid(name) || !utf8_is_valid(labels->list[i].value))
            /* With it, Prometheus would refuse all of the scrape. */
            labels->failure = "one of its labels is not UTF-8";
    }
}

size_t metric_labels_bytes_max(const struct metric_labels *labels)
{
    size_t bytes = 0;
    for (size_t i = 0; i < labels->count; i++)
        bytes += exposition_label_max(labels->list[i].name, labels->list[i].value) + 1;
    return bytes;
}

size_t metric_labels_write(const struct metric_labels *labels, char *text, bool *ret_is_plain)
{
    size_t size = 0;
    *ret_is_plain = true;
    for (size_t i = 0; i < labels->count; i++) {
        if (i > 0)
            text[size++] = ',';
        size += exposition_label(labels->list[i].name, labels->list[i].value, text + size);
        *ret_is_plain = *ret_is_plain && prometheus_name_is_plain(labels->list[i].name);
    }
    return size;
}

/* Labels of target_info: the other attributes, those that become one label joined, then job and
 * instance instead of what has their name. */
void metric_labels_of_target(struct metric_labels *labels, const struct resource_view *view)
{
    struct metric_items items = metric_items_of(view->attributes, 1);
    struct slice bytes;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (!metric_target_has(attribute.key))
            labels_add(labels, "", &attribute);
    }
    labels_sort(labels);
    size_t kept = 0;
    for (size_t i = 0; labels->failure == NULL && i < labels->count; i++) {
        struct metric_label *label = &labels->list[i];
        if (slice_equal_text(label->name, "job") || slice_equal_text(label->name, "instance"))
            continue;
        if (kept == 0 || !slice_equal(labels->list[kept - 1].name, label->name)) {
            labels->list[kept++] = *label;
            continue;
        }
        struct slice before = labels->list[kept - 1].value;
        uint8_t *joined = arena_try_alloc(&labels->arena, before.size + 1 + label->value.size);
        if (joined == NULL) {
            fail_memory(labels);
            break;
        }
        if (before.size > 0)
            memcpy(joined, before.data, before.size);
        joined[before.size] = ';';
        if (label->value.size > 0)
            memcpy(joined + before.size + 1, label->value.data, label->value.size);
        labels->list[kept - 1].value = slice_of(joined, before.size + 1 + label->value.size);
    }
    labels->count = kept;
    labels_add_target(labels, view);
    for (size_t i = kept; i < labels->count; i++)
        if (labels->list[i].value.size == 0)
            labels->failure = "its job or its instance is empty";
    labels_sort(labels);
    labels_check(labels, false);
}

void metric_labels_begin(struct metric_labels *labels, const struct metric_label_settings *settings,
                         uint64_t seed, struct budget *budget)
{
    labels->settings = settings;
    labels->seed = seed;
    labels->budget = budget;
    labels->has_shared = labels->resource.is_made = labels->scope.is_made = false;
    arena_init_charged(&labels->resource.arena, SCRATCH_BYTES_MAX, budget);
    arena_init_charged(&labels->scope.arena, SCRATCH_BYTES_MAX, budget);
    labels->keys_of = NULL;
    labels->keys_count = 0;
}

static void forget_part(struct metric_labels_part *part)
{
    part->is_made = false;
    if (part->arena.used_bytes > 0)
        arena_clear(&part->arena);
}

void metric_labels_forget_scope(struct metric_labels *labels)
{
    labels->has_shared = false;
    forget_part(&labels->scope);
}

void metric_labels_forget_resource(struct metric_labels *labels)
{
    metric_labels_forget_scope(labels);
    forget_part(&labels->resource);
}

void metric_labels_end(struct metric_labels *labels)
{
    metric_labels_forget_resource(labels);
}

void metric_labels_init(struct metric_labels *labels)
{
    labels->count = 0;
    labels->failure = NULL;
    labels->is_memory = false;
    arena_init_charged(&labels->arena, SCRATCH_BYTES_MAX, labels->budget);
}

void metric_labels_fini(struct metric_labels *labels)
{
    arena_clear(&labels->arena);
}

/* The list becomes a part. */
static void labels_keep_part(struct metric_labels *labels, struct metric_labels_part *part)
{
    memcpy(part->list, labels->list, labels->count * sizeof(labels->list[0]));
    part->count = labels->count;
    part->failure = labels->failure;
    part->is_memory = labels->is_memory;
    part->bytes = 0;
    part->hash = (struct metric_hash){0};
    for (size_t i = 0; i < labels->count; i++) {
        struct slice name = labels->list[i].name;
        struct slice value = labels->list[i].value;
        const struct metric_hash parts[] = {part->hash, metric_hash_of(labels->seed, name),
                                            metric_hash_of(labels->seed, value)};
        part->hash = metric_hash_of(labels->seed, slice_of(parts, sizeof(parts)));
        part->bytes += exposition_label_max(name, value) + 1 + value.size;
    }
    part->is_made = true;
}

/* The labels of the resource, or of the scope if it is given: in the arena of the part, by way of
 * the list. */
static void labels_make_part(struct metric_labels *labels, struct metric_labels_part *part,
                             const struct resource_view *resource, const struct scope_view *scope)
{
    const struct metric_label_settings *settings = labels->settings;
    const struct arena own = labels->arena;
    labels->arena = part->arena;
    if (scope != NULL) {
        if (settings->has_scope)
            labels_add_scope(labels, scope);
    } else {
        labels_add_resource(labels, resource);
        labels_add_target(labels, resource);
        for (size_t i = 0; i < settings->const_labels->count; i++)
            labels_add_named(labels, slice_of_text(settings->const_labels->pairs[i].key),
                             slice_of_text(settings->const_labels->pairs[i].value));
    }
    labels_sort(labels);
    labels_check(labels, false);
    labels_keep_part(labels, part);
    part->arena = labels->arena;
    labels->arena = own;
    labels->count = 0;
    labels->failure = NULL;
    labels->is_memory = false;
}

/* Merges the parts. Names are compared across them alone, which takes time for the scope's bytes:
 * a resource may have many scopes. */
static void labels_merge_parts(struct metric_labels *labels)
{
    const struct metric_labels_part *resource = &labels->resource;
    const struct metric_labels_part *scope = &labels->scope;
    const struct metric_hash hashes[] = {resource->hash, scope->hash};
    size_t left = 0;
    size_t right = 0;
    labels->has_shared = true;
    labels->shared_count = 0;
    labels->shared_bytes = resource->bytes + scope->bytes;
    labels->shared_hash = metric_hash_of(labels->seed, slice_of(hashes, sizeof(hashes)));
    labels->shared_failure = resource->failure != NULL ? resource->failure : scope->failure;
    labels->shared_is_memory = resource->failure != NULL ? resource->is_memory : scope->is_memory;
    if (labels->shared_failure == NULL && resource->count + scope->count > METRIC_LABELS_MAX)
        labels->shared_failure = too_many;
    if (labels->shared_failure != NULL)
        return;
    while (left < resource->count || right < scope->count) {
        const int order = right == scope->count ? -1
                          : left == resource->count
                              ? 1
                              : slice_compare(resource->list[left].name, scope->list[right].name);
        if (order == 0)
            labels->shared_failure = a_name_twice;
        labels->shared[labels->shared_count++] =
            order < 0 ? resource->list[left++] : scope->list[right++];
    }
}

static void labels_make_shared(struct metric_labels *labels, const struct resource_view *resource,
                               const struct scope_view *scope)
{
    if (!labels->resource.is_made)
        labels_make_part(labels, &labels->resource, resource, NULL);
    if (!labels->scope.is_made)
        labels_make_part(labels, &labels->scope, resource, scope);
    labels_merge_parts(labels);
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(((const struct metric_label *)a)->name,
                         ((const struct metric_label *)b)->name);
}

static bool labels_share(const struct metric_labels *labels, struct slice name)
{
    const struct metric_label wanted = {.name = name};
    return labels->shared_count > 0 && bsearch(&wanted, labels->shared, labels->shared_count,
                                               sizeof(wanted), compare_names) != NULL;
}

void metric_labels_of_series(struct metric_labels *labels, const struct resource_view *resource,
                             const struct scope_view *scope, const struct metric_point *point)
{
    const bool is_summary = point->kind == METRIC_SUMMARY;
    if (!labels->has_shared)
        labels_make_shared(labels, resource, scope);
    labels->failure = labels->shared_failure;
    labels->is_memory = labels->shared_is_memory;
    if (labels->failure == NULL)
        labels_add_point(labels, resource, point);
    labels_sort(labels);
    labels_check(labels, is_summary);
    if (labels->failure == NULL && is_summary && labels_share(labels, slice_of_text("quantile")))
        labels->failure = a_quantile;
    if (labels->failure == NULL && labels->count + labels->shared_count > METRIC_LABELS_MAX)
        labels->failure = too_many;
    labels->names_hash = labels->shared_hash;
    for (size_t i = 0; labels->failure == NULL && i < labels->count; i++) {
        struct slice name = labels->list[i].name;
        const struct metric_hash parts[] = {labels->names_hash, metric_hash_of(labels->seed, name)};
        labels->names_hash = metric_hash_of(labels->seed, slice_of(parts, sizeof(parts)));
        if (labels_share(labels, name))
            labels->failure = a_name_twice;
    }
}
