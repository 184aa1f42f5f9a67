/* SPDX-License-Identifier: Apache-2.0 */
/* count: counts spans, events, metrics, data points and log records that conditions hold for, and
 * sends the counts of each request on as metrics (contrib, connector/countconnector). The client of
 * a request gets the outcome of its counts. One instance per lane and signal, on its lane; the
 * lane's helper counts in large requests. */
#include <assert.h>

#include "connectors/count/count_rules.h"
#include "connectors/count/count_tally.h"
#include "connectors/shared/request_offer.h"
#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/component.h"

#define COUNTED_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

struct count_counters {
    counter consumed[SIGNAL_KINDS]; /* first: tests read it */
    counter overflown;
};

static const struct counter_row count_counters[] = {
    COUNTER_BY_SIGNAL(struct count_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", COUNTED_SIGNALS, NULL, NULL,
                      "Items passed to the connector, without refused ones."),
    COUNTER(struct count_counters, overflown, COUNTER_SUM, "spanflame_count_overflow",
            "Records counted in a series with otel.metric.overflow, since the attributes of a "
            "request's counts took 16 times its bytes."),
    COUNTER_END,
};

struct count {
    struct component base;
    struct count_rules rules;
    struct count_tally tally;
    struct count_tally helper_tally;
    bool has_tallies;
    unsigned helped; /* requests that are with the helper */
    bool is_stopping;
};

/* A request that is counted, or whose counts are on their way. */
struct count_request {
    struct helper_work work; /* first */
    struct request_offer offer;
    struct count *owner;
    struct batch *batch; /* a reference */
    struct receipt *outer;
    /* What its tally said. */
    struct ottl_result result;
    struct batch **batches;
    size_t batches_count;
    uint64_t overflown;
    char *failure; /* the result's error: the helper goes on with the next request meanwhile */
};

extern const struct component_factory count_connector_factory;

static struct count *count_of(struct component *component)
{
    assert(component->factory == &count_connector_factory);
    return (struct count *)component;
}

static void end_request(struct count_request *request, const struct outcome *outcome)
{
    struct count_counters *counters = request->owner->base.counters;
    if (outcome->verdict == ACCEPTED)
        counter_add(&counters->consumed[request->batch->signal], request->batch->items);
    receipt_resolve(request->outer, outcome);
    batch_unref(request->batch);
    mem_free(request->failure);
    mem_free(request);
}

static void on_offered(struct request_offer *offer, const struct outcome *outcome)
{
    end_request((struct count_request *)((char *)offer - offsetof(struct count_request, offer)),
                outcome);
}

static void run(struct count_request *request, struct count_tally *tally)
{
    request->result = count_tally_take(tally, request->batch);
    request->batches = tally->batches;
    request->batches_count = tally->batches_count;
    request->overflown = tally->overflown;
}

static void refuse(struct count_request *request)
{
    struct outcome outcome;
    if (request->result.verdict == OTTL_REFUSED) {
        /* As the Go collector's: an error that is not permanent. */
        outcome = outcome_failed(request->result.error);
    } else if (request->result.never_fits) {
        outcome = outcome_too_large("counting in the request takes more than the whole memory "
                                    "budget (service::budget_mib); send less at a time");
    } else {
        outcome = outcome_busy("the memory budget has no room to count in the request");
        outcome.reason = LOSS_MEMORY;
    }
    end_request(request, &outcome);
}

static void conclude(struct count_request *request)
{
    struct count *self = request->owner;
    struct count_counters *counters = self->base.counters;
    if (request->result.verdict != OTTL_PASSED) {
        refuse(request);
        return;
    }
    counter_add(&counters->overflown, request->overflown);
    request_offer_make(&request->offer, self->base.outlets[METRICS], request->batches,
                       request->batches_count, on_offered);
}

static void on_help(struct helper_work *work)
{
    struct count_request *request = (struct count_request *)work;
    run(request, &request->owner->helper_tally);
    if (request->result.verdict == OTTL_REFUSED)
        request->result.error = request->failure = mem_copy_text(request->result.error);
}

static void on_helped(struct helper_work *work)
{
    struct count_request *request = (struct count_request *)work;
    struct count *self = request->owner;
    conclude(request);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

static void count_consume(struct component *component, struct batch *batch, struct receipt *receipt)
{
    struct count *self = count_of(component);
    struct count_request *request = mem_zalloc(sizeof(*request));
    request->owner = self;
    request->batch = batch_ref(batch);
    request->outer = receipt;
    if (batch->bytes < HELPED_BYTES_MIN) {
        run(request, &self->tally);
        if (request->result.verdict != OTTL_TOO_LONG) {
            conclude(request);
            return;
        }
    }
    request->work = (struct helper_work){.run = on_help, .done = on_helped};
    self->helped++;
    lane_help(component->lane, &request->work);
}

static bool count_check(const void *section, struct error *error)
{
    for (enum signal_kind signal = TRACES; signal < SIGNAL_KINDS; signal++) {
        struct count_rules rules;
        if ((COUNTED_SIGNALS & 1u << signal) == 0)
            continue;
        bool is_fine = count_rules_init(&rules, section, signal, error);
        count_rules_fini(&rules);
        if (!is_fine)
            return false;
    }
    return true;
}

static bool count_create(struct component *component, struct error *error)
{
    struct count *self = count_of(component);
    if (!count_rules_init(&self->rules, component->config, component->signal, error))
        return false;
    count_tally_init(&self->tally, &self->rules, component->budget);
    count_tally_init(&self->helper_tally, &self->rules, component->budget);
    self->tally.runner.lane = component->lane;
    self->has_tallies = true;
    return true;
}

static void count_stop(struct component *component)
{
    struct count *self = count_of(component);
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

static void count_destroy(struct component *component)
{
    struct count *self = count_of(component);
    assert(self->helped == 0);
    if (self->has_tallies) {
        count_tally_fini(&self->tally);
        count_tally_fini(&self->helper_tally);
    }
    count_rules_fini(&self->rules);
}

const struct component_factory count_connector_factory = {
    .type = "count",
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_METRICS,
                 [METRICS] = SIGNAL_METRICS,
                 [LOGS] = SIGNAL_METRICS,
                 [PROFILES] = SIGNAL_METRICS},
    .instance_size = sizeof(struct count),
    .config_size = sizeof(struct count_config),
    .fields = count_fields,
    .counters_size = sizeof(struct count_counters),
    .counters = count_counters,
    .check = count_check,
    .create = count_create,
    .consume = count_consume,
    .stop = count_stop,
    .destroy = count_destroy,
};
