/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the page's API to telemetry that nobody would send: they say what is true of it, and
 * end in time. */
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
#include "src/explore/explore_api.h"
#include "src/explore/explore_asking.h"
#include "src/otlp/nested_output.h"
#include "tests/support/profile_sketch.h"
#include "tests/unit/explore/span_request.h"

static struct budget budget;
static struct explore_settings settings;
static struct explore_data data;
static char *answer; /* the last one */

static int setup(void **state)
{
    struct error error;
    (void)state;
    assert_true(codec_prepare(CODEC_ZSTD, &error));
    budget_init(&budget, UINT64_MAX);
    settings = (struct explore_settings){.max_bytes = 64 * MIB, .budget = &budget, .version = "1"};
    explore_data_init(&data, CODEC_ZSTD);
    data.settings = &settings;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mem_free(answer);
    answer = NULL;
    explore_data_fini(&data);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
    return 0;
}

static void add(const struct test_span *spans, size_t count)
{
    struct buffer *request = span_request(spans, count);
    assert_true(trace_store_add(&data.traces, buffer_slice(request), 1));
    buffer_unref(request);
}

/* The body of the answer, valid until the next one. */
static const char *ask(const char *path, const char *query, unsigned status)
{
    struct explore_job job = {.path = mem_copy_text(path), .query = mem_copy_text(query)};
    explore_answer(&data, &job);
    assert_int_equal(job.status, status);
    assert_non_null(job.body);
    mem_free(answer);
    answer = mem_alloc(job.body->size + 1);
    memcpy(answer, job.body->data, job.body->size);
    answer[job.body->size] = '\0';
    buffer_unref(job.body);
    mem_free(job.path);
    mem_free(job.query);
    return answer;
}

/* The status of a question with so much time, which `path` names if it is one about a trace. */
static unsigned answer_within(void (*fn)(struct asking *asking), const char *path, const char *text,
                              struct explore_limit limit)
{
    char disposition[EXPLORE_DISPOSITION_MAX];
    struct explore_query *query = mem_zalloc(sizeof(*query));
    const char *reason;
    assert_true(explore_query_parse(query, slice_of_text(text), &reason));
    struct asking asking = {.data = &data,
                            .query = query,
                            .id = slice_of_text(path),
                            .status = 200,
                            .limit = limit,
                            .disposition = disposition};
    json_output_init(&asking.out, 1024, EXPLORE_RESPONSE_BYTES_MAX, &budget);
    fn(&asking);
    struct buffer *body = json_output_take(&asking.out);
    mem_free(answer);
    answer = mem_zalloc(body != NULL ? body->size + 1 : 1);
    if (body != NULL)
        memcpy(answer, body->data, body->size);
    buffer_unref(body);
    mem_free(query);
    return asking.status;
}

static void expect(const char *path, const char *query, const char *text)
{
    const char *body = ask(path, query, 200);
    if (strstr(body, text) == NULL)
        fail_msg("%s: %s is not in %.2000s", path, text, body);
}

/* Durations that a double does not tell apart, and the longest one. */
static void durations_may_be_as_long_as_they_like(void **state)
{
    (void)state;
    struct test_span spans[] = {
        {.trace = 1, .span = 1, .service = "a", .name = "n", .duration_ns = UINT64_C(1) << 60},
        {.trace = 2,
         .span = 2,
         .service = "a",
         .name = "n",
         .duration_ns = (UINT64_C(1) << 60) + 1},
        {.trace = 3, .span = 3, .service = "a", .name = "n", .duration_ns = UINT64_MAX},
    };
    add(spans, 2);
    expect("scatter", "buckets=3", "\"counts\":[2,0,0]");
    add(spans + 2, 1);
    expect("scatter", "buckets=3", "\"counts\":[2,0,1]");
    /* Edges end where numbers do, wherever the first one is. */
    for (uint64_t i = 1; i < 64; i++) {
        char query[64];
        struct test_span short_one = {
            .trace = 3 + i, .span = 1, .service = "a", .name = "n", .duration_ns = 64 - i};
        add(&short_one, 1);
        snprintf(query, sizeof(query), "buckets=%llu", (unsigned long long)i);
        const char *edge = strstr(ask("scatter", query, 200), "],\"counts\"");
        assert_non_null(edge);
        while (edge[-1] >= '0' && edge[-1] <= '9')
            edge--;
        assert_true(strtoull(edge, NULL, 10) >= UINT64_MAX - UINT64_MAX / 1000);
    }
}

/* A client that asks for what is newer than anything gets nothing. */
static void cursors_may_be_beyond_all_traces(void **state)
{
    static const char *const cursors[] = {"1", "2", "18446744073709551614", "18446744073709551615"};
    struct test_span spans[] = {
        {.trace = 1, .span = 1, .service = "a", .name = "n"},
        {.trace = 2, .span = 2, .service = "a", .name = "n"},
    };
    (void)state;
    add(spans, 2);
    for (size_t i = 0; i < sizeof(cursors) / sizeof(cursors[0]); i++) {
        char query[64];
        snprintf(query, sizeof(query), "service=a&after=%s", cursors[i]);
        expect("live", query, i == 0 ? "{\"count\":1," : "{\"count\":0,");
        expect("traces", query, i == 0 ? "{\"traces\":[{\"id\"" : "{\"traces\":[]");
        snprintf(query, sizeof(query), "service=a&before=%s", cursors[i]);
        expect("traces", query, i == 0 ? "{\"traces\":[]" : "{\"traces\":[{\"id\"");
    }
}

enum { NAME_BYTES = 200 * 1000 };

/* A resource as JSON is charged beside the answer that it becomes a part of. */
static void a_span_as_json_is_charged(void **state)
{
    static const char path[] = "traces/abababababababab0000000000000001/spans/0000000000000001";
    char *name = mem_alloc(NAME_BYTES + 1);
    (void)state;
    memset(name, 'n', NAME_BYTES);
    name[NAME_BYTES] = '\0';
    struct test_span span = {.trace = 1, .span = 1, .service = name + NAME_BYTES / 4, .name = name};
    add(&span, 1);
    mem_free(name);
    assert_true(strlen(ask(path, "", 200)) > 3 * NAME_BYTES / 2);
    /* The answer alone, with its room to grow, takes a little more than twice the name. */
    atomic_store(&budget.limit, budget_used(&budget) + 5 * NAME_BYTES / 2);
    ask(path, "", 503);
    atomic_store(&budget.limit, UINT64_MAX);
    ask(path, "", 200);
}

/* Spans of more than an answer may have are not made into JSON first. */
static void a_file_of_a_huge_trace_is_refused_early(void **state)
{
    enum { LONG_NAME_BYTES = 3 * 1024 * 1024, LONG_SPANS = 24 };
    char *name = mem_alloc(LONG_NAME_BYTES + 1);
    (void)state;
    memset(name, 'n', LONG_NAME_BYTES);
    name[LONG_NAME_BYTES] = '\0';
    for (uint64_t i = 0; i < LONG_SPANS; i++) {
        struct test_span span = {.trace = 1, .span = i + 1, .service = "a", .name = name};
        add(&span, 1);
    }
    mem_free(name);
    const struct explore_limit in_time = {.end_ns = UINT64_MAX};
    assert_int_equal(
        answer_within(answer_download, "", "trace=abababababababab0000000000000001", in_time), 503);
    /* The spans that fit, while their buffer grew. */
    assert_true(atomic_load(&budget.high_water) < 2 * EXPLORE_RESPONSE_BYTES_MAX);
}

enum { TWINS = 2000, FIELDS = 450000 };

static void put_twin(struct nested_output *output, const uint8_t id[16], unsigned fields)
{
    struct nested_message span = nested_put_begin(output, 2, 3);
    nested_put_bytes(output, 1, slice_of(id, 16));
    nested_put_bytes(output, 2, slice_of(id + 8, 8));
    nested_put_fixed64(output, 7, fields > 0 ? 1 : 2);
    for (unsigned i = 0; i < fields; i++)
        nested_put_bytes(output, 3, slice_of("", 0));
    struct nested_message event = nested_put_begin(output, 11, 1);
    nested_put_bytes(output, 2, slice_of_text("event"));
    nested_put_end(output, event);
    nested_put_end(output, span);
}

/* All rows have one span id: each shows the events of the first span, which is slow to read. What
 * there is no time for is left out. */
static void events_of_one_span_id_end_in_time(void **state)
{
    struct nested_output output = {.budget = NULL};
    uint8_t id[16];
    (void)state;
    trace_id_of(1, id);
    struct nested_message resource = nested_put_begin(&output, 1, 3);
    struct nested_message scope = nested_put_begin(&output, 2, 3);
    put_twin(&output, id, FIELDS);
    for (unsigned i = 1; i < TWINS; i++)
        put_twin(&output, id, 0);
    nested_put_end(&output, scope);
    nested_put_end(&output, resource);
    assert_true(trace_store_add(&data.traces, buffer_slice(output.buffer), 1));
    nested_output_fini(&output);
    assert_int_equal(trace_store_blocks(&data.traces), 1);
    const char *body =
        ask("traces/abababababababab0000000000000001/rows", "from=0&count=2000", 200);
    const char *events = strstr(body, "\"events\":{");
    unsigned count = 0;
    assert_non_null(events);
    for (const char *at = events; (at = strstr(at, "[[")) != NULL; at++)
        count++;
    assert_in_range(count, 1, TWINS - 1);
    assert_int_equal(data.views[0].count, TWINS);
}

static void add_profile(const char *type, const char *stack)
{
    const struct sketch_sample sample = {.stack = stack, .values_count = 1, .values = {1}};
    const struct sketch_profile profile = {
        .type = {type, "nanoseconds"}, .time_ns = 1, .samples_count = 1, .samples = &sample};
    const struct sketch sketch = {
        .resource = {"service.name=a"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    assert_true(profile_store_add(&data.profiles, request, 1));
    mem_free((void *)(uintptr_t)request.data);
}

/* To open a block takes time, whatever is found in it: a few kilobytes may become megabytes. */
static void flames_of_blocks_with_few_samples_end_in_time(void **state)
{
    const struct explore_limit in_time = {.end_ns = UINT64_MAX};
    const struct explore_limit over = {.end_ns = 0};
    (void)state;
    add_profile("cpu", "work;main");
    profile_store_seal(&data.profiles);
    assert_int_equal(answer_within(answer_flame, "", "service=a", in_time), 200);
    assert_int_equal(answer_within(answer_flame, "", "service=a", over), 503);
    explore_data_forget_views(&data);
}

#define LINKED_TRACE UINT64_C(0x0102030405060708)
#define LINKED_SPAN  UINT64_C(0x1112131415161718)
#define TRACE_TEXT   "abababababababab0102030405060708"
#define SPAN_TEXT    "1112131415161718"

/* A block of profiles of one sample of that span, and the span. */
static void add_linked(uint64_t trace)
{
    char ids[2][17] = {"", "\x11\x12\x13\x14\x15\x16\x17\x18"};
    trace_id_of(trace, (uint8_t *)ids[0]);
    const struct test_span span = {
        .trace = trace, .span = LINKED_SPAN, .service = "a", .name = "n", .duration_ns = 1000};
    const struct sketch_sample sample = {.stack = "work;main",
                                         .values_count = 1,
                                         .values = {1},
                                         .trace_id = ids[0],
                                         .span_id = ids[1]};
    const struct sketch_profile profile = {
        .type = {"cpu", "nanoseconds"}, .time_ns = 1, .samples_count = 1, .samples = &sample};
    const struct sketch sketch = {
        .resource = {"service.name=a"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    add(&span, 1);
    assert_true(profile_store_add(&data.profiles, request, 1));
    profile_store_seal(&data.profiles);
    mem_free((void *)(uintptr_t)request.data);
}

/* Blocks of profiles without any of its trace are many, and each takes time to open. */
static void a_span_opens_no_blocks_of_other_traces(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        add_linked(LINKED_TRACE + i);
    expect("traces/" TRACE_TEXT "/spans/" SPAN_TEXT, "", "\"types\":[{\"type\":\"cpu\"");
    assert_int_equal(data.profiles.opened_count, 1);
    expect("flame", "trace=" TRACE_TEXT "&span=" SPAN_TEXT, "\"samples\":1");
    expect("flame", "trace=" TRACE_TEXT "&span=" SPAN_TEXT "&subtree=1", "\"samples\":1");
    ask("download", "format=pprof&trace=" TRACE_TEXT "&span=" SPAN_TEXT, 200);
    assert_int_equal(data.profiles.opened_count, 1);
    /* Nor do spans that are not there. */
    expect("flame", "name=unheard", "\"samples\":0");
    expect("flame", "not-trace=" TRACE_TEXT "&name=unheard", "\"samples\":0");
    assert_int_equal(data.profiles.opened_count, 1);
    /* By name they may be of any trace. */
    expect("flame", "name=n", "\"samples\":5");
    assert_int_equal(data.profiles.opened_count, 5);
    explore_data_forget_views(&data);
}

/* There is no less to ask for: the types of its profiles are those found in time. */
static void a_trace_with_many_profiles_is_shown(void **state)
{
    const struct explore_limit over = {.end_ns = 0};
    (void)state;
    add_linked(LINKED_TRACE);
    expect("traces/" TRACE_TEXT, "", "\"types\":[{\"type\":\"cpu\"");
    assert_int_equal(answer_within(answer_trace, TRACE_TEXT, "", over), 200);
    assert_non_null(strstr(answer, "\"types\":[],\"why\":null}"));
    explore_data_forget_views(&data);
}

/* Of the same stack, which each sample has again in pprof. */
static void add_spans_of_a_deep_stack(size_t samples_count, size_t depth)
{
    char *stack = mem_alloc(depth * 8);
    char(*ids)[9] = mem_alloc(samples_count * sizeof(ids[0]));
    struct sketch_sample *samples = mem_zalloc(samples_count * sizeof(samples[0]));
    size_t size = 0;
    for (size_t i = 0; i < depth; i++)
        size += (size_t)snprintf(stack + size, 8, i > 0 ? ";f%05zu" : "f%05zu", i);
    for (size_t i = 0; i < samples_count; i++) {
        snprintf(ids[i], sizeof(ids[0]), "s%07zu", i);
        samples[i] = (struct sketch_sample){.stack = stack,
                                            .values_count = 1,
                                            .values = {1},
                                            .trace_id = "0123456789abcdef",
                                            .span_id = ids[i]};
    }
    const struct sketch_profile profile = {.type = {"cpu", "nanoseconds"},
                                           .time_ns = 1,
                                           .samples_count = samples_count,
                                           .samples = samples};
    const struct sketch sketch = {
        .resource = {"service.name=a"}, .profiles_count = 1, .profiles = &profile};
    struct slice request = sketch_request(&sketch);
    assert_true(request.size < MIB / 2);
    assert_true(profile_store_add(&data.profiles, request, 1));
    mem_free((void *)(uintptr_t)request.data);
    mem_free(samples);
    mem_free(ids);
    mem_free(stack);
}

/* A file of pprof may take many times the bytes of the profiles that it is made of. */
static void a_pprof_file_is_charged(void **state)
{
    enum { SAMPLES = 400, DEPTH = 1000 };
    const struct explore_limit in_time = {.end_ns = UINT64_MAX};
    (void)state;
    add_spans_of_a_deep_stack(SAMPLES, DEPTH);
    profile_store_seal(&data.profiles);
    assert_int_equal(answer_within(answer_download, "", "format=pprof&service=a", in_time), 200);
    uint64_t most = atomic_load(&budget.high_water);
    assert_true(most > SAMPLES * DEPTH * sizeof(uint64_t));
    explore_data_forget_views(&data);
    assert_int_equal(budget_used(&budget), 0);
    for (uint64_t limit = most / 64; limit < most; limit += most / 8) {
        atomic_store(&budget.limit, limit);
        atomic_store(&budget.high_water, 0);
        assert_int_equal(answer_within(answer_download, "", "format=pprof&service=a", in_time),
                         503);
        assert_true(atomic_load(&budget.high_water) <= limit);
        explore_data_forget_views(&data);
        assert_int_equal(budget_used(&budget), 0);
    }
    atomic_store(&budget.limit, UINT64_MAX);
}

enum { NEARLY = 16000, SERVICE_BYTES = 500, WANTED_BYTES = 200 };

/* The spans of one block, in each of which the text is nearly found at many places. */
static void a_search_for_what_is_nearly_there_ends_in_time(void **state)
{
    static const char path[] = "traces/abababababababab0000000000000001";
    char service[SERVICE_BYTES + 1];
    char text[2 + WANTED_BYTES + 2] = "q=";
    struct test_span *spans = mem_zalloc(NEARLY * sizeof(spans[0]));
    (void)state;
    memset(service, 'a', SERVICE_BYTES);
    service[SERVICE_BYTES] = '\0';
    memset(text + 2, 'a', WANTED_BYTES);
    memcpy(text + 2 + WANTED_BYTES, "b", 2);
    for (size_t i = 0; i < NEARLY; i++)
        spans[i] = (struct test_span){.trace = 1, .span = i + 1, .service = service, .name = "n"};
    add(spans, NEARLY);
    mem_free(spans);
    assert_int_equal(trace_store_blocks(&data.traces), 1);
    ask(path, "", 200); /* its waterfall has a time of its own */
    assert_int_equal(answer_within(answer_find, "abababababababab0000000000000001", text,
                                   explore_limit_of(20 * NS_PER_MS)),
                     200);
    /* Not all of it was looked at. */
    assert_string_equal(answer, "{\"rows\":[],\"more\":true}");
    explore_data_forget_views(&data);
}

/* A block is open while it is read, whether it stays open or not. */
static void flames_charge_open_blocks(void **state)
{
    enum { NAME_BYTES_MORE = 3 * 1024 * 1024 };
    char *name = mem_alloc(NAME_BYTES_MORE + 1);
    (void)state;
    memset(name, 'n', NAME_BYTES_MORE);
    name[NAME_BYTES_MORE] = '\0';
    add_profile("wall", name);
    mem_free(name);
    profile_store_seal(&data.profiles);
    ask("flame", "service=a&type=cpu", 200);
    explore_data_forget_views(&data);
    atomic_store(&budget.limit, budget_used(&budget) + NAME_BYTES_MORE);
    ask("flame", "service=a&type=cpu", 503);
    assert_int_equal(budget_used(&budget), 0);
    atomic_store(&budget.limit, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(durations_may_be_as_long_as_they_like, setup, teardown),
        cmocka_unit_test_setup_teardown(cursors_may_be_beyond_all_traces, setup, teardown),
        cmocka_unit_test_setup_teardown(a_span_as_json_is_charged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_a_huge_trace_is_refused_early, setup, teardown),
        cmocka_unit_test_setup_teardown(events_of_one_span_id_end_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pprof_file_is_charged, setup, teardown),
        cmocka_unit_test_setup_teardown(flames_charge_open_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_search_for_what_is_nearly_there_ends_in_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(flames_of_blocks_with_few_samples_end_in_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_span_opens_no_blocks_of_other_traces, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trace_with_many_profiles_is_shown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
