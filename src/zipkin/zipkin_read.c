/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a body span by span, and gathers the spans by resource and scope. Runs on the caller's
 * thread. */
#include "src/zipkin/zipkin_read.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/otlp/wire.h"
#include "src/zipkin/zipkin_parts.h"

/* Fields of the request, ResourceSpans and ScopeSpans, and of Resource and InstrumentationScope. */
enum {
    RESOURCE_SPANS = 1,
    RESOURCE = 1,
    SCOPE_SPANS = 2,
    SCOPE = 1,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
};

enum { PARTS = 4, SERVICE_PART = 0, RESOURCE_PART = 1, NAME_PART = 2, VERSION_PART = 3 };

/* ---- Groups ---- */

/* The group of those parts; adds it if it is new. False: no memory. */
static bool find_group(struct zipkin_request *request, struct slice parts,
                       const size_t sizes[PARTS], uint32_t *ret_group)
{
    const struct zipkin_group *groups = request->groups.memory;
    uint64_t lengths[PARTS];
    uint32_t hash;
    /* Parts that only together are the same differ by their sizes, which are the first of them. */
    for (size_t i = 0; i < PARTS; i++)
        lengths[i] = sizes[i];
    size_t size = sizeof(lengths) + parts.size;
    size_t end = request->parts_bytes + size;
    uint8_t *memory = scratch_room(&request->parts, request->budget, end);
    if (memory == NULL)
        return zipkin_no_memory(request, end);
    if (end > UINT32_MAX) {
        zipkin_no_memory(request, end);
        request->verdict = CONVERSION_OVERSIZED;
        return false;
    }
    memcpy(memory + request->parts_bytes, lengths, sizeof(lengths));
    if (parts.size > 0)
        memcpy(memory + request->parts_bytes + sizeof(lengths), parts.data, parts.size);
    struct slice content = slice_of(memory + request->parts_bytes, size);
    /* Spans of one service mostly follow each other. */
    if (request->spans > 0) {
        const struct zipkin_place *places = request->places.memory;
        uint32_t last = places[request->spans - 1].group;
        struct slice known = slice_of(memory + groups[last].offset - sizeof(lengths), size);
        if (memcmp(groups[last].sizes, sizes, sizeof(groups[last].sizes)) == 0 &&
            slice_equal(known, content)) {
            *ret_group = last;
            return true;
        }
    }
    uint32_t index = content_table_find(&request->known, memory, content, &hash);
    if (index > 0) {
        *ret_group = index - 1;
        return true;
    }
    size_t bytes = (request->groups_count + 1) * sizeof(groups[0]);
    struct zipkin_group *room = scratch_room(&request->groups, request->budget, bytes);
    if (room == NULL)
        return zipkin_no_memory(request, bytes);
    if (content_table_add(&request->known, request->budget, hash, request->parts_bytes, size) == 0)
        return zipkin_no_memory(request, 2 * request->known.slots.bytes);
    struct zipkin_group *group = &room[request->groups_count];
    *group = (struct zipkin_group){.offset = request->parts_bytes + sizeof(lengths)};
    memcpy(group->sizes, sizes, sizeof(group->sizes));
    request->parts_bytes = end;
    *ret_group = (uint32_t)request->groups_count++;
    return true;
}

bool zipkin_file_span(struct zipkin_request *request, size_t begin, const size_t sizes[4])
{
    struct zipkin_place place;
    const struct buffer *head = request->head.buffer;
    size_t refused = request->output.refused_bytes + request->head.refused_bytes;
    if (refused > 0)
        return zipkin_no_memory(request, refused);
    if (request->verdict != CONVERTED)
        return false;
    size_t bytes = nested_output_size(&request->output) - begin;
    if (bytes > UINT32_MAX) {
        zipkin_no_memory(request, bytes);
        request->verdict = CONVERSION_OVERSIZED;
        return false;
    }
    place.bytes = (uint32_t)bytes;
    struct slice parts = head != NULL ? buffer_slice(head) : slice_of("", 0);
    if (!find_group(request, parts, sizes, &place.group))
        return false;
    size_t needed = (request->spans + 1) * sizeof(place);
    struct zipkin_place *places = scratch_room(&request->places, request->budget, needed);
    if (places == NULL)
        return zipkin_no_memory(request, needed);
    places[request->spans++] = place;
    struct zipkin_group *groups = request->groups.memory;
    groups[place.group].bytes += place.bytes;
    request->messages++;
    return true;
}

/* ---- The result ---- */

/* A group with its parts, for sorting and writing. */
struct resolved_group {
    struct slice parts[PARTS];
    size_t index;
};

static int compare_groups(const void *left, const void *right)
{
    const struct resolved_group *a = left;
    const struct resolved_group *b = right;
    int order = 0;
    for (size_t i = 0; i < PARTS && order == 0; i++)
        order = slice_compare(a->parts[i], b->parts[i]);
    return order;
}

static size_t scope_bytes(const struct resolved_group *group)
{
    size_t name = group->parts[NAME_PART].size;
    size_t version = group->parts[VERSION_PART].size;
    return (name > 0 ? wire_field_size(SCOPE_NAME, name) : 0) +
           (version > 0 ? wire_field_size(SCOPE_VERSION, version) : 0);
}

/* The bytes of a ScopeSpans, without its spans and then with them. */
static size_t scope_head_bytes(const struct resolved_group *group)
{
    size_t scope = scope_bytes(group);
    return scope > 0 ? wire_field_size(SCOPE, scope) : 0;
}

static size_t scope_spans_bytes(const struct zipkin_request *request,
                                const struct resolved_group *group)
{
    const struct zipkin_group *groups = request->groups.memory;
    return scope_head_bytes(group) + groups[group->index].bytes;
}

static size_t resource_head_bytes(const struct resolved_group *group)
{
    size_t resource = group->parts[RESOURCE_PART].size;
    return resource > 0 ? wire_field_size(RESOURCE, resource) : 0;
}

/* How many groups from the first on have its resource. */
static size_t same_resource(const struct resolved_group *groups, size_t count)
{
    size_t same = 1;
    while (same < count &&
           slice_equal(groups[0].parts[SERVICE_PART], groups[same].parts[SERVICE_PART]) &&
           slice_equal(groups[0].parts[RESOURCE_PART], groups[same].parts[RESOURCE_PART]))
        same++;
    return same;
}

static size_t resource_spans_bytes(const struct zipkin_request *request,
                                   const struct resolved_group *groups, size_t count)
{
    size_t bytes = resource_head_bytes(&groups[0]);
    for (size_t i = 0; i < count; i++)
        bytes += wire_field_size(SCOPE_SPANS, scope_spans_bytes(request, &groups[i]));
    return bytes;
}

static size_t count_attributes(struct slice resource)
{
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    size_t count = 0;
    while (wire_next_field(&reader, &field))
        count++;
    return count;
}

/* Sorts and writes the groups without their spans, for which it leaves room. False: no memory. */
static bool write_groups(struct zipkin_request *request, struct resolved_group *sorted,
                         struct buffer **ret_result)
{
    struct zipkin_group *groups = request->groups.memory;
    const uint8_t *memory = request->parts.memory;
    size_t count = request->groups_count;
    bool is_v2 = request->source->form <= ZIPKIN_V2_PROTO;
    size_t total = 0;
    size_t same;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = memory + groups[i].offset;
        sorted[i].index = i;
        for (size_t j = 0; j < PARTS; at += groups[i].sizes[j++])
            sorted[i].parts[j] = slice_of(at, groups[i].sizes[j]);
    }
    if (is_v2)
        qsort(sorted, count, sizeof(sorted[0]), compare_groups);
    for (size_t i = 0; i < count; i += same) {
        same = same_resource(&sorted[i], count - i);
        total += wire_field_size(RESOURCE_SPANS, resource_spans_bytes(request, &sorted[i], same));
        request->messages += 2 + 2 * count_attributes(sorted[i].parts[RESOURCE_PART]);
    }
    request->messages += 2 * count;
    if (total > UINT32_MAX) {
        zipkin_no_memory(request, total);
        request->verdict = CONVERSION_OVERSIZED;
        return false;
    }
    struct buffer *result = buffer_try_create(request->budget, total);
    if (result == NULL)
        return zipkin_no_memory(request, total);
    struct wire_writer writer = wire_writer_of(result->data, total);
    for (size_t i = 0; i < count; i += same) {
        same = same_resource(&sorted[i], count - i);
        wire_write_header(&writer, RESOURCE_SPANS, resource_spans_bytes(request, &sorted[i], same));
        if (sorted[i].parts[RESOURCE_PART].size > 0)
            wire_write_bytes(&writer, RESOURCE, sorted[i].parts[RESOURCE_PART]);
        for (size_t j = i; j < i + same; j++) {
            const struct resolved_group *group = &sorted[j];
            wire_write_header(&writer, SCOPE_SPANS, scope_spans_bytes(request, group));
            if (scope_bytes(group) > 0)
                wire_write_header(&writer, SCOPE, scope_bytes(group));
            if (group->parts[NAME_PART].size > 0)
                wire_write_bytes(&writer, SCOPE_NAME, group->parts[NAME_PART]);
            if (group->parts[VERSION_PART].size > 0)
                wire_write_bytes(&writer, SCOPE_VERSION, group->parts[VERSION_PART]);
            groups[group->index].at = wire_written(&writer).size;
            writer.at += groups[group->index].bytes;
            assert(writer.at <= writer.end);
        }
    }
    result->size = wire_written(&writer).size;
    assert(result->size == total);
    *ret_result = result;
    return true;
}

/* Copies each span to its group. */
static void place_spans(struct zipkin_request *request, struct buffer *result)
{
    struct zipkin_group *groups = request->groups.memory;
    const struct zipkin_place *places = request->places.memory;
    const uint8_t *from = request->output.buffer->data;
    for (size_t i = 0; i < request->spans;) {
        /* Neighbours of one group go together. */
        uint32_t group = places[i].group;
        size_t bytes = 0;
        for (; i < request->spans && places[i].group == group; i++)
            bytes += places[i].bytes;
        memcpy(result->data + groups[group].at, from, bytes);
        groups[group].at += bytes;
        from += bytes;
    }
}

static void gather(struct zipkin_request *request, struct converted_spans *ret_batch)
{
    size_t bytes = request->groups_count * sizeof(struct resolved_group);
    struct scratch sorted = {.bytes = 0};
    struct buffer *result = NULL;
    if (request->spans == 0) {
        result = buffer_try_create(request->budget, 0);
        if (result == NULL)
            zipkin_no_memory(request, 1);
    } else if (scratch_room(&sorted, request->budget, bytes) == NULL) {
        zipkin_no_memory(request, bytes);
    } else if (write_groups(request, sorted.memory, &result)) {
        place_spans(request, result);
    }
    scratch_fini(&sorted, request->budget);
    if (request->verdict != CONVERTED)
        return;
    *ret_batch = (struct converted_spans){
        .request = result,
        .spans = request->spans,
        .messages = request->messages,
    };
}

enum conversion zipkin_read(const struct zipkin_source *source, struct slice body,
                            struct budget *budget, struct converted_spans *ret_batch,
                            char reason[CONVERSION_REASON_BYTES_MAX])
{
    struct zipkin_request request = {
        .source = source,
        .body = body,
        .budget = budget,
        .verdict = CONVERTED,
        .reason = reason,
        .output = {.budget = budget},
        .head = {.budget = budget},
    };
    assert(source->form < ZIPKIN_FORMS);
    arena_init_charged(&request.texts, SIZE_MAX, budget);
    content_table_init(&request.known);
    switch (source->form) {
    case ZIPKIN_V2_JSON:
    case ZIPKIN_V1_JSON:
        zipkin_read_json(&request, source->form == ZIPKIN_V1_JSON);
        break;
    case ZIPKIN_V2_PROTO:
        zipkin_read_proto(&request);
        break;
    case ZIPKIN_V1_THRIFT:
    case ZIPKIN_FORMS:
        zipkin_read_thrift(&request);
        break;
    }
    if (request.verdict == CONVERTED)
        gather(&request, ret_batch);
    struct scratch *scratches[] = {&request.tags,   &request.events, &request.order,
                                   &request.places, &request.groups, &request.parts};
    for (size_t i = 0; i < sizeof(scratches) / sizeof(scratches[0]); i++)
        scratch_fini(scratches[i], budget);
    content_table_fini(&request.known, budget);
    nested_output_fini(&request.output);
    nested_output_fini(&request.head);
    arena_clear(&request.texts);
    return request.verdict;
}
