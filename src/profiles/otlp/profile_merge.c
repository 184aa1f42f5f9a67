/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and splitting. A profile is written where the new request keeps it: its type, its
 * samples, then the rest, which depends on whether it had to be cut. What turns out not to fit is
 * taken back, which ends the request. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_merge.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/dictionary_copy.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_unused.h"

enum {
    /* Everything in a Profile but samples, attributes, id and payload. */
    PLAIN_BYTES_MAX = 120,
    /* Headers and numbers of a Sample. */
    SAMPLE_BYTES_MAX = 64,
    REQUEST_DICTIONARY = 2,
};

void profile_merge_init(struct profile_merge *merge, struct budget *budget)
{
    assert(merge != NULL);
    *merge = (struct profile_merge){0};
    profile_tables_init(&merge->tables, budget);
    profile_groups_init(&merge->groups, budget);
}

void profile_merge_fini(struct profile_merge *merge)
{
    assert(merge != NULL);
    profile_tables_fini(&merge->tables);
    profile_groups_fini(&merge->groups);
}

/* The groups know nothing of this source. */
static void forget_groups(struct profile_source *source)
{
    source->resource_group = SOURCE_NOT_GROUPED;
    source->scope_group = SOURCE_NOT_GROUPED;
}

bool profile_source_open(struct profile_source *source, struct slice request,
                         struct profile_merge *merge)
{
    assert(merge != NULL);
    *source = (struct profile_source){.resources = wire_reader_of(request)};
    forget_groups(source);
    return profile_remap_open(&source->remap, request, &merge->tables);
}

void profile_source_close(struct profile_source *source)
{
    assert(source != NULL);
    profile_remap_close(&source->remap);
}

static bool is_broken(const struct profile_source *source, uint64_t profile)
{
    return source->broken != NULL && (source->broken[profile / 8] >> profile % 8 & 1) != 0;
}

static void begin_samples(struct profile_source *source)
{
    assert(source->level == SOURCE_PROFILE);
    source->samples = wire_reader_of(source->profile.bytes);
    source->samples_left = source->profile.samples_count;
}

/* One step towards the next profile; false at the end of the request. */
static bool step(struct profile_source *source)
{
    if (source->level == SOURCE_REQUEST) {
        if (!profile_next_resource(&source->resources, &source->resource))
            return false;
        source->scopes = wire_reader_of(source->resource.bytes);
        source->resource_group = SOURCE_NOT_GROUPED;
        source->level = SOURCE_RESOURCE;
    } else if (source->level == SOURCE_RESOURCE) {
        if (profile_next_scope(&source->scopes, &source->scope)) {
            source->profiles = wire_reader_of(source->scope.bytes);
            source->scope_group = SOURCE_NOT_GROUPED;
            source->level = SOURCE_SCOPE;
        } else {
            source->level = SOURCE_REQUEST;
        }
    } else if (!profile_next_profile(&source->profiles, &source->profile)) {
        source->level = SOURCE_RESOURCE;
    } else if (!is_broken(source, source->seen++)) {
        source->level = SOURCE_PROFILE;
        source->is_cut = false;
        begin_samples(source);
    }
    return true;
}

/* False at the end of the request. */
static bool find_profile(struct profile_source *source)
{
    while (source->level != SOURCE_PROFILE)
        if (!step(source))
            return false;
    return true;
}

/* There even if it is empty: back-ends rely on it. */
static uint8_t *put_value_type(struct profile_remap *remap, uint32_t number,
                               const struct profile_value_type *type, uint8_t *at)
{
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    if (profile_index_is_set(type->type) || profile_index_is_set(type->unit)) {
        end = profile_put_number(end, 1, profile_remap_string(remap, type->type));
        end = profile_put_number(end, 2, profile_remap_string(remap, type->unit));
    }
    return profile_close(at, end, number);
}

static uint8_t *put_bytes(uint8_t *at, uint32_t number, struct slice bytes)
{
    if (bytes.size == 0)
        return at;
    memcpy(at + PROFILE_HEADER_BYTES, bytes.data, bytes.size);
    return profile_close(at, at + PROFILE_HEADER_BYTES + bytes.size, number);
}

/* Most bytes of what _end_profile writes. */
static size_t rest_bytes_max(const struct profile_source *source)
{
    const struct profile *profile = &source->profile;
    size_t size = PLAIN_BYTES_MAX;
    assert(source->level == SOURCE_PROFILE);
    size += profile_remap_attributes_bytes(&source->remap, &profile->attributes);
    if (!source->is_cut)
        size += profile->id.size + profile->payload_format.size + profile->payload.size +
                3 * PROFILE_HEADER_BYTES_MAX;
    return size;
}

/* The type, and everything that the rest will refer to: it counts before the samples do. */
static void begin_profile(struct profile_merge *merge, struct profile_source *source)
{
    const struct profile *profile = &source->profile;
    struct profile_bytes *body = &merge->groups.body;
    size_t attributes_bytes = profile_remap_attributes_bytes(&source->remap, &profile->attributes);
    uint8_t *at = profile_bytes_room(body, PLAIN_BYTES_MAX + attributes_bytes);
    profile_remap_put_attributes(&source->remap, &profile->attributes, 11, at);
    put_value_type(&source->remap, 5, &profile->period_type, at);
    body->size += (size_t)(put_value_type(&source->remap, 1, &profile->sample_type, at) - at);
}

static void end_profile(struct profile_merge *merge, struct profile_source *source, uint32_t scope)
{
    const struct profile *profile = &source->profile;
    struct profile_bytes *body = &merge->groups.body;
    uint8_t *begin = profile_bytes_room(body, rest_bytes_max(source));
    uint8_t *at = begin;
    if (profile->time_unix_ns != 0) {
        struct wire_writer out = wire_writer_of(at, PLAIN_BYTES_MAX);
        wire_write_fixed64(&out, 3, profile->time_unix_ns);
        at = out.at;
    }
    at = profile_put_number(at, 4, profile->duration_ns);
    at = put_value_type(&source->remap, 5, &profile->period_type, at);
    at = profile_put_number(at, 6, (uint64_t)profile->period);
    if (!source->is_cut)
        at = put_bytes(at, 7, profile->id);
    at = profile_put_number(at, 8, profile->dropped_attributes);
    if (!source->is_cut) {
        at = put_bytes(at, 9, profile->payload_format);
        at = put_bytes(at, 10, profile->payload);
    }
    at = profile_remap_put_attributes(&source->remap, &profile->attributes, 11, at);
    body->size += (size_t)(at - begin);
    profile_groups_add(&merge->groups, scope);
    merge->profiles++;
}

/* Numbers that are no indices, packed. */
static uint8_t *put_numbers(const struct profile_numbers *numbers, uint32_t number, uint8_t *at)
{
    struct profile_numbers_reader reader = profile_numbers_read(numbers);
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    uint64_t value;
    if (numbers->parent.data == NULL)
        return put_bytes(at, number, numbers->packed);
    while (profile_numbers_next(&reader, &value)) {
        if (!numbers->is_fixed64) {
            end = profile_put_varint(end, value);
            continue;
        }
        for (unsigned i = 0; i < 8; i++)
            *end++ = (uint8_t)(value >> 8 * i);
    }
    return profile_close_filled(at, end, number);
}

static void put_sample(struct profile_merge *merge, struct profile_source *source,
                       const struct profile_sample *sample)
{
    struct profile_remap *remap = &source->remap;
    struct profile_bytes *body = &merge->groups.body;
    size_t size = SAMPLE_BYTES_MAX + sample->bytes.size +
                  profile_remap_attributes_bytes(remap, &sample->attributes);
    uint8_t *begin = profile_bytes_room(body, size);
    uint8_t *at = begin + PROFILE_HEADER_BYTES;
    at = profile_put_number(at, 1, profile_remap_stack(remap, sample->stack));
    at = profile_remap_put_attributes(remap, &sample->attributes, 2, at);
    at = profile_put_number(at, 3, profile_remap_link(remap, sample->link));
    at = put_numbers(&sample->values, 4, at);
    at = put_numbers(&sample->timestamps, 5, at);
    body->size += (size_t)(profile_close(begin, at, 2) - begin);
    assert(body->size <= body->capacity);
}

static bool fits_bytes(const struct profile_merge *merge, const struct profile_source *source,
                       struct otlp_limit limit)
{
    uint64_t bytes = profile_groups_bytes_max(&merge->groups) + rest_bytes_max(source) +
                     profile_tables_bytes(&merge->tables) + PROFILE_HEADER_BYTES_MAX;
    assert(limit.bytes_max > 0);
    return bytes <= limit.bytes_max;
}

/* Whether what does not fit is a profile with a payload that it loses by being cut, and then fits.
 */
static bool fits_cut(const struct profile_merge *merge, struct profile_source *source,
                     struct otlp_limit limit)
{
    bool is_alone = merge->profiles == 0;
    assert(source->level == SOURCE_PROFILE);
    if (!is_alone || source->is_cut || source->profile.samples_count < 2)
        return false;
    source->is_cut = true;
    return fits_bytes(merge, source, limit);
}

/* False: it does not fit, and nothing is changed. The very first one always fits. */
static bool take_sample(struct profile_merge *merge, struct profile_source *source,
                        struct otlp_limit limit)
{
    struct profile_tables_mark tables = profile_tables_mark(&merge->tables);
    struct wire_reader before = source->samples;
    size_t body_bytes = merge->groups.body.size;
    struct profile_sample sample;
    bool is_there = profile_next_sample(&source->samples, &sample);
    assert(is_there);
    put_sample(merge, source, &sample);
    if (!fits_bytes(merge, source, limit) && !fits_cut(merge, source, limit) && merge->items > 0) {
        profile_tables_cut(&merge->tables, &tables);
        merge->groups.body.size = body_bytes;
        source->samples = before;
        return false;
    }
    merge->items++;
    source->samples_left--;
    return true;
}

/* Takes the samples of a request that fits as a whole. */
static void take_all_samples(struct profile_merge *merge, struct profile_source *source)
{
    struct profile_bytes *body = &merge->groups.body;
    struct slice bytes;
    assert(source->is_copied);
    while (profile_next_sample_bytes(&source->samples, &bytes)) {
        uint8_t *begin =
            profile_bytes_room(body, bytes.size * DICTIONARY_COPY_GROWTH + DICTIONARY_COPY_SLACK);
        const uint8_t *end = dictionary_copy_sample(&source->remap, bytes, begin);
        if (end != NULL) {
            body->size += (size_t)(end - begin);
            continue;
        }
        struct profile_sample sample;
        profile_read_sample(bytes, &sample);
        put_sample(merge, source, &sample);
    }
    merge->items += source->samples_left;
    source->samples_left = 0;
}

/* Takes samples of the profile; false when some are left. */
static bool take_samples(struct profile_merge *merge, struct profile_source *source,
                         struct otlp_limit limit)
{
    assert(source->level == SOURCE_PROFILE);
    if (source->is_copied)
        take_all_samples(merge, source);
    while (source->samples_left > 0) {
        if (limit.items_max > 0 && merge->items == limit.items_max)
            return false;
        if (!take_sample(merge, source, limit))
            return false;
    }
    return true;
}

/* The scope of the profile at hand in the groups, looked up once for all of its profiles. */
static uint32_t group_of(struct profile_merge *merge, struct profile_source *source)
{
    const struct profile_dictionary *from = &source->remap.from;
    if (source->resource_group == SOURCE_NOT_GROUPED)
        source->resource_group = profile_groups_resource(&merge->groups, from, &source->resource);
    if (source->scope_group == SOURCE_NOT_GROUPED)
        source->scope_group =
            profile_groups_scope(&merge->groups, from, source->resource_group, &source->scope);
    assert(source->scope_group < merge->groups.scopes.count);
    return source->scope_group;
}

/* Takes the profile, or a piece of it if it is alone. False when some of it is left. */
static bool take_profile(struct profile_merge *merge, struct profile_source *source,
                         struct otlp_limit limit)
{
    struct profile_tables_mark tables = profile_tables_mark(&merge->tables);
    struct profile_groups_mark groups = profile_groups_mark(&merge->groups);
    uint64_t items = merge->items;
    bool is_alone = merge->profiles == 0;
    bool is_opaque = profile_is_opaque(&source->profile);
    uint64_t left = is_opaque ? 1 : source->samples_left;
    bool has_too_many = limit.items_max > 0 && left > limit.items_max - items;
    assert(limit.items_max == 0 || items <= limit.items_max);
    if (has_too_many && !is_alone)
        return false;
    source->is_cut = source->is_cut || has_too_many;
    uint32_t scope = group_of(merge, source);
    begin_profile(merge, source);
    bool is_whole =
        (is_alone || fits_bytes(merge, source, limit)) && take_samples(merge, source, limit);
    if (!is_whole && !is_alone) {
        profile_tables_cut(&merge->tables, &tables);
        profile_groups_cut(&merge->groups, &groups);
        forget_groups(source);
        merge->items = items;
        begin_samples(source);
        return false;
    }
    end_profile(merge, source, scope);
    merge->items += is_opaque;
    if (is_whole)
        source->level = SOURCE_SCOPE;
    return is_whole;
}

/* Items of the profiles of a scope. */
static uint64_t count_items(const struct profile_scope *scope)
{
    struct wire_reader profiles = wire_reader_of(scope->bytes);
    struct profile profile;
    uint64_t items = 0;
    while (profile_next_profile(&profiles, &profile))
        items += profile_items(&profile);
    return items;
}

/* Whether the request has no more than items_max (0: any number of) items, and no reference in its
 * resources and scopes, whose texts would make it larger than DICTIONARY_COPY_GROWTH says. */
static bool is_bounded(struct slice request, uint64_t items_max)
{
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    uint64_t items = 0;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        if (profile_has_references(INLINE_RESOURCE, resource.resource))
            return false;
        while (profile_next_scope(&scopes, &scope)) {
            if (profile_has_references(INLINE_SCOPE, scope.scope))
                return false;
            items += items_max > 0 ? count_items(&scope) : 0;
        }
    }
    return items <= items_max;
}

/* Whether all of the request is sure to fit, whatever its indices become. */
static bool fits_whole(const struct profile_merge *merge, const struct profile_source *source,
                       struct otlp_limit limit)
{
    const struct slice request = source->remap.from.request;
    uint64_t bytes = profile_groups_bytes_max(&merge->groups) +
                     profile_tables_bytes(&merge->tables) + DICTIONARY_COPY_SLACK +
                     (uint64_t)request.size * DICTIONARY_COPY_GROWTH;
    if (bytes > limit.bytes_max || (limit.items_max > 0 && merge->items == limit.items_max))
        return false;
    return is_bounded(request, limit.items_max > 0 ? limit.items_max - merge->items : 0);
}

bool profile_merge_take(struct profile_merge *merge, struct profile_source *source,
                        struct otlp_limit limit)
{
    assert(source->remap.to == &merge->tables);
    if (limit.bytes_max == 0)
        limit.bytes_max = PROFILE_MERGED_BYTES_MAX;
    if (!source->is_begun && fits_whole(merge, source, limit)) {
        source->is_copied = dictionary_copy(&source->remap);
        merge->may_have_unused |= source->is_copied;
    }
    source->is_begun = true;
    while (find_profile(source))
        if (!take_profile(merge, source, limit))
            return false;
    return true;
}

/* A buffer with everything up to the tables, and with room for tables_bytes of them. */
static struct buffer *begin_request(struct profile_merge *merge, uint64_t tables_bytes)
{
    uint64_t bytes_max =
        profile_groups_bytes_max(&merge->groups) + tables_bytes + PROFILE_HEADER_BYTES_MAX;
    struct buffer *buffer = buffer_create(merge->groups.body.budget, (size_t)bytes_max);
    uint8_t *at = profile_groups_write(&merge->groups, buffer->data);
    *at++ = (uint8_t)wire_tag(REQUEST_DICTIONARY, WIRE_BYTES);
    at = profile_put_varint(at, profile_tables_bytes(&merge->tables));
    buffer->size = (size_t)(at - buffer->data);
    assert(buffer->size + tables_bytes <= buffer->capacity);
    return buffer;
}

static struct buffer *write_request(struct profile_merge *merge)
{
    uint64_t tables_bytes = profile_tables_bytes(&merge->tables);
    struct buffer *buffer = begin_request(merge, tables_bytes);
    const uint8_t *end = profile_tables_write(&merge->tables, buffer->data + buffer->size);
    buffer->size = (size_t)(end - buffer->data);
    assert(buffer->size <= buffer->capacity);
    return buffer;
}

static void hand_out_request(struct profile_merge *merge, struct batch *batch)
{
    struct buffer *buffer = begin_request(merge, profile_tables_small_bytes(&merge->tables));
    profile_tables_hand_out(&merge->tables, buffer, batch);
    assert(buffer->size <= buffer->capacity);
    buffer_unref(buffer);
}

/* Writes the request once more, this time with what is asked for alone. Without memory for that it
 * stays as it is, which is untidy and not wrong. */
static struct buffer *without_unused(struct buffer *buffer, const struct profile_measure *measure,
                                     struct budget *budget)
{
    struct profile_merge merge;
    struct profile_source source;
    struct budget_reserve reserve;
    const struct otlp_limit limit = {.bytes_max = UINT64_MAX};
    if (budget_reserve(&reserve, budget, profile_measure_merge(measure)) != BUDGET_GIVEN)
        return buffer;
    profile_merge_init(&merge, budget);
    if (profile_source_open(&source, buffer_slice(buffer), &merge)) {
        source.is_begun = true;
        bool is_whole = profile_merge_take(&merge, &source, limit);
        assert(is_whole);
        profile_source_close(&source);
        buffer_unref(buffer);
        buffer = profile_merge_finish(&merge, NULL);
    }
    profile_merge_fini(&merge);
    budget_release(&reserve);
    return buffer;
}

/* What it takes to merge the result once more. */
static struct profile_measure measure_of(const struct profile_merge *merge,
                                         const struct buffer *result)
{
    struct profile_measure measure = {
        .request_bytes = result != NULL ? result->size : 0,
        .resources = merge->groups.resources.count,
        .scopes = merge->groups.scopes.count,
        .profiles = merge->profiles,
    };
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        measure.entries[i] = merge->tables.sets[i].count;
    return measure;
}

static bool has_unused(const struct profile_merge *merge)
{
    return merge->may_have_unused && profile_has_unused(&merge->tables, &merge->groups);
}

/* Nothing is taken any more; source, or NULL, goes on. */
static void clear(struct profile_merge *merge, struct profile_source *source)
{
    assert(source == NULL || source->remap.to == &merge->tables);
    profile_tables_clear(&merge->tables);
    profile_groups_clear(&merge->groups);
    merge->items = 0;
    merge->profiles = 0;
    merge->may_have_unused = false;
    if (source == NULL)
        return;
    profile_remap_forget(&source->remap);
    forget_groups(source);
    source->is_copied = false;
}

struct buffer *profile_merge_finish(struct profile_merge *merge, struct profile_source *source)
{
    struct buffer *buffer = merge->profiles > 0 ? write_request(merge) : NULL;
    bool is_untidy = buffer != NULL && has_unused(merge);
    struct profile_measure measure = measure_of(merge, buffer);
    clear(merge, source);
    return is_untidy ? without_unused(buffer, &measure, merge->groups.body.budget) : buffer;
}

bool profile_merge_hand_out(struct profile_merge *merge, struct profile_source *source,
                            struct batch *batch)
{
    bool is_any = merge->profiles > 0;
    assert(batch != NULL);
    if (is_any && has_unused(merge)) {
        struct buffer *buffer = profile_merge_finish(merge, source);
        batch_append(batch, buffer, buffer_slice(buffer));
        buffer_unref(buffer);
        return true;
    }
    if (is_any)
        hand_out_request(merge, batch);
    clear(merge, source);
    return is_any;
}
