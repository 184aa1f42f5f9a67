/* SPDX-License-Identifier: Apache-2.0 */
/* Handling of secrets: comparing without telling by time how much was right, and leaving nothing
 * behind. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

/* The time depends on the size of presented alone, which is its sender's to know. */
bool secret_equal(struct slice presented, struct slice expected);
/* Overwrites and frees. NULL is tolerated. */
void secret_free(char *text);
