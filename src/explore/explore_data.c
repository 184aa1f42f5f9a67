/* SPDX-License-Identifier: Apache-2.0 */
/* On the explore worker. */
#include "src/explore/explore_data.h"

#include "src/base/clock.h"
#include "src/base/mem.h"

const char *const explore_loss_names[EXPLORE_LOSSES] = {
    [EXPLORE_LOST_RING] = "ring_full",
    [EXPLORE_LOST_RAW] = "not_indexed_in_time",
    [EXPLORE_LOST_MEMORY] = "no_memory",
    [EXPLORE_LOST_LARGE] = "too_large",
};

void explore_data_init(struct explore_data *data, enum codec codec)
{
    *data = (struct explore_data){.started_ns = clock_wall_ns()};
    trace_store_init(&data->traces, codec);
    profile_store_init(&data->profiles, &data->traces.strings, data->traces.box, codec);
    data->rows_capacity = EXPLORE_OPEN_SPANS_MAX;
}

void explore_data_move(struct explore_data *to, const struct explore_data *from)
{
    *to = *from;
    to->profiles.strings = &to->traces.strings;
}

bool explore_data_has_views(const struct explore_data *data)
{
    for (size_t i = 0; i < EXPLORE_VIEWS; i++)
        if (data->views[i].number != 0)
            return true;
    return data->profiles.opened_count > 0;
}

void explore_data_forget_views(struct explore_data *data)
{
    for (size_t i = 0; i < EXPLORE_VIEWS; i++) {
        trace_view_fini(&data->views[i]);
        data->views[i] = (struct trace_view){.number = 0};
    }
    profile_store_close(&data->profiles);
}

void explore_data_fini(struct explore_data *data)
{
    explore_data_forget_views(data);
    profile_store_fini(&data->profiles);
    trace_store_fini(&data->traces);
    mem_free(data->rows);
    *data = (struct explore_data){.rows = NULL};
}
