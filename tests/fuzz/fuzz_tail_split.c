/* SPDX-License-Identifier: Apache-2.0 */
/* Taking any request of traces that passes the walker apart by trace: byte 0 says whether by lane
 * instead, and whether without OTTL, 1 which groups are not stored. The messages are well-formed,
 * hold all spans, and each has one trace, with all fields of its Resource and scopes; reading them
 * again sets the same bits.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "processors/tail_sampling/tail_span.h"
#include "processors/tail_sampling/tail_split.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/random_otlp.h"
#include "tests/support/tail_fixture.h"

enum { HEADER_BYTES = 2, LANES = 3 };
enum { BY_LANE = 1, WITHOUT_OTTL = 2 }; /* of byte 0 */
enum { CHILDREN = 2 /* of Resource… messages and scopes */, ROOM_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct taken {
    struct tail_policies *policies;
    struct tail_slabs *slabs;
    struct buffer *request;
    uint64_t items;
    uint64_t bytes;
    unsigned left_out; /* one of so many groups; 0: none */
    unsigned groups;
    bool is_again; /* messages are read again */
    uint8_t id[TAIL_TRACE_ID_BYTES];
    uint64_t bits[TAIL_WORDS_MAX];
};

static void begin(struct tail_group *group, uint64_t *bits, void *arg)
{
    (void)group;
    (void)bits;
    (void)arg;
}

static void append(const struct tail_slabs *slabs, const struct tail_fragment *fragment, void *arg)
{
    struct batch *batch = arg;
    tail_fragment_append(slabs, fragment, batch);
    batch->items += fragment->items;
}

/* The one group of a message that is read again. */
static void take_again(struct tail_split *split, struct tail_group *group, uint64_t *bits,
                       void *arg)
{
    struct taken *taken = arg;
    assert(memcmp(group->id, taken->id, sizeof(taken->id)) == 0);
    for (size_t i = 0; i < taken->policies->words; i++)
        assert(bits[i] == taken->bits[i]);
    taken->bytes = tail_group_bytes(split, group);
    taken->items += group->spans;
}

/* Whether a message that the spans are moved into is the same. */
static bool moved_are(struct tail_slabs *slabs, struct tail_spans *spans, struct slice bytes,
                      uint64_t items)
{
    tail_message_begin(slabs, batch_create(TRACES, 1));
    tail_message_take(slabs, spans);
    assert(tail_spans_are_none(spans));
    struct batch *batch = tail_message_end(slabs);
    struct slice moved = joined_parts(batch);
    bool is_same = batch->items == items && slice_equal(moved, bytes);
    mem_free((void *)(uintptr_t)moved.data);
    batch_unref(batch);
    return is_same;
}

/* Whether a batch that the group is appended to is the same. */
static bool appended_are(struct tail_split *split, const struct tail_group *group,
                         struct buffer *request, struct slice bytes)
{
    struct batch *batch = batch_create(TRACES, 1);
    tail_group_append(split, group, request, batch);
    struct slice appended = joined_parts(batch);
    bool is_same = slice_equal(appended, bytes);
    mem_free((void *)(uintptr_t)appended.data);
    batch_unref(batch);
    return is_same;
}

/* --- what a group's message should be --- */

static uint8_t *put(uint8_t *at, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

/* Encloses what is between begin and end, behind which there is room. */
static uint8_t *enclose(uint8_t *begin, uint8_t *end, uint32_t number)
{
    uint8_t room[2 * WIRE_SHORT_VARINT_BYTES_MAX];
    struct wire_writer writer = wire_writer_of(room, sizeof(room));
    wire_write_header(&writer, number, (size_t)(end - begin));
    const struct slice header = wire_written(&writer);
    memmove(begin + header.size, begin, (size_t)(end - begin));
    memcpy(begin, header.data, header.size);
    return end + header.size;
}

static bool is_of_group(const struct tail_split *split, const struct tail_group *group,
                        struct slice span)
{
    struct tail_span read;
    uint64_t bits[TAIL_WORDS_MAX] = {0};
    if (split->lanes > 1) {
        tail_span_read_id(span, read.trace_id);
        return tail_split_owner(read.trace_id, split->lanes) == group->id[0];
    }
    tail_span_read(split->policies, span, &read, bits);
    return memcmp(read.trace_id, group->id, sizeof(group->id)) == 0;
}

/* A scope's message with the spans of the group, if it has any: other fields come first. */
static uint8_t *put_scope(const struct tail_split *split, const struct tail_group *group,
                          struct slice content, uint8_t *begin)
{
    uint8_t *at = begin;
    bool has_spans = false;
    for (unsigned pass = 0; pass < 2; pass++) {
        struct wire_reader reader = wire_reader_of(content);
        struct wire_field field;
        while (wire_read_field(&reader, &field)) {
            if ((field.number == CHILDREN) != (pass == 1) ||
                (pass == 1 && !is_of_group(split, group, field.bytes)))
                continue;
            has_spans |= pass == 1;
            at = put(at, field.whole);
        }
    }
    return has_spans ? enclose(begin, at, CHILDREN) : begin;
}

static bool is_as_expected(const struct tail_split *split, const struct tail_group *group,
                           struct slice found)
{
    const struct slice whole = split->walk.whole;
    if (split->is_whole)
        return slice_equal(found, whole);
    struct wire_reader reader = wire_reader_of(whole);
    struct wire_field resource;
    struct wire_field field;
    bool is_read = wire_read_field(&reader, &resource);
    assert(is_read);
    uint8_t *const begin = mem_alloc(3 * whole.size + ROOM_BYTES);
    uint8_t *at = begin;
    for (unsigned pass = 0; pass < 2; pass++) {
        reader = wire_reader_of(resource.bytes);
        while (wire_read_field(&reader, &field)) {
            if (field.number != CHILDREN && pass == 0)
                at = put(at, field.whole);
            else if (field.number == CHILDREN && pass == 1)
                at = put_scope(split, group, field.bytes, at);
        }
    }
    at = enclose(begin, at, 1);
    bool is_equal = slice_equal(found, slice_of(begin, (size_t)(at - begin)));
    mem_free(begin);
    return is_equal;
}

static void take(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct taken *taken = arg;
    taken->items += group->spans;
    taken->groups++;
    if (taken->left_out > 0 && taken->groups % taken->left_out == 0)
        return;
    struct tail_spans spans = {.last = {.slab = 0}};
    tail_group_store(split, group, &spans, NULL);
    struct batch *batch = batch_create(TRACES, 1);
    tail_spans_each(taken->slabs, &spans, append, batch);
    struct slice bytes = joined_parts(batch);
    assert(is_as_expected(split, group, bytes));
    assert(appended_are(split, group, taken->request, bytes));
    assert(moved_are(taken->slabs, &spans, bytes, batch->items));
    struct otlp_figures figures;
    const char *reason;
    bool is_fine = otlp_check(TRACES, bytes, &figures, &reason);
    assert(is_fine);
    assert(figures.items == group->spans && batch->items == group->spans);
    assert(oracle_decodes(TRACES, bytes));
    if (split->lanes == 1) {
        struct taken again = {.policies = taken->policies, .is_again = true};
        memcpy(again.id, group->id, sizeof(again.id));
        memcpy(again.bits, bits, taken->policies->words * sizeof(bits[0]));
        const struct tail_taker taker = {.begin = begin, .take = take_again, .arg = &again};
        struct tail_slabs slabs;
        struct tail_split second;
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        tail_slabs_init(&slabs, &budget, false);
        tail_split_init(&second, taken->policies, &slabs, 1, &budget);
        tail_split_begin(&second, bytes);
        while (!tail_split_step(&second, &taker))
            ;
        assert(again.items == group->spans);
        assert(again.bytes == tail_group_bytes(split, group));
        tail_split_fini(&second);
        tail_slabs_fini(&slabs);
        assert(budget_used(&budget) == 0);
        budget_fini(&budget);
    }
    mem_free((void *)(uintptr_t)bytes.data);
    batch_unref(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    struct error error;
    if (size < HEADER_BYTES)
        return 0;
    struct slice body = slice_of(data + HEADER_BYTES, size - HEADER_BYTES);
    if (!otlp_check(TRACES, body, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct budget budget;
    struct tail_slabs slabs;
    struct tail_split split;
    budget_init(&budget, UINT64_MAX);
    struct buffer *request = buffer_create(&budget, body.size);
    request->size = body.size;
    if (body.size > 0)
        memcpy(request->data, body.data, body.size);
    struct tail_sampling_config config = *tail_fixture_config();
    config.policies.count -= (data[0] & WITHOUT_OTTL) != 0; /* the last one */
    struct tail_policies *policies = tail_policies_create(&config, NULL, &error);
    struct taken taken = {
        .policies = policies, .slabs = &slabs, .request = request, .left_out = data[1]};
    const struct tail_taker taker = {.begin = begin, .take = take, .arg = &taken};
    tail_slabs_init(&slabs, &budget, false);
    tail_split_init(&split, policies, &slabs, (data[0] & BY_LANE) != 0 ? LANES : 1, &budget);
    tail_split_begin(&split, buffer_slice(request));
    while (!tail_split_step(&split, &taker))
        ;
    assert(taken.items == figures.items);
    tail_split_fini(&split);
    tail_slabs_fini(&slabs);
    tail_policies_destroy(policies);
    buffer_unref(request);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
