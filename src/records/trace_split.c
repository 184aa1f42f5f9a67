/* SPDX-License-Identifier: Apache-2.0 */
/* First lists the spans of each fragment, then measures, then writes. Work in proportion to the
 * request and what comes out. Runs on the owner's thread. */
#include "src/records/trace_split.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/wire.h"
#include "src/records/record_edit.h"
#include "src/records/record_limits.h"

enum { SPAN_TRACE_ID = 1, ENTRIES_FIRST = 16, KEY_BYTES = sizeof(uint32_t) + TRACE_ID_BYTES };

struct split_span {
    struct slice whole;
    uint32_t next; /* plus 1 */
};

/* The fields of a message that are no children, in one piece: where they lie in the request, or if
 * children lie between them a copy at that place of `gathered`. Fragments do not read past the
 * children of their scope again. */
struct split_others {
    struct slice bytes;
    size_t gathered; /* SIZE_MAX: in the request */
};

struct split_scope {
    struct split_others resource;
    struct split_others scope;
};

void trace_split_init(struct trace_split *split, struct budget *budget)
{
    *split = (struct trace_split){.budget = budget};
    content_table_init(&split->table);
}

struct trace_fragment *trace_split_fragments(const struct trace_split *split)
{
    return split->fragments.memory;
}

void trace_split_fini(struct trace_split *split)
{
    for (size_t i = 0; i < split->fragments_count; i++)
        buffer_unref(trace_split_fragments(split)[i].buffer);
    content_table_fini(&split->table, split->budget);
    scratch_fini(&split->keys, split->budget);
    scratch_fini(&split->places, split->budget);
    scratch_fini(&split->spans, split->budget);
    scratch_fini(&split->scopes, split->budget);
    scratch_fini(&split->fragments, split->budget);
    scratch_fini(&split->gathered, split->budget);
}

/* Room for one more element of an array; NULL: no memory. */
static void *room_for(struct trace_split *split, struct scratch *scratch, size_t count, size_t size)
{
    size_t capacity = scratch->bytes / size;
    if (count >= capacity)
        capacity = capacity > 0 ? 2 * capacity : ENTRIES_FIRST;
    while (count >= capacity)
        capacity *= 2;
    return scratch_room(scratch, split->budget, capacity * size);
}

/* False: no memory. */
static bool gather_others(struct trace_split *split, struct slice content,
                          struct split_others *others)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    uint8_t *room =
        room_for(split, &split->gathered, split->gathered_bytes + others->bytes.size, 1);
    if (room == NULL)
        return false;
    others->gathered = split->gathered_bytes;
    while (wire_next_field(&reader, &field)) {
        if (field.number == RECORDS_CHILDREN)
            continue;
        memcpy(room + split->gathered_bytes, field.whole.data, field.whole.size);
        split->gathered_bytes += field.whole.size;
    }
    return true;
}

/* False: no memory. */
static bool read_others(struct trace_split *split, struct slice content,
                        struct split_others *ret_others)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    bool is_one = true;
    *ret_others = (struct split_others){.gathered = SIZE_MAX};
    struct slice *run = &ret_others->bytes;
    while (wire_next_field(&reader, &field)) {
        if (field.number == RECORDS_CHILDREN)
            continue;
        if (run->data == NULL)
            run->data = field.whole.data;
        is_one &= run->data + run->size == field.whole.data;
        run->size += field.whole.size;
    }
    return is_one || gather_others(split, content, ret_others);
}

static void write_others(const struct trace_split *split, struct wire_writer *writer,
                         const struct split_others *others)
{
    struct slice bytes = others->bytes;
    if (others->gathered != SIZE_MAX)
        bytes.data = (const uint8_t *)split->gathered.memory + others->gathered;
    wire_write_raw(writer, bytes);
}

/* The fragment of that trace in the scope at hand; NULL: no memory. */
static struct trace_fragment *fragment_of(struct trace_split *split,
                                          const uint8_t id[static TRACE_ID_BYTES])
{
    uint8_t key[KEY_BYTES];
    uint32_t scope = (uint32_t)split->scopes_count - 1;
    uint32_t hash;
    memcpy(key, &scope, sizeof(scope));
    memcpy(key + sizeof(scope), id, TRACE_ID_BYTES);
    uint32_t content =
        content_table_find(&split->table, split->keys.memory, slice_of(key, sizeof(key)), &hash);
    if (content != 0)
        return &trace_split_fragments(split)[((const uint32_t *)split->places.memory)[content]];
    if (split->keys_bytes > UINT32_MAX - KEY_BYTES)
        return NULL;
    uint8_t *keys = room_for(split, &split->keys, split->keys_bytes + KEY_BYTES, 1);
    struct trace_fragment *fragments =
        room_for(split, &split->fragments, split->fragments_count, sizeof(*fragments));
    if (keys == NULL || fragments == NULL)
        return NULL;
    memcpy(keys + split->keys_bytes, key, sizeof(key));
    content = content_table_add(&split->table, split->budget, hash, split->keys_bytes, KEY_BYTES);
    uint32_t *places =
        content != 0 ? room_for(split, &split->places, content, sizeof(uint32_t)) : NULL;
    if (places == NULL)
        return NULL;
    split->keys_bytes += KEY_BYTES;
    places[content] = (uint32_t)split->fragments_count;
    struct trace_fragment *fragment = &fragments[split->fragments_count++];
    *fragment = (struct trace_fragment){.scope = scope};
    memcpy(fragment->id, id, TRACE_ID_BYTES);
    return fragment;
}

/* False: no memory. */
static bool add_span(struct trace_split *split, const struct wire_field *field)
{
    uint8_t id[TRACE_ID_BYTES] = {0};
    struct wire_reader reader = wire_reader_of(field->bytes);
    struct wire_field inner;
    while (wire_next_field(&reader, &inner))
        if (inner.number == SPAN_TRACE_ID && inner.bytes.size == TRACE_ID_BYTES)
            memcpy(id, inner.bytes.data, TRACE_ID_BYTES);
    struct trace_fragment *fragment = fragment_of(split, id);
    struct split_span *spans =
        room_for(split, &split->spans, split->spans_count, sizeof(struct split_span));
    if (fragment == NULL || spans == NULL)
        return false;
    spans[split->spans_count] = (struct split_span){.whole = field->whole};
    uint32_t place = (uint32_t)++split->spans_count; /* plus 1 */
    if (fragment->last_span != 0)
        spans[fragment->last_span - 1].next = place;
    else
        fragment->first_span = place;
    fragment->last_span = place;
    fragment->items++;
    fragment->bytes += field->whole.size;
    return true;
}

/* False: no memory. */
static bool list_spans(struct trace_split *split, struct slice bytes)
{
    struct wire_reader resources = wire_reader_of(bytes);
    struct wire_field resource;
    struct wire_field scope;
    struct wire_field span;
    while (wire_next_field(&resources, &resource)) {
        if (resource.number != RECORDS_RESOURCES)
            continue;
        struct split_others others;
        if (!read_others(split, resource.bytes, &others))
            return false;
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number != RECORDS_CHILDREN)
                continue;
            struct split_scope *list =
                room_for(split, &split->scopes, split->scopes_count, sizeof(struct split_scope));
            if (list == NULL)
                return false;
            struct split_scope *entry = &list[split->scopes_count++];
            *entry = (struct split_scope){.resource = others};
            if (!read_others(split, scope.bytes, &entry->scope))
                return false;
            struct wire_reader spans = wire_reader_of(scope.bytes);
            const size_t before = split->spans_count;
            while (wire_next_field(&spans, &span))
                if (span.number == RECORDS_CHILDREN && !add_span(split, &span))
                    return false;
            /* Of those without spans there may be very many. */
            if (split->spans_count == before)
                split->scopes_count--;
        }
    }
    return true;
}

/* Sizes of the messages of a fragment, from the inside; the last is that of the whole. */
struct sizes {
    size_t scope;
    size_t resource;
    size_t whole;
};

static struct sizes sizes_of(const struct split_scope *scope, const struct trace_fragment *fragment)
{
    struct sizes sizes = {.scope = scope->scope.bytes.size + fragment->bytes};
    sizes.resource = scope->resource.bytes.size + wire_field_size(RECORDS_CHILDREN, sizes.scope);
    sizes.whole = wire_field_size(RECORDS_RESOURCES, sizes.resource);
    return sizes;
}

static void write_fragment(const struct trace_split *split, struct trace_fragment *fragment)
{
    const struct split_scope *scope =
        (const struct split_scope *)split->scopes.memory + fragment->scope;
    const struct split_span *spans = split->spans.memory;
    struct sizes sizes = sizes_of(scope, fragment);
    fragment->buffer = buffer_create(split->budget, sizes.whole);
    struct wire_writer writer = wire_writer_of(fragment->buffer->data, sizes.whole);
    wire_write_header(&writer, RECORDS_RESOURCES, sizes.resource);
    write_others(split, &writer, &scope->resource);
    wire_write_header(&writer, RECORDS_CHILDREN, sizes.scope);
    write_others(split, &writer, &scope->scope);
    for (uint32_t at = fragment->first_span; at != 0; at = spans[at - 1].next)
        wire_write_raw(&writer, spans[at - 1].whole);
    assert(!writer.has_failed && writer.at == writer.end);
    fragment->buffer->size = sizes.whole;
}

enum trace_split_result trace_split_run(struct trace_split *split, struct batch *batch,
                                        uint64_t written_max)
{
    enum { OVERHEAD_BYTES = 640 }; /* of a buffer, and of a trace that is held */
    uint64_t limit = split->budget != NULL ? budget_limit(split->budget) : UINT64_MAX;
    if (batch->bytes == 0)
        return TRACE_SPLIT_DONE;
    if (!batch_has_room(batch, split->budget, 2 * batch->bytes))
        return batch_never_fits(batch, split->budget, 2 * batch->bytes) ? TRACE_SPLIT_TOO_LARGE
                                                                        : TRACE_SPLIT_NO_ROOM;
    struct batch *whole = batch_in_one_part(batch, split->budget);
    enum trace_split_result result = TRACE_SPLIT_NO_ROOM;
    batch_begin_work(batch);
    const bool is_listed = list_spans(split, whole->parts[0].bytes);
    batch_end_work(batch);
    if (is_listed) {
        uint64_t bytes = 0;
        struct trace_fragment *fragments = trace_split_fragments(split);
        const struct split_scope *scopes = split->scopes.memory;
        for (size_t i = 0; i < split->fragments_count; i++)
            bytes += sizes_of(&scopes[fragments[i].scope], &fragments[i]).whole + OVERHEAD_BYTES;
        result = TRACE_SPLIT_DONE;
        if (bytes > RECORD_REQUEST_BYTES_MAX || bytes + batch->bytes > limit ||
            !record_may_grow(batch, bytes))
            result = TRACE_SPLIT_TOO_LARGE;
        else if (!batch_has_room(batch, split->budget, bytes))
            result = TRACE_SPLIT_NO_ROOM;
        else if (bytes > written_max)
            result = TRACE_SPLIT_LONG;
        for (size_t i = 0; result == TRACE_SPLIT_DONE && i < split->fragments_count; i++)
            write_fragment(split, &fragments[i]);
    }
    batch_unref(whole);
    return result;
}
