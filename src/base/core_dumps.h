/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the kernel may write the process's memory to a file when it crashes. It holds tokens and
 * the telemetry of others, so that it may not unless the user says so. Main thread. */
#pragma once

#include <stdbool.h>

/* false: no core file, and no other process of the same user may read the memory (PR_SET_DUMPABLE,
 * the soft RLIMIT_CORE). true: as it was when the process began. */
void core_dumps_allow(bool is_allowed);
