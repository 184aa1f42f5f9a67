/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: parts that continue each other are joined, buffers live as long as a part needs them. */
#include "src/core/batch.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/core/client_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct budget budget;

static struct buffer *buffer_of(const char *text)
{
    struct buffer *buffer = buffer_try_create(&budget, strlen(text));
    memcpy(buffer->data, text, strlen(text));
    buffer->size = strlen(text);
    return buffer;
}

static int set_up(void **state)
{
    (void)state;
    budget_init(&budget, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    int leaked = budget_used(&budget) != 0;
    budget_fini(&budget);
    return leaked;
}

static void parts_that_continue_the_last_one_join_it(void **state)
{
    (void)state;
    struct buffer *first = buffer_of("abcdef");
    struct buffer *second = buffer_of("xyz");
    struct batch *batch = batch_create(TRACES, 0);
    batch_append(batch, first, slice_of(first->data, 2));
    batch_append(batch, first, slice_of(first->data + 2, 2));
    assert_int_equal(batch->parts_count, 1);
    batch_append(batch, first, slice_of(first->data + 5, 1)); /* a gap */
    batch_append(batch, second, buffer_slice(second));
    batch_append(batch, first, slice_of(first->data, 1)); /* another buffer between */
    batch_append(batch, second, slice_of(second->data + 1, 0));
    static const char *const parts[] = {"abcd", "f", "xyz", "a"};
    assert_int_equal(batch->parts_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(slice_equal_text(batch->parts[i].bytes, parts[i]));
    assert_int_equal(batch->bytes, 9);
    buffer_unref(first);
    buffer_unref(second);
    assert_true(budget_used(&budget) > 0);
    batch_unref(batch);
    batch_unref(NULL);
}

static void appending_a_batch_shares_its_bytes_and_keeps_the_older_arrival(void **state)
{
    (void)state;
    clock_fake_start(100, 0);
    struct batch *old = batch_create(LOGS, 1);
    clock_fake_advance(50);
    struct batch *young = batch_create(LOGS, 1);
    struct buffer *bytes = buffer_of("12345678");
    batch_append(old, bytes, slice_of(bytes->data, 4));
    batch_append(young, bytes, slice_of(bytes->data + 4, 4));
    old->items = 2;
    young->items = 3;
    batch_append_batch(young, old);
    assert_int_equal(young->items, 5);
    assert_int_equal(young->bytes, 8);
    assert_int_equal(young->arrival_ns, 100);
    assert_int_equal(young->parts_count, 2);
    assert_ptr_equal(young->parts[1].bytes.data, bytes->data);
    batch_unref(old);
    batch_unref(young);
    buffer_unref(bytes);
    clock_fake_stop();
}

static void a_batch_like_another_takes_over_what_is_said_of_it(void **state)
{
    (void)state;
    struct client_metadata row = {"tenant", "a"};
    struct batch *model = batch_create(PROFILES, 1);
    model->client = client_info_create("::1", &row, 1);
    model->is_acknowledged = true;
    model->items = 9;
    struct batch *like = batch_create_like(model, 0);
    batch_unref(batch_ref(model));
    batch_unref(model);
    assert_int_equal(like->signal, PROFILES);
    assert_true(like->is_acknowledged);
    assert_int_equal(like->items, 0);
    assert_int_equal(like->parts_count, 0);
    assert_string_equal(like->client->address, "::1");
    assert_string_equal(like->client->metadata[0].value, "a");
    batch_unref(like);
}

static void client_info_copies_all_rows(void **state)
{
    (void)state;
    char value[] = "changes";
    struct client_metadata rows[] = {{"k", value}, {"k", ""}, {"", "v"}};
    struct client_info *info = client_info_create("10.0.0.1", rows, 3);
    memset(value, 'x', sizeof(value) - 1);
    assert_ptr_equal(client_info_ref(info), info);
    client_info_unref(info);
    assert_int_equal(info->metadata_count, 3);
    assert_string_equal(info->metadata[0].value, "changes");
    assert_string_equal(info->metadata[1].value, "");
    assert_string_equal(info->metadata[2].key, "");
    client_info_unref(info);
    info = client_info_create("", NULL, 0);
    assert_int_equal(info->metadata_count, 0);
    client_info_unref(info);
    client_info_unref(NULL);
}

static void client_info_is_charged_until_its_last_reference(void **state)
{
    struct client_metadata row = {"k", "value"};
    struct client_info *info = client_info_charge(client_info_create("10.0.0.1", NULL, 0), &budget);
    (void)state;
    assert_int_equal(budget_used(&budget), 0);
    client_info_unref(info);
    info = client_info_charge(client_info_create("10.0.0.1", &row, 1), &budget);
    assert_true(budget_used(&budget) > sizeof(*info) + sizeof(row));
    uint64_t used = budget_used(&budget);
    client_info_unref(client_info_ref(info));
    assert_int_equal(budget_used(&budget), used);
    client_info_unref(info);
    assert_int_equal(budget_used(&budget), 0);
    uint64_t all = budget_limit(&budget) + budget_limit(&budget) / 16 + 256 * KIB;
    assert_true(budget_try_take_margin(&budget, all));
    assert_null(client_info_charge(client_info_create("10.0.0.1", &row, 1), &budget));
    budget_return(&budget, all);
}

static void a_batch_in_one_piece_is_shared_and_several_are_copied(void **state)
{
    struct buffer *first = buffer_of("abc");
    struct buffer *second = buffer_of("xyz");
    struct batch *batch = batch_create(PROFILES, 1);
    struct batch_part whole;
    (void)state;
    batch_append(batch, first, buffer_slice(first));
    assert_true(batch_join(batch, &budget, &whole));
    assert_ptr_equal(whole.owner, first);
    buffer_unref(whole.owner);
    batch_append(batch, second, buffer_slice(second));
    assert_true(batch_join(batch, &budget, &whole));
    assert_true(slice_equal_text(whole.bytes, "abcxyz"));
    buffer_unref(whole.owner);
    uint64_t left = budget_limit(&budget) - budget_used(&budget);
    assert_true(budget_try_take(&budget, left));
    assert_false(batch_join(batch, &budget, &whole));
    assert_false(batch_join_owed(batch, &budget, &whole));
    batch->is_acknowledged = true;
    assert_true(batch_join_owed(batch, &budget, &whole));
    assert_true(slice_equal_text(whole.bytes, "abcxyz"));
    buffer_unref(whole.owner);
    struct batch *one = batch_in_one_part(batch, &budget);
    assert_int_equal(one->parts_count, 1);
    assert_true(slice_equal_text(one->parts[0].bytes, "abcxyz"));
    assert_ptr_equal(batch_in_one_part(one, &budget), one);
    batch_unref(one);
    batch_unref(one);
    batch->is_stored = true; /* it comes again */
    assert_false(batch_join_owed(batch, &budget, &whole));
    batch->is_stored = false;
    const uint64_t margin = budget_limit(&budget) / BUDGET_MARGIN_PART;
    budget_take(&budget, margin + 1);
    assert_false(batch_join_owed(batch, &budget, &whole));
    budget_return(&budget, left + margin + 1);
    buffer_unref(first);
    buffer_unref(second);
    batch_unref(batch);
}

/* An acknowledged batch goes on, but only so far. */
static void room_for_a_batch_has_a_margin(void **state)
{
    enum { BYTES = 1000, GROWN = 2 * BYTES + 1 };
    (void)state;
    struct buffer *buffer = buffer_create(&budget, BYTES);
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, slice_of(buffer->data, BYTES));
    const uint64_t limit = budget_limit(&budget);
    const uint64_t margin = limit / BUDGET_MARGIN_PART;
    const uint64_t taken = limit - budget_used(&budget);
    assert_true(margin > GROWN);
    budget_take(&budget, taken);
    for (unsigned i = 0; i < 4; i++) {
        batch->is_acknowledged = i % 2 > 0;
        batch->is_stored = i >= 2;
        assert_true(batch_has_room(batch, NULL, UINT64_MAX));
        assert_true(batch_has_room(batch, &budget, 1) == (i == 1));
        assert_true(batch_has_room(batch, &budget, margin) == (i == 1));
        assert_false(batch_has_room(batch, &budget, margin + 1));
    }
    batch->is_acknowledged = true;
    batch->is_stored = false;
    budget_take(&budget, margin);
    assert_true(batch_has_room(batch, &budget, GROWN - 1));
    assert_false(batch_has_room(batch, &budget, GROWN));
    budget_take(&budget, 1);
    assert_false(batch_has_room(batch, &budget, 1));
    budget_return(&budget, taken + margin + 1);
    batch_unref(batch);
    buffer_unref(buffer);
}

/* Not by twice its bytes, if they are many: that would be beyond any bound. */
static void a_large_batch_has_no_more_than_the_margin(void **state)
{
    (void)state;
    const uint64_t limit = budget_limit(&budget);
    const uint64_t margin = limit / BUDGET_MARGIN_PART;
    struct buffer *buffer = buffer_create(&budget, margin);
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, slice_of(buffer->data, margin));
    batch->is_acknowledged = true;
    const uint64_t taken = limit - budget_used(&budget) - margin / 2;
    budget_take(&budget, taken);
    assert_true(batch_has_room(batch, &budget, margin));
    assert_true(batch_has_room(batch, &budget, margin + margin / 2));
    assert_false(batch_has_room(batch, &budget, margin + margin / 2 + 1));
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t room = budget_room_max(&budget, i > 0) - margin;
        batch->is_acknowledged = i > 0;
        assert_false(batch_never_fits(batch, &budget, room));
        assert_true(batch_never_fits(batch, &budget, room + 1));
        assert_false(batch_never_fits(batch, NULL, room + 1));
    }
    budget_return(&budget, taken);
    batch_unref(batch);
    buffer_unref(buffer);
}

#define BATCH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Edits leave many short parts, whose list then is larger than what they refer to. */
static void a_long_list_of_parts_is_charged(void **state)
{
    enum { BYTES = 16 * 1024, LIST_BYTES = BYTES / 2 * sizeof(struct batch_part) };
    (void)state;
    struct buffer *buffer = buffer_create(&budget, BYTES);
    struct batch *batch = batch_create(TRACES, 0);
    uint64_t before = budget_used(&budget);
    for (size_t i = 0; i < BYTES; i += 2)
        batch_append(batch, buffer, slice_of(buffer->data + i, 1));
    assert_int_equal(batch->parts_count, BYTES / 2);
    assert_true(budget_used(&budget) >= before + LIST_BYTES);
    uint64_t charged = budget_used(&budget) - before;
    struct batch *like = batch_create_like(batch, batch->parts_count);
    assert_true(budget_used(&budget) >= before + charged + LIST_BYTES);
    batch_unref(like);
    batch_unref(batch);
    assert_int_equal(budget_used(&budget), before);
    buffer_unref(buffer);
}

/* Appended as they are, without references. */
static void parts_may_be_appended_many_at_once(void **state)
{
    enum { ROUNDS = 50, PARTS = 3 };
    (void)state;
    struct buffer *buffer = buffer_of("abcdef");
    struct batch *batch = batch_create(TRACES, 0);
    const struct batch_part parts[PARTS] = {
        {.owner = buffer, .bytes = slice_of(buffer->data, 2)},
        {.owner = buffer, .bytes = slice_of(buffer->data + 2, 1)},
        {.owner = buffer, .bytes = slice_of(buffer->data, 4)},
    };
    for (int i = 0; i < ROUNDS; i++)
        batch_append_parts_held(batch, parts, PARTS);
    buffer_ref_many(buffer, ROUNDS * PARTS);
    assert_int_equal(batch->parts_count, ROUNDS * PARTS);
    assert_int_equal(batch->bytes, ROUNDS * 7);
    for (size_t i = 0; i < batch->parts_count; i++)
        assert_true(slice_equal(batch->parts[i].bytes, parts[i % PARTS].bytes));
    assert_true(budget_used(&budget) >= sizeof(batch->parts[0]) * batch->parts_count);
    buffer_unref(buffer);
    batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BATCH_TEST(room_for_a_batch_has_a_margin),
        BATCH_TEST(a_large_batch_has_no_more_than_the_margin),
        BATCH_TEST(a_batch_in_one_piece_is_shared_and_several_are_copied),
        BATCH_TEST(parts_that_continue_the_last_one_join_it),
        BATCH_TEST(appending_a_batch_shares_its_bytes_and_keeps_the_older_arrival),
        BATCH_TEST(a_batch_like_another_takes_over_what_is_said_of_it),
        BATCH_TEST(client_info_copies_all_rows),
        BATCH_TEST(client_info_is_charged_until_its_last_reference),
        BATCH_TEST(a_long_list_of_parts_is_charged),
        BATCH_TEST(parts_may_be_appended_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
