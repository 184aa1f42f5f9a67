/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting loses, doubles and reorders nothing: the items of all pieces, each with everything that
 * encloses it, are the items of the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/split.h"
#include "src/otlp/wire.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"

enum { ROUNDS = 400 };

static void check_piece(const struct batch *piece, struct otlp_limit limit,
                        struct oracle_items *items)
{
    struct otlp_figures figures;
    const char *reason;
    struct slice bytes = joined_parts(piece);
    if (!otlp_check(piece->signal, bytes, &figures, &reason))
        fail_msg("a piece is malformed: %s", reason);
    assert_int_equal(figures.items, piece->items);
    if (limit.items_max > 0)
        assert_true(piece->items <= limit.items_max);
    if (limit.bytes_max > 0 && piece->items > 1)
        assert_true(piece->bytes <= limit.bytes_max);
    oracle_list(items, piece->signal, bytes);
    mem_free((void *)(uintptr_t)bytes.data);
}

/* Splits until nothing is left, and collects the items of all pieces. Frees batch. */
static size_t split_all(struct batch *batch, struct otlp_limit limit, struct budget *budget,
                        struct oracle_items *items)
{
    size_t pieces = 0;
    while (batch != NULL) {
        struct batch *head;
        struct batch *tail;
        otlp_split(batch, limit, budget, &head, &tail);
        check_piece(head, limit, items);
        batch_unref(batch);
        batch_unref(head);
        batch = tail;
        pieces++;
        assert_true(pieces < 100000);
    }
    return pieces;
}

static void compare(const struct oracle_items *expected, const struct oracle_items *found)
{
    assert_int_equal(expected->count, found->count);
    for (size_t i = 0; i < expected->count; i++)
        assert_string_equal(expected->texts[i], found->texts[i]);
}

static void check_conservation(enum signal_kind signal, uint64_t seed)
{
    struct random_source random = {.state = seed};
    struct budget budget;
    struct oracle_items expected = {0};
    struct oracle_items found = {0};
    budget_init(&budget, 1);
    struct slice request = random_request(&random, signal);
    struct batch *batch = random_parts(&random, signal, request);
    struct otlp_limit limit = {0};
    if (random_below(&random, 3) > 0)
        limit.items_max = 1 + random_below(&random, batch->items + 1);
    if (limit.items_max == 0 || random_below(&random, 3) == 0)
        limit.bytes_max = 1 + random_below(&random, batch->bytes + 1);
    oracle_list(&expected, signal, request);
    assert_int_equal(expected.count, batch->items);
    split_all(batch, limit, &budget, &found);
    compare(&expected, &found);
    assert_int_equal(budget_used(&budget), 0);
    oracle_clear(&expected);
    oracle_clear(&found);
    mem_free((void *)(uintptr_t)request.data);
    budget_fini(&budget);
}

static void every_item_arrives_once_with_all_that_encloses_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++)
        for (enum signal_kind signal = TRACES; signal <= LOGS; signal++)
            check_conservation(signal, seed * 3 + signal);
}

/* One resource (schema_url behind the scopes), `scopes` scopes of `spans` spans of `size` bytes. */
static struct batch *make_traces(size_t scopes, size_t spans, size_t size)
{
    size_t room_bytes = scopes * (spans * (size + 8) + 64) + 256;
    uint8_t *scope_room = mem_alloc(room_bytes);
    struct wire_writer resource = wire_writer_of(mem_alloc(room_bytes), room_bytes);
    wire_write_bytes(&resource, 1, slice_of_text("\x10\x07"));
    char *name = mem_zalloc(size + 1);
    memset(name, 'n', size);
    for (size_t i = 0; i < scopes; i++) {
        struct wire_writer scope = wire_writer_of(scope_room, room_bytes);
        wire_write_bytes(&scope, 1, slice_of_text("\x0a\x03lib"));
        for (size_t k = 0; k < spans; k++) {
            wire_write_header(&scope, 2, wire_field_size(5, size));
            wire_write_bytes(&scope, 5, slice_of(name, size));
        }
        wire_write_bytes(&scope, 3, slice_of_text("scope-url"));
        wire_write_bytes(&resource, 2, wire_written(&scope));
    }
    wire_write_bytes(&resource, 3, slice_of_text("resource-url"));
    struct slice body = wire_written(&resource);
    struct buffer *buffer = buffer_create(NULL, body.size + 16);
    struct wire_writer out = wire_writer_of(buffer->data, buffer->capacity);
    wire_write_bytes(&out, 1, body);
    buffer->size = wire_written(&out).size;
    struct batch *batch = batch_create(TRACES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = scopes * spans;
    buffer_unref(buffer);
    mem_free(resource.begin);
    mem_free(scope_room);
    mem_free(name);
    return batch;
}

static void pieces_are_as_large_as_the_limit_allows(void **state)
{
    static const struct {
        size_t scopes, spans, max, pieces;
    } rows[] = {
        {1, 10, 3, 4}, {1, 9, 3, 3},  {1, 1, 1, 1}, {3, 4, 5, 3}, {4, 5, 5, 4},
        {1, 10, 0, 1}, {2, 5, 10, 1}, {2, 5, 9, 2}, {5, 1, 2, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct oracle_items items = {0};
        struct batch *batch = make_traces(rows[i].scopes, rows[i].spans, 100);
        size_t pieces =
            split_all(batch, (struct otlp_limit){.items_max = rows[i].max}, NULL, &items);
        assert_int_equal(pieces, rows[i].pieces);
        assert_int_equal(items.count, rows[i].scopes * rows[i].spans);
        oracle_clear(&items);
    }
}

static void an_item_above_the_byte_limit_goes_alone(void **state)
{
    struct oracle_items items = {0};
    (void)state;
    size_t pieces =
        split_all(make_traces(1, 5, 1000), (struct otlp_limit){.bytes_max = 200}, NULL, &items);
    assert_int_equal(pieces, 5);
    oracle_clear(&items);
}

static void long_runs_of_spans_are_borrowed(void **state)
{
    struct budget budget;
    struct batch *head;
    struct batch *tail;
    (void)state;
    budget_init(&budget, 1 << 20);
    struct batch *batch = make_traces(1, 1000, 672);
    otlp_split(batch, (struct otlp_limit){.items_max = 500}, &budget, &head, &tail);
    assert_true(budget_used(&budget) < 4096);
    assert_true(head->parts_count <= 3);
    assert_true(tail->parts_count <= 3);
    assert_ptr_equal(head->parts[head->parts_count - 1].owner, batch->parts[0].owner);
    batch_unref(batch);
    batch_unref(head);
    batch_unref(tail);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void a_batch_within_the_limit_is_handed_back_as_it_is(void **state)
{
    struct batch *head;
    struct batch *tail;
    (void)state;
    struct batch *batch = make_traces(2, 2, 10);
    otlp_split(batch, (struct otlp_limit){.items_max = 4}, NULL, &head, &tail);
    assert_ptr_equal(head, batch);
    assert_null(tail);
    batch_unref(head);
    batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_arrives_once_with_all_that_encloses_it),
        cmocka_unit_test(pieces_are_as_large_as_the_limit_allows),
        cmocka_unit_test(an_item_above_the_byte_limit_goes_alone),
        cmocka_unit_test(long_runs_of_spans_are_borrowed),
        cmocka_unit_test(a_batch_within_the_limit_is_handed_back_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
