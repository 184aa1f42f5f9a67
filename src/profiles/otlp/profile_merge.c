/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and splitting. A profile is written directly to the new request's body: its type, its
 * samples, then the rest, which depends on whether it had to be cut. What turns out not to fit is
 * removed again, which ends the request. One owner, one thread at a time. */
#include "src/profiles/otlp/profile_merge.h"

#include <assert.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/otlp/profile_inline.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_plan.h"

enum {
    /* Of a Profile without samples, attributes, id and payload. */
    PLAIN_BYTES_MAX = 120,
    /* Headers and numbers of a Sample. */
    SAMPLE_BYTES_MAX = 64,
    REQUEST_DICTIONARY = 2,
};

void profile_merge_init(struct profile_merge *merge, struct budget *budget)
{
    *merge = (struct profile_merge){0};
    profile_tables_init(&merge->tables, budget);
    profile_groups_init(&merge->groups, budget);
}

void profile_merge_fini(struct profile_merge *merge)
{
    profile_tables_fini(&merge->tables);
    profile_groups_fini(&merge->groups);
}

/* The resource and scope have no place in the groups yet. */
static void forget_groups(struct profile_source *source)
{
    source->resource_group = SOURCE_NOT_GROUPED;
    source->scope_group = SOURCE_NOT_GROUPED;
}

bool profile_source_open(struct profile_source *source, struct slice request,
                         struct profile_merge *merge)
{
    *source = (struct profile_source){.resources = wire_reader_of(request)};
    forget_groups(source);
    return dictionary_copy_open(&source->copy, request, &merge->tables);
}

void profile_source_close(struct profile_source *source)
{
    dictionary_copy_close(&source->copy);
}

static void begin_samples(struct profile_source *source)
{
    assert(source->level == SOURCE_PROFILE);
    source->samples = wire_reader_of(source->profile.bytes);
    source->samples_left = source->profile.samples_count;
}

/* Moves to the next profile that is not broken; false at the end of the request. */
static bool find_profile(struct profile_source *source)
{
    while (source->level != SOURCE_PROFILE) {
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
        } else {
            uint64_t i = source->seen++;
            if (source->broken != NULL && (source->broken[i / 8] >> i % 8 & 1) != 0)
                continue;
            source->level = SOURCE_PROFILE;
            source->is_cut = false;
            begin_samples(source);
        }
    }
    return true;
}

/* Written even when it is empty: back-ends require it. */
static uint8_t *put_value_type(struct dictionary_copy *copy, uint32_t number,
                               const struct profile_value_type *type, uint8_t *at)
{
    uint8_t *end = at + PROFILE_HEADER_BYTES;
    if (profile_index_is_set(type->type) || profile_index_is_set(type->unit)) {
        end = profile_put_number(end, 1, dictionary_copy_string(copy, type->type));
        end = profile_put_number(end, 2, dictionary_copy_string(copy, type->unit));
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

/* Upper bound of what comes after the samples. */
static size_t rest_bytes_max(const struct profile_source *source)
{
    const struct profile *profile = &source->profile;
    size_t size = PLAIN_BYTES_MAX + source->attributes_bytes;
    if (!source->is_cut)
        size += profile->id.size + profile->payload_format.size + profile->payload.size +
                3 * PROFILE_HEADER_BYTES_MAX;
    return size;
}

/* Numbers that are not indices, packed. */
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
    struct dictionary_copy *copy = &source->copy;
    struct profile_bytes *body = &merge->groups.body;
    size_t size = SAMPLE_BYTES_MAX + sample->bytes.size +
                  dictionary_copy_attributes_bytes(copy, &sample->attributes);
    uint8_t *begin = profile_bytes_room(body, size);
    uint8_t *at = begin + PROFILE_HEADER_BYTES;
    at = profile_put_number(at, 1, dictionary_copy_stack(copy, sample->stack));
    at = dictionary_copy_put_attributes(copy, &sample->attributes, 2, at);
    at = profile_put_number(at, 3, dictionary_copy_link(copy, sample->link));
    at = put_numbers(&sample->values, 4, at);
    at = put_numbers(&sample->timestamps, 5, at);
    body->size += (size_t)(profile_close(begin, at, 2) - begin);
    assert(body->size <= body->capacity);
}

/* Upper bound of the request so far. */
static uint64_t merged_bytes_max(const struct profile_merge *merge)
{
    return profile_groups_bytes_max(&merge->groups) + profile_tables_bytes(&merge->tables) +
           PROFILE_HEADER_BYTES_MAX;
}

static bool fits_bytes(const struct profile_merge *merge, const struct profile_source *source,
                       struct otlp_limit limit)
{
    return merged_bytes_max(merge) + rest_bytes_max(source) <= limit.bytes_max;
}

/* Takes samples of the profile; false when some are left. The very first one always fits. */
static bool take_samples(struct profile_merge *merge, struct profile_source *source,
                         struct otlp_limit limit)
{
    struct profile_bytes *body = &merge->groups.body;
    struct profile_sample sample;
    struct slice bytes;
    if (source->is_copied) {
        while (profile_next_sample_bytes(&source->samples, &bytes)) {
            uint8_t *begin = profile_bytes_room(body, bytes.size * DICTIONARY_COPY_GROWTH +
                                                          DICTIONARY_COPY_SLACK);
            const uint8_t *end = dictionary_copy_sample(&source->copy, bytes, begin);
            if (end != NULL) {
                body->size += (size_t)(end - begin);
                continue;
            }
            profile_read_sample(bytes, &sample);
            put_sample(merge, source, &sample);
        }
        merge->items += source->samples_left;
        source->samples_left = 0;
    }
    while (source->samples_left > 0) {
        if (limit.items_max > 0 && merge->items == limit.items_max)
            return false;
        struct profile_tables_mark tables = profile_tables_mark(&merge->tables);
        struct wire_reader before = source->samples;
        size_t body_bytes = body->size;
        bool is_there = profile_next_sample(&source->samples, &sample);
        assert(is_there);
        put_sample(merge, source, &sample);
        bool fits = fits_bytes(merge, source, limit);
        if (!fits && merge->profiles == 0 && !source->is_cut && source->profile.samples_count > 1) {
            source->is_cut = true; /* without id and payload it may fit */
            fits = fits_bytes(merge, source, limit);
        }
        if (!fits && merge->items > 0) {
            profile_tables_cut(&merge->tables, &tables);
            body->size = body_bytes;
            source->samples = before;
            return false;
        }
        merge->items++;
        source->samples_left--;
    }
    return true;
}

/* Takes the profile, or a piece of it if it is alone. False when some of it is left. */
static bool take_profile(struct profile_merge *merge, struct profile_source *source,
                         struct otlp_limit limit)
{
    const struct profile *profile = &source->profile;
    struct dictionary_copy *copy = &source->copy;
    struct profile_tables_mark tables = profile_tables_mark(&merge->tables);
    struct profile_groups_mark groups = profile_groups_mark(&merge->groups);
    struct profile_bytes *body = &merge->groups.body;
    uint64_t items = merge->items;
    bool is_alone = merge->profiles == 0;
    bool is_opaque = profile_is_opaque(profile);
    uint64_t left = is_opaque ? 1 : source->samples_left;
    bool has_too_many = limit.items_max > 0 && left > limit.items_max - items;
    assert(limit.items_max == 0 || items <= limit.items_max);
    if (has_too_many && !is_alone)
        return false;
    source->is_cut = source->is_cut || has_too_many;
    if (source->resource_group == SOURCE_NOT_GROUPED)
        source->resource_group =
            profile_groups_resource(&merge->groups, &copy->from, &source->resource);
    if (source->scope_group == SOURCE_NOT_GROUPED)
        source->scope_group = profile_groups_scope(&merge->groups, &copy->from,
                                                   source->resource_group, &source->scope);
    /* Attributes and period type are overwritten: their size and dictionary entries count now. */
    uint8_t *begin = profile_bytes_room(
        body, PLAIN_BYTES_MAX + dictionary_copy_attributes_bytes(copy, &profile->attributes));
    source->attributes_bytes =
        (size_t)(dictionary_copy_put_attributes(copy, &profile->attributes, 11, begin) - begin);
    put_value_type(copy, 5, &profile->period_type, begin);
    body->size += (size_t)(put_value_type(copy, 1, &profile->sample_type, begin) - begin);
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
    begin = profile_bytes_room(body, rest_bytes_max(source));
    uint8_t *at = begin;
    if (profile->time_unix_ns != 0) {
        struct wire_writer out = wire_writer_of(at, PLAIN_BYTES_MAX);
        wire_write_fixed64(&out, 3, profile->time_unix_ns);
        at = out.at;
    }
    at = profile_put_number(at, 4, profile->duration_ns);
    at = put_value_type(copy, 5, &profile->period_type, at);
    at = profile_put_number(at, 6, (uint64_t)profile->period);
    if (!source->is_cut)
        at = put_bytes(at, 7, profile->id);
    at = profile_put_number(at, 8, profile->dropped_attributes);
    if (!source->is_cut) {
        at = put_bytes(at, 9, profile->payload_format);
        at = put_bytes(at, 10, profile->payload);
    }
    at = dictionary_copy_put_attributes(copy, &profile->attributes, 11, at);
    body->size += (size_t)(at - begin);
    assert(body->size <= body->capacity);
    profile_groups_add(&merge->groups, source->scope_group);
    merge->profiles++;
    merge->items += is_opaque;
    if (is_whole)
        source->level = SOURCE_SCOPE;
    return is_whole;
}

/* Whether all of the request is certain to fit, even if its indices get longer. */
static bool fits_whole(const struct profile_merge *merge, const struct profile_source *source,
                       struct otlp_limit limit)
{
    const struct slice request = source->copy.from.request;
    uint64_t bytes = profile_groups_bytes_max(&merge->groups) +
                     profile_tables_bytes(&merge->tables) + DICTIONARY_COPY_SLACK +
                     (uint64_t)request.size * DICTIONARY_COPY_GROWTH;
    if (bytes > limit.bytes_max || (limit.items_max > 0 && merge->items == limit.items_max))
        return false;
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    uint64_t items = 0;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        /* Strings in place of references may grow more than DICTIONARY_COPY_GROWTH. */
        if (profile_has_references(INLINE_RESOURCE, resource.resource))
            return false;
        while (profile_next_scope(&scopes, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            if (profile_has_references(INLINE_SCOPE, scope.scope))
                return false;
            while (limit.items_max > 0 && profile_next_profile(&profiles, &profile))
                items += profile_items(&profile);
        }
    }
    return limit.items_max == 0 || items <= limit.items_max - merge->items;
}

bool profile_merge_take(struct profile_merge *merge, struct profile_source *source,
                        struct otlp_limit limit)
{
    assert(source->copy.to == &merge->tables);
    const uint64_t oversize_max =
        PROFILE_OVERSIZE_BYTES_MORE +
        (uint64_t)source->copy.from.request.size * PROFILE_OVERSIZE_GROWTH_MAX;
    const bool is_first = merge->profiles == 0;
    if (limit.bytes_max == 0)
        limit.bytes_max = PROFILE_MERGED_BYTES_MAX;
    if (source->oversize_bytes > oversize_max)
        limit.bytes_max = UINT64_MAX;
    if (!source->is_begun && fits_whole(merge, source, limit)) {
        source->is_copied = dictionary_copy_all(&source->copy);
        merge->may_have_unused |= source->is_copied;
    }
    source->is_begun = true;
    while (find_profile(source)) {
        if (take_profile(merge, source, limit))
            continue;
        uint64_t bytes = merged_bytes_max(merge);
        if (is_first && bytes > limit.bytes_max)
            source->oversize_bytes += bytes;
        return false;
    }
    return true;
}

/* What is referred to is marked table by table, from the samples downwards: when all entries of a
 * table are used, so is all that they refer to. Marking reads what was just written, so all indices
 * are valid. */
struct marking {
    const struct profile_tables *tables;
    uint8_t *marks[PROFILE_TABLES];    /* of each entry */
    uint32_t left[PROFILE_TABLES + 1]; /* entries without; the last one: no table, always 0 */
};

static void mark(struct marking *marking, enum profile_table table, uint64_t index)
{
    assert(index < marking->tables->sets[table].count);
    marking->left[table] -= marking->marks[table][index] == 0;
    marking->marks[table][index] = 1;
}

static void mark_all(struct marking *marking, enum profile_table table, struct slice packed)
{
    const uint8_t *at = packed.data;
    const uint8_t *end = packed.data + packed.size;
    uint64_t index = 0;
    while (at < end) {
        at = profile_number_at(at, end, &index);
        assert(at != NULL);
        mark(marking, table, index);
    }
}

static void mark_numbers(struct marking *marking, const struct profile_plan *plan,
                         struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number < 8 && plan->meanings[field.number] == PROFILE_INDEX)
            mark(marking, (enum profile_table)plan->tables[field.number], field.number_value);
    assert(reader.failure == NULL);
}

/* Fields of samples are in order. */
static void mark_profile(struct marking *marking, struct slice profile)
{
    struct wire_reader reader = wire_reader_of(profile);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == 1 || field.number == 5)
            mark_numbers(marking, &profile_value_type_plan, field.bytes);
        else if (field.number == 11)
            mark_all(marking, PROFILE_ATTRIBUTES, field.bytes);
        bool is_wanted = marking->left[PROFILE_STACKS] > 0 || marking->left[PROFILE_LINKS] > 0 ||
                         marking->left[PROFILE_ATTRIBUTES] > 0;
        if (field.number != 2 || !is_wanted)
            continue;
        const uint8_t *at = field.bytes.data;
        const uint8_t *end = at + field.bytes.size;
        struct slice attributes = slice_of(end, 0);
        uint64_t index = 0;
        if (at < end && *at == PROFILE_NUMBER(1)) {
            at = profile_number_at(at + 1, end, &index);
            mark(marking, PROFILE_STACKS, index);
        }
        if (at < end && *at == PROFILE_BYTES(2)) {
            bool is_whole = profile_content_at(at + 1, end, &attributes);
            assert(is_whole);
            at = attributes.data + attributes.size;
            if (marking->left[PROFILE_ATTRIBUTES] > 0)
                mark_all(marking, PROFILE_ATTRIBUTES, attributes);
        }
        if (at < end && *at == PROFILE_NUMBER(3)) {
            at = profile_number_at(at + 1, end, &index);
            mark(marking, PROFILE_LINKS, index);
        }
        assert(at != NULL);
    }
    assert(reader.failure == NULL);
}

static void mark_entry(struct marking *marking, enum profile_table table, struct slice entry)
{
    struct wire_reader reader = wire_reader_of(entry);
    struct wire_field field;
    if (table == PROFILE_FUNCTIONS)
        mark_numbers(marking, &profile_function_plan, entry);
    else if (table == PROFILE_MAPPINGS)
        mark_numbers(marking, &profile_mapping_plan, entry);
    while (wire_next_field(&reader, &field)) {
        if (table == PROFILE_STACKS)
            mark_all(marking, PROFILE_LOCATIONS, field.bytes);
        else if (table == PROFILE_LOCATIONS && field.number == 1)
            mark(marking, PROFILE_MAPPINGS, field.number_value);
        else if (table == PROFILE_LOCATIONS && field.number == 3)
            mark_numbers(marking, &profile_line_plan, field.bytes);
        else if ((table == PROFILE_LOCATIONS && field.number == 4) ||
                 (table == PROFILE_MAPPINGS && field.number == 5))
            mark_all(marking, PROFILE_ATTRIBUTES, field.bytes);
        else if (table == PROFILE_ATTRIBUTES && field.number != 2)
            mark(marking, PROFILE_STRINGS, field.number_value);
    }
    assert(reader.failure == NULL);
}

/* Whether entries are left after marking what samples and profiles refer to and, table by table,
 * each after all that refer to it, what entries refer to. Entries are read only as long as those
 * that they refer to are not all marked. */
static bool find_unused(struct marking *marking, const struct profile_groups *groups)
{
    static const struct {
        enum profile_table table;
        enum profile_table targets[3]; /* PROFILE_TABLES: none */
    } steps[] = {
        {PROFILE_STACKS, {PROFILE_LOCATIONS, PROFILE_TABLES, PROFILE_TABLES}},
        {PROFILE_LOCATIONS, {PROFILE_MAPPINGS, PROFILE_FUNCTIONS, PROFILE_ATTRIBUTES}},
        {PROFILE_MAPPINGS, {PROFILE_ATTRIBUTES, PROFILE_STRINGS, PROFILE_TABLES}},
        {PROFILE_FUNCTIONS, {PROFILE_STRINGS, PROFILE_TABLES, PROFILE_TABLES}},
        {PROFILE_ATTRIBUTES, {PROFILE_STRINGS, PROFILE_TABLES, PROFILE_TABLES}},
    };
    size_t begin = 0;
    for (uint32_t i = 0; i < groups->rows_count; i++) {
        size_t end = groups->rows[i].end;
        mark_profile(marking, slice_of(groups->body.data + begin, end - begin));
        begin = end;
    }
    assert(begin == groups->body.size);
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct profile_set *set = &marking->tables->sets[steps[i].table];
        const enum profile_table *targets = steps[i].targets;
        if (marking->left[steps[i].table] > 0)
            return true;
        for (uint32_t k = 1;
             k < set->count && (marking->left[targets[0]] > 0 || marking->left[targets[1]] > 0 ||
                                marking->left[targets[2]] > 0);
             k++)
            mark_entry(marking, steps[i].table, profile_set_at(set, k));
    }
    return marking->left[PROFILE_LINKS] > 0 || marking->left[PROFILE_STRINGS] > 0;
}

/* Whether the dictionary has entries that nothing refers to. */
static bool has_unused(const struct profile_merge *merge)
{
    const struct profile_tables *tables = &merge->tables;
    struct marking marking = {.tables = tables};
    struct profile_bytes scratch = {.budget = merge->groups.body.budget};
    size_t size = 0;
    if (!merge->may_have_unused)
        return false;
    for (unsigned i = 0; i < PROFILE_TABLES; i++)
        size += tables->sets[i].count;
    uint8_t *at = profile_bytes_room(&scratch, size);
    memset(at, 0, size);
    for (unsigned i = 0; i < PROFILE_TABLES; i++) {
        marking.marks[i] = at;
        marking.marks[i][0] = 1; /* the zero element */
        marking.left[i] = tables->sets[i].count - 1;
        at += tables->sets[i].count;
    }
    bool is_any = find_unused(&marking, &merge->groups);
    profile_bytes_fini(&scratch);
    return is_any;
}

/* A buffer with the request up to its tables, and room for tables_bytes of them. */
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

/* Rewrites the request, this time with used entries only. Without memory for that it stays as it
 * is, which is larger than need be but not wrong. */
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
        source.is_begun = true; /* entries are copied one by one */
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

/* Empties merge; source, or NULL, is the one to go on with. */
static void clear(struct profile_merge *merge, struct profile_source *source)
{
    assert(source == NULL || source->copy.to == &merge->tables);
    profile_tables_clear(&merge->tables);
    profile_groups_clear(&merge->groups);
    merge->items = 0;
    merge->profiles = 0;
    merge->may_have_unused = false;
    if (source == NULL)
        return;
    dictionary_copy_forget(&source->copy);
    forget_groups(source);
    source->is_copied = false;
}

struct buffer *profile_merge_finish(struct profile_merge *merge, struct profile_source *source)
{
    struct buffer *buffer = NULL;
    struct profile_measure measure = {.request_bytes = 0};
    bool is_any_unused = false;
    if (merge->profiles > 0) {
        uint64_t tables_bytes = profile_tables_bytes(&merge->tables);
        buffer = begin_request(merge, tables_bytes);
        const uint8_t *end = profile_tables_write(&merge->tables, buffer->data + buffer->size);
        buffer->size = (size_t)(end - buffer->data);
        assert(buffer->size <= buffer->capacity);
        is_any_unused = has_unused(merge);
        measure = (struct profile_measure){
            .request_bytes = buffer->size,
            .resources = merge->groups.resources.count,
            .scopes = merge->groups.scopes.count,
            .profiles = merge->profiles,
        };
        for (unsigned i = 0; i < PROFILE_TABLES; i++)
            measure.entries[i] = merge->tables.sets[i].count;
    }
    clear(merge, source);
    return is_any_unused ? without_unused(buffer, &measure, merge->groups.body.budget) : buffer;
}

bool profile_merge_hand_out(struct profile_merge *merge, struct profile_source *source,
                            struct batch *batch)
{
    bool is_any = merge->profiles > 0;
    if (is_any && has_unused(merge)) {
        struct buffer *buffer = profile_merge_finish(merge, source);
        batch_append(batch, buffer, buffer_slice(buffer));
        buffer_unref(buffer);
        return true;
    }
    if (is_any) {
        struct buffer *buffer = begin_request(merge, profile_tables_small_bytes(&merge->tables));
        profile_tables_hand_out(&merge->tables, buffer, batch);
        assert(buffer->size <= buffer->capacity);
        buffer_unref(buffer);
    }
    clear(merge, source);
    return is_any;
}

struct buffer *profile_rewrite(struct slice request, const uint8_t *broken, struct budget *budget,
                               uint64_t *ret_dropped)
{
    struct profile_merge merge;
    struct profile_source source;
    struct buffer *buffer = NULL;
    /* New indices may be longer: what is left may take more bytes than the request. */
    const struct otlp_limit limit = {.bytes_max = UINT64_MAX};
    profile_merge_init(&merge, budget);
    if (profile_source_open(&source, request, &merge)) {
        source.broken = broken;
        bool is_whole = profile_merge_take(&merge, &source, limit);
        assert(is_whole);
        if (ret_dropped != NULL)
            *ret_dropped = merge.groups.dropped_attributes + source.copy.dropped_attributes;
        profile_source_close(&source);
        buffer = profile_merge_finish(&merge, NULL);
        if (buffer == NULL)
            buffer = buffer_create(budget, 0);
    }
    profile_merge_fini(&merge);
    return buffer;
}
