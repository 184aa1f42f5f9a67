/* SPDX-License-Identifier: Apache-2.0 */
/* tail_sampling: taking requests apart by trace, keeping and asking about their traces. */
#include <assert.h>
#include <stdlib.h>

#include "processors/tail_sampling/decision_cache.h"
#include "processors/tail_sampling/tail_split.h"
#include "processors/tail_sampling/tail_traces.h"
#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "tests/complexity/message.h"
#include "tests/complexity/work.h"
#include "tests/support/tail_fixture.h"

enum { RESOURCE = 1, SCOPES = 2, SPANS = 2, UNKNOWN = 2000, NAME_BYTES = 32 };

static void put_span_of(struct profile_bytes *out, const uint64_t id[2])
{
    size_t begin = out->size;
    put_bytes(out, 1, id, 2 * sizeof(id[0]));
    put_bytes(out, 2, "01234567", 8);
    put_text(out, 5, "n");
    profile_bytes_wrap(out, begin, SPANS);
}

static void put_span(struct profile_bytes *out, size_t trace)
{
    put_span_of(out, (const uint64_t[2]){trace, trace * UINT64_C(0x9e3779b97f4a7c15)});
}

static struct slice enclose(struct profile_bytes *out, size_t scope)
{
    profile_bytes_wrap(out, scope, SCOPES);
    profile_bytes_wrap(out, 0, 1);
    return message_done(out);
}

static struct slice one_trace(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, 1);
    return enclose(&out, 0);
}

static struct slice two_traces_in_turn(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, i % 2);
    return enclose(&out, 0);
}

/* Ids whose halves make up for each other in hashes that any client can compute. */
static struct slice traces_of_multiples(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 1; i <= n; i++)
        put_span_of(&out, (const uint64_t[2]){i * UINT64_C(0x9e3779b97f4a7c15), i});
    return enclose(&out, 0);
}

static struct slice traces_of_doubles(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 1; i <= n; i++)
        put_span_of(&out, (const uint64_t[2]){2 * i, i});
    return enclose(&out, 0);
}

static struct slice many_traces(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_span(&out, i);
    return enclose(&out, 0);
}

/* Each would need a copy of all of it. */
static struct slice a_large_resource_of_many_traces(size_t n)
{
    struct profile_bytes out = {0};
    char name[NAME_BYTES];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 1, name_of(name, i), "v");
    profile_bytes_wrap(&out, 0, RESOURCE);
    size_t scope = out.size;
    for (size_t i = 0; i < n; i++)
        put_span(&out, i);
    return enclose(&out, scope);
}

static struct slice a_large_scope_of_many_traces(size_t n)
{
    struct profile_bytes out = {0};
    char name[NAME_BYTES];
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 3, name_of(name, i), "v");
    profile_bytes_wrap(&out, 0, 1);
    for (size_t i = 0; i < n; i++)
        put_span(&out, i);
    return enclose(&out, 0);
}

static struct slice scopes_of_one_span(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t scope = out.size;
        put_span(&out, i % 7);
        profile_bytes_wrap(&out, scope, SCOPES);
    }
    profile_bytes_wrap(&out, 0, 1);
    return message_done(&out);
}

static struct slice resources_of_one_span(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        size_t begin = out.size;
        put_span(&out, i);
        profile_bytes_wrap(&out, begin, SCOPES);
        profile_bytes_wrap(&out, begin, 1);
    }
    return message_done(&out);
}

static struct slice unknown_fields_between_spans(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++) {
        put_number(&out, UNKNOWN, 1);
        put_span(&out, i % 3);
    }
    return enclose(&out, 0);
}

static struct slice wanted_attributes(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        put_attribute(&out, 9, "k000000", "aaaaaaaaaaaaaaaab");
    profile_bytes_wrap(&out, 0, SPANS);
    return enclose(&out, 0);
}

static struct slice a_long_trace_state(size_t n)
{
    struct profile_bytes out = {0};
    for (size_t i = 0; i < n; i++)
        profile_bytes_add(&out, slice_of_text(",,,,,,,,"));
    profile_bytes_wrap(&out, 0, 3);
    profile_bytes_wrap(&out, 0, SPANS);
    return enclose(&out, 0);
}

static const struct work_shape shapes[] = {
    {"one trace", one_trace},
    {"two traces in turn", two_traces_in_turn},
    {"many traces", many_traces},
    {"a large resource of many traces", a_large_resource_of_many_traces},
    {"a large scope of many traces", a_large_scope_of_many_traces},
    {"scopes of one span", scopes_of_one_span},
    {"resources of one span", resources_of_one_span},
    {"unknown fields between spans", unknown_fields_between_spans},
    {"wanted attributes", wanted_attributes},
    {"traces of multiples", traces_of_multiples},
    {"traces of doubles", traces_of_doubles},
    {"a long trace state", a_long_trace_state},
};

struct kept {
    struct tail_policies *policies;
    struct tail_traces traces;
    struct tail_slabs slabs;
    struct tail_policy_counters counters[TAIL_FIXTURE_POLICIES];
};

static void begin(struct tail_group *group, uint64_t *bits, void *arg)
{
    struct kept *kept = arg;
    (void)bits;
    group->trace = tail_traces_find(&kept->traces, group->id);
}

static void take(struct tail_split *split, struct tail_group *group, uint64_t *bits, void *arg)
{
    struct kept *kept = arg;
    struct tail_trace *trace = group->trace;
    if (trace == NULL)
        trace = tail_traces_add(&kept->traces, group->id);
    tail_policies_begin(kept->policies, group->id, bits);
    for (size_t i = 0; i < kept->policies->words; i++)
        trace->bits[i] |= bits[i];
    trace->spans_count += group->spans;
    trace->bytes += tail_group_bytes(split, group);
    tail_group_store(split, group, &trace->spans, NULL);
}

static void run(struct slice request, unsigned lanes)
{
    static struct kept kept;
    struct error error;
    struct tail_split split;
    struct budget budget;
    budget_init(&budget, UINT64_MAX);
    kept.policies = tail_policies_create(tail_fixture_config(), NULL, &error);
    bool is_made = tail_traces_init(&kept.traces, kept.policies->words, 1 << 20, &budget);
    assert(is_made);
    tail_slabs_init(&kept.slabs, &budget, false);
    tail_split_init(&split, kept.policies, &kept.slabs, lanes, &budget);
    const struct tail_taker taker = {.begin = begin, .take = take, .arg = &kept};
    const struct tail_now now = {.ns = 1};
    work_begin();
    tail_split_begin(&split, request);
    while (!tail_split_step(&split, &taker))
        ;
    while (kept.traces.oldest != 0) {
        struct tail_trace *trace = tail_traces_at(&kept.traces, kept.traces.oldest);
        struct tail_facts facts = {.bits = trace->bits, .spans = trace->spans_count};
        tail_policies_outlook(kept.policies, &facts);
        tail_policies_decide(kept.policies, &facts, &now, kept.counters);
        tail_spans_clear(&kept.slabs, &trace->spans);
        tail_traces_remove(&kept.traces, trace);
    }
    work_end();
    tail_split_fini(&split);
    tail_slabs_fini(&kept.slabs);
    tail_traces_fini(&kept.traces);
    tail_policies_destroy(kept.policies);
    budget_fini(&budget);
}

static void run_by_trace(struct slice request)
{
    run(request, 1);
}

static void run_by_lane(struct slice request)
{
    run(request, 16);
}

static const struct work_stage stages[] = {
    {"taking apart by trace", run_by_trace, 0, 40},
    {"taking apart by trace, in steps", run_by_trace, 3 * TAIL_STEP_SPANS_MAX / 2, 40},
    {"taking apart by lane", run_by_lane, 0, 30},
};

int main(int argc, char **argv)
{
    return work_check(stages, sizeof(stages) / sizeof(stages[0]), shapes,
                      sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
