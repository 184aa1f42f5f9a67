/* SPDX-License-Identifier: Apache-2.0 */
/* Stops a service front to back, stage by stage: each stage runs on every lane, and the next begins
 * when all lanes are done with it. Pipelines are drained by their depth, so that what comes through
 * a connector still finds the pipeline behind it at work. A deadline, or a second interrupt, cuts
 * the drain short. Driven from lane 0. */
#include <assert.h>
#include <stdatomic.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/stop_latch.h"
#include "src/core/ledger.h"
#include "src/pipeline/exporter_queue.h"
#include "src/pipeline/pipeline.h"
#include "src/service/journals.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "src/service/telemetry.h"

enum stop_stage {
    STOP_RECEIVERS,
    /* These four for the pipelines of one depth after the other, front to back: */
    STOP_RINGS,      /* what receivers and connectors handed over goes through the processors */
    STOP_PROCESSORS, /* one after the other, in order: what one lets go the next still takes */
    STOP_FANOUTS,    /* what waits for room in a queue goes in */
    STOP_CONNECTORS, /* those that no pipeline feeds any longer */
    STOP_EXPORTER_QUEUES,
    STOP_EXPORTERS,
    STOP_EXTENSIONS,
    STOP_DONE,
};

/* One lane's share of a stage. */
struct stop_lane {
    struct lane_task task; /* first: carries the stage to the lane, and the end of it back */
    struct stop_run *run;
    struct service_lane *part;
    struct stop_latch latch;
};

struct stop_run {
    struct service *service;
    enum stop_stage stage;
    size_t depth;     /* of the pipelines that are drained */
    size_t processor; /* in STOP_PROCESSORS: which of each pipeline */
    unsigned lanes_pending;
    bool is_forced; /* on lane 0 only */
    struct timer deadline;
    void (*done)(bool is_forced, void *arg);
    void *arg;
    struct stop_lane lanes[];
};

static void begin_stage(struct stop_run *run);

static void stop_component(struct component *component, struct stop_latch *latch)
{
    if (component == NULL || component->stopping != NULL)
        return;
    assert(component->lane != NULL);
    stop_latch_hold(latch);
    component->stopping = latch;
    if (component->factory->stop != NULL && component->is_started)
        component->factory->stop(component);
    else
        component_stopped(component);
}

static void release_senders(struct component *component)
{
    if (component != NULL && component->is_started && component->factory->release_senders != NULL)
        component->factory->release_senders(component);
}

static void release(void *arg)
{
    stop_latch_release(arg);
}

/* The depth of the deepest pipeline that exports to the connector: once it is drained, nothing more
 * comes. */
static size_t feeding_depth(const struct config *config, const struct component *connector)
{
    size_t depth = 0;
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (pipeline->depth <= depth || pipeline->signal != connector->signal)
            continue;
        for (size_t j = 0; j < pipeline->exporters_count; j++)
            if (pipeline->exporters[j]->id == connector->id)
                depth = pipeline->depth;
    }
    return depth;
}

static void finish(struct stop_run *run)
{
    assert(run->done != NULL);
    assert(lane_is_current(run->service->lanes[0].lane));
    struct service *service = run->service;
    void (*done)(bool, void *) = run->done;
    void *arg = run->arg;
    bool is_forced = run->is_forced;
    lane_timer_stop(service->lanes[0].lane, &run->deadline);
    journals_stop(service, is_forced);
    service->stop_run = NULL;
    /* When cut short, components may still hold a latch of this run, so it is not freed. */
    if (!is_forced)
        mem_free(run);
    done(is_forced, arg);
}

static void on_share_reported(struct lane_task *task)
{
    struct stop_lane *share = (struct stop_lane *)task;
    struct stop_run *run = share->run;
    if (run->is_forced)
        return;
    assert(run->lanes_pending > 0);
    if (--run->lanes_pending > 0)
        return;
    assert(run->stage < STOP_DONE);
    const struct config *config = run->service->config;
    if (run->stage == STOP_PROCESSORS) {
        bool is_last = true;
        run->processor++;
        for (size_t i = 0; i < config->pipelines_count; i++)
            is_last &= run->processor >= config->pipelines[i].processors_count;
        if (!is_last) {
            begin_stage(run);
            return;
        }
    }
    if (run->stage == STOP_CONNECTORS && run->depth < config->depth) {
        run->depth++;
        run->processor = 0;
        run->stage = STOP_RINGS;
        begin_stage(run);
        return;
    }
    run->stage++;
    if (run->stage == STOP_DONE)
        finish(run);
    else
        begin_stage(run);
}

static void on_share_done(void *arg)
{
    struct stop_lane *share = arg;
    assert(share->run != NULL);
    assert(share->latch.pending == 0);
    share->task.fn = on_share_reported;
    lane_post(share->run->service->lanes[0].lane, &share->task);
}

/* On the lane: stops its share of the stage. The latch is held meanwhile, so that it cannot open
 * before all are asked to stop. */
static void on_share_begun(struct lane_task *task)
{
    struct stop_lane *share = (struct stop_lane *)task;
    const struct stop_run *run = share->run;
    const struct service_lane *part = share->part;
    struct service *service = run->service;
    const struct config *config = service->config;
    assert(lane_is_current(part->lane));
    share->latch = (struct stop_latch){.fn = on_share_done, .arg = share};
    stop_latch_hold(&share->latch);
    size_t exporters = config->components_count * SIGNAL_KINDS;
    switch (run->stage) {
    case STOP_RECEIVERS:
        for (size_t i = 0; i < exporters; i++)
            if (part->queues[i] != NULL)
                exporter_queue_flush_retries(part->queues[i]);
        for (size_t i = 0; i < config->pipelines_count; i++)
            for (size_t j = 0; j < config->pipelines[i].processors_count; j++)
                release_senders(part->processors[i][j]);
        for (size_t i = 0; i < config->components_count; i++)
            stop_component(part->receivers[i], &share->latch);
        break;
    case STOP_RINGS:
    case STOP_FANOUTS:
        for (size_t i = 0; i < config->pipelines_count; i++) {
            if (config->pipelines[i].depth != run->depth)
                continue;
            stop_latch_hold(&share->latch);
            pipeline_drain(part->pipelines[i], release, &share->latch);
        }
        break;
    case STOP_PROCESSORS:
        for (size_t i = 0; i < config->pipelines_count; i++)
            if (config->pipelines[i].depth == run->depth &&
                run->processor < config->pipelines[i].processors_count)
                stop_component(part->processors[i][run->processor], &share->latch);
        break;
    case STOP_CONNECTORS:
        for (size_t i = 0; i < config->components_count * SIGNAL_PAIRS; i++) {
            struct component *connector = part->connectors[i];
            if (connector != NULL && feeding_depth(config, connector) == run->depth)
                stop_component(connector, &share->latch);
        }
        break;
    case STOP_EXPORTER_QUEUES:
        for (size_t i = 0; i < exporters; i++) {
            if (part->queues[i] == NULL)
                continue;
            stop_latch_hold(&share->latch);
            exporter_queue_stop(part->queues[i], release, &share->latch);
        }
        break;
    case STOP_EXPORTERS:
        for (size_t i = 0; i < exporters; i++)
            stop_component(part->exporters[i], &share->latch);
        break;
    case STOP_EXTENSIONS:
        if (part != &service->lanes[0])
            break;
        for (size_t i = config->extensions_count; i > 0; i--)
            stop_component(service->extensions[i - 1], &share->latch);
        if (service->telemetry != NULL) {
            stop_latch_hold(&share->latch);
            telemetry_stop(service->telemetry, release, &share->latch);
        }
        break;
    case STOP_DONE:
        break;
    }
    stop_latch_release(&share->latch);
}

static void begin_stage(struct stop_run *run)
{
    assert(run->stage < STOP_DONE);
    assert(!run->is_forced);
    run->lanes_pending = run->service->lanes_count;
    for (unsigned i = 0; i < run->service->lanes_count; i++) {
        run->lanes[i].task.fn = on_share_begun;
        lane_post(run->lanes[i].part->lane, &run->lanes[i].task);
    }
}

static void on_deadline(struct timer *timer, void *arg)
{
    (void)timer;
    service_force(arg);
}

void service_stop(struct service *service, void (*done)(bool is_forced, void *arg), void *arg)
{
    assert(service->stop_run == NULL);
    assert(lane_is_current(service->lanes[0].lane));
    struct stop_run *run = mem_zalloc(sizeof(*run) + service->lanes_count * sizeof(run->lanes[0]));
    run->service = service;
    run->done = done;
    run->arg = arg;
    timer_init(&run->deadline, on_deadline, service);
    for (unsigned i = 0; i < service->lanes_count; i++) {
        run->lanes[i].run = run;
        run->lanes[i].part = &service->lanes[i];
    }
    service->stop_run = run;
    atomic_store(&service->state, SERVICE_STOPPING);
    log_info(NULL, "Starting shutdown...");
    journals_pause(service);
    lane_timer_start(service->lanes[0].lane, &run->deadline,
                     service->config->service.drain_timeout_ns);
    begin_stage(run);
}

/* Carries the end of the drain to a lane; apart from the stage's task, which may be under way. */
struct abandon_task {
    struct lane_task task;
    struct stop_run *run;
    struct service_lane *part;
};

/* Of all lanes: items may have gone from one to another. */
static void abandon_items(struct service *service)
{
    struct ledger *ledgers[LANES_MAX];
    for (unsigned i = 0; i < service->lanes_count; i++)
        ledgers[i] = &service->lanes[i].ledger;
    service->abandoned_items = ledger_abandon_all(ledgers, service->lanes_count);
}

static void on_abandoned(struct lane_task *task)
{
    struct abandon_task *abandon = (struct abandon_task *)task;
    struct stop_run *run = abandon->run;
    mem_free(abandon);
    assert(run->lanes_pending > 0);
    if (--run->lanes_pending > 0)
        return;
    abandon_items(run->service);
    finish(run);
}

static void on_abandon(struct lane_task *task)
{
    struct abandon_task *abandon = (struct abandon_task *)task;
    struct stop_run *run = abandon->run;
    assert(lane_is_current(abandon->part->lane));
    ledger_close(&abandon->part->ledger);
    abandon->task.fn = on_abandoned;
    lane_post(run->service->lanes[0].lane, &abandon->task);
}

void service_force(struct service *service)
{
    struct stop_run *run = service->stop_run;
    if (run == NULL || run->is_forced)
        return;
    assert(lane_is_current(service->lanes[0].lane));
    run->is_forced = true;
    run->lanes_pending = service->lanes_count;
    for (unsigned i = 0; i < service->lanes_count; i++) {
        struct abandon_task *abandon = mem_zalloc(sizeof(*abandon));
        abandon->task.fn = on_abandon;
        abandon->run = run;
        abandon->part = &service->lanes[i];
        lane_post(abandon->part->lane, &abandon->task);
    }
}
