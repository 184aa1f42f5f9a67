/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: constant-time comparison, and erasing before free. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

/* The time depends only on the size of presented, which its sender knows. */
bool secret_equal(struct slice presented, struct slice expected);
/* Overwrites and frees. NULL is a no-op. */
void secret_free(char *text);
