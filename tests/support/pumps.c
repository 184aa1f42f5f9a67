/* SPDX-License-Identifier: Apache-2.0 */
/* One pump per lane, and the way in which they end: each reports to lane 0, which stops the service
 * and then ends all lanes. */
#include "tests/support/pumps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/service/service.h"

#define PUMP_PAUSE_NS ((uint64_t)100 * NS_PER_US)

struct pump {
    struct lane_task task;
    struct timer timer;
    const struct pump_plan *plan;
    struct harness *harness;
    struct component *receiver;
    unsigned lane;
    size_t sent; /* rounds */
    struct test_request *requests;
};

static struct pump pumps[PUMPS];
static unsigned pumps_done; /* on lane 0 */

static void on_end(struct lane_task *task)
{
    struct pump *pump = (struct pump *)task;
    lane_end(pump->receiver->lane);
}

static void on_stopped(bool is_forced, void *arg)
{
    struct harness *harness = arg;
    harness->has_stopped = true;
    harness->was_forced = is_forced;
    for (unsigned i = 0; i < PUMPS; i++) {
        pumps[i].task.fn = on_end;
        lane_post(pumps[i].receiver->lane, &pumps[i].task);
    }
}

static void on_done(struct lane_task *task)
{
    struct pump *pump = (struct pump *)task;
    if (++pumps_done == PUMPS)
        service_stop(pump->harness->service, on_stopped, pump->harness);
}

static bool is_all_resolved(const struct pump *pump)
{
    for (size_t i = 0; i < pump->plan->rounds * pump->plan->round_requests; i++)
        if (!pump->requests[i].is_resolved)
            return false;
    return true;
}

static void on_timer(struct timer *timer, void *arg)
{
    struct pump *pump = arg;
    const struct pump_plan *plan = pump->plan;
    for (size_t i = 0; i < plan->burst && pump->sent < plan->rounds; i++) {
        plan->offer(pump->receiver, pump->lane, pump->sent,
                    pump->requests + pump->sent * plan->round_requests);
        pump->sent++;
    }
    free(harness_metrics(pump->harness)); /* which reads the other lane's counters */
    if (pump->sent < plan->rounds || !is_all_resolved(pump)) {
        lane_timer_start(pump->receiver->lane, timer, PUMP_PAUSE_NS);
        return;
    }
    pump->task.fn = on_done;
    lane_post(pump->harness->lanes[0], &pump->task);
}

static void start_pump(struct harness *harness, const struct pump_plan *plan, unsigned lane)
{
    struct pump *pump = &pumps[lane];
    *pump = (struct pump){.plan = plan, .harness = harness, .lane = lane};
    pump->receiver = harness_receiver(harness, "test", lane);
    pump->requests = mem_zalloc(plan->rounds * plan->round_requests * sizeof(*pump->requests));
    timer_init(&pump->timer, on_timer, pump);
    lane_timer_start(harness->lanes[lane], &pump->timer, 0);
}

void pumps_run(struct harness *harness, const struct pump_plan *plan)
{
    assert_int_equal(harness->lanes_count, PUMPS);
    clock_fake_stop();
    pumps_done = 0;
    /* Under a sanitizer nothing else initializes glibc's allocator, whose figures are read: its
     * first call does so without a lock. */
    free(harness_metrics(harness));
    for (unsigned i = 0; i < PUMPS; i++)
        start_pump(harness, plan, i);
    for (unsigned i = 1; i < PUMPS; i++)
        assert_int_equal(lane_spawn(harness->lanes[i]), 0);
    lane_run(harness->lanes[0]);
    for (unsigned i = 1; i < PUMPS; i++)
        lane_join(harness->lanes[i]);
    assert_true(harness->has_stopped);
    assert_false(harness->was_forced);
    for (unsigned i = 0; i < PUMPS; i++)
        mem_free(pumps[i].requests);
}
