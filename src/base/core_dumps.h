/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a crash may write the process's memory to a core file. Memory holds tokens and telemetry,
 * so the default is no. Main thread. */
#pragma once

#include <stdbool.h>

/* false: no core file, and no other process of the same user may read the memory (PR_SET_DUMPABLE,
 * the soft RLIMIT_CORE). true: as at the start of the process. */
void core_dumps_allow(bool is_allowed);
