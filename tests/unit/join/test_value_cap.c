/* SPDX-License-Identifier: Apache-2.0 */
/* Values under a cap: the first ones of each epoch are admitted. */
#include "src/join/value_cap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t count_admitted(struct value_cap *cap, uint32_t epoch, unsigned first)
{
    uint64_t admitted = 0;
    char text[32];
    for (unsigned i = first; i < first + 10000; i++) {
        snprintf(text, sizeof(text), "value %u", i);
        bool is_admitted = value_cap_admits(cap, slice_of_text(text), epoch);
        assert_int_equal(value_cap_admits(cap, slice_of_text(text), epoch), is_admitted);
        admitted += is_admitted;
    }
    return admitted;
}

static void the_first_values_of_each_epoch_are_admitted(void **state)
{
    static const uint64_t mosts[] = {1, 2, 7, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof(mosts) / sizeof(mosts[0]); i++) {
        struct value_cap cap;
        assert_true(value_cap_init(&cap, mosts[i]));
        for (uint32_t epoch = 0; epoch < 300; epoch += 99)
            assert_int_equal(count_admitted(&cap, epoch, epoch * 7), mosts[i]);
        value_cap_fini(&cap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_values_of_each_epoch_are_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
