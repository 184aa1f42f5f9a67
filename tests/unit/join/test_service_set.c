/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of services: that they send profiles, that their spans are new or missing. */
#include "src/join/index/service_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1000 };

static void all_spans_are_of_use_until_linked_services_have_sent_some(void **state)
{
    static struct service_set set;
    (void)state;
    memset(&set, 0, sizeof(set));
    assert_false(service_set_is_warm(&set, NOW + 10 * JOIN_WARM_UP_NS));
    assert_true(service_set_may_have(&set, 400));
    service_set_add(&set, 100, true, NOW);
    service_set_add(&set, 200, false, NOW + 1);
    assert_true(service_set_may_have(&set, 100));
    assert_false(service_set_may_have(&set, 400));
    assert_false(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS)); /* no spans of 100 */
    service_set_match(&set, 300);
    assert_false(service_set_has(&set, 300));
    service_set_match(&set, 100);
    assert_true(service_set_is_matched(&set, 100));
    assert_false(service_set_is_matched(&set, 200));
    assert_false(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS - 1));
    assert_true(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    service_set_match(&set, 200);
    service_set_add(&set, 200, true, NOW); /* known by its spans before it is linked */
    assert_true(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    service_set_add(&set, 0, false, NOW); /* an unknown service, but without links */
    assert_true(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    service_set_add(&set, 0, true, NOW);
    assert_false(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    assert_true(service_set_may_have(&set, 400));
}

static void with_too_many_services_all_spans_may_have_profiles(void **state)
{
    static struct service_set set;
    (void)state;
    memset(&set, 0, sizeof(set));
    for (uint64_t key = 1; key <= JOIN_SERVICES_MAX; key++) {
        service_set_add(&set, key * 4, true, NOW);
        service_set_match(&set, key * 4);
    }
    assert_true(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    assert_false(service_set_may_have(&set, (uint64_t)4 * JOIN_SERVICES_MAX + 4));
    service_set_add(&set, (uint64_t)4 * JOIN_SERVICES_MAX + 4, true, NOW);
    assert_false(service_set_is_warm(&set, NOW + JOIN_WARM_UP_NS));
    assert_true(service_set_may_have(&set, 1 << 30));
}

static void a_pending_service_is_new_for_a_while_and_again_after_a_silence(void **state)
{
    static const struct {
        uint64_t after_ns; /* since the call before */
        bool lasts;
    } rows[] = {
        {0, true},
        {JOIN_WARM_UP_NS, true},
        {1, false},
        {JOIN_WARM_UP_NS, false},
        {JOIN_WARM_UP_NS + 1, true},
        {JOIN_WARM_UP_NS / 2, true},
        {JOIN_WARM_UP_NS, false},
    };
    struct pending_services services = {.entries = NULL};
    uint64_t now_ns = NOW;
    (void)state;
    assert_true(pending_services_init(&services));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        now_ns += rows[i].after_ns;
        if (pending_services_has(&services, 5, now_ns) != rows[i].lasts)
            fail_msg("row %zu", i);
    }
    assert_true(pending_services_has(&services, 6, now_ns)); /* each key on its own */
    pending_services_fini(&services);
}

static void the_pending_service_not_asked_for_the_longest_is_evicted(void **state)
{
    struct pending_services services = {.entries = NULL};
    uint64_t now_ns = NOW;
    unsigned remembered = 0;
    (void)state;
    assert_true(pending_services_init(&services));
    for (uint64_t key = 1; key <= 3 * JOIN_PENDING_SERVICES_MAX; key++)
        assert_true(pending_services_has(&services, key, now_ns++));
    now_ns = NOW + JOIN_WARM_UP_NS;
    for (uint64_t key = 2 * JOIN_PENDING_SERVICES_MAX + 1; key <= 3 * JOIN_PENDING_SERVICES_MAX;
         key++)
        assert_true(pending_services_has(&services, key, now_ns));
    now_ns = NOW + 2 * JOIN_WARM_UP_NS;
    for (uint64_t key = 2 * JOIN_PENDING_SERVICES_MAX + 1; key <= 3 * JOIN_PENDING_SERVICES_MAX;
         key++)
        remembered += !pending_services_has(&services, key, now_ns);
    assert_int_equal(remembered, JOIN_PENDING_SERVICES_MAX);
    pending_services_fini(&services);
}

static void a_service_is_recent_for_a_while_and_again_after_a_silence(void **state)
{
    static struct recent_services set;
    const uint64_t key = 0x123456789abcdef0;
    const uint64_t began = (uint64_t)5 * NS_PER_S + 7;
    uint64_t now = began;
    (void)state;
    memset(&set, 0, sizeof(set));
    for (; now <= began + JOIN_WARM_UP_NS; now += (uint64_t)15 * NS_PER_S)
        assert_true(recent_services_has(&set, key, now));
    for (; now <= began + 3 * JOIN_WARM_UP_NS; now += (uint64_t)15 * NS_PER_S)
        assert_false(recent_services_has(&set, key, now));
    assert_true(
        recent_services_has(&set, key + ((uint64_t)1 << 40), now)); /* another at that place */
    assert_true(recent_services_has(&set, key, now));
    assert_true(recent_services_has(&set, key, now + 3 * JOIN_WARM_UP_NS));
}

static void wrapping_seconds_do_not_make_a_service_recent(void **state)
{
    static struct recent_services set;
    const uint64_t around = ((uint64_t)1 << 18) * NS_PER_S;
    uint64_t now = around - 2 * JOIN_WARM_UP_NS;
    (void)state;
    memset(&set, 0, sizeof(set));
    for (uint64_t until = now + JOIN_WARM_UP_NS; now <= until; now += NS_PER_S)
        assert_true(recent_services_has(&set, 99, now));
    for (uint64_t until = around + 2 * JOIN_WARM_UP_NS; now <= until; now += NS_PER_S)
        assert_false(recent_services_has(&set, 99, now));
}

/* Threads take the time before they look: the other's may be the later one. */
static void times_just_before_what_another_thread_wrote_are_as_good(void **state)
{
    static struct service_set set;
    static struct recent_services recent;
    struct pending_services pending = {.entries = NULL};
    uint64_t now = (uint64_t)1000 * NS_PER_S;
    (void)state;
    memset(&set, 0, sizeof(set));
    memset(&recent, 0, sizeof(recent));
    service_set_add(&set, 100, false, now);
    assert_false(service_set_is_warm(&set, now - 1));

    assert_true(pending_services_init(&pending));
    assert_true(pending_services_has(&pending, 5, now));
    assert_true(pending_services_has(&pending, 5, now - 1));
    pending_services_fini(&pending);

    for (uint64_t until = now + 2 * JOIN_WARM_UP_NS; now < until; now += NS_PER_S)
        recent_services_has(&recent, 99, now);
    assert_false(recent_services_has(&recent, 99, now));
    assert_false(recent_services_has(&recent, 99, now - NS_PER_S));
    assert_false(recent_services_has(&recent, 99, now + NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_is_recent_for_a_while_and_again_after_a_silence),
        cmocka_unit_test(wrapping_seconds_do_not_make_a_service_recent),
        cmocka_unit_test(all_spans_are_of_use_until_linked_services_have_sent_some),
        cmocka_unit_test(with_too_many_services_all_spans_may_have_profiles),
        cmocka_unit_test(a_pending_service_is_new_for_a_while_and_again_after_a_silence),
        cmocka_unit_test(the_pending_service_not_asked_for_the_longest_is_evicted),
        cmocka_unit_test(times_just_before_what_another_thread_wrote_are_as_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
