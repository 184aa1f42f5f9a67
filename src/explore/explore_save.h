/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the explore worker has in its directory: each block once, when it is one, and what is
 * not a block yet every EXPLORE_SAVE_NS at most. On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/explore/explore_data.h"
#include "src/explore/explore_disk.h"

struct explore_save {
    struct explore_disk *disk; /* NULL: nothing is saved */
    uint64_t traces_block;     /* numbers of the newest blocks that are saved */
    uint64_t profiles_block;
    uint64_t spans_seen; /* of the store, when the open block was saved last */
    uint64_t generation; /* of the profiles, the same */
    uint64_t saved_ns;   /* clock_now_ns of that */
};

/* Reads what the directory has into an empty store; keep: called after each request, to evict;
 * false: the rest is not read. */
void explore_save_load(struct explore_save *save, struct explore_data *data,
                       bool (*keep)(void *arg), void *arg);
/* Takes what the store has for saved: a reload has left it. */
void explore_save_begin(struct explore_save *save, struct explore_data *data);
/* Makes blocks of what is none yet and saves them: the end. */
void explore_save_all(struct explore_save *save, struct explore_data *data);
/* Saves the blocks that are new. */
void explore_save_blocks(struct explore_save *save, struct explore_data *data);
/* Saves what is not a block yet, if it has changed and it is time. Returns whether something is
 * left to save. */
bool explore_save_open(struct explore_save *save, struct explore_data *data);
