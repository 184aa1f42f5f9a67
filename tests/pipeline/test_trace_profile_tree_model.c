/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on local roots and ancestors, against a plain list: random requests of several spans
 * each, of which some never come, and samples taken in them arrive in random order. Which samples
 * are kept, under which span, and in which types they count besides is what climbing from span to
 * parent says; one lane does as two. */
#include "tests/support/join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "tests/support/otlp_oracle.h"
#include "tests/support/profile_oracle.h"
#include "tests/support/random_otlp.h"

enum {
    TREES = 12,
    TREE_SPANS_MAX = 6,
    REQUESTS = 25,
    SAMPLES_MAX = 8,
    GOING_MAX = SAMPLES_MAX * TREE_SPANS_MAX,
    TICKS = 100,
    TEXT = 32,
    STATUS_ERROR = 2,
    HAS_REMOTE = 0x100, /* Span.flags: says whether its parent is in another process */
    IS_REMOTE = 0x200,
};
#define HOLD_NS (4 * S)
#define TICK_NS (100 * MS)
#define SLOW_NS (1 * S)

/* Every combination is tried once. */
enum { COUNT_SPAN, COUNT_ROOT, COUNT_ALL, COUNTS };
enum { KEEP_ALL, KEEP_SLOW, KEEP_ERROR, KEEP_BOTH, KEEPS };
enum { COMBINATIONS = COUNTS * KEEPS * 2 * 2 };

struct rules {
    unsigned count;
    unsigned keep;
    bool takes_root;
    bool keeps_unlinked;
};

struct tree_span {
    const struct tree *tree;
    const struct tree_span *parent; /* in the same process; NULL: it is the local root */
    char id[TEXT];                  /* 8 bytes */
    char name[TEXT];
    bool comes;
    struct sketch_span sketch;
};

struct tree {
    char trace[17];
    unsigned tick; /* when its spans arrive */
    size_t count;
    struct tree_span spans[TREE_SPANS_MAX];
};

struct tree_sample {
    const struct tree_span *span; /* NULL: it names none */
    bool has_name;                /* of the span, already, by another one */
    char thread[TEXT];
    struct sketch_sample came;
};

struct tree_request {
    unsigned tick;
    size_t count;
    struct tree_sample samples[SAMPLES_MAX];
};

struct model {
    struct random_source random;
    struct rules rules;
    struct tree trees[TREES];
    struct tree_request requests[REQUESTS];
};

/* What a request comes to: the samples of each type. */
struct going {
    struct sketch_sample samples[GOING_MAX];
    char names[GOING_MAX][TEXT + 16];
    size_t count;
};

static void make_tree(struct model *model, unsigned number)
{
    static const uint64_t durations[] = {10 * MS, 400 * MS, 2 * S};
    struct random_source *random = &model->random;
    struct tree *tree = &model->trees[number];
    *tree = (struct tree){.tick = (unsigned)random_below(random, TICKS + 45),
                          .count = 1 + random_below(random, TREE_SPANS_MAX)};
    snprintf(tree->trace, sizeof(tree->trace), "trace-%010u", number);
    for (unsigned i = 0; i < tree->count; i++) {
        struct tree_span *span = &tree->spans[i];
        *span = (struct tree_span){.tree = tree, .comes = random_below(random, 8) != 0};
        if (i > 0)
            span->parent = &tree->spans[random_below(random, i)];
        snprintf(span->id, sizeof(span->id), "sp%03u%03u", number, i);
        snprintf(span->name, sizeof(span->name), "name %u", (unsigned)random_below(random, 10));
        span->sketch = (struct sketch_span){
            .trace_id = tree->trace,
            .span_id = span->id,
            .parent_id = i > 0 ? span->parent->id : "client--",
            .name = span->name,
            .kind = KIND_INTERNAL,
            .start_ns = S,
            .end_ns = S + durations[random_below(random, 3)],
            .status = random_below(random, 6) == 0 ? STATUS_ERROR : 0,
            .flags = i > 0 ? HAS_REMOTE : HAS_REMOTE | IS_REMOTE,
        };
    }
}

static void make_request(struct model *model, unsigned number)
{
    static const char *const stacks[] = {"a;main", "b;a;main", "c;main"};
    struct random_source *random = &model->random;
    struct tree_request *request = &model->requests[number];
    request->tick = (unsigned)random_below(random, TICKS);
    request->count = 1 + random_below(random, SAMPLES_MAX);
    for (size_t i = 0; i < request->count; i++) {
        struct tree_sample *sample = &request->samples[i];
        const struct tree *tree = &model->trees[random_below(random, TREES)];
        *sample = (struct tree_sample){.has_name = random_below(random, 4) == 0};
        if (random_below(random, 5) != 0)
            sample->span = &tree->spans[random_below(random, tree->count)];
        snprintf(sample->thread, TEXT, "thread=t%u", (unsigned)random_below(random, 3));
        sample->came = (struct sketch_sample){
            .stack = stacks[random_below(random, 3)],
            .values_count = 1,
            .values = {(int64_t)(number * SAMPLES_MAX + i + 1)},
            .attributes = {sample->thread, sample->has_name ? "span_name=its own" : NULL},
            .trace_id = sample->span != NULL ? sample->span->tree->trace : NULL,
            .span_id = sample->span != NULL ? sample->span->id : NULL,
        };
    }
}

static void make_model(struct model *model, unsigned number)
{
    *model = (struct model){
        .random = {number + 1},
        .rules = {.count = number % COUNTS,
                  .keep = number / COUNTS % KEEPS,
                  .takes_root = number / (COUNTS * KEEPS) % 2 != 0,
                  .keeps_unlinked = number / (COUNTS * KEEPS * 2) % 2 != 0},
    };
    for (unsigned i = 0; i < TREES; i++)
        make_tree(model, i);
    for (unsigned i = 0; i < REQUESTS; i++)
        make_request(model, i);
}

static bool is_known(const struct tree_span *span, const struct tree_request *request)
{
    return span != NULL && span->comes &&
           span->tree->tick * TICK_NS < request->tick * TICK_NS + HOLD_NS;
}

/* NULL: a span on the way never comes. */
static const struct tree_span *root_of(const struct tree_span *span)
{
    while (span->comes && span->parent != NULL)
        span = span->parent;
    return span->comes ? span : NULL;
}

static bool is_of_interest(const struct rules *rules, const struct tree_span *span)
{
    bool is_slow = span->sketch.end_ns - span->sketch.start_ns >= SLOW_NS;
    bool has_failed = span->sketch.status == STATUS_ERROR;
    return (is_slow && rules->keep != KEEP_ERROR) || (has_failed && rules->keep != KEEP_SLOW);
}

static bool is_kept(const struct rules *rules, const struct tree_sample *sample,
                    const struct tree_request *request)
{
    if (rules->keep == KEEP_ALL)
        return true;
    if (!is_known(sample->span, request))
        return rules->keeps_unlinked;
    const struct tree_span *root = root_of(sample->span);
    return is_of_interest(rules, sample->span) || (root != NULL && is_of_interest(rules, root));
}

/* The sample, of another span perhaps; is_copy: nothing is left of what was said of its own. */
static void add(struct going *going, const struct tree_sample *sample, const struct tree_span *span,
                bool is_copy)
{
    struct sketch_sample *goes = &going->samples[going->count];
    char *name = going->names[going->count++];
    assert_true(going->count <= GOING_MAX);
    *goes = sample->came;
    if (span == NULL)
        return;
    goes->trace_id = span->tree->trace;
    goes->span_id = span->id;
    snprintf(name, TEXT + 16, "span_name=%s", span->name);
    if (is_copy || !sample->has_name)
        goes->attributes[1] = name;
}

static void expect(const struct model *model, const struct tree_request *request,
                   struct going ret_going[COUNTS])
{
    const struct rules *rules = &model->rules;
    for (unsigned i = 0; i < COUNTS; i++)
        ret_going[i].count = 0;
    for (size_t i = 0; i < request->count; i++) {
        const struct tree_sample *sample = &request->samples[i];
        const struct tree_span *span = is_known(sample->span, request) ? sample->span : NULL;
        const struct tree_span *root = span != NULL ? root_of(span) : NULL;
        if (!is_kept(rules, sample, request))
            continue;
        if (rules->takes_root && root != NULL)
            span = root;
        add(&ret_going[COUNT_SPAN], sample, span, false);
        if (rules->count != COUNT_SPAN && root != NULL)
            add(&ret_going[COUNT_ROOT], sample, root, true);
        if (rules->count != COUNT_ALL || span == NULL)
            continue;
        for (span = span->parent; span != NULL && span->comes; span = span->parent)
            add(&ret_going[COUNT_ALL], sample, span, true);
    }
}

/* A request of those samples; the caller frees its data with mem_free. */
static struct slice request_of(unsigned number, const struct going going[COUNTS])
{
    static const char *const types[COUNTS] = {"cpu", "cpu_root", "cpu_ancestors"};
    struct sketch_profile profiles[COUNTS];
    size_t count = 0;
    for (unsigned i = 0; i < COUNTS; i++)
        if (going[i].count > 0)
            profiles[count++] = (struct sketch_profile){.type = {types[i], "nanoseconds"},
                                                        .time_ns = 1000 + number,
                                                        .samples_count = going[i].count,
                                                        .samples = going[i].samples};
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles_count = count, .profiles = profiles};
    return sketch_request(&sketch);
}

static void list_expected(const struct model *model, struct oracle_items *ret_items)
{
    static struct going going[COUNTS];
    for (unsigned i = 0; i < REQUESTS; i++) {
        expect(model, &model->requests[i], going);
        struct slice bytes = request_of(i, going);
        profile_oracle_list(ret_items, bytes, PROFILE_WHOLE);
        mem_free((void *)(uintptr_t)bytes.data);
    }
    profile_oracle_sort(ret_items);
}

static struct harness *start(const struct rules *rules, unsigned lanes)
{
    static const char *const counts[] = {"span", "span, root", "span, root, ancestors"};
    static const char *const keeps[] = {"", "slow: 1s", "error", "slow: 1s, error"};
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "processors: {trace_profile_join: {hold: 4s, mark: off, count_for: [%s], keep: [%s], "
             "span_id: %s, keep_unlinked: %s}}\n" JOIN_PIPELINES,
             counts[rules->count], keeps[rules->keep], rules->takes_root ? "root" : "received",
             rules->keeps_unlinked ? "true" : "false");
    return join_start_on(yaml, lanes);
}

static void arrive(struct harness *h, const struct model *model, unsigned tick, unsigned lanes)
{
    for (unsigned i = 0; i < TREES; i++) {
        const struct tree *tree = &model->trees[i];
        struct sketch_span spans[TREE_SPANS_MAX];
        size_t count = 0;
        for (size_t k = 0; k < tree->count; k++)
            if (tree->spans[k].comes)
                spans[count++] = tree->spans[k].sketch;
        if (tree->tick == tick && count > 0)
            join_offer_spans(h, i % lanes, join_shop, spans, count);
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        const struct tree_request *request = &model->requests[i];
        struct sketch_sample samples[SAMPLES_MAX];
        const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                               .time_ns = 1000 + i,
                                               .samples_count = request->count,
                                               .samples = samples};
        const struct sketch sketch = {
            .resource = {"service.name=shop"}, .profiles_count = 1, .profiles = &profile};
        if (request->tick != tick)
            continue;
        for (size_t k = 0; k < request->count; k++)
            samples[k] = request->samples[k].came;
        join_offer_sketch(h, i / 2 % lanes, &sketch);
    }
}

static void run(const struct model *model, unsigned lanes, struct oracle_items *ret_items)
{
    struct harness *h = start(&model->rules, lanes);
    join_hold_profiles(h, lanes);
    for (unsigned tick = 0; tick < TICKS + 50; tick++) {
        arrive(h, model, tick, lanes);
        join_list_tick(h, lanes, TICK_NS, ret_items);
    }
    harness_destroy(h);
    profile_oracle_sort(ret_items);
}

static void assert_same(const struct oracle_items *found, const struct oracle_items *expected,
                        unsigned number)
{
    for (size_t i = 0; i < found->count && i < expected->count; i++)
        if (strcmp(found->texts[i], expected->texts[i]) != 0)
            fail_msg("combination %u:\n%s\n%s", number, found->texts[i], expected->texts[i]);
    if (found->count != expected->count)
        fail_msg("combination %u: %zu, not %zu", number, found->count, expected->count);
}

static void what_spans_have_is_what_climbing_to_their_roots_gives(void **state)
{
    static struct model model;
    (void)state;
    for (unsigned number = 0; number < COMBINATIONS; number++) {
        struct oracle_items expected = {0};
        make_model(&model, number);
        list_expected(&model, &expected);
        for (unsigned lanes = 1; lanes <= 2; lanes++) {
            struct oracle_items found = {0};
            run(&model, lanes, &found);
            assert_same(&found, &expected, number);
            oracle_clear(&found);
        }
        oracle_clear(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_spans_have_is_what_climbing_to_their_roots_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
