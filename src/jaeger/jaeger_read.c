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

static struct slice written(const struct nested_output *output)
{
    return output->buffer != NULL ? buffer_slice(output->buffer) : slice_of("", 0);
}

static void close_scope(struct jaeger_request *request)
{
    if (!request->is_open)
        return;
    nested_put_end(&request->output, request->scope_spans);
    nested_put_end(&request->output, request->resource_spans);
    request->is_open = false;
}

static bool is_same(const struct jaeger_request *request, struct slice process, struct slice name,
                    struct slice version)
{
    const uint8_t *known = request->last_scope.memory;
    const size_t *sizes = request->head_sizes;
    return request->is_open && slice_equal(process, slice_of(known, sizes[0])) &&
           slice_equal(name, slice_of(known + sizes[0], sizes[1])) &&
           slice_equal(version, slice_of(known + sizes[0] + sizes[1], sizes[2]));
}

/* Remembers what the spans that follow are compared with. */
static bool remember(struct jaeger_request *request, const struct slice parts[3])
{
    size_t bytes = parts[0].size + parts[1].size + parts[2].size;
    uint8_t *at = scratch_room(&request->last_scope, request->budget, bytes + 1);
    if (at == NULL)
        return jaeger_no_memory(request, bytes);
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].size > 0)
            memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
        request->head_sizes[i] = parts[i].size;
    }
    return true;
}

void jaeger_open_scope(struct jaeger_request *request, struct slice name, struct slice version)
{
    enum { SPANS_LENGTH_BYTES = 4 };
    struct nested_output *output = &request->output;
    struct slice process =
        written(request->span.has_own_process ? &request->own_process : &request->process);
    if (is_same(request, process, name, version))
        return;
    close_scope(request);
    if (!remember(request, (struct slice[3]){process, name, version}))
        return;
    request->resource_spans = nested_put_begin(output, RESOURCE_SPANS, SPANS_LENGTH_BYTES);
    if (process.size > 0)
        nested_put_bytes(output, RESOURCE, process);
    request->scope_spans = nested_put_begin(output, SCOPE_SPANS, SPANS_LENGTH_BYTES);
    if (name.size + version.size > 0) {
        struct nested_message scope = nested_put_begin(output, SCOPE, 1);
        if (name.size > 0)
            nested_put_bytes(output, NAME, name);
        if (version.size > 0)
            nested_put_bytes(output, VERSION, version);
        nested_put_end(output, scope);
    }
    request->messages += 4;
    request->is_open = true;
}

static void finish(struct jaeger_request *request, struct converted_spans *ret_batch)
{
    struct nested_output *output = &request->output;
    close_scope(request);
    if (output->refused_bytes > 0)
        jaeger_no_memory(request, output->refused_bytes);
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
        .output = {.budget = budget},
    };
    assert(form < JAEGER_FORMS);
    arena_init_charged(&request.texts, SIZE_MAX, budget);
    if (form == JAEGER_PROTO)
        jaeger_read_proto(&request);
    else
        jaeger_read_thrift(&request);
    if (request.verdict == CONVERTED)
        finish(&request, ret_batch);
    struct scratch *scratches[] = {&request.tags, &request.references, &request.order,
                                   &request.last_scope};
    for (size_t i = 0; i < sizeof(scratches) / sizeof(scratches[0]); i++)
        scratch_fini(scratches[i], budget);
    nested_output_fini(&request.events);
    nested_output_fini(&request.process);
    nested_output_fini(&request.own_process);
    nested_output_fini(&request.output);
    arena_clear(&request.texts);
    return request.verdict;
}
