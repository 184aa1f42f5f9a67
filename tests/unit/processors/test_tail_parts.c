/* SPDX-License-Identifier: Apache-2.0 */
/* Random requests: the messages of their groups have each span once, under the same Resource and
 * scope as before, whether they are made for other lanes or are kept and leave in messages. */
#include "processors/tail_sampling/tail_split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "processors/tail_sampling/tail_policies.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "tests/support/tail_fixture.h"

enum { LANES = 3, RESOURCES = 1, CHILDREN = 2, OTHER_MAX = 700 };

static uint64_t seed;

static unsigned below(unsigned limit)
{
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)((seed >> 33) % limit);
}

/* Built from the end, so that the size of a message is known before its header. */
struct bytes {
    uint8_t *begin; /* of what there is */
    uint8_t *room;
};

static void put_raw(struct bytes *bytes, const void *data, size_t size)
{
    assert_true((size_t)(bytes->begin - bytes->room) >= size);
    bytes->begin -= size;
    memcpy(bytes->begin, data, size);
}

/* What was put since there were that many bytes becomes a field. */
static void wrap(struct bytes *bytes, const uint8_t *end, uint32_t number)
{
    uint8_t header[16];
    struct wire_writer writer = wire_writer_of(header, sizeof(header));
    wire_write_header(&writer, number, (size_t)(end - bytes->begin));
    put_raw(bytes, header, wire_written(&writer).size);
}

static void put_other(struct bytes *bytes, uint32_t number)
{
    uint8_t text[OTHER_MAX];
    const unsigned size = below(2) ? below(8) : below(OTHER_MAX);
    memset(text, 'a' + (int)below(26), size);
    const uint8_t *end = bytes->begin;
    put_raw(bytes, text, size);
    wrap(bytes, end, number);
}

static void put_span(struct bytes *bytes, unsigned traces)
{
    uint8_t id[TAIL_TRACE_ID_BYTES] = {0};
    const uint64_t number = below(traces) + 1;
    const uint8_t *end = bytes->begin;
    const uint64_t once = seed;
    memcpy(id + 8, &number, sizeof(number));
    put_raw(bytes, &once, sizeof(once));
    wrap(bytes, bytes->begin + sizeof(once), 2);
    const uint8_t *id_end = bytes->begin;
    put_raw(bytes, id, sizeof(id));
    wrap(bytes, id_end, 1);
    wrap(bytes, end, CHILDREN);
}

static bool has_others_at(unsigned how_often)
{
    return how_often > 0 && below(how_often) == 0;
}

static void put_scope(struct bytes *bytes, unsigned spans, unsigned traces)
{
    const unsigned often = below(3) == 0 ? 1 + below(4 * (spans + 1)) : 0;
    const uint8_t *end = bytes->begin;
    if (below(2) == 0)
        put_other(bytes, 3);
    for (unsigned i = 0; i < spans; i++) {
        put_span(bytes, traces);
        if (has_others_at(often))
            put_other(bytes, 3);
    }
    if (below(2) == 0)
        put_other(bytes, 4);
    wrap(bytes, end, CHILDREN);
}

static void put_resource(struct bytes *bytes, unsigned spans_max, unsigned traces)
{
    const unsigned scopes = below(4);
    const uint8_t *end = bytes->begin;
    if (below(2) == 0)
        put_other(bytes, 3);
    for (unsigned i = 0; i < scopes; i++) {
        put_scope(bytes, below(4) == 0 ? 0 : below(spans_max + 1), traces);
        if (below(3) == 0)
            put_other(bytes, 3);
    }
    if (below(2) == 0)
        put_other(bytes, 4);
    wrap(bytes, end, RESOURCES);
}

/* All spans, each with what is around it, in any order. */
struct summary {
    uint64_t spans;
    uint64_t sum;
};

static uint64_t hash_of_others(struct slice content, uint64_t before)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    XXH3_state_t *state = XXH3_createState();
    assert_non_null(state);
    XXH3_64bits_reset_withSeed(state, before);
    while (wire_next_field(&reader, &field))
        if (field.number != CHILDREN)
            XXH3_64bits_update(state, field.whole.data, field.whole.size);
    assert_null(reader.failure);
    const uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

static void sum_up(struct summary *summary, struct slice request)
{
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    while (wire_next_field(&resources, &resource)) {
        const uint64_t outer = hash_of_others(resource.bytes, 0);
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        struct wire_field scope;
        while (wire_next_field(&scopes, &scope)) {
            if (scope.number != CHILDREN)
                continue;
            const uint64_t hash = hash_of_others(scope.bytes, outer);
            struct wire_reader spans = wire_reader_of(scope.bytes);
            struct wire_field span;
            while (wire_next_field(&spans, &span)) {
                if (span.number != CHILDREN)
                    continue;
                summary->spans++;
                summary->sum += XXH3_64bits_withSeed(span.whole.data, span.whole.size, hash);
            }
        }
    }
    assert_null(resources.failure);
}

struct taken {
    struct summary summary;
    struct tail_slabs *slabs;
    struct buffer *request;
    struct tail_spans spans; /* of all groups */
    uint64_t items;
};

static void begin(struct tail_group *group, uint64_t *bits, void *arg)
{
    (void)group;
    (void)bits;
    (void)arg;
}

static void take_batch(struct taken *taken, struct batch *batch)
{
    struct batch_part whole;
    assert_true(batch_join(batch, NULL, &whole));
    sum_up(&taken->summary, whole.bytes);
    buffer_unref(whole.owner);
    batch_unref(batch);
}

static void send(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct taken *taken = arg;
    struct batch *batch = batch_create(TRACES, 1);
    (void)bits;
    assert_in_range(group->id[0], 0, LANES - 1);
    tail_group_append(split, group, taken->request, batch);
    taken->items += group->spans;
    take_batch(taken, batch);
}

static void keep(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct taken *taken = arg;
    (void)bits;
    tail_group_store(split, group, &taken->spans, NULL);
}

/* In messages, some of which are cut off before. */
static void release(struct taken *taken)
{
    while (!tail_spans_are_none(&taken->spans)) {
        const bool is_cut = below(2) == 0;
        struct tail_spans some = taken->spans;
        if (is_cut)
            some = tail_spans_cut(taken->slabs, &taken->spans);
        do {
            tail_message_begin(taken->slabs, batch_create(TRACES, 1));
            tail_message_take(taken->slabs, is_cut ? &some : &taken->spans);
            struct batch *batch = tail_message_end(taken->slabs);
            taken->items += batch->items;
            take_batch(taken, batch);
        } while (is_cut && !tail_spans_are_none(&some));
    }
}

static void check(const struct tail_policies *policies, unsigned lanes, unsigned spans_max)
{
    struct taken taken = {.items = 0};
    const struct tail_taker taker = {
        .begin = begin, .take = lanes > 1 ? send : keep, .arg = &taken};
    struct summary summary = {0};
    struct tail_slabs slabs;
    struct tail_split split;
    struct budget budget;
    const size_t room = spans_max > 1000 ? 32 << 20 : 1 << 20;
    struct bytes bytes = {.room = mem_alloc(room)};
    bytes.begin = bytes.room + room;
    const unsigned resources = 1 + below(4);
    const unsigned traces = 1 + below(below(2) == 0 ? 4 : 2 * spans_max + 1);
    for (unsigned i = 0; i < resources; i++)
        put_resource(&bytes, spans_max, traces);
    budget_init(&budget, UINT64_MAX);
    taken.request = buffer_create(&budget, (size_t)(bytes.room + room - bytes.begin));
    taken.request->size = taken.request->capacity;
    memcpy(taken.request->data, bytes.begin, taken.request->size);
    mem_free(bytes.room);
    sum_up(&summary, buffer_slice(taken.request));
    tail_slabs_init(&slabs, &budget, false);
    taken.slabs = &slabs;
    tail_split_init(&split, policies, &slabs, lanes, &budget);
    tail_split_begin(&split, buffer_slice(taken.request));
    while (!tail_split_step(&split, &taker))
        if (below(2) == 0)
            release(&taken);
    release(&taken);
    assert_int_equal(taken.items, summary.spans);
    assert_int_equal(taken.summary.spans, summary.spans);
    assert_int_equal(taken.summary.sum, summary.sum);
    tail_split_fini(&split);
    tail_slabs_fini(&slabs);
    buffer_unref(taken.request);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void each_span_keeps_what_is_around_it(void **state)
{
    enum { SMALL_REQUESTS = 300, LARGE_REQUESTS = 4, LARGE_SPANS = 40000, SMALL_SPANS = 12 };
    struct tail_policy_config policy = {.shared = tail_fixture_shared("1", "always_sample")};
    const struct tail_sampling_config config = {.policies = {.count = 1, .items = &policy}};
    struct error error;
    (void)state;
    struct tail_policies *policies = tail_policies_create(&config, NULL, &error);
    assert_non_null(policies);
    for (unsigned i = 0; i < SMALL_REQUESTS + LARGE_REQUESTS; i++)
        for (unsigned lanes = 1; lanes <= LANES; lanes += LANES - 1) {
            seed = i + 1;
            check(policies, lanes, i < SMALL_REQUESTS ? SMALL_SPANS : LARGE_SPANS);
        }
    tail_policies_destroy(policies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_span_keeps_what_is_around_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
