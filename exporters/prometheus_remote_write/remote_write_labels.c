/* SPDX-License-Identifier: Apache-2.0 */
/* Collects candidates, of which the highest rank of each name becomes the label. */
#include "exporters/prometheus_remote_write/remote_write_labels.h"

#include <stdlib.h>
#include <string.h>

#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"
#include "src/prometheus/prometheus_names.h"

enum {
    SCRATCH_BYTES_MAX = 64 << 20,  /* for the labels of one series */
    SCRATCH_BYTES_KEPT = 64 << 10, /* from series to series */
    CANDIDATE_WORK = 32,           /* to sort and name it is worth so many bytes */
};

enum rank { RANK_EXTERNAL, RANK_ATTRIBUTE, RANK_TARGET, RANK_SCOPE };

struct remote_write_resource remote_write_resource_of(struct slice message)
{
    struct remote_write_resource resource = {.message = message};
    struct metric_items items = metric_items_of(message, 1);
    struct slice bytes;
    while (metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        metric_target_take(&resource.target, &attribute);
        resource.count++;
    }
    resource.others = resource.count - (resource.target.service.data != NULL) -
                      (resource.target.name_space.data != NULL) -
                      (resource.target.instance.data != NULL);
    return resource;
}

void remote_write_labels_init(struct remote_write_labels *labels,
                              const struct remote_write_label_settings *settings,
                              struct budget *budget)
{
    labels->settings = settings;
    labels->budget = budget;
    labels->work = 0;
    labels->encoded = (struct scratch){0};
    labels->scope_count = 0;
    labels->resource_count = 0;
    labels->has_scope_failed = false;
    labels->is_too_large = false;
    arena_init_charged(&labels->arena, SCRATCH_BYTES_MAX, budget);
    arena_init_charged(&labels->scope_arena, SCRATCH_BYTES_MAX, budget);
}

void remote_write_labels_fini(struct remote_write_labels *labels)
{
    arena_clear(&labels->arena);
    arena_clear(&labels->scope_arena);
    scratch_fini(&labels->encoded, labels->budget);
}

static void begin(struct remote_write_labels *labels)
{
    if (labels->arena.used_bytes > SCRATCH_BYTES_KEPT)
        arena_clear(&labels->arena);
    labels->failure = NULL;
    labels->is_memory = false;
    labels->are_too_many = false;
    labels->count = 0;
    labels->candidates_count = 0;
    labels->has_target = false;
}

static void fail_memory(struct remote_write_labels *labels)
{
    labels->failure = "there is no memory for its labels";
    labels->is_memory = true;
}

static void fail_of_arena(struct remote_write_labels *labels, const struct arena *arena)
{
    fail_memory(labels);
    labels->is_too_large |= arena->refused_bytes > arena->max_bytes;
}

static void fail_too_many(struct remote_write_labels *labels)
{
    labels->failure = "it has too many labels";
    labels->are_too_many = true;
}

static struct remote_write_candidate *add(struct remote_write_labels *labels, enum rank rank)
{
    if (labels->candidates_count == REMOTE_WRITE_LABELS_MAX) {
        fail_too_many(labels);
        return NULL;
    }
    struct remote_write_candidate *candidate = &labels->candidates[labels->candidates_count];
    labels->work += CANDIDATE_WORK;
    *candidate = (struct remote_write_candidate){.rank = rank,
                                                 .order = (unsigned)labels->candidates_count++};
    return candidate;
}

static void add_named(struct remote_write_labels *labels, enum rank rank, struct slice name,
                      struct slice value)
{
    struct remote_write_candidate *candidate = add(labels, rank);
    if (candidate == NULL)
        return;
    candidate->name = name;
    candidate->value = value;
}

static struct slice text_of(struct remote_write_labels *labels, struct slice value)
{
    struct slice text = {0};
    if (!value_to_string(&labels->arena, value, &text))
        fail_of_arena(labels, &labels->arena);
    labels->work += text.size;
    return text;
}

/* Adds an attribute, whose name comes later. Its value is encoded still. */
static void add_attribute(struct remote_write_labels *labels,
                          const struct metric_attribute *attribute, bool is_of_resource,
                          bool has_service)
{
    if (!has_service && metric_target_has(attribute->key))
        return;
    struct remote_write_candidate *candidate = add(labels, RANK_ATTRIBUTE);
    if (candidate == NULL)
        return;
    candidate->key = attribute->key;
    candidate->value = attribute->value;
    candidate->is_of_resource = is_of_resource;
}

static void add_attributes(struct remote_write_labels *labels, struct slice message,
                           uint32_t number, bool has_service)
{
    struct metric_items items = metric_items_of(message, number);
    struct slice bytes;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        labels->work += bytes.size; /* also of keys that become short names, or no label */
        add_attribute(labels, &attribute, false, has_service);
    }
}

void remote_write_labels_begin_resource(struct remote_write_labels *labels,
                                        const struct remote_write_resource *resource)
{
    struct metric_items items = metric_items_of(resource->message, 1);
    struct slice bytes;
    labels->resource_count = 0;
    if (!labels->settings->has_resource || resource->count > REMOTE_WRITE_LABELS_MAX)
        return;
    while (metric_items_next(&items, &bytes)) {
        struct metric_attribute *attribute = &labels->resource[labels->resource_count++];
        *attribute = metric_attribute_read(bytes);
        attribute->value = value_last_field(attribute->value);
    }
}

static void add_resource(struct remote_write_labels *labels)
{
    for (size_t i = 0; labels->failure == NULL && i < labels->resource_count; i++) {
        const struct metric_attribute *attribute = &labels->resource[i];
        labels->work += attribute->key.size + attribute->value.size;
        add_attribute(labels, attribute, true, labels->settings->has_service);
    }
}

static int compare_keys(const void *a, const void *b)
{
    const struct remote_write_candidate *left = a;
    const struct remote_write_candidate *right = b;
    int order = slice_compare(left->key, right->key);
    if (order == 0)
        order = (left->is_of_resource > right->is_of_resource) -
                (left->is_of_resource < right->is_of_resource);
    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

/* Sorts attributes by key, drops those of the point that the resource has too, and names them. In
 * target_info of version 1.0 runs of underscores stay. */
static void name_attributes(struct remote_write_labels *labels, bool is_target)
{
    const struct remote_write_label_settings *settings = labels->settings;
    const struct prometheus_naming naming = {.name_space = "", .has_utf8 = settings->has_utf8};
    bool is_joined = !settings->has_utf8 && !(is_target && !settings->is_v2);
    size_t kept = 0;
    qsort(labels->candidates, labels->candidates_count, sizeof(labels->candidates[0]),
          compare_keys);
    for (size_t i = 0; labels->failure == NULL && i < labels->candidates_count; i++) {
        struct remote_write_candidate candidate = labels->candidates[i];
        bool is_last = i + 1 == labels->candidates_count;
        const struct remote_write_candidate *next = is_last ? NULL : &labels->candidates[i + 1];
        if (next != NULL && next->is_of_resource && slice_equal(next->key, candidate.key))
            continue;
        candidate.value = text_of(labels, candidate.value);
        if (candidate.value.size == 0)
            continue;
        char *name = arena_try_alloc(&labels->arena, prometheus_label_name_max(candidate.key));
        if (name == NULL) {
            fail_of_arena(labels, &labels->arena);
            return;
        }
        size_t size = is_joined ? prometheus_label_name_joined(candidate.key, name)
                                : prometheus_label_name(&naming, candidate.key, name);
        if (size == 0)
            labels->failure = "an attribute has no name that could be a label";
        candidate.name = slice_of(name, size);
        candidate.order = (unsigned)kept;
        labels->candidates[kept++] = candidate;
    }
    labels->candidates_count = kept;
}

static void add_target(struct remote_write_labels *labels, const struct metric_target *target)
{
    struct slice job = {0};
    labels->work += target->service.size + target->name_space.size + target->instance.size;
    if (target->service.data != NULL && text_of(labels, target->service).size > 0) {
        if (!metric_target_job(target, &labels->arena, &job))
            fail_of_arena(labels, &labels->arena);
        add_named(labels, RANK_TARGET, slice_of_text("job"), job);
    }
    if (target->instance.data != NULL) {
        struct slice instance = text_of(labels, target->instance);
        if (instance.size > 0)
            add_named(labels, RANK_TARGET, slice_of_text("instance"), instance);
    }
}

static void add_external(struct remote_write_labels *labels)
{
    const struct remote_write_label_settings *settings = labels->settings;
    for (size_t i = 0; i < settings->external_count; i++)
        add_named(labels, RANK_EXTERNAL, settings->external[i].name, settings->external[i].value);
}

static int compare_names(const void *a, const void *b)
{
    const struct remote_write_candidate *left = a;
    const struct remote_write_candidate *right = b;
    int order = slice_compare(left->name, right->name);
    if (order == 0)
        order = (left->rank < right->rank) - (left->rank > right->rank);
    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

/* Joins the values of so many candidates of the same name; one that equals what there is so far is
 * left out. */
static struct slice join(struct remote_write_labels *labels,
                         const struct remote_write_candidate *candidates, size_t count)
{
    struct slice joined = candidates[0].value;
    size_t room = 0;
    for (size_t i = 0; i < count; i++)
        room += candidates[i].value.size + 1;
    uint8_t *text = count > 1 ? arena_try_alloc(&labels->arena, room) : NULL;
    if (count > 1 && text == NULL) {
        fail_of_arena(labels, &labels->arena);
        return joined;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        struct slice value = candidates[i].value;
        if (i > 0 && slice_equal(value, joined))
            continue;
        size_t size = i > 0 ? joined.size : 0;
        if (i > 0)
            text[size++] = ';';
        memcpy(text + size, value.data, value.size);
        joined = slice_of(text, size + value.size);
    }
    return joined;
}

/* Makes the list of the candidates. */
static void choose(struct remote_write_labels *labels)
{
    qsort(labels->candidates, labels->candidates_count, sizeof(labels->candidates[0]),
          compare_names);
    for (size_t i = 0; labels->failure == NULL && i < labels->candidates_count;) {
        const struct remote_write_candidate *first = &labels->candidates[i];
        size_t equals = 1; /* of the highest rank */
        size_t end = i + 1;
        for (; end < labels->candidates_count &&
               slice_equal(labels->candidates[end].name, first->name);
             end++)
            equals += labels->candidates[end].rank == first->rank;
        struct slice value =
            first->rank == RANK_ATTRIBUTE ? join(labels, first, equals) : first[equals - 1].value;
        labels->list[labels->count++] =
            (struct prometheus_label){.name = first->name, .value = value};
        labels->has_target |=
            slice_equal_text(first->name, "job") || slice_equal_text(first->name, "instance");
        i = end;
    }
}

/* Adds a label otel_scope_KEY. */
static void add_scope_attribute(struct remote_write_labels *labels,
                                const struct metric_attribute *attribute)
{
    static const char prefix[] = "otel_scope_";
    struct arena *arena = &labels->scope_arena;
    struct slice key = attribute->key;
    struct slice value = {0};
    size_t size = sizeof(prefix) - 1 + key.size;
    char *whole = arena_try_alloc(arena, size);
    char *name = arena_try_alloc(arena, prometheus_label_name_max(slice_of(whole, size)));
    if (whole == NULL || name == NULL || !value_to_string(arena, attribute->value, &value)) {
        fail_of_arena(labels, arena);
        return;
    }
    memcpy(whole, prefix, sizeof(prefix) - 1);
    if (key.size > 0)
        memcpy(whole + sizeof(prefix) - 1, key.data, key.size);
    struct slice named = slice_of(whole, size);
    if (!labels->settings->has_utf8)
        named = slice_of(name, prometheus_label_name_joined(named, name));
    add_named(labels, RANK_SCOPE, named, value);
}

static void add_scope(struct remote_write_labels *labels, struct slice scope)
{
    struct wire_reader reader = wire_reader_of(scope);
    struct wire_field field;
    struct slice texts[3] = {{0}}; /* name and version, by their numbers */
    while (wire_next_field(&reader, &field))
        if (field.number == 1 || field.number == 2)
            texts[field.number] = field.bytes;
    if (texts[1].size > 0)
        add_named(labels, RANK_SCOPE, slice_of_text("otel_scope_name"), texts[1]);
    if (texts[2].size > 0)
        add_named(labels, RANK_SCOPE, slice_of_text("otel_scope_version"), texts[2]);
    struct metric_items items = metric_items_of(scope, 3);
    struct slice bytes;
    while (labels->failure == NULL && metric_items_next(&items, &bytes)) {
        struct metric_attribute attribute = metric_attribute_read(bytes);
        if (!slice_equal_text(attribute.key, "name") &&
            !slice_equal_text(attribute.key, "version") &&
            !slice_equal_text(attribute.key, "schema_url"))
            add_scope_attribute(labels, &attribute);
    }
}

void remote_write_labels_begin_scope(struct remote_write_labels *labels, struct slice scope)
{
    begin(labels);
    arena_clear(&labels->scope_arena);
    if (labels->settings->has_scope)
        add_scope(labels, scope);
    choose(labels);
    labels->has_scope_failed = labels->failure != NULL;
    labels->is_scope_memory = labels->is_memory;
    labels->scope_count = labels->count;
    for (size_t i = 0; i < labels->count; i++)
        labels->scope[i] = labels->list[i];
}

void remote_write_labels_of_point(struct remote_write_labels *labels,
                                  const struct remote_write_resource *resource,
                                  const struct metric_point *point)
{
    const struct remote_write_label_settings *settings = labels->settings;
    begin(labels);
    if (labels->has_scope_failed && labels->is_scope_memory)
        fail_memory(labels);
    else if (labels->has_scope_failed ||
             (settings->has_resource && resource->count > REMOTE_WRITE_LABELS_MAX))
        fail_too_many(labels);
    if (labels->failure != NULL)
        return;
    add_attributes(labels, point->bytes, metric_point_attributes(point->kind), true);
    if (settings->has_resource)
        add_resource(labels);
    name_attributes(labels, false);
    add_target(labels, &resource->target);
    add_external(labels);
    for (size_t i = 0; labels->failure == NULL && i < labels->scope_count; i++)
        add_named(labels, RANK_SCOPE, labels->scope[i].name, labels->scope[i].value);
    choose(labels);
}

void remote_write_labels_of_target(struct remote_write_labels *labels,
                                   const struct remote_write_resource *resource)
{
    begin(labels);
    add_attributes(labels, resource->message, 1, false);
    name_attributes(labels, true);
    add_target(labels, &resource->target);
    add_external(labels);
    choose(labels);
}

static size_t label_bytes(const struct prometheus_label *label)
{
    size_t bytes = label->name.size > 0 ? wire_field_size(1, label->name.size) : 0;
    return bytes + (label->value.size > 0 ? wire_field_size(2, label->value.size) : 0);
}

static void write_label(struct wire_writer *writer, const struct prometheus_label *label)
{
    wire_write_header(writer, 1, label_bytes(label));
    if (label->name.size > 0)
        wire_write_bytes(writer, 1, label->name);
    if (label->value.size > 0)
        wire_write_bytes(writer, 2, label->value);
}

void remote_write_labels_complete(struct remote_write_labels *labels, struct slice name,
                                  const struct prometheus_label *more)
{
    /* Sorted: "_" is before every lower-case letter. */
    struct prometheus_label added[REMOTE_WRITE_ADDED_MAX] = {{slice_of_text("__name__"), name}};
    size_t added_count = 1;
    if (more != NULL)
        added[added_count++] = *more;
    size_t next = 0;
    size_t count = 0;
    for (size_t i = 0; i < labels->count; i++) {
        int order = -1;
        while (next < added_count &&
               (order = slice_compare(added[next].name, labels->list[i].name)) < 0)
            labels->whole[count++] = added[next++];
        if (next == added_count || order != 0)
            labels->whole[count++] = labels->list[i];
    }
    while (next < added_count)
        labels->whole[count++] = added[next++];
    labels->whole_count = count;
    for (size_t i = 0; i < count; i++)
        labels->work += wire_field_size(1, label_bytes(&labels->whole[i]));
}

bool remote_write_labels_encode(struct remote_write_labels *labels, struct slice *ret_encoded)
{
    size_t room = 0;
    for (size_t i = 0; i < labels->whole_count; i++)
        room += wire_field_size(1, label_bytes(&labels->whole[i]));
    void *memory = scratch_room(&labels->encoded, labels->budget, room);
    if (memory == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(memory, room);
    for (size_t i = 0; i < labels->whole_count; i++)
        write_label(&writer, &labels->whole[i]);
    *ret_encoded = wire_written(&writer);
    return true;
}
