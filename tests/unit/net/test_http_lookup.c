/* SPDX-License-Identifier: Apache-2.0 */
/* https to a host whose look-up does not end: neither a request's timeout nor the end of the client
 * waits for the resolver, which would stop the lane. The look-up is this program's. */
#include "src/net/client/http_client.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/config/shared/tls_config.h"
#include "src/core/batch.h"

#include <netdb.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* More than this the look-up does not take, for a client that waits for it. */
enum { LOOKUP_SECONDS_MAX = 10, TEST_SECONDS_MAX = 30 };

static sem_t gate;
static _Atomic bool is_asked;
static _Atomic bool has_answered;

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret_found)
{
    struct timespec end;
    (void)host;
    (void)service;
    (void)hints;
    *ret_found = NULL;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LOOKUP_SECONDS_MAX;
    atomic_store(&is_asked, true);
    (void)sem_timedwait(&gate, &end);
    atomic_store(&has_answered, true);
    return EAI_FAIL;
}

static _Atomic bool is_done;
static _Atomic bool is_closed;
static bool is_late;

static void on_done(const struct http_result *result, void *arg)
{
    (void)arg;
    is_late = result->is_late;
    atomic_store(&is_done, true);
}

static void on_closed(void *arg)
{
    (void)arg;
    atomic_store(&is_closed, true);
}

static void turn_until(struct lane *lane, const _Atomic bool *flag)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (!atomic_load(flag)) {
        lane_turn(lane);
        sched_yield();
        if (time(NULL) > end)
            fail_msg("nothing happened for %d seconds", TEST_SECONDS_MAX);
    }
}

static struct http_client *post(struct lane *lane, uint64_t timeout_ns)
{
    static const struct batch_part part = {.bytes = {.data = (const uint8_t *)"x", .size = 1}};
    struct error error;
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    atomic_store(&is_asked, false);
    atomic_store(&has_answered, false);
    atomic_store(&is_done, false);
    atomic_store(&is_closed, false);
    struct http_client *client =
        http_client_create(&(struct http_client_settings){.lane = lane,
                                                          .url = "https://backend.test:4318/",
                                                          .user_agent = "test/1",
                                                          .timeout_ns = timeout_ns,
                                                          .has_keep_alive = true,
                                                          .proxy_url = ""},
                           &error);
    if (client == NULL)
        fail_msg("%s", error.text);
    http_client_post(client, &(struct http_post){.parts = &part,
                                                 .parts_count = 1,
                                                 .bytes = 1,
                                                 .content_type = "text/plain",
                                                 .done = on_done});
    turn_until(lane, &is_asked);
    return client;
}

static void end(struct lane *lane, struct http_client *client)
{
    sem_post(&gate);
    turn_until(lane, &has_answered);
    turn_until(lane, &is_closed);
    http_client_destroy(client);
    lane_destroy(lane);
}

static void a_timeout_does_not_wait_for_the_resolver(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct http_client *client = post(lane, 50 * (uint64_t)NS_PER_MS);
    turn_until(lane, &is_done);
    assert_false(atomic_load(&has_answered));
    assert_true(is_late);
    http_client_close(client, on_closed, NULL);
    end(lane, client);
}

static void closing_does_not_wait_for_the_resolver(void **state)
{
    (void)state;
    struct lane *lane = lane_create(0);
    struct http_client *client = post(lane, 3600 * (uint64_t)NS_PER_S);
    http_client_close(client, on_closed, NULL);
    turn_until(lane, &is_closed);
    assert_true(atomic_load(&is_done));
    assert_false(atomic_load(&has_answered));
    end(lane, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_does_not_wait_for_the_resolver),
        cmocka_unit_test(closing_does_not_wait_for_the_resolver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
