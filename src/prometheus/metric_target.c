/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes and makes jobs. */
#include "src/prometheus/metric_target.h"

#include <string.h>

#include "src/base/arena.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

struct metric_attribute metric_attribute_read(struct slice bytes)
{
    struct metric_attribute attribute = {.key = {0}};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1)
            attribute.key = field.bytes;
        else if (field.number == 2)
            attribute.value = field.bytes;
    }
    return attribute;
}

static struct slice *place_of(struct metric_target *target, struct slice key)
{
    return slice_equal_text(key, "service.name")          ? &target->service
           : slice_equal_text(key, "service.namespace")   ? &target->name_space
           : slice_equal_text(key, "service.instance.id") ? &target->instance
                                                          : NULL;
}

bool metric_target_has(struct slice key)
{
    struct metric_target none;
    return place_of(&none, key) != NULL;
}

void metric_target_take(struct metric_target *target, const struct metric_attribute *attribute)
{
    static const uint8_t absent = 0;
    struct slice *place = place_of(target, attribute->key);
    /* An empty value has data nevertheless. It is read for each series. */
    if (place != NULL && place->data == NULL)
        *place = attribute->value.data != NULL ? value_last_field(attribute->value)
                                               : slice_of(&absent, 0);
}

bool metric_target_job(const struct metric_target *target, struct arena *arena,
                       struct slice *ret_job)
{
    struct slice space;
    if (!value_to_string(arena, target->service, ret_job))
        return false;
    if (target->name_space.data == NULL)
        return true;
    if (!value_to_string(arena, target->name_space, &space))
        return false;
    struct slice name = *ret_job;
    uint8_t *job = arena_try_alloc(arena, space.size + 1 + name.size);
    if (job == NULL)
        return false;
    if (space.size > 0)
        memcpy(job, space.data, space.size);
    job[space.size] = '/';
    if (name.size > 0)
        memcpy(job + space.size + 1, name.data, name.size);
    *ret_job = slice_of(job, space.size + 1 + name.size);
    return true;
}
