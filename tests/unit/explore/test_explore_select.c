/* SPDX-License-Identifier: Apache-2.0 */
/* Which spans' samples a query selects: of 20 traces with three spans one below the other, each
 * query picks those that a person would, and broken ones say what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/explore/explore_select.h"
#include "tests/unit/explore/span_request.h"

enum { TRACES = 20, DEPTH = 3, SPANS = TRACES * DEPTH, PLACE = 10, QUERY_BYTES = 8000 };

static struct budget budget;
static struct explore_settings settings;
static struct explore_data data;
static struct test_span spans[SPANS];

/* Trace n takes n ms, all of it in each of its spans. */
static int setup(void **state)
{
    static const char *const names[DEPTH] = {"checkout", "pay", "query"};
    static const char *const services[DEPTH] = {"shop", "shop", "db"};
    struct error error;
    (void)state;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    budget_init(&budget, UINT64_MAX);
    settings = (struct explore_settings){.max_bytes = 64 * MIB, .budget = &budget};
    explore_data_init(&data, CODEC_ZSTD);
    data.settings = &settings;
    for (size_t i = 0; i < SPANS; i++) {
        uint64_t trace = 1 + i / DEPTH;
        size_t depth = i % DEPTH;
        spans[i] = (struct test_span){.trace = trace,
                                      .span = trace * PLACE + depth,
                                      .parent = depth > 0 ? trace * PLACE + depth - 1 : 0,
                                      .service = services[depth],
                                      .name = names[depth],
                                      .start_ns = NS_PER_S * trace + depth,
                                      .duration_ns = trace * NS_PER_MS};
    }
    struct buffer *request = span_request(spans, SPANS);
    assert_true(trace_store_add(&data.traces, buffer_slice(request), 1));
    buffer_unref(request);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    explore_data_fini(&data);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static const char *hex(const void *bytes, size_t size, char text[40])
{
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
    return text;
}

static const char *trace_hex(uint64_t trace, char text[40])
{
    uint8_t id[16];
    trace_id_of(trace, id);
    return hex(id, sizeof(id), text);
}

static const char *span_hex(uint64_t span, char text[40])
{
    uint64_t id = row_span_id_of(span);
    return hex(&id, sizeof(id), text);
}

/* The status of the answer; 200: *ret_selection is to be released. */
static unsigned read_within(const char *text, struct explore_limit limit,
                            struct explore_selection *ret_selection)
{
    struct explore_query *query = mem_zalloc(sizeof(*query));
    const char *reason = "";
    assert_true(explore_query_parse(query, slice_of_text(text), &reason));
    struct asking asking = {.data = &data, .query = query, .status = 200, .limit = limit};
    bool is_read = explore_selection_read(&asking, query, ret_selection);
    assert_true(is_read == (asking.status == 200));
    assert_true(is_read || asking.reason[0] != '\0');
    mem_free(query);
    return asking.status;
}

static unsigned read_selection(const char *text, struct explore_selection *ret_selection)
{
    return read_within(text, explore_limit_of(EXPLORE_QUERY_NS), ret_selection);
}

/* Checks every span: `expected` says whether the query picks it. */
static void check(const char *text, bool (*expected)(uint64_t trace, uint64_t depth))
{
    struct explore_selection selection;
    print_message("%s\n", text);
    assert_int_equal(read_selection(text, &selection), 200);
    for (size_t i = 0; i < SPANS; i++) {
        uint8_t trace_id[16];
        uint64_t span_id = row_span_id_of(spans[i].span);
        trace_id_of(spans[i].trace, trace_id);
        assert_true(explore_selection_has(&selection, trace_id, (const uint8_t *)&span_id) ==
                    expected(spans[i].trace, spans[i].span % PLACE));
    }
    explore_selection_fini(&selection);
}

static bool all(uint64_t trace, uint64_t depth)
{
    return trace > 0 && depth < DEPTH;
}

static bool none(uint64_t trace, uint64_t depth)
{
    return !all(trace, depth);
}

static bool of_five(uint64_t trace, uint64_t depth)
{
    return trace == 5 && depth < DEPTH;
}

static bool not_of_five(uint64_t trace, uint64_t depth)
{
    return !of_five(trace, depth);
}

static bool second_of_five(uint64_t trace, uint64_t depth)
{
    return trace == 5 && depth == 1;
}

static bool ends_of_five(uint64_t trace, uint64_t depth)
{
    return trace == 5 && depth != 1;
}

static bool below_first_of_five(uint64_t trace, uint64_t depth)
{
    return trace == 5 && depth > 0;
}

static bool below_first(uint64_t trace, uint64_t depth)
{
    return trace > 0 && depth > 0;
}

static bool slowest(uint64_t trace, uint64_t depth)
{
    return trace >= 19 && depth < DEPTH;
}

static bool not_slowest(uint64_t trace, uint64_t depth)
{
    return !slowest(trace, depth);
}

static bool three_and_four(uint64_t trace, uint64_t depth)
{
    return (trace == 3 || trace == 4) && depth < DEPTH;
}

static void a_trace_or_spans_of_it(void **state)
{
    char text[256], id[40], first[40], second[40], third[40];
    (void)state;
    trace_hex(5, id);
    span_hex(50, first);
    span_hex(51, second);
    span_hex(52, third);
    snprintf(text, sizeof(text), "trace=%s", id);
    check(text, of_five);
    snprintf(text, sizeof(text), "trace=%s&span=%s", id, second);
    check(text, second_of_five);
    snprintf(text, sizeof(text), "trace=%s&span=%s,%s", id, first, third);
    check(text, ends_of_five);
    snprintf(text, sizeof(text), "trace=%s&span=%s&subtree=1", id, second);
    check(text, below_first_of_five);
    snprintf(text, sizeof(text), "trace=%s&span=%s&subtree=1", id, first);
    check(text, of_five);
    snprintf(text, sizeof(text), "trace=%s&span=%s,%s,%s,%s&subtree=1", id, third, second, second,
             third);
    check(text, below_first_of_five);
    snprintf(text, sizeof(text), "not-trace=%s", id);
    check(text, not_of_five);
    snprintf(text, sizeof(text), "not-trace=%s&name=pay", id); /* no root has that name */
    check(text, none);
}

static void spans_by_name_with_what_is_below_them(void **state)
{
    (void)state;
    check("service=shop", all); /* samples that are linked to nothing count, too */
    check("name=checkout", all);
    check("name=checkout&service=shop", all);
    check("name=pay&service=shop", below_first);
    check("name=pay&service=db", none);
    check("name=unheard", none);
    check("name=checkout&service=unheard", none);
    check("name=checkout&slow=1", slowest);
    check("name=checkout&slow=0", not_slowest);
    check("name=checkout&start=3000000000&end=5000000000", three_and_four);
}

static void broken_queries_say_what_is_wrong(void **state)
{
    static char many[QUERY_BYTES];
    char id[40], span[40], text[256];
    struct explore_selection selection;
    (void)state;
    assert_int_equal(read_selection("trace=12", &selection), 400);
    assert_int_equal(read_selection("not-trace=xyz", &selection), 400);
    assert_int_equal(read_selection("service=shop&start=soon", &selection), 400);
    assert_int_equal(read_selection("service=shop&end=-1", &selection), 400);
    snprintf(text, sizeof(text), "trace=%s&span=7", trace_hex(5, id));
    assert_int_equal(read_selection(text, &selection), 400);
    snprintf(text, sizeof(text), "trace=%s&span=%s&subtree=1", trace_hex(99, id),
             span_hex(50, span));
    assert_int_equal(read_selection(text, &selection), 404);
    size_t size = (size_t)snprintf(many, sizeof(many), "trace=%s&span=", trace_hex(5, id));
    for (unsigned i = 0; i <= 256; i++)
        size += (size_t)snprintf(many + size, sizeof(many) - size, "%s%s", i > 0 ? "," : "",
                                 span_hex(50, span));
    assert_true(size < sizeof(many));
    assert_int_equal(read_selection(many, &selection), 400);
}

/* The waterfall is there already: to add what is below spans takes time, too. */
static void selections_end_in_time(void **state)
{
    struct explore_limit over = {.end_ns = 0};
    struct explore_selection selection;
    char id[40], first[40], text[256];
    (void)state;
    snprintf(text, sizeof(text), "trace=%s&span=%s&subtree=1", trace_hex(5, id),
             span_hex(50, first));
    assert_int_equal(read_selection(text, &selection), 200);
    explore_selection_fini(&selection);
    assert_int_equal(read_within(text, over, &selection), 503);
}

/* Ids and durations are charged; without room the answer says so. */
static void selections_are_charged(void **state)
{
    struct explore_selection selection;
    char id[40], text[256];
    (void)state;
    assert_int_equal(read_selection("name=checkout&slow=1", &selection), 200);
    assert_in_range(budget_used(&budget), SPANS * sizeof(uint64_t), 64 * 1024);
    assert_in_range(atomic_load(&budget.high_water), 8 * 1024, 64 * 1024); /* the durations */
    explore_selection_fini(&selection);
    assert_int_equal(read_selection("name=checkout", &selection), 200);
    explore_selection_fini(&selection);
    snprintf(text, sizeof(text), "not-trace=%s", trace_hex(5, id));
    uint64_t used = budget_used(&budget);
    atomic_store(&budget.limit, used + 1000);
    assert_int_equal(read_selection("name=checkout", &selection), 503);
    assert_int_equal(read_selection("name=checkout&slow=1", &selection), 503);
    assert_int_equal(read_selection(text, &selection), 503);
    assert_int_equal(budget_used(&budget), used);
    /* Room for the ids, not for the durations. */
    atomic_store(&budget.limit, used + 4000);
    assert_int_equal(read_selection("name=checkout", &selection), 200);
    explore_selection_fini(&selection);
    assert_int_equal(read_selection("name=checkout&slow=1", &selection), 503);
    atomic_store(&budget.limit, UINT64_MAX);
}

/* Blocks are opened only if the selection may find something in them. */
static void blocks_of_other_times_and_services_are_passed_over(void **state)
{
    static const struct {
        uint64_t start_ns;
        uint64_t end_ns;
        bool is_wanted;
    } rows[] = {
        {100, 199, false}, {100, 200, true},  {250, 260, true},
        {299, 400, true},  {300, 400, false}, {UINT64_MAX, 0, true}, /* of unknown time */
    };
    struct explore_selection selection;
    uint32_t numbers[] = {7};
    (void)state;
    assert_int_equal(read_selection("service=shop&start=200&end=300", &selection), 200);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct profile_block block = {.start_ns = rows[i].start_ns,
                                      .end_ns = rows[i].end_ns,
                                      .services = numbers,
                                      .services_count = 1};
        assert_true(explore_selection_wants(&selection, &block, 7) == rows[i].is_wanted);
        assert_false(explore_selection_wants(&selection, &block, 8));
    }
    explore_selection_fini(&selection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_or_spans_of_it),
        cmocka_unit_test(spans_by_name_with_what_is_below_them),
        cmocka_unit_test(broken_queries_say_what_is_wrong),
        cmocka_unit_test(selections_end_in_time),
        cmocka_unit_test(selections_are_charged),
        cmocka_unit_test(blocks_of_other_times_and_services_are_passed_over),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
