/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of spans are saved as requests, which any later version can index in its own way. On the
 * explore worker. */
#include "src/explore/explore_save.h"

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/explore/trace_request.h"
#include "src/otlp/nested_output.h"

/* While requests are read from the directory. */
struct loading {
    struct explore_data *data;
    bool (*keep)(void *arg);
    void *arg;
};

static bool on_request(void *arg, enum explore_kept kind, struct buffer *request,
                       struct slice bytes, uint64_t time_ns)
{
    struct loading *loading = arg;
    struct explore_data *data = loading->data;
    (void)request;
    bool is_kept = kind == EXPLORE_KEPT_TRACES ? trace_store_add(&data->traces, bytes, time_ns)
                                               : profile_store_add(&data->profiles, bytes, time_ns);
    return loading->keep(loading->arg) && is_kept;
}

static void note(struct explore_save *save, const struct explore_data *data)
{
    save->spans_seen = data->traces.spans_total;
    save->generation = data->profiles.generation;
    save->saved_ns = clock_now_ns();
}

void explore_save_load(struct explore_save *save, struct explore_data *data,
                       bool (*keep)(void *arg), void *arg)
{
    struct loading loading = {.data = data, .keep = keep, .arg = arg};
    explore_disk_load(save->disk, on_request, &loading);
    /* What comes from now on becomes blocks of its own. */
    if (trace_store_seal(&data->traces))
        profile_store_seal(&data->profiles);
    explore_save_begin(save, data);
}

void explore_save_begin(struct explore_save *save, struct explore_data *data)
{
    save->traces_block = data->traces.next_block - 1;
    save->profiles_block = data->profiles.next_block - 1;
    note(save, data);
}

void explore_save_all(struct explore_save *save, struct explore_data *data)
{
    if (save->disk == NULL)
        return;
    if (trace_store_seal(&data->traces))
        profile_store_seal(&data->profiles);
    explore_save_blocks(save, data);
    note(save, data);
}

/* The newest time at which something of the block came. */
static uint64_t time_of(const struct explore_data *data, const struct block_view *view)
{
    const struct trace_store *store = &data->traces;
    uint64_t newest = view->traces_count > 0 ? view->traces[view->traces_count - 1].trace : 0;
    return newest >= store->first && newest < store->next
               ? trace_store_record(store, newest)->arrived_ns
               : clock_wall_ns();
}

static void save_traces(struct explore_save *save, struct explore_data *data, size_t at)
{
    struct trace_store *store = &data->traces;
    struct block_view view = trace_store_block(store, at);
    struct nested_output output = {.budget = data->settings->budget};
    if (data->rows == NULL)
        data->rows = mem_try_alloc(data->rows_capacity * sizeof(data->rows[0]));
    if (data->rows == NULL || !trace_store_rows(store, &view, data->rows))
        return;
    struct buffer *bodies = trace_store_bodies(store, &view);
    if (bodies == NULL)
        return;
    bool is_put =
        trace_request_put(&output, store, &view, buffer_slice(bodies), data->rows, 0, view.spans);
    if (is_put && output.refused_bytes == 0 && output.buffer != NULL)
        explore_disk_write(save->disk, EXPLORE_KEPT_TRACES,
                           &(struct explore_disk_request){.bytes = buffer_slice(output.buffer),
                                                          .time_ns = time_of(data, &view)},
                           1, view.block == NULL);
    nested_output_fini(&output);
    buffer_unref(bodies);
}

void explore_save_blocks(struct explore_save *save, struct explore_data *data)
{
    struct trace_store *traces = &data->traces;
    struct profile_store *profiles = &data->profiles;
    size_t count = save->disk != NULL && traces->next_block > save->traces_block + 1
                       ? trace_store_blocks(traces)
                       : 0;
    size_t at = count;
    while (at > 0) {
        struct block_view view = trace_store_block(traces, at - 1);
        if (view.block != NULL && view.block->number <= save->traces_block)
            break;
        at--;
    }
    for (; at < count; at++)
        if (trace_store_block(traces, at).block != NULL)
            save_traces(save, data, at);
    save->traces_block = traces->next_block - 1;
    count = save->disk != NULL ? profile_store_blocks(profiles) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct profile_block *block = profile_store_block(profiles, i);
        if (block->number <= save->profiles_block || !block->is_compressed)
            continue;
        struct buffer *request = profile_store_open(profiles, block, NULL);
        if (request != NULL)
            explore_disk_write(save->disk, EXPLORE_KEPT_PROFILES,
                               &(struct explore_disk_request){.bytes = buffer_slice(request),
                                                              .time_ns = block->arrived_ns},
                               1, false);
        buffer_unref(request);
        save->profiles_block = block->number;
    }
}

/* Requests of profiles that are not a block yet are the last ones. */
static void save_open_profiles(struct explore_save *save, struct explore_data *data)
{
    struct profile_store *profiles = &data->profiles;
    size_t end = profile_store_blocks(profiles);
    size_t first = end;
    while (first > 0 && !profile_store_block(profiles, first - 1)->is_compressed)
        first--;
    size_t count = end - first;
    if (count == 0)
        return;
    struct explore_disk_request *requests = mem_alloc(count * sizeof(requests[0]));
    for (size_t i = 0; i < count; i++) {
        const struct profile_block *block = profile_store_block(profiles, first + i);
        requests[i] = (struct explore_disk_request){.bytes = buffer_slice(block->bytes),
                                                    .time_ns = block->arrived_ns};
    }
    explore_disk_write(save->disk, EXPLORE_KEPT_PROFILES, requests, count, true);
    mem_free(requests);
}

bool explore_save_open(struct explore_save *save, struct explore_data *data)
{
    struct trace_store *traces = &data->traces;
    bool has_spans = save->spans_seen != traces->spans_total;
    bool has_profiles = save->generation != data->profiles.generation;
    if (save->disk == NULL || (!has_spans && !has_profiles))
        return false;
    if (clock_now_ns() - save->saved_ns < EXPLORE_SAVE_NS)
        return true;
    size_t count = trace_store_blocks(traces);
    if (has_spans && count > 0 && trace_store_block(traces, count - 1).block == NULL)
        save_traces(save, data, count - 1);
    if (has_profiles)
        save_open_profiles(save, data);
    note(save, data);
    return false;
}
