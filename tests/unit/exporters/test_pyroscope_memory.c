/* SPDX-License-Identifier: Apache-2.0 */
/* What a pyroscope exporter remembers of batches and times, and when it forgets. */
#include "exporters/pyroscope/pyroscope_memory.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct batch *batch_of(const char *text, uint64_t arrival_ns)
{
    size_t size = strlen(text);
    struct buffer *buffer = buffer_create(NULL, size);
    struct batch *batch = batch_create(PROFILES, 1);
    memcpy(buffer->data, text, size);
    buffer->size = size;
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->arrival_ns = arrival_ns;
    buffer_unref(buffer);
    return batch;
}

static void batches_are_identified_by_their_content(void **state)
{
    static const struct {
        const char *text;
        uint64_t arrival_ns;
        bool is_same;
    } rows[] = {
        {"one batch of bytes", 7, true},  {"one batch of bytez", 7, false},
        {"pne batch of bytes", 7, false}, {"one batch of bytes", 8, false},
        {"one batch of byte", 7, false},
    };
    (void)state;
    struct batch *model = batch_of("one batch of bytes", 7);
    struct batch_name expected = batch_name_of(model);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct batch *batch = batch_of(rows[i].text, rows[i].arrival_ns);
        struct batch_name name = batch_name_of(batch);
        bool is_same = name.hash == expected.hash && name.bytes == expected.bytes &&
                       name.arrival_ns == expected.arrival_ns;
        assert_int_equal(is_same, rows[i].is_same);
        batch_unref(batch);
    }
    batch_unref(model);
}

static void keep(struct pyroscope_memory *memory, uint64_t hash)
{
    const struct batch_name name = {.hash = hash, .bytes = 1, .arrival_ns = 1};
    struct settled_batch settled = {.rejected = hash};
    number_set_add(&settled.posts, hash);
    pyroscope_memory_keep(memory, &name, &settled);
}

static struct settled_batch taken(struct pyroscope_memory *memory, uint64_t hash)
{
    const struct batch_name name = {.hash = hash, .bytes = 1, .arrival_ns = 1};
    return pyroscope_memory_take(memory, &name);
}

static void the_oldest_batches_are_forgotten(void **state)
{
    static struct pyroscope_memory memory;
    (void)state;
    for (uint64_t i = 1; i <= MEMORY_BATCHES_MAX + 5; i++)
        keep(&memory, i);
    for (uint64_t i = 1; i <= MEMORY_BATCHES_MAX + 5; i++) {
        struct settled_batch settled = taken(&memory, i);
        bool is_known = settled.posts.count == 1;
        assert_int_equal(is_known, i > 5);
        assert_int_equal(settled.rejected, is_known ? i : 0);
        number_set_clear(&settled.posts);
        settled = taken(&memory, i);
        assert_int_equal(settled.posts.count, 0);
    }
    pyroscope_memory_fini(&memory);
}

static void sets_hold_what_was_added_up_to_their_limit(void **state)
{
    struct number_set set = {.count = 0};
    (void)state;
    for (uint64_t i = 1; i <= NUMBER_SET_MAX; i++)
        assert_true(number_set_add(&set, i * 4096));
    assert_true(number_set_add(&set, 4096));
    assert_false(number_set_add(&set, 1));
    for (uint64_t i = 1; i <= NUMBER_SET_MAX; i++) {
        assert_true(number_set_has(&set, i * 4096));
        assert_false(number_set_has(&set, i * 4096 + 1));
    }
    number_set_clear(&set);
    assert_false(number_set_has(&set, 4096));
}

static void a_time_belongs_to_its_first_owner(void **state)
{
    static struct pyroscope_memory memory;
    (void)state;
    assert_int_equal(pyroscope_memory_time(&memory, 1, 100, 5000), 5000);
    assert_int_equal(pyroscope_memory_time(&memory, 1, 101, 5000), 5001);
    assert_int_equal(pyroscope_memory_time(&memory, 1, 102, 5000), 5002);
    /* each again, as at a retry */
    assert_int_equal(pyroscope_memory_time(&memory, 1, 101, 5000), 5001);
    assert_int_equal(pyroscope_memory_time(&memory, 1, 100, 5000), 5000);
    /* another series */
    assert_int_equal(pyroscope_memory_time(&memory, 2, 103, 5000), 5000);
    pyroscope_memory_fini(&memory);
}

static void old_times_are_forgotten_and_memory_stays_bounded(void **state)
{
    static struct pyroscope_memory memory;
    (void)state;
    for (uint64_t i = 1; i <= 3 * MEMORY_TIMES_MAX; i++)
        assert_int_equal(pyroscope_memory_time(&memory, i, 7, 5000), 5000);
    assert_true(memory.times[0].count <= MEMORY_TIMES_MAX);
    assert_true(memory.times[1].count <= MEMORY_TIMES_MAX);
    assert_int_equal(pyroscope_memory_time(&memory, 1, 8, 5000), 5000);
    assert_int_equal(pyroscope_memory_time(&memory, (uint64_t)3 * MEMORY_TIMES_MAX, 8, 5000), 5001);
    pyroscope_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_identified_by_their_content),
        cmocka_unit_test(the_oldest_batches_are_forgotten),
        cmocka_unit_test(sets_hold_what_was_added_up_to_their_limit),
        cmocka_unit_test(a_time_belongs_to_its_first_owner),
        cmocka_unit_test(old_times_are_forgotten_and_memory_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
