/* SPDX-License-Identifier: Apache-2.0 */
/* Rows stay in their order, and each run of them with one context repeats it. Where large contexts
 * take turns, so that this would be far more than the block has, they are grouped by context
 * instead. On the explore worker. */
#include "src/explore/trace_request.h"

#include <string.h>

#include "src/base/mem.h"
#include "src/explore/explore_limits.h"
#include "src/otlp/nested_output.h"

enum {
    LENGTH_BYTES = 3,
    REPEATED_BYTES_MAX = 16 * EXPLORE_OPEN_BYTES_MAX, /* of contexts; else rows are grouped */
};

struct putting {
    struct span_context contexts[EXPLORE_CONTEXTS_MAX];
    uint32_t ends[EXPLORE_CONTEXTS_MAX]; /* of each context's rows in the order */
    uint32_t order[EXPLORE_OPEN_SPANS_MAX];
};

static uint64_t repeated_bytes(const struct putting *putting, const struct span_row *rows,
                               uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_context *context = &putting->contexts[rows[i].context];
        if (i == 0 || rows[i].context != rows[i - 1].context)
            bytes += context->resource.size + context->scope.size;
    }
    return bytes;
}

/* By context, those of one as before. */
static void group(struct putting *putting, uint32_t contexts_count, const struct span_row *rows,
                  uint32_t count)
{
    memset(putting->ends, 0, sizeof(putting->ends));
    for (uint32_t i = 0; i < count; i++)
        putting->ends[rows[i].context]++;
    for (uint32_t i = 1; i < contexts_count; i++)
        putting->ends[i] += putting->ends[i - 1];
    for (uint32_t i = count; i-- > 0;)
        putting->order[--putting->ends[rows[i].context]] = i;
}

bool trace_request_put(struct nested_output *output, const struct trace_store *store,
                       const struct block_view *block, struct slice bodies,
                       const struct span_row *rows, uint32_t first, uint32_t end)
{
    struct putting *putting = mem_try_alloc(sizeof(*putting));
    if (putting == NULL)
        return false;
    uint32_t contexts_count = trace_store_contexts(store, block, bodies, putting->contexts);
    uint32_t count = end - first;
    rows += first;
    bool is_grouped = repeated_bytes(putting, rows, count) > REPEATED_BYTES_MAX;
    if (is_grouped)
        group(putting, contexts_count, rows, count);
    else
        for (uint32_t i = 0; i < count; i++)
            putting->order[i] = i;
    for (uint32_t i = 0; i < count;) {
        const struct span_row *row = &rows[putting->order[i]];
        const struct span_context *shared = &putting->contexts[row->context];
        struct nested_message resource = nested_put_begin(output, 1, LENGTH_BYTES);
        nested_put_raw(output, shared->resource);
        do {
            uint16_t same = row->context;
            struct nested_message scope = nested_put_begin(output, 2, LENGTH_BYTES);
            nested_put_raw(output, putting->contexts[same].scope);
            while (i < count && row->context == same) {
                nested_put_bytes(output, 2, slice_of(bodies.data + row->offset, row->size));
                if (++i < count)
                    row = &rows[putting->order[i]];
            }
            nested_put_end(output, scope);
        } while (is_grouped && i < count &&
                 span_contexts_share(&putting->contexts[row->context], shared));
        nested_put_end(output, resource);
    }
    mem_free(putting);
    return true;
}
