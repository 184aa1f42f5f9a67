/* SPDX-License-Identifier: Apache-2.0 */
/* PR_SET_DUMPABLE alone prevents piped core files (core_pattern "|…"), which ignore limits;
 * RLIMIT_CORE shows the setting to tools. Main thread. */
#include "src/base/core_dumps.h"

#include <assert.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void core_dumps_allow(bool is_allowed)
{
    static struct rlimit first;
    static bool is_known;
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        if (!is_known)
            first = limit;
        is_known = true;
        limit.rlim_cur = is_allowed ? first.rlim_cur : 0;
        setrlimit(RLIMIT_CORE, &limit);
    }
    int failed = prctl(PR_SET_DUMPABLE, is_allowed ? 1L : 0L, 0L, 0L, 0L);
    assert(failed == 0);
}
