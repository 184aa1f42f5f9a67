/* SPDX-License-Identifier: Apache-2.0 */
/* All that the explore worker owns, from which it answers questions. On the explore worker. */
#pragma once

#include "src/explore/explore_job.h"
#include "src/explore/profile_store.h"
#include "src/explore/trace_store.h"
#include "src/explore/trace_view.h"

extern const char *const explore_loss_names[EXPLORE_LOSSES];

enum { EXPLORE_VIEWS = 2 }; /* waterfalls that are kept for the next question */

struct explore_data {
    struct trace_store traces;
    struct profile_store profiles;
    struct trace_view views[EXPLORE_VIEWS];
    uint64_t views_used;
    struct span_row *rows; /* of one block, for queries */
    uint32_t rows_capacity;
    const struct explore_settings *settings;
    bool has_join;          /* as in the job that is being answered */
    uint64_t held_requests; /* the same */
    uint64_t started_ns;    /* unix */
    uint64_t used_bytes;    /* all that counts towards max_bytes */
    uint64_t lost[EXPLORE_LOSSES];
};

void explore_data_init(struct explore_data *data, enum codec codec);
void explore_data_fini(struct explore_data *data);
/* Moves all of it to another place: the stores refer to each other. */
void explore_data_move(struct explore_data *to, const struct explore_data *from);
/* What stays for the next question: waterfalls and open blocks of profiles. */
bool explore_data_has_views(const struct explore_data *data);
/* When nobody asks any more, and before a reload: they are charged to a budget that ends. */
void explore_data_forget_views(struct explore_data *data);
