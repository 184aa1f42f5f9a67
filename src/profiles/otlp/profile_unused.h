/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a dictionary that is being built has entries that nothing refers to. One owner, one
 * thread at a time. */
#pragma once

#include <stdbool.h>

struct profile_groups;
struct profile_tables;

/* Reads what refers to entries only as far as it takes to have seen each once. */
bool profile_has_unused(const struct profile_tables *tables, const struct profile_groups *groups);
