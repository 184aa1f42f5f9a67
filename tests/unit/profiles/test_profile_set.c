/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of entries: each is there once, does not move, and is written in order of insertion;
 * compared with a list that is searched from its beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_set.h"

/* Enough for several chunks, and contents larger than a chunk. */
enum { FIELD = 7, CONTENTS = 3000, LARGE_EVERY = 500, LARGE_BYTES = 70000 };

static uint8_t letters[LARGE_BYTES];

/* A length and bytes that belong to the number: no two are the same. */
static struct slice content_of(uint32_t number)
{
    uint32_t size = 4 + number % 150;
    if (number % LARGE_EVERY == LARGE_EVERY - 1)
        size = LARGE_BYTES;
    memset(letters, 'a' + (int)(number % 23), size);
    memcpy(letters, &number, sizeof(number));
    return slice_of(letters, size);
}

/* Adds each by another function. */
static uint32_t add(struct profile_set *set, uint32_t number)
{
    struct slice content = content_of(number);
    if (number % 3 == 0)
        return profile_set_add_like(set, content, number);
    if (number % 3 == 1)
        return profile_set_add_expected(set, content, profile_set_expect(set, content));
    uint8_t *at = profile_set_begin(set, 5 * content.size);
    memcpy(at, content.data, content.size);
    return profile_set_end_like(set, at + content.size, number % 2);
}

static void assert_holds(const struct profile_set *set, uint32_t count)
{
    assert_int_equal(set->count, count);
    assert_int_equal(profile_set_at(set, 0).size, 0);
    for (uint32_t i = 1; i < count; i++)
        assert_true(slice_equal(profile_set_at(set, i), content_of(i)));
}

static void assert_writes(const struct profile_set *set, uint32_t count)
{
    uint8_t *written = mem_alloc(set->encoded_bytes);
    const uint8_t *end = profile_set_write(set, written);
    struct wire_reader reader = wire_reader_of(slice_of(written, set->encoded_bytes));
    struct wire_field field;
    assert_ptr_equal(end, written + set->encoded_bytes);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(wire_read_field(&reader, &field));
        assert_int_equal(field.number, FIELD);
        assert_true(slice_equal(field.bytes, i > 0 ? content_of(i) : slice_of("", 0)));
    }
    assert_false(wire_read_field(&reader, &field));
    assert_null(reader.failure);
    mem_free(written);
}

static void entries_are_there_once_and_in_order(void **state)
{
    struct profile_set set;
    (void)state;
    profile_set_init_field(&set, NULL, FIELD);
    assert_int_equal(profile_set_add(&set, slice_of("", 0)), 0);
    for (unsigned time = 0; time < 2; time++)
        for (uint32_t i = 1; i < CONTENTS; i++)
            assert_int_equal(add(&set, i), i);
    assert_holds(&set, CONTENTS);
    assert_writes(&set, CONTENTS);
    profile_set_fini(&set);
}

static void entries_stay_where_they_are(void **state)
{
    struct profile_set set;
    (void)state;
    profile_set_init(&set, NULL);
    add(&set, 1);
    const uint8_t *first = profile_set_at(&set, 1).data;
    for (uint32_t i = 2; i < CONTENTS; i++)
        add(&set, i);
    assert_ptr_equal(profile_set_at(&set, 1).data, first);
    profile_set_fini(&set);
}

static void a_cut_set_goes_on_as_if_the_rest_had_never_come(void **state)
{
    static const uint32_t counts[] = {CONTENTS, CONTENTS - 2, 1700, LARGE_EVERY, 2, 1};
    struct profile_set set;
    (void)state;
    profile_set_init_field(&set, NULL, FIELD);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (uint32_t j = 1; j < CONTENTS; j++)
            assert_int_equal(add(&set, j), j);
        /* Room that nothing was written to. */
        profile_set_begin(&set, LARGE_BYTES);
        profile_set_cut(&set, counts[i]);
        assert_holds(&set, counts[i]);
        assert_writes(&set, counts[i]);
    }
    profile_set_clear(&set);
    assert_holds(&set, 1);
    assert_int_equal(add(&set, 1), 1);
    profile_set_fini(&set);
}

static void all_memory_is_charged_until_the_end(void **state)
{
    struct budget budget;
    struct profile_set set;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    profile_set_init(&set, &budget);
    uint64_t empty = budget_used(&budget);
    for (uint32_t i = 1; i < CONTENTS; i++)
        add(&set, i);
    assert_true(budget_used(&budget) > empty + set.encoded_bytes);
    profile_set_fini(&set);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_there_once_and_in_order),
        cmocka_unit_test(entries_stay_where_they_are),
        cmocka_unit_test(a_cut_set_goes_on_as_if_the_rest_had_never_come),
        cmocka_unit_test(all_memory_is_charged_until_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
