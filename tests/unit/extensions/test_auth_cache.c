/* SPDX-License-Identifier: Apache-2.0 */
/* Cached credentials, and the time that checking new ones may take. */
#include "extensions/auth_cache.h"

#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/listen/authenticator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct auth_cache *cache;

static int set_up(void **state)
{
    struct error error;
    (void)state;
    assert_true(digest_prepare(&error));
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 0);
    cache = auth_cache_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    auth_cache_destroy(cache);
    clock_fake_stop();
    return 0;
}

static struct slice numbered(char *room, size_t size, unsigned number)
{
    snprintf(room, size, "%u", number);
    return slice_of_text(room);
}

static void wrong_credentials_never_evict_right_ones(void **state)
{
    char room[32];
    (void)state;
    auth_cache_add(cache, slice_of_text("right"), true);
    for (unsigned i = 0; i < 2 * AUTH_WRONG_KEPT_MAX; i++)
        auth_cache_add(cache, numbered(room, sizeof(room), i), false);
    assert_int_equal(auth_cache_find(cache, slice_of_text("right")), AUTH_WAS_RIGHT);
    assert_int_equal(auth_cache_find(cache, slice_of_text("0")), AUTH_UNKNOWN);
    numbered(room, sizeof(room), 2 * AUTH_WRONG_KEPT_MAX - 1);
    assert_int_equal(auth_cache_find(cache, slice_of_text(room)), AUTH_WAS_WRONG);
    auth_cache_clear(cache);
    assert_int_equal(auth_cache_find(cache, slice_of_text("right")), AUTH_UNKNOWN);
}

static void the_oldest_are_evicted(void **state)
{
    char room[32];
    (void)state;
    for (unsigned i = 0; i <= AUTH_RIGHT_KEPT_MAX; i++)
        auth_cache_add(cache, numbered(room, sizeof(room), i), true);
    assert_int_equal(auth_cache_find(cache, slice_of_text("0")), AUTH_UNKNOWN);
    assert_int_equal(auth_cache_find(cache, slice_of_text("1")), AUTH_WAS_RIGHT);
}

static void checking_gets_a_share_of_time(void **state)
{
    (void)state;
    assert_true(auth_cache_may_check(cache, 0));
    assert_true(auth_cache_may_check(cache, (uint64_t)AUTH_CHECK_BURST_NS - 1));
    assert_false(auth_cache_may_check(cache, (uint64_t)AUTH_CHECK_BURST_NS));
    auth_cache_spend(cache, (uint64_t)AUTH_CHECK_BURST_NS);
    assert_false(auth_cache_may_check(cache, 0));
    clock_fake_advance(NS_PER_S);
    assert_true(auth_cache_may_check(cache, 0));
    auth_cache_spend(cache, NS_PER_S / AUTH_CHECK_SHARE + NS_PER_S / 2);
    clock_fake_advance(NS_PER_S);
    assert_false(auth_cache_may_check(cache, 0));
    clock_fake_advance(5 * (uint64_t)NS_PER_S);
    assert_true(auth_cache_may_check(cache, 0));
    /* A long pause gives one burst, not more. */
    clock_fake_advance(86400 * (uint64_t)NS_PER_S);
    assert_true(auth_cache_may_check(cache, 0));
    auth_cache_spend(cache, (uint64_t)AUTH_CHECK_BURST_NS);
    assert_false(auth_cache_may_check(cache, 0));
}

int main(void)
{
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROW(wrong_credentials_never_evict_right_ones),
        ROW(the_oldest_are_evicted),
        ROW(checking_gets_a_share_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
