/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes have one trace, and when: spans in their order of arrival, then the time of a
 * profile. */
#include "src/join/index/single_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/clock.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

#define S ((uint64_t)NS_PER_S)

enum {
    KIND_INTERNAL = 1,
    KIND_SERVER = 2,
    KIND_CONSUMER = 5,
    SPANS_MAX = 6,
    SERVICE = 77,
    PROCESS = 99,
    UNDECIDED = 9
};

struct step {
    uint64_t at_s; /* when it arrives */
    uint64_t trace;
    uint64_t span;
    uint64_t parent;
    uint64_t start_s;
    uint64_t end_s;
    unsigned kind;
};

static const struct resource_facts by_service = {.service = SERVICE};
static const struct resource_facts by_process = {.service = SERVICE, .processes = {0, 0, PROCESS}};

static void arrive(struct single_traces *traces, const struct resource_facts *facts,
                   const struct step *step)
{
    uint64_t now_ns = step->at_s * S;
    struct process_keys keys = single_traces_begin(traces, facts, now_ns);
    struct span_facts span = {
        .trace = {step->trace, step->trace},
        .span = step->span,
        .parent = step->parent,
        .start_ns = step->start_s * S,
        .end_ns = step->end_s * S,
        .flags = (uint16_t)(step->kind | (step->parent == 0 ? SPAN_IS_LOCAL_ROOT : 0)),
    };
    if (keys.count > 0)
        single_traces_note(traces, &keys, &span, now_ns);
}

static enum single_trace_found find(struct single_traces *traces,
                                    const struct resource_facts *facts, uint64_t from_s,
                                    uint64_t until_s, struct single_trace *ret_trace)
{
    const struct process_names names = process_names_of(facts);
    return single_traces_find(traces, &names, from_s * S, until_s * S, ret_trace);
}

static enum process_state state_at(struct single_traces *traces, const struct resource_facts *facts,
                                   uint64_t now_ns)
{
    const struct process_names names = process_names_of(facts);
    return single_traces_state(traces, &names, now_ns);
}

static const struct {
    const char *what;
    struct step steps[SPANS_MAX];
    uint64_t from_s, until_s;
    uint64_t trace; /* 0: none; or UNDECIDED */
    uint64_t root;
} processes[] = {
    {"children tell of a root that has not ended",
     {{12, 1, 20, 10, 6, 7, 1}, {13, 1, 21, 10, 7, 8, 1}},
     8,
     18,
     1,
     10},
    {"the root itself", {{100, 1, 10, 0, 5, 99, 1}}, 50, 60, 1, 10},
    {"a parent that comes is not the root",
     {{12, 1, 30, 20, 6, 7, 1}, {13, 1, 20, 10, 6, 8, 1}, {14, 1, 31, 21, 8, 9, 1}},
     8,
     18,
     1,
     10},
    {"two traces", {{12, 1, 20, 10, 6, 7, 1}, {13, 2, 21, 11, 7, 8, 1}}, 8, 18, 0, 0},
    {"a server, before its second trace", {{12, 1, 10, 0, 6, 12, KIND_SERVER}}, 5, 15, 0, 0},
    {"a consumer, before its second trace", {{12, 1, 10, 0, 6, 12, KIND_CONSUMER}}, 5, 15, 0, 0},
    {"the first request of one that does not say so", {{12, 1, 10, 0, 10, 11, 1}}, 5, 15, 0, 0},
    {"before the trace began, as far as a child tells",
     {{112, 1, 20, 10, 106, 107, 1}},
     8,
     18,
     UNDECIDED,
     0},
    {"before the trace began", {{112, 1, 10, 0, 106, 107, 1}}, 8, 18, 0, 0},
    {"after the root has ended", {{12, 1, 10, 0, 2, 9, 1}}, 20, 30, 0, 0},
    {"half of the time is the trace's", {{12, 1, 10, 0, 10, 100, 1}}, 5, 15, 1, 10},
    {"less than half is", {{12, 1, 10, 0, 11, 100, 1}}, 5, 15, 0, 0},
    {"after a long silence it is another process",
     {{12, 1, 10, 0, 5, 11, 1}, {500, 2, 20, 11, 494, 499, 1}},
     496,
     506,
     2,
     11},
    {"a short silence is none",
     {{12, 1, 10, 0, 5, 11, 1}, {80, 2, 20, 11, 75, 79, 1}},
     76,
     80,
     0,
     0},
};

static void a_process_has_one_trace_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
        struct single_traces traces = {.entries = NULL};
        struct single_trace found = {.root = 0};
        assert_true(single_traces_init(&traces));
        for (size_t k = 0; k < SPANS_MAX && processes[i].steps[k].span != 0; k++)
            arrive(&traces, &by_service, &processes[i].steps[k]);
        enum single_trace_found result =
            find(&traces, &by_service, processes[i].from_s, processes[i].until_s, &found);
        enum single_trace_found wanted = processes[i].trace == 0           ? SINGLE_TRACE_NONE
                                         : processes[i].trace == UNDECIDED ? SINGLE_TRACE_UNDECIDED
                                                                           : SINGLE_TRACE_FOUND;
        if (result != wanted)
            fail_msg("%s: %d", processes[i].what, (int)result);
        if (result == SINGLE_TRACE_FOUND) {
            assert_int_equal(found.trace[0], processes[i].trace);
            assert_int_equal(found.root, processes[i].root);
        }
        single_traces_fini(&traces);
    }
}

/* Another process of that service, named in the same way. */
static const struct resource_facts by_other = {.service = SERVICE,
                                               .processes = {0, 0, PROCESS + 1}};

static void processes_of_one_service_are_distinguished_by_name(void **state)
{
    static const struct step first = {12, 1, 20, 10, 6, 7, KIND_INTERNAL};
    static const struct step second = {13, 2, 21, 11, 6, 7, KIND_INTERNAL};
    struct single_traces traces = {.entries = NULL};
    struct single_trace found;
    (void)state;
    assert_true(single_traces_init(&traces));
    arrive(&traces, &by_process, &first);
    assert_int_equal(find(&traces, &by_service, 8, 18, &found), SINGLE_TRACE_FOUND);
    assert_int_equal(find(&traces, &by_other, 8, 18, &found), SINGLE_TRACE_NONE);
    arrive(&traces, &by_other, &second);
    assert_int_equal(find(&traces, &by_process, 8, 18, &found), SINGLE_TRACE_FOUND);
    assert_int_equal(found.trace[0], 1);
    assert_int_equal(find(&traces, &by_other, 8, 18, &found), SINGLE_TRACE_FOUND);
    assert_int_equal(found.trace[0], 2);
    assert_int_equal(find(&traces, &by_service, 8, 18, &found), SINGLE_TRACE_NONE);
    single_traces_fini(&traces);
}

/* When profiles and spans name their process differently, only the service is left. */
static void a_process_is_its_service_where_it_is_named_differently(void **state)
{
    static const struct resource_facts by_container = {.service = SERVICE, .processes = {PROCESS}};
    static const struct step child = {12, 1, 20, 10, 6, 7, KIND_INTERNAL};
    struct single_traces traces = {.entries = NULL};
    struct single_trace found;
    (void)state;
    assert_true(single_traces_init(&traces));
    arrive(&traces, &by_process, &child);
    assert_int_equal(find(&traces, &by_container, 8, 18, &found), SINGLE_TRACE_FOUND);
    assert_int_equal(state_at(&traces, &by_container, 12 * S), PROCESS_HAS_TRACE);
    single_traces_fini(&traces);
}

static void what_is_known_expires(void **state)
{
    static const struct step child = {12, 1, 20, 10, 6, 7, KIND_INTERNAL};
    static const struct step served = {13, 1, 21, 10, 6, 7, KIND_SERVER};
    static const uint64_t old_ns = 13 * S + JOIN_WARM_UP_NS;
    struct single_traces traces = {.entries = NULL};
    (void)state;
    assert_true(single_traces_init(&traces));
    assert_int_equal(state_at(&traces, &by_process, 12 * S), PROCESS_UNKNOWN);
    arrive(&traces, &by_process, &child);
    assert_int_equal(state_at(&traces, &by_process, old_ns - S), PROCESS_HAS_TRACE);
    assert_int_equal(state_at(&traces, &by_other, old_ns - S), PROCESS_PENDING);
    assert_int_equal(state_at(&traces, &by_process, old_ns), PROCESS_UNKNOWN);
    assert_int_equal(state_at(&traces, &by_other, old_ns), PROCESS_UNKNOWN);
    arrive(&traces, &by_process, &served);
    assert_int_equal(state_at(&traces, &by_process, old_ns), PROCESS_SHARED);
    assert_int_equal(state_at(&traces, &by_other, old_ns), PROCESS_PENDING);
    single_traces_fini(&traces);
}

static void the_quietest_processes_are_evicted(void **state)
{
    struct single_traces traces = {.entries = NULL};
    struct single_trace found;
    unsigned known = 0;
    (void)state;
    assert_true(single_traces_init(&traces));
    for (uint64_t i = 1; i <= 10 * JOIN_SINGLE_TRACES_MAX; i++) {
        struct resource_facts facts = {.service = i};
        struct step step = {1 + i / JOIN_SINGLE_TRACES_MAX, 1, 20, 10, 1, 2, KIND_INTERNAL};
        arrive(&traces, &facts, &step);
    }
    for (uint64_t i = 1; i <= 10 * JOIN_SINGLE_TRACES_MAX; i++) {
        struct resource_facts facts = {.service = i};
        known += find(&traces, &facts, 2, 9, &found) == SINGLE_TRACE_FOUND;
    }
    assert_int_equal(known, JOIN_SINGLE_TRACES_MAX);
    single_traces_fini(&traces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_one_trace_or_not),
        cmocka_unit_test(processes_of_one_service_are_distinguished_by_name),
        cmocka_unit_test(a_process_is_its_service_where_it_is_named_differently),
        cmocka_unit_test(what_is_known_expires),
        cmocka_unit_test(the_quietest_processes_are_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
