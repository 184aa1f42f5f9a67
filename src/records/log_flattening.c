/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting writes two headers for each record, between bytes that it shares. Joining numbers equal
 * contents, and makes a tree of them. Runs on the owner's thread. */
#include "src/records/log_flattening.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/records/record_edit.h"
#include "src/records/record_limits.h"

enum { SCHEMA_URL = 3, LENGTH_BYTES_MAX = 6, HEADERS_BYTES_MAX = 2 * LENGTH_BYTES_MAX };
enum { ROOT = 0, ENTRIES_FIRST = 16 };

/* A ResourceLogs or ScopeLogs message of the result; the first one is the request. */
struct log_group {
    struct slice message; /* the first that it is made of, for what it has beside its children */
    uint32_t next;        /* sibling; 0: none */
    uint32_t first;       /* groups, or of a scope leaves plus 1 */
    uint32_t last;
    uint64_t bytes; /* of its content; once measured */
};

struct log_leaf {
    struct slice whole; /* the field of a LogRecord */
    uint32_t next;      /* plus 1; 0: none */
};

void log_flattening_init(struct log_flattening *flattening, struct budget *budget)
{
    *flattening = (struct log_flattening){.budget = budget};
    identity_init(&flattening->identity, budget);
    content_table_init(&flattening->contents);
    attribute_list_init(&flattening->attributes, RECORD_VALUES_BYTES_MAX, budget);
}

/* Frees what a request needed. */
static void forget(struct log_flattening *flattening)
{
    struct budget *budget = flattening->budget;
    identity_fini(&flattening->identity);
    identity_init(&flattening->identity, budget);
    content_table_fini(&flattening->contents, budget);
    content_table_init(&flattening->contents);
    attribute_list_clear(&flattening->attributes);
    scratch_fini(&flattening->places, budget);
    scratch_fini(&flattening->groups, budget);
    scratch_fini(&flattening->leaves, budget);
    flattening->groups_count = flattening->leaves_count = 0;
}

void log_flattening_fini(struct log_flattening *flattening)
{
    forget(flattening);
    identity_fini(&flattening->identity);
    attribute_list_fini(&flattening->attributes);
}

/* The bytes of a message but for its children. */
static uint64_t bytes_beside(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint64_t bytes = 0;
    while (wire_next_field(&reader, &field))
        bytes += field.number == RECORDS_CHILDREN ? 0 : field.whole.size;
    return bytes;
}

static void write_beside(struct wire_writer *writer, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number != RECORDS_CHILDREN)
            wire_write_raw(writer, field.whole);
}

static enum log_flattening_verdict no_room(const struct log_flattening *flattening, uint64_t bytes)
{
    return flattening->budget != NULL && bytes > budget_limit(flattening->budget) ? LOGS_NEVER_FIT
                                                                                  : LOGS_NO_ROOM;
}

/* ---- Splitting ---- */

/* What the records of a request take, each with all that is around it. */
struct split_sizes {
    uint64_t result;
    uint64_t own; /* bytes that are written: headers, and what is around records */
};

static struct split_sizes measure_split(struct slice request)
{
    struct split_sizes sizes = {.result = 0};
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    struct wire_field scope;
    struct wire_field record;
    while (wire_next_field(&resources, &resource)) {
        if (resource.number != RECORDS_RESOURCES)
            continue;
        const uint64_t beside = bytes_beside(resource.bytes);
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        sizes.own += beside;
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number != RECORDS_CHILDREN)
                continue;
            const uint64_t around = bytes_beside(scope.bytes);
            struct wire_reader records = wire_reader_of(scope.bytes);
            sizes.own += around;
            while (wire_next_field(&records, &record)) {
                if (record.number != RECORDS_CHILDREN)
                    continue;
                sizes.own += HEADERS_BYTES_MAX;
                sizes.result += beside + around + record.whole.size + HEADERS_BYTES_MAX;
            }
        }
    }
    return sizes;
}

/* The result while it is made. */
struct split {
    struct batch *batch;
    struct buffer *own;   /* headers, and what is around records */
    struct buffer *owner; /* of the request */
};

static void append_own(struct split *split, struct slice bytes)
{
    if (bytes.size > 0)
        batch_append(split->batch, split->own, bytes);
}

/* Copies what a message has beside its children. */
static struct slice keep_beside(struct split *split, struct slice message)
{
    uint8_t *at = split->own->data + split->own->size;
    struct wire_writer writer = wire_writer_of(at, split->own->capacity - split->own->size);
    write_beside(&writer, message);
    const struct slice written = wire_written(&writer);
    split->own->size += written.size;
    return written;
}

static void append_header(struct split *split, uint32_t number, uint64_t content_bytes)
{
    uint8_t *at = split->own->data + split->own->size;
    struct wire_writer writer = wire_writer_of(at, LENGTH_BYTES_MAX);
    wire_write_header(&writer, number, (size_t)content_bytes);
    const struct slice written = wire_written(&writer);
    split->own->size += written.size;
    append_own(split, written);
}

static void split_scope(struct split *split, struct slice beside, struct slice scope)
{
    const struct slice around = keep_beside(split, scope);
    struct wire_reader records = wire_reader_of(scope);
    struct wire_field record;
    while (wire_next_field(&records, &record)) {
        if (record.number != RECORDS_CHILDREN)
            continue;
        const uint64_t content = around.size + record.whole.size;
        append_header(split, RECORDS_RESOURCES,
                      beside.size + wire_field_size(RECORDS_CHILDREN, (size_t)content));
        append_own(split, beside);
        append_header(split, RECORDS_CHILDREN, content);
        append_own(split, around);
        batch_append(split->batch, split->owner, record.whole);
    }
}

static void split_request(struct split *split, struct slice request)
{
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    struct wire_field scope;
    while (wire_next_field(&resources, &resource)) {
        if (resource.number != RECORDS_RESOURCES) {
            batch_append(split->batch, split->owner, resource.whole);
            continue;
        }
        const struct slice beside = keep_beside(split, resource.bytes);
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (wire_next_field(&scopes, &scope))
            if (scope.number == RECORDS_CHILDREN)
                split_scope(split, beside, scope.bytes);
    }
}

enum log_flattening_verdict log_flattening_split(struct log_flattening *flattening,
                                                 struct batch *batch, struct batch **ret_batch)
{
    struct budget *budget = flattening->budget;
    struct batch_part whole;
    assert(batch->signal == LOGS);
    if (!batch_join_owed(batch, budget, &whole))
        return no_room(flattening, 2 * batch->bytes);
    const struct split_sizes sizes = measure_split(whole.bytes);
    struct split split = {.owner = whole.owner};
    if (sizes.result > LOG_FLATTENED_BYTES_MIN &&
        sizes.result > batch->bytes * LOG_FLATTENED_GROWTH_MAX) {
        buffer_unref(whole.owner);
        return LOGS_NEVER_FIT;
    }
    const size_t own_bytes = (size_t)sizes.own + 1;
    if (!batch_may_exceed(batch))
        split.own = buffer_try_create(budget, own_bytes);
    else if (own_bytes <= BATCH_LATE_BYTES_FREE || batch_has_room(batch, budget, own_bytes))
        split.own = buffer_create(budget, own_bytes);
    if (split.own == NULL) {
        buffer_unref(whole.owner);
        return no_room(flattening, 2 * batch->bytes + sizes.own);
    }
    split.batch = batch_create_like(batch, 1);
    split_request(&split, whole.bytes);
    split.batch->items = batch->items;
    buffer_unref(split.own);
    buffer_unref(whole.owner);
    *ret_batch = split.batch;
    return LOGS_DONE;
}

/* ---- Joining ---- */

static struct log_group *group_at(const struct log_flattening *flattening, uint32_t group)
{
    return (struct log_group *)flattening->groups.memory + group;
}

static struct log_leaf *leaf_at(const struct log_flattening *flattening, uint32_t leaf)
{
    return (struct log_leaf *)flattening->leaves.memory + leaf;
}

/* Room for one more element of an array; NULL: no memory. */
static void *room_for(const struct log_flattening *flattening, struct scratch *scratch,
                      uint32_t count, size_t size)
{
    size_t capacity = scratch->bytes / size;
    if (count >= capacity)
        capacity = capacity > 0 ? 2 * capacity : ENTRIES_FIRST;
    while (count >= capacity)
        capacity *= 2;
    return scratch_room(scratch, flattening->budget, capacity * size);
}

/* A new group behind the children of parent. False: no memory. */
static bool add_group(struct log_flattening *flattening, uint32_t parent, struct slice message,
                      uint32_t *ret)
{
    if (room_for(flattening, &flattening->groups, flattening->groups_count,
                 sizeof(struct log_group)) == NULL)
        return false;
    const uint32_t group = flattening->groups_count++;
    struct log_group *above = group_at(flattening, parent);
    *group_at(flattening, group) = (struct log_group){.message = message};
    if (group != ROOT && above->last != 0)
        group_at(flattening, above->last)->next = group;
    else if (group != ROOT)
        above->first = group;
    above->last = group;
    *ret = group;
    return true;
}

static bool add_leaf(struct log_flattening *flattening, uint32_t scope, struct slice whole)
{
    if (room_for(flattening, &flattening->leaves, flattening->leaves_count,
                 sizeof(struct log_leaf)) == NULL)
        return false;
    const uint32_t leaf = flattening->leaves_count++;
    struct log_group *group = group_at(flattening, scope);
    *leaf_at(flattening, leaf) = (struct log_leaf){.whole = whole};
    if (group->last != 0)
        leaf_at(flattening, group->last - 1)->next = leaf + 1;
    else
        group->first = leaf + 1;
    group->last = leaf + 1;
    return true;
}

/* The group of what was written to the identity since begin: the one that there is, or a new one
 * below parent. False: no memory. */
static bool find_group(struct log_flattening *flattening, size_t begin, uint32_t parent,
                       struct slice message, uint32_t *ret)
{
    struct identity *identity = &flattening->identity;
    uint32_t hash;
    if (identity->has_failed || flattening->attributes.has_failed || identity->size > UINT32_MAX)
        return false;
    const struct slice content = identity_from(identity, begin);
    uint32_t index =
        content_table_find(&flattening->contents, identity->block.memory, content, &hash);
    if (index != 0) {
        identity_cut(identity, begin);
        *ret = ((const uint32_t *)flattening->places.memory)[index];
        return true;
    }
    index = content_table_add(&flattening->contents, flattening->budget, hash, begin, content.size);
    uint32_t *places =
        index != 0 ? room_for(flattening, &flattening->places, index, sizeof(uint32_t)) : NULL;
    if (places == NULL || !add_group(flattening, parent, message, ret))
        return false;
    places[index] = *ret;
    return true;
}

/* The attributes of all heads of a message, their field having that number. */
static void put_attributes(struct log_flattening *flattening, struct slice message, uint32_t number)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    attribute_list_next(&flattening->attributes);
    while (wire_next_field(&reader, &field)) {
        if (field.number != RECORDS_HEAD)
            continue;
        struct wire_reader head = wire_reader_of(field.bytes);
        while (wire_next_field(&head, &field))
            if (field.number == number)
                attribute_list_add(&flattening->attributes, field.bytes);
    }
    identity_put_attributes(&flattening->identity, &flattening->attributes);
}

static bool find_resource(struct log_flattening *flattening, struct slice message, uint32_t *ret)
{
    const size_t begin = flattening->identity.size;
    const uint32_t parent = ROOT;
    identity_put_raw(&flattening->identity, &parent, sizeof(parent));
    put_attributes(flattening, message, RESOURCE_ATTRIBUTES);
    return find_group(flattening, begin, ROOT, message, ret);
}

static bool find_scope(struct log_flattening *flattening, uint32_t resource, struct slice message,
                       uint32_t *ret)
{
    struct identity *identity = &flattening->identity;
    const size_t begin = identity->size;
    struct slice texts[3] = {slice_of(NULL, 0), slice_of(NULL, 0), slice_of(NULL, 0)};
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == SCHEMA_URL)
            texts[2] = field.bytes;
        if (field.number != RECORDS_HEAD)
            continue;
        struct wire_reader head = wire_reader_of(field.bytes);
        while (wire_next_field(&head, &field))
            if (field.number == SCOPE_NAME || field.number == SCOPE_VERSION)
                texts[field.number - SCOPE_NAME] = field.bytes;
    }
    identity_put_raw(identity, &resource, sizeof(resource));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        identity_put_text(identity, texts[i]);
    put_attributes(flattening, message, SCOPE_ATTRIBUTES);
    return find_group(flattening, begin, resource, message, ret);
}

static bool add_scope(struct log_flattening *flattening, uint32_t resource, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint32_t scope;
    if (!find_scope(flattening, resource, message, &scope))
        return false;
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_CHILDREN && !add_leaf(flattening, scope, field.whole))
            return false;
    return true;
}

static bool add_resource(struct log_flattening *flattening, struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    uint32_t resource;
    if (!find_resource(flattening, message, &resource))
        return false;
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_CHILDREN && !add_scope(flattening, resource, field.bytes))
            return false;
    return true;
}

static bool build_tree(struct log_flattening *flattening, struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    uint32_t root;
    if (!add_group(flattening, ROOT, request, &root))
        return false;
    while (wire_next_field(&reader, &field))
        if (field.number == RECORDS_RESOURCES && !add_resource(flattening, field.bytes))
            return false;
    return true;
}

/* Returns the bytes of the whole result. */
static uint64_t measure_tree(struct log_flattening *flattening)
{
    uint64_t whole = 0;
    for (uint32_t r = group_at(flattening, ROOT)->first; r != 0;
         r = group_at(flattening, r)->next) {
        struct log_group *resource = group_at(flattening, r);
        resource->bytes = bytes_beside(resource->message);
        for (uint32_t s = resource->first; s != 0; s = group_at(flattening, s)->next) {
            struct log_group *scope = group_at(flattening, s);
            scope->bytes = bytes_beside(scope->message);
            for (uint32_t l = scope->first; l != 0; l = leaf_at(flattening, l - 1)->next)
                scope->bytes += leaf_at(flattening, l - 1)->whole.size;
            resource->bytes += wire_field_size(RECORDS_CHILDREN, (size_t)scope->bytes);
        }
        whole += wire_field_size(RECORDS_RESOURCES, (size_t)resource->bytes);
    }
    return whole;
}

static void write_tree(const struct log_flattening *flattening, struct wire_writer *writer)
{
    for (uint32_t r = group_at(flattening, ROOT)->first; r != 0;
         r = group_at(flattening, r)->next) {
        const struct log_group *resource = group_at(flattening, r);
        wire_write_header(writer, RECORDS_RESOURCES, (size_t)resource->bytes);
        write_beside(writer, resource->message);
        for (uint32_t s = resource->first; s != 0; s = group_at(flattening, s)->next) {
            const struct log_group *scope = group_at(flattening, s);
            wire_write_header(writer, RECORDS_CHILDREN, (size_t)scope->bytes);
            write_beside(writer, scope->message);
            for (uint32_t l = scope->first; l != 0; l = leaf_at(flattening, l - 1)->next)
                wire_write_raw(writer, leaf_at(flattening, l - 1)->whole);
        }
    }
}

/* Fields of the request that are no resources stay in front. */
static struct batch *write_joined(const struct log_flattening *flattening,
                                  const struct batch *batch, struct slice request, uint64_t bytes)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        bytes += field.number == RECORDS_RESOURCES ? 0 : field.whole.size;
    struct buffer *buffer = buffer_try_create(flattening->budget, (size_t)bytes + 1);
    if (buffer == NULL)
        return NULL;
    struct wire_writer writer = wire_writer_of(buffer->data, (size_t)bytes);
    reader = wire_reader_of(request);
    while (wire_next_field(&reader, &field))
        if (field.number != RECORDS_RESOURCES)
            wire_write_raw(&writer, field.whole);
    write_tree(flattening, &writer);
    buffer->size = (size_t)bytes;
    struct batch *joined = batch_create_like(batch, 1);
    if (bytes > 0)
        batch_append(joined, buffer, buffer_slice(buffer));
    joined->items = batch->items;
    buffer_unref(buffer);
    return joined;
}

enum log_flattening_verdict log_flattening_join(struct log_flattening *flattening,
                                                struct batch *batch, struct batch **ret_batch)
{
    struct batch_part whole;
    struct batch *joined = NULL;
    assert(batch->signal == LOGS);
    if (!batch_join_owed(batch, flattening->budget, &whole))
        return no_room(flattening, 2 * batch->bytes);
    /* What nobody would send again may use the margin. */
    batch_begin_work(batch);
    if (build_tree(flattening, whole.bytes))
        joined = write_joined(flattening, batch, whole.bytes, measure_tree(flattening));
    batch_end_work(batch);
    const uint64_t missed = 3 * batch->bytes;
    forget(flattening);
    buffer_unref(whole.owner);
    if (joined == NULL)
        return no_room(flattening, missed);
    *ret_batch = joined;
    return LOGS_DONE;
}
