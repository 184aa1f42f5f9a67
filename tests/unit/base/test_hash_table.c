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
    const struct object *found;
    while ((found = hash_table_each(table, &at)) != NULL) {
        assert_true(found->is_there);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
