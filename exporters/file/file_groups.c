/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file/file_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

/* Field numbers, the same in all signals: of a request, of a Resource… message, of Resource and of
 * KeyValue. */
enum { REQUEST_RESOURCES = 1, HOLDER_RESOURCE = 1, RESOURCE_ATTRIBUTES = 1, KEY = 1, VALUE = 2 };

struct resource {
    struct slice name;
    struct slice whole; /* its field of the request */
    size_t place;
};

/* The value, if the attribute is there; the last key and value of a KeyValue count. */
static bool read_attribute(struct slice encoded, const char *attribute, struct value *ret_value)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct slice key = {0};
    struct slice value = {0};
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY && field.type == WIRE_BYTES)
            key = field.bytes;
        else if (field.number == VALUE && field.type == WIRE_BYTES)
            value = field.bytes;
    }
    if (!slice_equal_text(key, attribute))
        return false;
    *ret_value = value_read(value);
    return true;
}

/* The attribute's string: of the first attribute with that key. False: there is none, or of another
 * type. */
static bool find_name(struct slice holder, const char *attribute, struct slice *ret_name)
{
    struct wire_reader holders = wire_reader_of(holder);
    struct wire_field resource;
    struct wire_field field;
    struct value value;
    while (wire_next_field(&holders, &resource)) {
        if (resource.number != HOLDER_RESOURCE || resource.type != WIRE_BYTES)
            continue;
        struct wire_reader attributes = wire_reader_of(resource.bytes);
        while (wire_next_field(&attributes, &field)) {
            if (field.number != RESOURCE_ATTRIBUTES || field.type != WIRE_BYTES ||
                !read_attribute(field.bytes, attribute, &value))
                continue;
            *ret_name = value.bytes;
            return value.type == VALUE_STRING;
        }
    }
    return false;
}

static int by_name(const void *left, const void *right)
{
    const struct resource *a = left;
    const struct resource *b = right;
    int order = slice_compare(a->name, b->name);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static uint64_t items_of(enum signal_kind signal, struct slice request)
{
    struct otlp_figures figures = {0};
    const char *reason;
    return otlp_check(signal, request, &figures, &reason) ? figures.items : 0;
}

static bool is_resource(const struct wire_field *field)
{
    return field->number == REQUEST_RESOURCES && field->type == WIRE_BYTES;
}

/* Takes memory for so many resources, and for groups of them. */
static struct resource *make_room(struct file_groups *groups, size_t resources)
{
    uint64_t bytes =
        resources * (sizeof(struct resource) + sizeof(struct file_group) + sizeof(struct batch));
    if (groups->budget != NULL && !budget_try_take(groups->budget, bytes))
        return NULL;
    groups->charged = groups->budget != NULL ? bytes : 0;
    groups->list = mem_try_alloc((resources > 0 ? resources : 1) * sizeof(struct file_group));
    return groups->list != NULL
               ? mem_try_alloc((resources > 0 ? resources : 1) * sizeof(struct resource))
               : NULL;
}

/* What belongs to all resources, in one piece. */
static bool copy_dictionary(struct file_groups *groups, struct slice request, size_t bytes)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    if (bytes == 0)
        return true;
    groups->dictionary = buffer_try_create(groups->budget, bytes);
    if (groups->dictionary == NULL)
        return false;
    while (wire_next_field(&reader, &field))
        if (!is_resource(&field)) {
            memcpy(groups->dictionary->data + groups->dictionary->size, field.whole.data,
                   field.whole.size);
            groups->dictionary->size += field.whole.size;
        }
    return true;
}

bool file_groups_make(struct file_groups *groups, const struct batch *batch, const char *attribute,
                      struct budget *budget)
{
    struct batch_part whole;
    struct wire_field field;
    *groups = (struct file_groups){.budget = budget};
    if (!batch_join(batch, budget, &whole))
        return false;
    groups->owner = whole.owner;
    size_t resources_max = 0;
    size_t dictionary_bytes = 0;
    struct wire_reader reader = wire_reader_of(whole.bytes);
    while (wire_next_field(&reader, &field)) {
        resources_max += is_resource(&field);
        dictionary_bytes += is_resource(&field) || batch->signal != PROFILES ? 0 : field.whole.size;
    }
    struct resource *resources = make_room(groups, resources_max);
    if (resources == NULL || !copy_dictionary(groups, whole.bytes, dictionary_bytes)) {
        mem_free(resources);
        file_groups_free(groups);
        return false;
    }
    size_t count = 0;
    reader = wire_reader_of(whole.bytes);
    while (wire_next_field(&reader, &field)) {
        struct resource *resource = &resources[count];
        if (!is_resource(&field))
            continue;
        if (find_name(field.bytes, attribute, &resource->name)) {
            resource->whole = field.whole;
            resource->place = count++;
        } else {
            groups->ungrouped_items += items_of(batch->signal, field.whole);
        }
    }
    if (count > 1)
        qsort(resources, count, sizeof(*resources), by_name);
    for (size_t i = 0; i < count; i++) {
        struct file_group *group = groups->count > 0 ? &groups->list[groups->count - 1] : NULL;
        if (group == NULL || !slice_equal(group->name, resources[i].name)) {
            group = &groups->list[groups->count++];
            *group = (struct file_group){.name = resources[i].name,
                                         .batch = batch_create_like(batch, 1)};
            group->batch->budget = budget;
        }
        batch_append(group->batch, whole.owner, resources[i].whole);
        group->items += items_of(batch->signal, resources[i].whole);
    }
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->dictionary != NULL)
            batch_append(groups->list[i].batch, groups->dictionary,
                         buffer_slice(groups->dictionary));
        groups->list[i].batch->items = groups->list[i].items;
    }
    mem_free(resources);
    return true;
}

void file_groups_free(struct file_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        batch_unref(groups->list[i].batch);
    mem_free(groups->list);
    buffer_unref(groups->owner);
    buffer_unref(groups->dictionary);
    if (groups->charged > 0)
        budget_return(groups->budget, groups->charged);
    *groups = (struct file_groups){0};
}
