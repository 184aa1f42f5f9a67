/* SPDX-License-Identifier: Apache-2.0 */
/* The batcher against a model: every cut names exactly the receipts whose items it holds, and every
 * receipt resolves once, after its last cut, with the worst of their outcomes. */
#include "src/pipeline/batcher.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"
#include "tests/support/telemetry_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { REQUESTS = 40, PIECES_MAX = 4000, ROUNDS = 300, ITEMS_MAX = 30 };

struct request {
    struct receipt receipt;
    uint64_t first;
    uint64_t items;
    uint64_t seen;       /* items that cuts have carried so far */
    uint64_t rejected;   /* items that it was told of */
    unsigned unresolved; /* cuts */
    bool has_failed;
    bool is_resolved;
};

static struct request requests[REQUESTS];
static struct export_batch all_cuts[PIECES_MAX];
static size_t pieces_count;
static uint64_t rejected_count; /* items of all pieces */
static struct budget budget;

static void on_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct request *request = arg;
    assert_ptr_equal(receipt, &request->receipt);
    assert_false(request->is_resolved);
    assert_int_equal(request->unresolved, 0);
    assert_int_equal(request->seen, request->items);
    assert_int_equal(outcome->verdict, request->has_failed ? LOST : ACCEPTED);
    request->rejected = outcome->rejected_items;
    request->is_resolved = true;
}

static struct request *request_of(const struct receipt *receipt)
{
    return (struct request *)(uintptr_t)receipt;
}

static void see(uint64_t number, void *arg)
{
    const struct export_batch *cut = arg;
    for (size_t i = 0; i < cut->shares_count; i++) {
        struct request *request = request_of(export_batch_shares(cut)[i].receipt);
        if (number < request->first || number >= request->first + request->items)
            continue;
        assert_int_equal(number, request->first + request->seen); /* in order, none twice */
        request->seen++;
        return;
    }
    fail_msg("item %u of the cut belongs to none of its receipts", (unsigned)number);
}

static void cut(struct batcher *batcher, struct otlp_limit limit)
{
    struct export_batch cut = batcher_cut(batcher, limit);
    assert_true(limit.items_max == 0 || cut.batch->items <= limit.items_max);
    assert_true(limit.bytes_max == 0 || cut.batch->bytes <= limit.bytes_max ||
                cut.batch->items <= 1);
    for (size_t i = 0; i < cut.shares_count; i++) {
        assert_true(i == 0 || export_batch_shares(&cut)[i].receipt !=
                                  export_batch_shares(&cut)[i - 1].receipt);
        request_of(export_batch_shares(&cut)[i].receipt)->unresolved++;
    }
    numbered_read(cut.batch, see, &cut);
    assert_true(pieces_count < PIECES_MAX);
    all_cuts[pieces_count++] = cut;
}

static void resolve(size_t index)
{
    struct outcome outcome = outcome_accepted;
    if (random() % 4 == 0)
        outcome = (struct outcome){.verdict = LOST, .is_permanent = true, .message = "no"};
    else
        outcome.rejected_items = (uint64_t)random() % (all_cuts[index].batch->items + 1);
    rejected_count += outcome.rejected_items;
    for (size_t i = 0; i < all_cuts[index].shares_count; i++) {
        struct request *request = request_of(export_batch_shares(&all_cuts[index])[i].receipt);
        request->unresolved--;
        request->has_failed |= outcome.verdict == LOST;
    }
    export_batch_resolve(&all_cuts[index], &outcome);
    all_cuts[index] = all_cuts[--pieces_count];
}

static void add(struct batcher *batcher, struct request *request, uint64_t first)
{
    *request = (struct request){.first = first, .items = (uint64_t)(random() % ITEMS_MAX)};
    struct batch *batch = numbered_request(&budget, batcher->signal, first, request->items);
    receipt_init(&request->receipt, on_resolved, request);
    batcher_add(batcher, batch, &request->receipt);
    batch_unref(batch);
}

static void run_round(unsigned seed)
{
    struct batcher batcher;
    uint64_t next = 0;
    uint64_t told = 0;
    srandom(seed);
    rejected_count = 0;
    batcher_init(&batcher, seed % 2 == 0 ? TRACES : LOGS, &budget, NULL);
    const struct otlp_limit limit = {
        .items_max = seed % 3 == 0 ? (uint64_t)(random() % 40) : 0,
        .bytes_max = seed % 3 == 1 ? 30 + (uint64_t)(random() % 400) : 0,
    };
    for (size_t i = 0; i < REQUESTS; i++) {
        add(&batcher, &requests[i], next);
        next += requests[i].items;
        for (long n = random() % 4; n > 0 && batcher.pending != NULL; n--)
            cut(&batcher, limit);
        while (pieces_count > 0 && random() % 3 == 0)
            resolve((size_t)random() % pieces_count);
    }
    while (batcher.pending != NULL)
        cut(&batcher, limit);
    assert_int_equal(batcher_items(&batcher), 0);
    assert_int_equal(batcher_bytes(&batcher), 0);
    while (pieces_count > 0)
        resolve((size_t)random() % pieces_count);
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_true(requests[i].is_resolved);
        assert_true(requests[i].rejected <= requests[i].items);
        told += requests[i].rejected;
    }
    assert_int_equal(told, rejected_count);
    batcher_fini(&batcher);
    assert_int_equal(budget_used(&budget), 0);
}

static void receipts_follow_their_items_whatever_the_cuts(void **state)
{
    (void)state;
    budget_init(&budget, UINT64_MAX);
    for (unsigned seed = 0; seed < ROUNDS; seed++)
        run_round(seed);
    budget_fini(&budget);
}

static void requests_without_receipts_are_batched_too(void **state)
{
    (void)state;
    struct batcher batcher;
    budget_init(&budget, UINT64_MAX);
    batcher_init(&batcher, TRACES, &budget, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        struct batch *batch = numbered_request(&budget, TRACES, 2 * i, 2);
        batcher_add(&batcher, batch, NULL);
        batch_unref(batch);
    }
    assert_int_equal(batcher_items(&batcher), 6);
    struct export_batch cut = batcher_cut(&batcher, (struct otlp_limit){.items_max = 4});
    assert_true(cut.batch->is_acknowledged);
    assert_int_equal(cut.batch->items, 4);
    assert_int_equal(cut.shares_count, 0);
    export_batch_resolve(&cut, &outcome_accepted);
    cut = batcher_cut(&batcher, (struct otlp_limit){0});
    assert_int_equal(cut.batch->items, 2);
    assert_true(cut.batch->is_acknowledged);
    export_batch_resolve(&cut, &outcome_accepted);
    batcher_fini(&batcher);
    budget_fini(&budget);
}

static void one_acknowledged_request_makes_the_piece_so(void **state)
{
    (void)state;
    struct batcher batcher;
    struct request waiting = {.items = 1};
    budget_init(&budget, UINT64_MAX);
    batcher_init(&batcher, TRACES, &budget, NULL);
    receipt_init(&waiting.receipt, on_resolved, &waiting);
    for (uint64_t i = 0; i < 2; i++) {
        struct batch *batch = numbered_request(&budget, TRACES, i, 1);
        batcher_add(&batcher, batch, i == 0 ? &waiting.receipt : NULL);
        assert_true(batcher.pending->is_acknowledged == (i == 1));
        batch_unref(batch);
    }
    struct export_batch cut = batcher_cut(&batcher, (struct otlp_limit){0});
    waiting.seen = 1;
    export_batch_resolve(&cut, &outcome_accepted);
    assert_true(waiting.is_resolved);
    batcher_fini(&batcher);
    budget_fini(&budget);
}

/* One profile of so many samples, without a dictionary. */
static struct batch *profile_request(uint8_t samples)
{
    static const uint8_t sample[] = {0x12, 0x03, 0x22, 0x01, 0x05};
    uint8_t size = (uint8_t)(samples * sizeof(sample));
    const uint8_t heads[] = {0x0a, (uint8_t)(size + 4), 0x12, (uint8_t)(size + 2), 0x12, size};
    struct buffer *buffer = buffer_create(&budget, sizeof(heads) + size);
    memcpy(buffer->data, heads, sizeof(heads));
    for (size_t i = 0; i < samples; i++)
        memcpy(buffer->data + sizeof(heads) + i * sizeof(sample), sample, sizeof(sample));
    buffer->size = sizeof(heads) + size;
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = samples;
    buffer_unref(buffer);
    return batch;
}

static void profiles_are_merged_and_cut_for_their_receipts(void **state)
{
    /* Profiles stay whole where they can: 2 and 3 fit together, 12 is above the limit. */
    static const uint8_t samples[] = {2, 3, 12, 1};
    static const uint64_t sizes[] = {5, 5, 5, 3};
    static const size_t waiting[] = {2, 1, 1, 2};
    struct request senders[4] = {{.items = 2}, {.items = 3}, {.items = 12}, {.items = 1}};
    struct batcher batcher;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    batcher_init(&batcher, PROFILES, &budget, NULL);
    for (size_t i = 0; i < 4; i++) {
        struct batch *batch = profile_request(samples[i]);
        receipt_init(&senders[i].receipt, on_resolved, &senders[i]);
        senders[i].seen = senders[i].items;
        batcher_add(&batcher, batch, &senders[i].receipt);
        batch_unref(batch);
    }
    assert_int_equal(batcher_items(&batcher), 18);
    for (size_t i = 0; i < 4; i++) {
        struct export_batch cut = batcher_cut(&batcher, (struct otlp_limit){.items_max = 5});
        assert_int_equal(cut.batch->items, sizes[i]);
        assert_int_equal(cut.shares_count, waiting[i]);
        export_batch_resolve(&cut, &outcome_accepted);
        assert_int_equal(senders[2].is_resolved, i == 3);
    }
    assert_null(batcher.pending);
    batcher_fini(&batcher);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

/* So many profiles that have no samples, but a payload. */
static struct batch *empty_profiles(size_t count)
{
    enum { PAYLOAD = 100 };
    static const uint8_t head[] = {0x0a, PAYLOAD + 6, 0x12, PAYLOAD + 4,
                                   0x12, PAYLOAD + 2, 0x52, PAYLOAD};
    struct buffer *buffer = buffer_create(&budget, count * (sizeof(head) + PAYLOAD));
    for (size_t i = 0; i < count; i++) {
        memcpy(buffer->data + buffer->size, head, sizeof(head));
        memset(buffer->data + buffer->size + sizeof(head), 'p', PAYLOAD);
        buffer->size += sizeof(head) + PAYLOAD;
    }
    struct batch *batch = batch_create(PROFILES, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
    return batch;
}

static void a_request_without_items_waits_for_all_of_its_pieces(void **state)
{
    struct request senders[2] = {{.items = 0}, {.items = 0}};
    struct batcher batcher;
    (void)state;
    budget_init(&budget, UINT64_MAX);
    batcher_init(&batcher, PROFILES, &budget, NULL);
    for (size_t i = 0; i < 2; i++) {
        struct batch *batch = empty_profiles(3);
        receipt_init(&senders[i].receipt, on_resolved, &senders[i]);
        batcher_add(&batcher, batch, &senders[i].receipt);
        batch_unref(batch);
    }
    size_t count = 0;
    for (; batcher.pending != NULL; count++) {
        assert_false(senders[1].is_resolved);
        struct export_batch cut = batcher_cut(&batcher, (struct otlp_limit){.bytes_max = 150});
        export_batch_resolve(&cut, &outcome_accepted);
    }
    assert_int_equal(count, 6);
    assert_true(senders[0].is_resolved);
    assert_true(senders[1].is_resolved);
    batcher_fini(&batcher);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receipts_follow_their_items_whatever_the_cuts),
        cmocka_unit_test(requests_without_receipts_are_batched_too),
        cmocka_unit_test(one_acknowledged_request_makes_the_piece_so),
        cmocka_unit_test(profiles_are_merged_and_cut_for_their_receipts),
        cmocka_unit_test(a_request_without_items_waits_for_all_of_its_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
