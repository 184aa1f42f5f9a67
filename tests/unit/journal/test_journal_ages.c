/* SPDX-License-Identifier: Apache-2.0 */
/* How long records have waited, as their number grows beyond what is marked. */
#include "src/journal/journal_ages.h"

#include "src/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RECORDS = 200000, PER_SECOND = 10 };

static struct journal_ages ages;

static uint64_t time_of(uint64_t id)
{
    return NS_PER_S + id * NS_PER_S / PER_SECOND;
}

static void ages_of_many_records_are_about_right(void **state)
{
    (void)state;
    journal_ages_init(&ages);
    assert_int_equal(journal_ages_find(&ages, 5), 0);
    for (uint64_t id = 1; id <= RECORDS; id++)
        journal_ages_note(&ages, id, time_of(id));
    /* The oldest is exact, the others within a hundredth of the whole. */
    assert_int_equal(journal_ages_find(&ages, 1), time_of(1));
    for (uint64_t id = 1; id <= RECORDS; id++) {
        uint64_t found = journal_ages_find(&ages, id);
        assert_true(found <= time_of(id));
        assert_true(time_of(id) - found <= time_of(RECORDS) / 100);
    }
}

static void what_is_forgotten_makes_room_for_closer_marks(void **state)
{
    (void)state;
    journal_ages_init(&ages);
    for (uint64_t id = 1; id <= RECORDS; id++)
        journal_ages_note(&ages, id, time_of(id));
    journal_ages_forget(&ages, RECORDS);
    assert_int_equal(ages.count, 1);
    journal_ages_note(&ages, RECORDS + 1, time_of(RECORDS + 1));
    journal_ages_note(&ages, RECORDS + 2, time_of(RECORDS + 2));
    assert_int_equal(journal_ages_find(&ages, RECORDS + 1), time_of(RECORDS + 1));
    assert_int_equal(journal_ages_find(&ages, RECORDS + 2), time_of(RECORDS + 2));
    /* The last mark stays: it tells the age of what follows it closely. */
    journal_ages_forget(&ages, RECORDS + 10);
    assert_int_equal(journal_ages_find(&ages, RECORDS + 2), time_of(RECORDS + 2));
}

/* Segments are read backwards at a start, and later in order. */
static void marks_may_come_in_any_order(void **state)
{
    (void)state;
    journal_ages_init(&ages);
    for (uint64_t id = RECORDS; id >= 1000; id -= 1000)
        journal_ages_note(&ages, id, time_of(id));
    for (uint64_t id = 500; id <= RECORDS; id += 1000)
        journal_ages_note(&ages, id, time_of(id));
    for (uint64_t id = 500; id <= RECORDS; id += 500)
        assert_int_equal(journal_ages_find(&ages, id), time_of(id));
    assert_int_equal(journal_ages_find(&ages, 1), time_of(500));
    for (size_t i = 1; i < ages.count; i++)
        assert_true(ages.marks[i].id > ages.marks[i - 1].id);
}

static void a_clock_that_is_set_back_does_no_harm(void **state)
{
    (void)state;
    journal_ages_init(&ages);
    for (uint64_t id = 1; id <= RECORDS; id++)
        journal_ages_note(&ages, id, time_of(id % 1000 < 500 ? id : 1));
    assert_true(ages.count > 1 && ages.count <= JOURNAL_MARKS_MAX);
    for (uint64_t id = 1; id <= RECORDS; id++)
        assert_true(journal_ages_find(&ages, id) <= time_of(id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_of_many_records_are_about_right),
        cmocka_unit_test(what_is_forgotten_makes_room_for_closer_marks),
        cmocka_unit_test(marks_may_come_in_any_order),
        cmocka_unit_test(a_clock_that_is_set_back_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
