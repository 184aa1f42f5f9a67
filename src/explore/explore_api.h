/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to the explore page's questions, as JSON (docs/explore.md). On the explore worker,
 * which owns what the answers come from. */
#pragma once

#include "src/explore/explore_data.h"

/* Sets the job's answer. */
void explore_answer(struct explore_data *data, struct explore_job *job);
