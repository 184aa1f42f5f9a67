/* SPDX-License-Identifier: Apache-2.0 */
/* What conditions of a request may read of records around theirs, in one step and in all; and of
 * large spans. */
#include "processors/tail_sampling/tail_split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "processors/tail_sampling/tail_policies.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/ottl/ottl_limits.h"
#include "tests/support/tail_fixture.h"

enum { MIB = 1 << 20, LONG_BYTES = MIB, REQUEST_BYTES_MAX = 2 * MIB, POLICIES_MAX = 4 };

struct taken {
    unsigned groups;
    uint64_t bits; /* of all groups, their first word */
    unsigned steps;
    uint64_t most_bytes; /* of memory */
};

static void begin(struct tail_group *group, uint64_t *bits, void *arg)
{
    (void)group;
    (void)bits;
    (void)arg;
}

static void take(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct taken *taken = arg;
    (void)split;
    taken->groups += group->spans;
    taken->bits |= bits[0];
}

/* A Resource with one long attribute, and spans of one trace, the last of which has another name.
 */
static struct slice long_resource(uint8_t *room, unsigned spans)
{
    static uint8_t text[LONG_BYTES];
    static const uint8_t id[TAIL_TRACE_ID_BYTES] = "0123456789abcdef";
    struct wire_writer writer = wire_writer_of(room, REQUEST_BYTES_MAX);
    memset(text, 'v', sizeof(text));
    const size_t value = wire_field_size(1, sizeof(text));
    const size_t attribute = wire_field_size(1, 1) + wire_field_size(2, value);
    const size_t resource = wire_field_size(1, attribute);
    const size_t span = wire_field_size(1, sizeof(id)) + wire_field_size(5, 1);
    const size_t scope = spans * wire_field_size(2, span);
    wire_write_header(&writer, 1, wire_field_size(1, resource) + wire_field_size(2, scope));
    wire_write_header(&writer, 1, resource);
    wire_write_header(&writer, 1, attribute);
    wire_write_bytes(&writer, 1, slice_of_text("k"));
    wire_write_header(&writer, 2, value);
    wire_write_bytes(&writer, 1, slice_of(text, sizeof(text)));
    wire_write_header(&writer, 2, scope);
    for (unsigned i = 0; i < spans; i++) {
        wire_write_header(&writer, 2, span);
        wire_write_bytes(&writer, 1, slice_of(id, sizeof(id)));
        wire_write_bytes(&writer, 5, slice_of_text(i + 1 < spans ? "a" : "z"));
    }
    return wire_written(&writer);
}

/* Spans of one trace with a long name. */
static struct slice long_spans(uint8_t *room, unsigned spans)
{
    static uint8_t text[LONG_BYTES];
    static const uint8_t id[TAIL_TRACE_ID_BYTES] = "0123456789abcdef";
    struct wire_writer writer = wire_writer_of(room, REQUEST_BYTES_MAX);
    memset(text, 'v', sizeof(text));
    const size_t size = LONG_BYTES / spans;
    const size_t span = wire_field_size(1, sizeof(id)) + wire_field_size(5, size);
    const size_t scope = spans * wire_field_size(2, span);
    wire_write_header(&writer, 1, wire_field_size(2, scope));
    wire_write_header(&writer, 2, scope);
    for (unsigned i = 0; i < spans; i++) {
        wire_write_header(&writer, 2, span);
        wire_write_bytes(&writer, 1, slice_of(id, sizeof(id)));
        wire_write_bytes(&writer, 5, slice_of(text, size));
    }
    return wire_written(&writer);
}

enum { EMPTY_BYTES = 2, EMPTY_MESSAGES = 700000 };

static void put_empty(struct wire_writer *writer, uint32_t number)
{
    for (unsigned i = 0; i < EMPTY_MESSAGES; i++)
        wire_write_bytes(writer, number, slice_of(NULL, 0));
}

static void put_scope_of_one_span(struct wire_writer *writer)
{
    const uint8_t scope[] = {2 << 3 | 2, 2, 2 << 3 | 2, 0};
    wire_write_raw(writer, slice_of(scope, sizeof(scope)));
}

static struct slice empty_scopes(uint8_t *room, unsigned spans)
{
    struct wire_writer writer = wire_writer_of(room, REQUEST_BYTES_MAX);
    assert_int_equal(spans, 2);
    wire_write_header(&writer, 1, 2 * 4 + EMPTY_MESSAGES * EMPTY_BYTES);
    put_scope_of_one_span(&writer);
    put_empty(&writer, 2);
    put_scope_of_one_span(&writer);
    return wire_written(&writer);
}

static struct slice empty_resources(uint8_t *room, unsigned spans)
{
    struct wire_writer writer = wire_writer_of(room, REQUEST_BYTES_MAX);
    assert_int_equal(spans, 1);
    put_empty(&writer, 1);
    wire_write_header(&writer, 1, 4);
    put_scope_of_one_span(&writer);
    return wire_written(&writer);
}

static struct taken run_policies(struct tail_policy_config *configs, unsigned policies_count,
                                 struct slice (*make)(uint8_t *room, unsigned spans),
                                 unsigned spans)
{
    struct tail_sampling_config config = {.policies = {.count = policies_count, .items = configs}};
    struct taken taken = {0};
    const struct tail_taker taker = {.begin = begin, .take = take, .arg = &taken};
    struct error error;
    struct tail_slabs slabs;
    struct tail_split split;
    struct budget budget;
    uint8_t *room = mem_alloc(REQUEST_BYTES_MAX);
    struct tail_policies *policies = tail_policies_create(&config, NULL, &error);
    assert_non_null(policies);
    budget_init(&budget, UINT64_MAX);
    tail_slabs_init(&slabs, &budget, false);
    tail_split_init(&split, policies, &slabs, 1, &budget);
    tail_split_begin(&split, make(room, spans));
    do
        taken.steps++;
    while (!tail_split_step(&split, &taker));
    assert_int_equal(taken.groups, spans);
    tail_split_fini(&split);
    tail_slabs_fini(&slabs);
    tail_policies_destroy(policies);
    assert_int_equal(budget_used(&budget), 0);
    taken.most_bytes = atomic_load(&budget.high_water);
    budget_fini(&budget);
    mem_free(room);
    return taken;
}

static struct taken run(const char *condition, unsigned policies_count, unsigned spans)
{
    static struct tail_policy_config configs[POLICIES_MAX];
    static const char *const names[POLICIES_MAX] = {"1", "2", "3", "4"};
    for (unsigned i = 0; i < policies_count; i++) {
        configs[i].shared = tail_fixture_shared(names[i], "ottl_condition");
        configs[i].shared.ottl.span = (struct config_texts){1, &condition};
    }
    return run_policies(configs, policies_count, long_resource, spans);
}

#define READS_ALL "Len(Concat([resource.attributes[\"k\"], name], \"\")) > 5 and name == \"z\""

/* A lane is held for each step. */
static void a_step_ends_when_conditions_have_read_much(void **state)
{
    enum { SPANS = 16, STEP_SPANS = TAIL_STEP_OUTER_BYTES_MAX / LONG_BYTES };
    (void)state;
    for (unsigned policies = 1; policies <= 2; policies++) {
        const struct taken taken = run(READS_ALL, policies, SPANS);
        assert_true(taken.bits != 0);
        assert_true(taken.steps >= policies * SPANS / STEP_SPANS);
        assert_true(taken.steps <= policies * SPANS / STEP_SPANS + 2);
    }
    assert_int_equal(run("name == \"z\"", POLICIES_MAX, SPANS).steps, 1);
}

/* However many policies there are. */
static void conditions_fail_when_they_have_read_too_much(void **state)
{
    enum { FACTOR = OTTL_OUTER_FACTOR_MAX + OTTL_OUTER_BYTES_MIN / LONG_BYTES };
    (void)state;
    assert_true(run(READS_ALL, 1, FACTOR - 1).bits != 0);
    assert_true(run(READS_ALL, 1, FACTOR + 8).bits == 0);
    assert_true(run(READS_ALL, 2, FACTOR / 2 - 1).bits != 0);
    assert_true(run(READS_ALL, 2, FACTOR / 2 + 8).bits == 0);
}

/* As if patterns and conditions read all of them. */
static void a_step_ends_after_large_spans(void **state)
{
    enum { READERS = 12, SPANS = 16, STEPS = READERS * LONG_BYTES / TAIL_STEP_OUTER_BYTES_MAX };
    enum { MANY_SPANS = 2 * LONG_BYTES / TAIL_LARGE_BYTES };
    static const char *const names[READERS] = {"1", "2", "3", "4",  "5",  "6",
                                               "7", "8", "9", "10", "11", "12"};
    static struct tail_policy_config configs[READERS];
    const char *condition = "name == \"z\"";
    const char *patterns[READERS];
    (void)state;
    for (unsigned i = 0; i < READERS; i++) {
        configs[i].shared = tail_fixture_shared(names[i], "ottl_condition");
        configs[i].shared.ottl.span = (struct config_texts){1, &condition};
        patterns[i] = "a+";
    }
    assert_in_range(run_policies(configs, READERS, long_spans, SPANS).steps, STEPS, STEPS + 1);
    /* Others are read as fast as they come. */
    assert_int_equal(run_policies(configs, READERS, long_spans, MANY_SPANS).steps, 1);
    configs[0].shared = tail_fixture_shared(names[0], "string_attribute");
    configs[0].shared.string = (struct tail_string_config){
        .key = "k", .values = {READERS, patterns}, .enabled_regex_matching = true};
    assert_in_range(run_policies(configs, 1, long_spans, SPANS).steps, STEPS, STEPS + 1);
}

/* They take turns, and no memory. */
static void empty_messages_are_read_in_steps(void **state)
{
    static struct tail_policy_config config;
    (void)state;
    config.shared = tail_fixture_shared("1", "always_sample");
    const struct taken scopes = run_policies(&config, 1, empty_scopes, 2);
    const struct taken resources = run_policies(&config, 1, empty_resources, 1);
    assert_true(scopes.steps >= EMPTY_MESSAGES / TAIL_STEP_SPANS_MAX);
    assert_true(resources.steps >= EMPTY_MESSAGES / TAIL_STEP_SPANS_MAX);
    assert_true(scopes.most_bytes < MIB && resources.most_bytes < MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_ends_when_conditions_have_read_much),
        cmocka_unit_test(a_step_ends_after_large_spans),
        cmocka_unit_test(empty_messages_are_read_in_steps),
        cmocka_unit_test(conditions_fail_when_they_have_read_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
