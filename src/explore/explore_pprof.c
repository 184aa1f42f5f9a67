/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are pprof files: the samples that a selection picks, with all of their types, labels
 * and lines. On the explore worker. */
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/core/batch.h"
#include "src/explore/explore_asking.h"
#include "src/explore/explore_select.h"
#include "src/explore/service_name.h"
#include "src/profiles/pprof/otlp_to_pprof_merge.h"

enum {
    PPROF_BYTES_MAX = 64 * 1024 * 1024, /* of the requests that a file is made of */
    SAMPLES_PER_LOOK = 1024,            /* at the clock */
};

/* A file that is being made. */
struct making {
    struct asking *asking;
    struct explore_selection *selection;
    uint64_t seen;
    uint64_t picked;
    bool is_late;
};

static bool takes(void *arg, const struct profile_resource *resource)
{
    const struct making *making = arg;
    struct slice service = making->selection->service;
    return making->selection->mode != SELECT_ALL || service.data == NULL ||
           slice_equal(service_name_of(resource->resource), service);
}

/* By the sample's times; without any, by the profile's. */
static bool is_in_time(const struct explore_selection *selection, const struct profile *profile,
                       const struct profile_sample *sample)
{
    struct profile_numbers_reader times = profile_numbers_read(&sample->timestamps);
    uint64_t time;
    bool has_times = false;
    if (selection->start_ns == 0 && selection->end_ns == UINT64_MAX)
        return true;
    while (profile_numbers_next(&times, &time)) {
        has_times = true;
        if (time >= selection->start_ns && time < selection->end_ns)
            return true;
    }
    return !has_times && profile->time_unix_ns < selection->end_ns &&
           profile->time_unix_ns + profile->duration_ns >= selection->start_ns;
}

static bool picks(void *arg, const struct profile_dictionary *dictionary,
                  const struct profile *profile, const struct profile_sample *sample)
{
    struct making *making = arg;
    const struct explore_selection *selection = making->selection;
    if (++making->seen % SAMPLES_PER_LOOK == 0 && explore_is_over(&making->asking->limit))
        making->is_late = true;
    if (making->is_late || !is_in_time(selection, profile, sample))
        return false;
    bool is_picked = selection->mode == SELECT_ALL;
    if (!is_picked && profile_index_is_set(sample->link) &&
        profile_has(dictionary, PROFILE_LINKS, sample->link)) {
        struct profile_link link = profile_link_at(dictionary, sample->link);
        is_picked = link.trace_id.size == 16 && link.span_id.size == 8 &&
                    explore_selection_has(selection, link.trace_id.data, link.span_id.data);
    }
    making->picked += is_picked;
    return is_picked;
}

/* False: the answer is an error. */
static bool merge_blocks(struct making *making, struct pprof_merge *merge)
{
    struct asking *asking = making->asking;
    struct profile_store *store = &asking->data->profiles;
    struct budget *budget = asking->data->settings->budget;
    const struct explore_selection *selection = making->selection;
    uint32_t service = string_table_find(&asking->data->traces.strings, selection->service);
    uint64_t bytes = 0;
    struct error error;
    for (size_t i = 0; i < profile_store_blocks(store); i++) {
        const struct profile_block *block = profile_store_block(store, i);
        struct otlp_to_pprof_figures figures = {.written = 0};
        uint64_t resources = 0;
        if (!explore_selection_wants(selection, block, service))
            continue;
        bytes += block->raw;
        if (bytes > PPROF_BYTES_MAX) {
            asking_fail(asking, 503,
                        "the profiles are larger than 64 MiB together: ask for a shorter time "
                        "range");
            return false;
        }
        /* What is open is charged only if it stays so. */
        if (budget != NULL && !budget_try_take(budget, block->raw)) {
            asking_fail_by(asking, EXPLORE_NO_MEMORY);
            return false;
        }
        struct buffer *request = profile_store_open(store, block, budget);
        const struct otlp_to_pprof_merge_source source = {
            .request = request != NULL ? buffer_slice(request) : slice_of(NULL, 0),
            .takes = takes,
            .picks = picks,
            .arg = making};
        bool is_merged =
            request == NULL || otlp_to_pprof_merge(merge, &source, &figures, &resources, &error);
        buffer_unref(request);
        if (budget != NULL)
            budget_return(budget, block->raw);
        if (!is_merged)
            asking_fail(asking, 503, error.text);
        if (making->is_late)
            asking_fail_by(asking, EXPLORE_TOO_LONG);
        if (asking->status != 200)
            return false;
    }
    return true;
}

/* pprof files are gzip-compressed, as by its own tools. */
static void put_file(struct asking *asking, const struct buffer *plain)
{
    struct budget *budget = asking->data->settings->budget;
    struct buffer *packed = NULL;
    const struct batch_part part = {.bytes = buffer_slice(plain)};
    const struct codec_input input = {.parts = &part, .parts_count = 1, .level = 1};
    if (budget != NULL && !budget_try_take(budget, plain->size)) {
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
        return;
    }
    if (codec_deflate(asking->data->traces.box, CODEC_GZIP, &input, &packed) == CODEC_OK)
        json_output_put(&asking->out, packed->data, packed->size);
    else
        asking_fail_by(asking, EXPLORE_NO_MEMORY);
    buffer_unref(packed);
    if (budget != NULL)
        budget_return(budget, plain->size);
}

void answer_pprof(struct asking *asking)
{
    struct explore_selection selection;
    struct pprof_merge merge;
    struct error error;
    if (!explore_selection_read(asking, asking->query, &selection))
        return;
    struct making making = {.asking = asking, .selection = &selection};
    pprof_merge_init(&merge, asking->data->settings->budget);
    if (merge_blocks(&making, &merge)) {
        char why[EXPLORE_WHY_BYTES_MAX];
        explore_why(asking->data, &selection, why);
        if (making.picked == 0)
            asking_fail(asking, 404, why);
        struct buffer *plain = making.picked > 0 ? pprof_merge_take(&merge, &error) : NULL;
        if (plain != NULL)
            put_file(asking, plain);
        else if (asking->status == 200)
            asking_fail(asking, 503, error.text);
        buffer_unref(plain);
    }
    pprof_merge_fini(&merge);
    explore_selection_fini(&selection);
}
