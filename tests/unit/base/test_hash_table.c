/* SPDX-License-Identifier: Apache-2.0 */
/* Objects are found by their hashes whatever was added and removed before, with few hashes, so that
 * most collide. */
#include "src/base/hash_table.h"

#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OBJECTS = 300, STEPS = 100000, HASHES = 97 };

struct object {
    uint64_t hash;
    bool is_there;
    bool is_seen;
};

static struct object objects[OBJECTS];

/* All those of the hash, each once, and no other. */
static void check_hash(const struct hash_table *table, uint64_t hash)
{
    size_t at = 0;
    size_t wanted = 0;
    struct object *found;
    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i].is_seen = false;
        wanted += objects[i].is_there && objects[i].hash == hash;
    }
    while ((found = hash_table_next(table, hash, &at)) != NULL) {
        assert_true(found->is_there && !found->is_seen);
        assert_int_equal(found->hash, hash);
        found->is_seen = true;
        wanted--;
    }
    assert_int_equal(wanted, 0);
}

static void check_all(const struct hash_table *table)
{
    size_t at = 0;
    size_t count = 0;
    struct object *found;
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i].is_seen = false;
    while ((found = hash_table_each(table, &at)) != NULL) {
        assert_true(found->is_there && !found->is_seen);
        found->is_seen = true;
        count++;
    }
    assert_int_equal(count, table->count);
}

static void what_was_added_is_found_until_it_is_removed(void **state)
{
    (void)state;
    struct hash_table table = {.count = 0};
    size_t count = 0;
    uint64_t random = 12345;
    size_t at = 0;
    assert_null(hash_table_next(&table, 7, &at));
    for (size_t i = 0; i < OBJECTS; i++)
        /* High ones too: places wrap around. */
        objects[i].hash = i % 3 == 0 ? UINT64_MAX - i % HASHES : i % HASHES;
    for (size_t step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        struct object *object = &objects[(random >> 33) % OBJECTS];
        if (object->is_there)
            hash_table_remove(&table, object->hash, object);
        else
            assert_true(hash_table_add(&table, object->hash, object));
        object->is_there = !object->is_there;
        count += object->is_there ? 1 : (size_t)-1;
        assert_int_equal(table.count, count);
        check_hash(&table, object->hash);
        if (step % 100 == 0)
            check_all(&table);
    }
    hash_table_clear(&table);
    assert_int_equal(table.count, 0);
}

static size_t count_of(const struct hash_table *table, uint64_t hash, const void *object)
{
    size_t at = 0;
    size_t count = 0;
    const void *found;
    while ((found = hash_table_next(table, hash, &at)) != NULL)
        count += found == object;
    return count;
}

static void an_empty_table_has_none(void **state)
{
    (void)state;
    struct hash_table table = {.count = 0};
    size_t at = 0;
    assert_null(hash_table_each(&table, &at));
    hash_table_clear(&table);
    assert_true(hash_table_add(&table, 1, &objects[0]));
    hash_table_clear(&table);
    assert_null(hash_table_each(&table, &at));
    assert_int_equal(count_of(&table, 1, &objects[0]), 0);
}

static void equal_hashes_and_equal_objects_are_all_found(void **state)
{
    (void)state;
    struct hash_table table = {.count = 0};
    for (size_t i = 0; i < 3; i++)
        assert_true(hash_table_add(&table, 5, &objects[i]));
    assert_true(hash_table_add(&table, 5, &objects[1]));
    assert_true(hash_table_add(&table, 6, &objects[1]));
    assert_int_equal(count_of(&table, 5, &objects[0]), 1);
    assert_int_equal(count_of(&table, 5, &objects[1]), 2);
    assert_int_equal(count_of(&table, 6, &objects[1]), 1);
    assert_int_equal(count_of(&table, 6, &objects[0]), 0);
    hash_table_remove(&table, 5, &objects[1]);
    assert_int_equal(count_of(&table, 5, &objects[1]), 1);
    assert_int_equal(count_of(&table, 6, &objects[1]), 1);
    assert_int_equal(count_of(&table, 5, &objects[2]), 1);
    assert_int_equal(table.count, 4);
    hash_table_clear(&table);
}

/* Runs of neighbours that cross the end of the entries lose one after the other; the rest is found
 * each time. The second run begins within the first and must not move in front of its place. */
static void a_removal_closes_its_gap(void **state)
{
    (void)state;
    enum { RUN = 8 };
    static const uint64_t hashes[RUN] = {13, 13, 14, 13, 15, 14, 0, 1};
    for (size_t first = 0; first < RUN; first++)
        for (size_t step = 1; step < RUN; step += 2) {
            struct hash_table table = {.count = 0};
            bool is_removed[RUN] = {false};
            for (size_t i = 0; i < RUN; i++)
                assert_true(hash_table_add(&table, hashes[i], &objects[i]));
            for (size_t k = 0; k < RUN; k++) {
                size_t removed = (first + k * step) % RUN; /* an odd step reaches each */
                hash_table_remove(&table, hashes[removed], &objects[removed]);
                is_removed[removed] = true;
                for (size_t i = 0; i < RUN; i++)
                    assert_int_equal(count_of(&table, hashes[i], &objects[i]), !is_removed[i]);
            }
            assert_int_equal(table.count, 0);
            hash_table_clear(&table);
        }
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    struct hash_table table = {.count = 0};
    size_t at = 0;
    mem_refuse_nth(1);
    assert_false(hash_table_add(&table, 1, &objects[0]));
    mem_refuse_nth(0);
    assert_int_equal(table.count, 0);
    for (size_t i = 0; i < 12; i++)
        assert_true(hash_table_add(&table, i, &objects[i]));
    mem_refuse_nth(1);
    assert_false(hash_table_add(&table, 12, &objects[12]));
    mem_refuse_nth(0);
    assert_ptr_equal(hash_table_next(&table, 11, &at), &objects[11]);
    hash_table_clear(&table);
}

/* Places of old entries that have moved, or are free. */
static size_t moved_places(const struct hash_table *table)
{
    return table->old != NULL ? table->moved : table->capacity / 2;
}

/* However many there are, one more moves a few; meanwhile all are found, and may be removed. */
static void a_table_doubles_bit_by_bit(void **state)
{
    enum { COUNT = 20000, PLACES_MAX = 8 };
    (void)state;
    struct hash_table table = {.count = 0};
    char *places = mem_zalloc(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t growth = hash_table_growth(&table);
        const size_t bytes = hash_table_bytes(&table);
        const size_t before = growth > 0 ? 0 : moved_places(&table);
        assert_true(hash_table_add(&table, i * 7919, &places[i]));
        assert_true(moved_places(&table) - before <= PLACES_MAX || table.capacity <= 16);
        assert_true(hash_table_bytes(&table) <= bytes + growth);
        assert_true(growth == 0 || table.capacity * sizeof(struct hash_entry) == growth);
        if (growth == 0 && i % 97 != 0)
            continue;
        for (size_t k = 0; k <= i; k += 1 + i / 100)
            assert_int_equal(count_of(&table, k * 7919, &places[k]), 1);
        assert_int_equal(count_of(&table, (i + 1) * 7919, &places[i]), 0);
        for (size_t k = i - i / 200; k < i; k++) {
            hash_table_remove(&table, k * 7919, &places[k]);
            assert_int_equal(count_of(&table, k * 7919, &places[k]), 0);
        }
        size_t count = 0;
        for (size_t at = 0; hash_table_each(&table, &at) != NULL;)
            count++;
        assert_int_equal(count, table.count);
        for (size_t k = i - i / 200; k < i; k++)
            assert_true(hash_table_add(&table, k * 7919, &places[k]));
    }
    assert_true(hash_table_settle(&table, SIZE_MAX));
    assert_null(table.old);
    assert_int_equal(table.count, COUNT);
    hash_table_clear(&table);
    mem_free(places);
}

static void objects_settle_in_pieces(void **state)
{
    enum { COUNT = 769, OLD = 1024, ADDED = 8, PIECE = 100 };
    (void)state;
    struct hash_table table = {.count = 0};
    char places[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        assert_true(hash_table_add(&table, i * 7919, &places[i]));
    assert_int_equal(table.capacity, 2 * OLD);
    for (size_t moved = ADDED; moved + PIECE < OLD; moved += PIECE) {
        assert_int_equal(moved_places(&table), moved);
        assert_false(hash_table_settle(&table, PIECE));
    }
    assert_true(hash_table_settle(&table, PIECE));
    assert_null(table.old);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(count_of(&table, i * 7919, &places[i]), 1);
    hash_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_has_none),
        cmocka_unit_test(equal_hashes_and_equal_objects_are_all_found),
        cmocka_unit_test(a_removal_closes_its_gap),
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(a_table_doubles_bit_by_bit),
        cmocka_unit_test(objects_settle_in_pieces),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
