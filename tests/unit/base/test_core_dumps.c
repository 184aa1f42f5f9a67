/* SPDX-License-Identifier: Apache-2.0 */
/* Core files are written only when the user wants them. */
#include "src/base/core_dumps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cmocka.h>

static rlim_t soft_limit(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    return limit.rlim_cur;
}

static void core_files_are_forbidden_and_allowed_again(void **state)
{
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    /* Where there is no hard limit to work with, zero must stay zero. */
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    assert_int_equal(setrlimit(RLIMIT_CORE, &limit), 0);
    core_dumps_allow(false);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L), 0);
    assert_int_equal(soft_limit(), 0);
    core_dumps_allow(true);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L), 1);
    assert_int_equal(soft_limit(), limit.rlim_cur);
    core_dumps_allow(false);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0L, 0L, 0L, 0L), 0);
    assert_int_equal(soft_limit(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core_files_are_forbidden_and_allowed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
