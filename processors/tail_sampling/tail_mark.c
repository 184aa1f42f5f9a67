/* SPDX-License-Identifier: Apache-2.0 */
/* Marking copies the message: few configurations do it, and the Go collector does it only behind a
 * feature gate. The bytes have passed otlp_check. Pure functions; any thread. */
#include "processors/tail_sampling/tail_mark.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/wire.h"

enum {
    RESOURCES = 1,
    SCOPES = 2,
    SCOPE = 1,
    SCOPE_ATTRIBUTES = 3,
    KEY = 1,
    VALUE = 2,
    STRING_VALUE = 1,
    BOOL_VALUE = 2,
    LENGTH_BYTES = 3, /* a guess */
};

#define POLICY_KEY    "tailsampling.policy"
#define COMPOSITE_KEY "tailsampling.composite_policy"
#define CACHED_KEY    "tailsampling.cached_decision"

static void put_attribute(struct nested_output *out, const char *key, const char *text)
{
    struct nested_message attribute = nested_put_begin(out, SCOPE_ATTRIBUTES, 1);
    nested_put_bytes(out, KEY, slice_of_text(key));
    struct nested_message value = nested_put_begin(out, VALUE, 1);
    if (text != NULL)
        nested_put_bytes(out, STRING_VALUE, slice_of_text(text));
    else
        nested_put_number(out, BOOL_VALUE, 1);
    nested_put_end(out, value);
    nested_put_end(out, attribute);
}

static bool is_replaced(const struct tail_mark *mark, struct slice attribute)
{
    struct wire_reader reader = wire_reader_of(attribute);
    struct wire_field field;
    struct slice key = {0};
    while (wire_next_field(&reader, &field))
        if (field.number == KEY)
            key = field.bytes;
    return (mark->policy != NULL && slice_equal_text(key, POLICY_KEY)) ||
           (mark->composite != NULL && slice_equal_text(key, COMPOSITE_KEY)) ||
           (mark->is_cached && slice_equal_text(key, CACHED_KEY));
}

/* One InstrumentationScope of all that the ScopeSpans message has. */
static void put_scope(struct nested_output *out, struct slice scope_spans,
                      const struct tail_mark *mark)
{
    struct wire_reader reader = wire_reader_of(scope_spans);
    struct wire_field field;
    struct wire_field inner;
    struct nested_message scope = nested_put_begin(out, SCOPE, 1);
    while (wire_next_field(&reader, &field)) {
        if (field.number != SCOPE)
            continue;
        struct wire_reader fields = wire_reader_of(field.bytes);
        while (wire_next_field(&fields, &inner))
            if (inner.number != SCOPE_ATTRIBUTES || !is_replaced(mark, inner.bytes))
                nested_put_raw(out, inner.whole);
    }
    if (mark->policy != NULL)
        put_attribute(out, POLICY_KEY, mark->policy);
    if (mark->composite != NULL)
        put_attribute(out, COMPOSITE_KEY, mark->composite);
    if (mark->is_cached)
        put_attribute(out, CACHED_KEY, NULL);
    nested_put_end(out, scope);
}

static void put_resource(struct nested_output *out, struct slice content,
                         const struct tail_mark *mark)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct wire_field inner;
    struct nested_message resource = nested_put_begin(out, RESOURCES, LENGTH_BYTES);
    while (wire_next_field(&reader, &field)) {
        if (field.number != SCOPES) {
            nested_put_raw(out, field.whole);
            continue;
        }
        struct nested_message scope_spans = nested_put_begin(out, SCOPES, LENGTH_BYTES);
        put_scope(out, field.bytes, mark);
        struct wire_reader fields = wire_reader_of(field.bytes);
        while (wire_next_field(&fields, &inner))
            if (inner.number != SCOPE)
                nested_put_raw(out, inner.whole);
        nested_put_end(out, scope_spans);
    }
    nested_put_end(out, resource);
}

struct batch *tail_mark_write(struct batch *batch, const struct tail_mark *mark,
                              struct budget *budget)
{
    struct nested_output out = {.budget = budget};
    struct batch *whole = batch_in_one_part(batch, budget);
    struct wire_reader reader = wire_reader_of(whole->parts[0].bytes);
    struct wire_field field;
    assert(batch->signal == TRACES);
    while (wire_next_field(&reader, &field)) {
        if (field.number == RESOURCES)
            put_resource(&out, field.bytes, mark);
        else
            nested_put_raw(&out, field.whole);
    }
    batch_unref(whole);
    struct batch *marked = NULL;
    if (out.buffer != NULL && out.refused_bytes == 0) {
        marked = batch_create_like(batch, 1);
        batch_append(marked, out.buffer, buffer_slice(out.buffer));
        marked->items = batch->items;
    }
    nested_output_fini(&out);
    return marked != NULL ? marked : batch_ref(batch);
}
