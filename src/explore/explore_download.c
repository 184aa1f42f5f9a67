/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are files: a trace as OTLP/JSON, its profiles as folded stacks. On the explore
 * worker. */
#include <stdio.h>

#include "src/base/buffer.h"
#include "src/explore/explore_asking.h"
#include "src/explore/trace_request.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/nested_output.h"
#include "src/otlp/schema.h"

/* What spans have, as OTLP/JSON, is hardly less than their own bytes. */
static bool may_fit(const struct nested_output *output, const struct span_row *rows, uint32_t first,
                    uint32_t end)
{
    uint64_t bytes = nested_output_size(output);
    for (uint32_t i = first; i < end; i++)
        bytes += rows[i].size;
    return bytes <= EXPLORE_RESPONSE_BYTES_MAX;
}

/* The trace as a request. False: no memory, it takes too long or is too large, and the answer is
 * that error. */
static bool write_trace(struct asking *asking, uint64_t number, struct nested_output *output)
{
    struct trace_store *store = &asking->data->traces;
    const struct trace_record *record = trace_store_record(store, number);
    struct span_row *rows = asking_rows(asking);
    size_t blocks = trace_store_blocks(store);
    if (rows == NULL)
        return false;
    for (size_t at = trace_store_block_of(store, record->first_block); at < blocks; at++) {
        struct block_view block = trace_store_block(store, at);
        uint32_t first, end;
        if (!block_view_find(&block, number, &first, &end) ||
            !trace_store_rows(store, &block, rows))
            continue;
        if (!may_fit(output, rows, first, end)) {
            asking_fail(asking, 503, TOO_LARGE_REASON);
            return false;
        }
        struct buffer *bodies = trace_store_bodies(store, &block);
        if (bodies == NULL || explore_is_over(&asking->limit)) {
            buffer_unref(bodies);
            asking_fail_by(asking, bodies != NULL ? EXPLORE_TOO_LONG : EXPLORE_NO_MEMORY);
            return false;
        }
        struct slice all = buffer_slice(bodies);
        bool is_put = trace_request_put(output, store, &block, all, rows, first, end);
        buffer_unref(bodies);
        if (!is_put) {
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
            return false;
        }
    }
    if (output->refused_bytes == 0)
        return true;
    asking_fail_by(asking, EXPLORE_NO_MEMORY);
    return false;
}

static void download_trace(struct asking *asking, struct slice id)
{
    uint8_t trace_id[16];
    struct nested_output output = {.budget = asking->data->settings->budget};
    if (!explore_read_hex(id, trace_id, sizeof(trace_id))) {
        asking_fail(asking, 400, "trace: expected a trace id of 32 hexadecimal digits");
        return;
    }
    uint64_t number = trace_store_find(&asking->data->traces, trace_id);
    if (number == UINT64_MAX) {
        asking_fail(asking, 404, "there is no such trace");
        return;
    }
    if (write_trace(asking, number, &output) && output.buffer != NULL) {
        struct buffer *json = json_write(otlp_request(TRACES), buffer_slice(output.buffer),
                                         asking->data->settings->budget);
        if (json != NULL)
            json_output_put(&asking->out, json->data, json->size);
        else
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
        buffer_unref(json);
        snprintf(asking->disposition, EXPLORE_DISPOSITION_MAX,
                 "attachment; filename=\"trace-%.32s.json\"", (const char *)id.data);
    }
    nested_output_fini(&output);
}

void answer_download(struct asking *asking)
{
    struct slice format = explore_query_get(asking->query, "format");
    if (format.size == 0 || slice_equal_text(format, "otlp-json")) {
        download_trace(asking, explore_query_get(asking->query, "trace"));
    } else if (slice_equal_text(format, "folded")) {
        answer_folded(asking);
        asking->type = "text/plain; charset=utf-8";
        snprintf(asking->disposition, EXPLORE_DISPOSITION_MAX,
                 "attachment; filename=\"profile.folded.txt\"");
    } else if (slice_equal_text(format, "pprof")) {
        answer_pprof(asking);
        asking->type = "application/octet-stream";
        snprintf(asking->disposition, EXPLORE_DISPOSITION_MAX,
                 "attachment; filename=\"profile.pb.gz\"");
    } else {
        asking_fail(asking, 400, "format: expected otlp-json, pprof or folded");
    }
}
