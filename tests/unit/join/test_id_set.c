/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that profiles named: until they are taken or evicted. */
#include "src/join/index/id_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_id_stays_until_it_is_taken_or_evicted(void **state)
{
    struct id_set set;
    (void)state;
    assert_true(id_set_init(&set, 64));
    assert_false(id_set_has(&set, 5));
    id_set_add(&set, 5);
    id_set_add(&set, 5);
    assert_true(id_set_has(&set, 5));
    assert_true(id_set_take(&set, 5));
    assert_false(id_set_take(&set, 5));
    for (uint64_t id = 1; id < 10000; id++) {
        id_set_add(&set, id);
        assert_true(id_set_has(&set, id));
    }
    id_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_stays_until_it_is_taken_or_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
