/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a body span by span. Neighbours of one process and scope share their ResourceSpans and
 * ScopeSpans. Runs on the caller's thread. */
#include "src/jaeger/jaeger_read.h"

#include <assert.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/jaeger/jaeger_parts.h"

/* Fields of the request, ResourceSpans and ScopeSpans, and of InstrumentationScope. */
enum { RESOURCE_SPANS = 1, RESOURCE = 1, SCOPE_SPANS = 2, SCOPE = 1, NAME = 1, VERSION = 2 };
enum { SPANS_LENGTH_BYTES = 4 };

static struct slice written(const struct nested_output *output)
{
    return output->buffer != NULL ? buffer_slice(output->buffer) : slice_of("", 0);
}

static void close_scope(struct jaeger_group *group)
{
    nested_put_end(&group->output, group->scope_spans);
}

static void close_resource(struct jaeger_group *group)
{
    if (!group->is_open)
        return;
    close_scope(group);
    nested_put_end(&group->output, group->resource_spans);
    group->is_open = false;
}

/* Whether the group's last ResourceSpans has the span's process. Takes no longer than the process
 * does that the body has for it: that of a batch is compared once for all its spans. */
static bool has_process(const struct jaeger_request *request, const struct jaeger_group *group,
                        struct slice process)
{
    bool is_known = !request->span.has_own_process && request->is_process_open;
    return group->is_open &&
           (is_known || slice_equal(process, slice_of(group->process.memory, group->process_size)));
}

static bool has_scope(const struct jaeger_group *group, struct slice name, struct slice version)
{
    const uint8_t *known = group->scope.memory;
    return slice_equal(name, slice_of(known, group->name_size)) &&
           slice_equal(version, slice_of(known + group->name_size, group->version_size));
}

static void copy(uint8_t *at, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
}

/* False: no memory. */
static bool open_resource(struct jaeger_request *request, struct jaeger_group *group,
                          struct slice process)
{
    uint8_t *known = scratch_room(&group->process, request->budget, process.size + 1);
    if (known == NULL)
        return jaeger_no_memory(request, process.size);
    copy(known, process);
    group->process_size = process.size;
    group->resource_spans = nested_put_begin(&group->output, RESOURCE_SPANS, SPANS_LENGTH_BYTES);
    if (process.size > 0)
        nested_put_bytes(&group->output, RESOURCE, process);
    request->messages += 2;
    return true;
}

/* False: no memory. */
static bool open_scope(struct jaeger_request *request, struct jaeger_group *group,
                       struct slice name, struct slice version)
{
    struct nested_output *output = &group->output;
    size_t bytes = name.size + version.size;
    uint8_t *known = scratch_room(&group->scope, request->budget, bytes + 1);
    if (known == NULL)
        return jaeger_no_memory(request, bytes);
    copy(known, name);
    copy(known + name.size, version);
    group->name_size = name.size;
    group->version_size = version.size;
    group->scope_spans = nested_put_begin(output, SCOPE_SPANS, SPANS_LENGTH_BYTES);
    if (bytes > 0) {
        struct nested_message scope = nested_put_begin(output, SCOPE, 1);
        nested_put_text(output, NAME, name);
        nested_put_text(output, VERSION, version);
        nested_put_end(output, scope);
    }
    request->messages += 2;
    return true;
}

void jaeger_open_scope(struct jaeger_request *request, struct slice name, struct slice version)
{
    bool is_own = request->span.has_own_process;
    struct jaeger_group *group = &request->groups[is_own ? JAEGER_OF_SPAN : JAEGER_OF_BATCH];
    struct slice process = written(is_own ? &request->own_process : &request->process);
    bool is_same = has_process(request, group, process);
    request->output = &group->output;
    if (!is_own)
        request->is_process_open = true;
    if (is_same && has_scope(group, name, version))
        return;
    if (is_same)
        close_scope(group);
    else
        close_resource(group);
    if (!is_same && !open_resource(request, group, process))
        return;
    group->is_open = open_scope(request, group, name, version);
}

static void finish(struct jaeger_request *request, struct converted_spans *ret_batch)
{
    struct nested_output *output = &request->groups[JAEGER_OF_BATCH].output;
    struct nested_output *own = &request->groups[JAEGER_OF_SPAN].output;
    for (size_t i = 0; i < JAEGER_GROUPS; i++)
        close_resource(&request->groups[i]);
    if (output->buffer == NULL)
        output = own;
    else
        nested_put_raw(output, written(own));
    for (size_t i = 0; i < JAEGER_GROUPS; i++)
        if (request->groups[i].output.refused_bytes > 0)
            jaeger_no_memory(request, request->groups[i].output.refused_bytes);
    if (request->verdict != CONVERTED)
        return;
    struct buffer *result = output->buffer;
    if (result == NULL)
        result = buffer_try_create(request->budget, 0);
    if (result == NULL) {
        jaeger_no_memory(request, 1);
        return;
    }
    output->buffer = NULL;
    if (result->size > UINT32_MAX) {
        buffer_unref(result);
        jaeger_no_memory(request, 0);
        request->verdict = CONVERSION_OVERSIZED;
        return;
    }
    *ret_batch = (struct converted_spans){
        .request = result,
        .spans = request->spans,
        .messages = request->messages,
    };
}

enum conversion jaeger_read(enum jaeger_form form, struct slice body, struct budget *budget,
                            struct converted_spans *ret_batch,
                            char reason[CONVERSION_REASON_BYTES_MAX])
{
    struct jaeger_request request = {
        .form = form,
        .body = body,
        .budget = budget,
        .verdict = CONVERTED,
        .reason = reason,
        .events = {.budget = budget},
        .process = {.budget = budget},
        .own_process = {.budget = budget},
        .groups = {{.output = {.budget = budget}}, {.output = {.budget = budget}}},
    };
    assert(form < JAEGER_FORMS);
    arena_init_charged(&request.texts, SIZE_MAX, budget);
    if (form == JAEGER_PROTO)
        jaeger_read_proto(&request);
    else
        jaeger_read_thrift(&request);
    if (request.verdict == CONVERTED)
        finish(&request, ret_batch);
    struct scratch *scratches[] = {&request.tags, &request.references, &request.order};
    for (size_t i = 0; i < sizeof(scratches) / sizeof(scratches[0]); i++)
        scratch_fini(scratches[i], budget);
    nested_output_fini(&request.events);
    nested_output_fini(&request.process);
    nested_output_fini(&request.own_process);
    for (size_t i = 0; i < JAEGER_GROUPS; i++) {
        struct jaeger_group *group = &request.groups[i];
        nested_output_fini(&group->output);
        scratch_fini(&group->process, budget);
        scratch_fini(&group->scope, budget);
    }
    arena_clear(&request.texts);
    return request.verdict;
}
