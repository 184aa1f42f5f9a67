/* SPDX-License-Identifier: Apache-2.0 */
/* Spans by process and time, compared with a plain list, and while they are written and read
 * concurrently. */
#include "src/join/index/span_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "src/base/clock.h"
#include "src/join/join_limits.h"

enum { PROCESS = 77, SPANS = 200, LOOKS = 20000, ADDS = 100000 };
#define S   ((uint64_t)NS_PER_S)
#define NOW (1000 * S)

static uint64_t state = 3;

static uint64_t random_below(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (mixed ^ mixed >> 31) % below;
}

static void begin(struct span_window *window, unsigned shard, uint64_t process)
{
    const struct resource_facts resource = {.processes = {process}};
    span_window_begin(window, shard, &resource, NOW);
}

/* Which of the spans a sample gets; 0: none. */
static uint64_t find(const struct span_window *window, const struct window_place *place)
{
    struct window_span found;
    uint64_t steps = 0;
    return span_window_find(window, place, &found, &steps) ? found.span : 0;
}

static uint64_t find_at(const struct span_window *window, uint64_t from_ns, uint64_t until_ns)
{
    const struct window_place place = {
        .names = {PROCESS}, .from_ns = from_ns, .until_ns = until_ns};
    return find(window, &place);
}

static const struct {
    const char *name;
    struct window_span spans[3];
    uint64_t from_ns;
    uint64_t until_ns;
    uint64_t found;
} looks[] = {
    {"nothing there", {{.span = 0}}, 100 * S, 100 * S, 0},
    {"inside", {{.span = 1, .start_ns = 99 * S, .end_ns = 101 * S}}, 100 * S, 100 * S, 1},
    {"at its begin", {{.span = 1, .start_ns = 100 * S, .end_ns = 101 * S}}, 100 * S, 100 * S, 1},
    {"clocks differ", {{.span = 1, .start_ns = 101 * S, .end_ns = 102 * S}}, 100 * S, 100 * S, 1},
    {"too early", {{.span = 1, .start_ns = 101 * S + 1, .end_ns = 102 * S}}, 100 * S, 100 * S, 0},
    {"a little late", {{.span = 1, .start_ns = 98 * S, .end_ns = 99 * S}}, 100 * S, 100 * S, 1},
    {"too late", {{.span = 1, .start_ns = 98 * S, .end_ns = 99 * S - 1}}, 100 * S, 100 * S, 0},
    {"all stamps", {{.span = 1, .start_ns = 99 * S, .end_ns = 110 * S}}, 100 * S, 109 * S, 1},
    {"not all stamps", {{.span = 1, .start_ns = 99 * S, .end_ns = 107 * S}}, 100 * S, 109 * S, 0},
    {"an hour long", {{.span = 1, .start_ns = 10 * S, .end_ns = 3610 * S}}, 3500 * S, 3500 * S, 1},
    {"two at a time",
     {{.span = 1, .start_ns = 99 * S, .end_ns = 101 * S},
      {.span = 2, .start_ns = 100 * S, .end_ns = 102 * S}},
     100 * S,
     100 * S,
     0},
    {"two that may be",
     {{.span = 1, .start_ns = 99 * S, .end_ns = 100 * S},
      {.span = 2, .start_ns = 101 * S, .end_ns = 102 * S}},
     100 * S,
     100 * S,
     0},
    {"the innermost",
     {{.span = 1, .start_ns = 90 * S, .end_ns = 110 * S},
      {.span = 2, .parent = 1, .start_ns = 95 * S, .end_ns = 105 * S},
      {.span = 3, .parent = 2, .start_ns = 99 * S, .end_ns = 101 * S}},
     100 * S,
     100 * S,
     3},
    {"a child that may have ended",
     {{.span = 1, .start_ns = 90 * S, .end_ns = 110 * S},
      {.span = 2, .parent = 1, .start_ns = 95 * S, .end_ns = 100 * S - 1}},
     100 * S,
     100 * S,
     0},
    {"a parent of another trace",
     {{.trace = {5}, .span = 1, .start_ns = 90 * S, .end_ns = 110 * S},
      {.trace = {6}, .span = 2, .parent = 1, .start_ns = 95 * S, .end_ns = 105 * S}},
     100 * S,
     100 * S,
     0},
    {"sent again",
     {{.span = 1, .start_ns = 99 * S, .end_ns = 101 * S},
      {.span = 1, .start_ns = 99 * S, .end_ns = 101 * S}},
     100 * S,
     100 * S,
     1},
    {"ends before it begins",
     {{.span = 1, .start_ns = 101 * S, .end_ns = 99 * S}},
     100 * S,
     100 * S,
     0},
    {"no time", {{.span = 1, .start_ns = 0, .end_ns = 101 * S}}, 0, 0, 0},
    {"stamps of years",
     {{.span = 1, .start_ns = 99 * S, .end_ns = 101 * S}},
     100 * S,
     UINT64_MAX,
     0},
    {"stamps of minutes",
     {{.span = 1, .start_ns = 99 * S, .end_ns = 101 * S}},
     100 * S,
     400 * S,
     0},
};

static void the_only_span_at_that_time_is_found(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        struct span_window window;
        assert_true(span_window_init(&window, 2, 64));
        for (unsigned k = 0; k < 3 && looks[i].spans[k].span != 0; k++) {
            begin(&window, k % 2, PROCESS);
            span_window_add(&window, k % 2, &looks[i].spans[k]);
            begin(&window, k % 2, PROCESS + 1);
            span_window_add(&window, k % 2, &looks[i].spans[k]);
        }
        if (find_at(&window, looks[i].from_ns, looks[i].until_ns) != looks[i].found)
            fail_msg("%s", looks[i].name);
        span_window_fini(&window);
    }
}

static void spans_are_distinguished_by_thread_where_possible(void **unused)
{
    static const struct {
        struct thread_facts sample;
        uint32_t resource;
        uint64_t found;
    } rows[] = {
        {{.name = 0}, 1, 0}, /* either span */
        {{.name = 5}, 1, 1}, /* the other one has another name */
        {{.name = 6}, 1, 2}, /* */
        {{.name = 7}, 1, 0}, /* neither */
        {{.id = 15}, 1, 1},  /* of the same producer */
        {{.id = 15}, 2, 0},  /* numbers of two producers cannot be compared */
        {{.name = 5, .id = 16}, 2, 1} /* */,
    };
    static const struct window_span spans[] = {
        {.span = 1,
         .start_ns = 99 * S,
         .end_ns = 101 * S,
         .resource = 1,
         .thread = {.name = 5, .id = 15}},
        {.span = 2,
         .start_ns = 99 * S,
         .end_ns = 101 * S,
         .resource = 1,
         .thread = {.name = 6, .id = 16}},
    };
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 64));
    begin(&window, 0, PROCESS);
    span_window_add(&window, 0, &spans[0]);
    span_window_add(&window, 0, &spans[1]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct window_place place = {.names = {PROCESS},
                                           .from_ns = 100 * S,
                                           .until_ns = 100 * S,
                                           .resource = rows[i].resource,
                                           .thread = rows[i].sample};
        assert_int_equal(find(&window, &place), rows[i].found);
    }
    span_window_fini(&window);
}

static struct thread_facts thread_of(const char *key, const char *text)
{
    uint8_t value[64] = {0x0a, (uint8_t)strlen(text)};
    struct thread_facts facts = {.name = 0};
    memcpy(value + 2, text, strlen(text));
    thread_facts_take(&facts, slice_of_text(key), slice_of(value, 2 + strlen(text)));
    return facts;
}

static void threads_are_compared_by_the_kernel_part_of_their_name(void **unused)
{
    (void)unused;
    struct thread_facts sdk = thread_of("thread.name", "http-nio-8080-exec-1");
    struct thread_facts kernel = thread_of("thread.name", "http-nio-8080-e");
    struct thread_facts other = thread_of("thread.name", "http-nio-8081-e");
    assert_int_not_equal(sdk.name, 0);
    assert_false(thread_facts_differ(&sdk, &kernel, true));
    assert_true(thread_facts_differ(&sdk, &other, false));
    assert_int_not_equal(thread_of("thread.id", "7").id, 0);
    assert_int_equal(thread_of("thread.names", "7").name, 0);
    assert_int_equal(thread_of("thread.name", "").name, 0);
}

static void a_process_is_known_by_any_of_its_names(void **unused)
{
    const struct window_span span = {.span = 1, .start_ns = 99 * S, .end_ns = 101 * S};
    const struct resource_facts resource = {.processes = {0, 22, 33, 0, 55}};
    static const uint64_t names[][RESOURCE_NAMES] = {{0, 22}, {11, 0, 33}, {0, 0, 0, 0, 55}};
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 64));
    span_window_begin(&window, 0, &resource, NOW);
    span_window_add(&window, 0, &span);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct window_place place = {.from_ns = 100 * S, .until_ns = 100 * S};
        memcpy(place.names, names[i], sizeof(place.names));
        assert_int_equal(find(&window, &place), 1);
        memset(place.names, 0, sizeof(place.names));
        place.names[i] = 44;
        assert_int_equal(find(&window, &place), 0);
    }
    span_window_fini(&window);
}

static void where_spans_may_be_missing_none_is_chosen(void **unused)
{
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 16));
    begin(&window, 0, PROCESS);
    for (uint64_t i = 1; i <= 26; i++) {
        const struct window_span span = {
            .span = i, .start_ns = i * 10 * S, .end_ns = (i * 10 + 1) * S};
        span_window_add(&window, 0, &span);
    }
    for (uint64_t i = 1; i <= 26; i++)
        assert_int_equal(find_at(&window, i * 10 * S, i * 10 * S), i <= 10 ? 0 : i);
    span_window_fini(&window);
}

/* Of two spans, one was evicted: the other is not the only one. */
static void evicted_spans_still_count(void **unused)
{
    static const struct window_span spans[] = {
        {.span = 1, .start_ns = 100 * S, .end_ns = 200 * S},
        {.span = 2, .start_ns = 140 * S, .end_ns = 160 * S},
        {.span = 3, .start_ns = 300 * S, .end_ns = 301 * S},
        {.span = 4, .start_ns = 400 * S, .end_ns = 401 * S},
        {.span = 5, .start_ns = 500 * S, .end_ns = 501 * S},
    };
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 4));
    begin(&window, 0, PROCESS);
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        span_window_add(&window, 0, &spans[i]);
        if (i > 0)
            assert_int_equal(find_at(&window, 150 * S, 150 * S), 0);
    }
    assert_int_equal(find_at(&window, 300 * S, 300 * S), 3);
    span_window_fini(&window);
}

/* A producer whose clock is ahead must not affect the others. */
static void evicted_spans_of_the_future_do_no_harm(void **unused)
{
    const struct window_span future = {.span = 99, .start_ns = 5 * NOW, .end_ns = 6 * NOW};
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 4));
    begin(&window, 0, PROCESS + 1);
    for (unsigned i = 0; i < 10; i++)
        span_window_add(&window, 0, &future);
    begin(&window, 0, PROCESS);
    for (uint64_t i = 1; i <= 2; i++) {
        const struct window_span span = {
            .span = i, .start_ns = NOW + i * 10 * S, .end_ns = NOW + (i * 10 + 1) * S};
        span_window_add(&window, 0, &span);
    }
    assert_int_equal(find_at(&window, NOW + 10 * S, NOW + 10 * S), 1);
    span_window_fini(&window);
}

static void a_search_among_too_many_spans_stops(void **unused)
{
    struct span_window window;
    (void)unused;
    assert_true(span_window_init(&window, 1, 100000));
    begin(&window, 0, PROCESS);
    for (uint64_t i = 1; i <= 50000; i++) {
        const struct window_span span = {
            .span = i, .start_ns = 100 * S + i, .end_ns = 100 * S + i + 1};
        span_window_add(&window, 0, &span);
    }
    assert_int_equal(find_at(&window, 100 * S, 100 * S), 0);
    assert_int_equal(find_at(&window, 103 * S, 103 * S), 0);
    span_window_fini(&window);
}

/* The same, by comparing with every span. */
static uint64_t expected_at(const struct window_span *spans, uint64_t from_ns, uint64_t until_ns)
{
    uint64_t found = 0;
    for (unsigned i = 0; i < SPANS; i++) {
        const struct window_span *span = &spans[i];
        if (span->start_ns > until_ns + S || span->end_ns + S < from_ns)
            continue;
        if (found != 0)
            return 0;
        bool covers = span->start_ns <= from_ns + S && span->end_ns + S >= until_ns;
        found = covers ? span->span : UINT64_MAX;
    }
    return found == UINT64_MAX ? 0 : found;
}

static void finding_equals_comparing_with_all_spans(void **unused)
{
    static struct window_span spans[SPANS];
    struct span_window window;
    unsigned hits = 0;
    (void)unused;
    assert_true(span_window_init(&window, 3, 4096));
    for (unsigned i = 0; i < SPANS; i++) {
        uint64_t start_ns = 50 * S + random_below(50000 * S);
        uint64_t ns = random_below(S << random_below(9));
        spans[i] =
            (struct window_span){.span = i + 1, .start_ns = start_ns, .end_ns = start_ns + ns};
        begin(&window, i % 3, PROCESS);
        span_window_add(&window, i % 3, &spans[i]);
    }
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t from_ns = 50 * S + random_below(50200 * S);
        uint64_t until_ns = from_ns + random_below(S << random_below(7));
        uint64_t found = find_at(&window, from_ns, until_ns);
        assert_int_equal(found, expected_at(spans, from_ns, until_ns));
        hits += found != 0;
    }
    assert_true(hits > LOOKS / 20);
    span_window_fini(&window);
}

/* Everything about a span follows from its id, so that a torn read shows. */
static struct window_span span_of(uint64_t number)
{
    return (struct window_span){
        .trace = {number * 3, number * 5},
        .span = number,
        .parent = number * 7,
        .start_ns = 10 * number * S,
        .end_ns = (10 * number + 1) * S,
        .resource = (uint32_t)number,
        .thread = {.name = (uint16_t)number, .id = (uint16_t)(number * 3)},
    };
}

static void *write_spans(void *arg)
{
    struct span_window *window = arg;
    const struct resource_facts resource = {.processes = {PROCESS, 22}};
    for (uint64_t i = 1; i <= ADDS; i++) {
        const struct window_span span = span_of(i);
        span_window_begin(window, 0, &resource, UINT64_MAX / 2);
        span_window_add(window, 0, &span);
    }
    return NULL;
}

static void spans_found_during_writes_are_whole(void **unused)
{
    struct span_window window;
    pthread_t writer;
    uint64_t at = 1;
    (void)unused;
    assert_true(span_window_init(&window, 1, 256));
    assert_int_equal(pthread_create(&writer, NULL, write_spans, &window), 0);
    while (at < ADDS) {
        const struct window_place place = {
            .names = {0, 22}, .from_ns = 10 * at * S, .until_ns = 10 * at * S};
        struct window_span found;
        uint64_t steps = 0;
        if (span_window_find(&window, &place, &found, &steps)) {
            const struct window_span wanted = span_of(at);
            assert_memory_equal(&found, &wanted, sizeof(found));
            at++;
        } else if (atomic_load(&window.shards[0].gone_until_ns) >= place.from_ns - S) {
            at = atomic_load(&window.shards[0].gone_until_ns) / (10 * S) + 2;
        }
    }
    pthread_join(writer, NULL);
    span_window_fini(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_only_span_at_that_time_is_found),
        cmocka_unit_test(spans_are_distinguished_by_thread_where_possible),
        cmocka_unit_test(threads_are_compared_by_the_kernel_part_of_their_name),
        cmocka_unit_test(a_process_is_known_by_any_of_its_names),
        cmocka_unit_test(where_spans_may_be_missing_none_is_chosen),
        cmocka_unit_test(evicted_spans_still_count),
        cmocka_unit_test(evicted_spans_of_the_future_do_no_harm),
        cmocka_unit_test(a_search_among_too_many_spans_stops),
        cmocka_unit_test(finding_equals_comparing_with_all_spans),
        cmocka_unit_test(spans_found_during_writes_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
