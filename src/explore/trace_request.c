/* SPDX-License-Identifier: Apache-2.0 */
/* On the explore worker. */
#include "src/explore/trace_request.h"

#include "src/otlp/nested_output.h"

enum { LENGTH_BYTES = 3 };

void trace_request_put(struct nested_output *output, const struct trace_store *store,
                       const struct block_view *block, struct slice bodies,
                       const struct span_row *rows, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end;) {
        struct span_context context = trace_store_context(store, block, bodies, rows[i].context);
        struct nested_message resource = nested_put_begin(output, 1, LENGTH_BYTES);
        nested_put_raw(output, context.resource);
        struct nested_message scope = nested_put_begin(output, 2, LENGTH_BYTES);
        nested_put_raw(output, context.scope);
        uint16_t same = rows[i].context;
        for (; i < end && rows[i].context == same; i++)
            nested_put_bytes(output, 2, slice_of(bodies.data + rows[i].offset, rows[i].size));
        nested_put_end(output, scope);
        nested_put_end(output, resource);
    }
}
