/* SPDX-License-Identifier: Apache-2.0 */
/* Counting, running on the lane or its helper, and the ledger: items that the configuration drops
 * are booked once the rest has its result, since a client sends a refused request again whole. */
#include "processors/shared/statement_stage.h"

#include <assert.h>

#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/core/receipt.h"

/* A large request, which the helper works on. */
struct helped_run {
    struct helper_work work; /* first */
    struct statement_stage *self;
    struct batch *batch; /* a reference */
    struct receipt *receipt;
    struct ottl_result result;
};

/* The rest of a request from which items were dropped, in the next stage. */
struct passed_rest {
    struct receipt receipt;
    struct receipt *outer;
    const struct component *owner;
    struct batch *dropped; /* without bytes: their number */
};

static void log_failure(void *arg, const char *text, const char *error)
{
    const struct statement_stage *self = arg;
    log_warn(&self->base.logger, self->failure_message, log_text("error", error),
             log_text("statement", text));
}

static struct ottl_runner *make_runners(struct statement_stage *self, bool prunes)
{
    struct ottl_runner *runners = mem_alloc((self->plans_count + 1) * sizeof(*runners));
    for (size_t i = 0; i < self->plans_count; i++) {
        ottl_runner_init(&runners[i], self->plans[i], self->base.budget);
        runners[i].prunes = prunes;
        runners[i].on_failure = log_failure;
        runners[i].arg = self;
    }
    return runners;
}

void statement_stage_init(struct statement_stage *self, struct ottl_plan *const *plans,
                          size_t count, bool prunes, const char *failure_message)
{
    self->plans = mem_alloc((count + 1) * sizeof(struct ottl_plan *));
    for (size_t i = 0; i < count; i++)
        self->plans[i] = plans[i];
    self->plans_count = count;
    self->failure_message = failure_message;
    self->runners = make_runners(self, prunes);
    self->helper_runners = make_runners(self, prunes);
}

/* Runs all plans, each on what the one before has left. */
static struct ottl_result run_plans(const struct statement_stage *self, struct ottl_runner *runners,
                                    struct batch *batch)
{
    struct ottl_result result = {.verdict = OTTL_PASSED, .batch = batch_ref(batch)};
    uint64_t dropped = 0;
    for (size_t i = 0; i < self->plans_count && result.verdict == OTTL_PASSED; i++) {
        struct batch *before = result.batch;
        result = ottl_runner_run(&runners[i], before);
        dropped += result.dropped;
        batch_unref(before);
    }
    result.dropped = dropped;
    return result;
}

static void book_dropped(const struct component *owner, struct batch *dropped,
                         const struct outcome *outcome)
{
    struct statement_stage_counters *counters = owner->counters;
    assert(outcome->verdict != REFUSED);
    counter_add(&counters->filtered[dropped->signal], dropped->items);
    unsigned exporters = component_exporters(owner, dropped);
    if (outcome->verdict == ACCEPTED || dropped->is_acknowledged)
        ledger_drop(owner->ledger, dropped, LOSS_UNWANTED, exporters);
    else
        ledger_reject(owner->ledger, dropped, LOSS_UNWANTED, exporters);
}

static void on_passed(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct passed_rest *passed = arg;
    assert(receipt == &passed->receipt);
    if (outcome->verdict != REFUSED)
        book_dropped(passed->owner, passed->dropped, outcome);
    receipt_resolve(passed->outer, outcome);
    batch_unref(passed->dropped);
    mem_free(passed);
}

static void pass_rest(const struct statement_stage *self, struct batch *batch,
                      const struct ottl_result *result, struct receipt *receipt)
{
    struct batch *dropped = batch_create_like(batch, 0);
    dropped->items = result->dropped;
    if (result->verdict == OTTL_EMPTIED) {
        book_dropped(&self->base, dropped, &outcome_accepted);
        batch_unref(dropped);
        receipt_resolve(receipt, &outcome_accepted);
        return;
    }
    struct passed_rest *passed = mem_zalloc(sizeof(*passed));
    receipt_init(&passed->receipt, on_passed, passed);
    passed->outer = receipt;
    passed->owner = &self->base;
    passed->dropped = dropped;
    component_consume(self->base.next, result->batch, &passed->receipt);
}

static void refuse(const struct ottl_result *result, struct receipt *receipt)
{
    struct outcome outcome;
    if (result->verdict == OTTL_NO_MEMORY) {
        outcome = outcome_busy("the memory budget has no room to run the statements");
        outcome.reason = LOSS_MEMORY;
        if (result->never_fits)
            outcome = outcome_too_large("what the statements make takes more than the whole memory "
                                        "budget (service::budget_mib); send less at a time");
    } else {
        /* As the Go collector's: an error that is not permanent. */
        outcome = outcome_busy(result->error);
        outcome.reason = LOSS_INVALID;
    }
    receipt_resolve(receipt, &outcome);
}

static void pass_on(struct statement_stage *self, struct batch *batch,
                    const struct ottl_result *result, struct receipt *receipt)
{
    struct statement_stage_counters *counters = self->base.counters;
    if (result->verdict == OTTL_REFUSED || result->verdict == OTTL_NO_MEMORY) {
        refuse(result, receipt);
        return;
    }
    if (result->batch != NULL)
        counter_add(&counters->outgoing[batch->signal], result->batch->items);
    if (result->dropped > 0 || result->batch == NULL)
        pass_rest(self, batch, result, receipt);
    else
        component_consume(self->base.next, result->batch, receipt);
    batch_unref(result->batch);
}

static void on_help(struct helper_work *work)
{
    struct helped_run *helped = (struct helped_run *)work;
    helped->result = run_plans(helped->self, helped->self->helper_runners, helped->batch);
}

static void on_helped(struct helper_work *work)
{
    struct helped_run *helped = (struct helped_run *)work;
    struct statement_stage *self = helped->self;
    pass_on(self, helped->batch, &helped->result, helped->receipt);
    batch_unref(helped->batch);
    mem_free(helped);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

void statement_stage_consume(struct component *component, struct batch *batch,
                             struct receipt *receipt)
{
    struct statement_stage *self = (struct statement_stage *)component;
    struct statement_stage_counters *counters = component->counters;
    assert(batch->signal == component->signal);
    counter_add(&counters->incoming[batch->signal], batch->items);
    if (batch->bytes >= HELPED_BYTES_MIN) {
        struct helped_run *helped = mem_zalloc(sizeof(*helped));
        helped->work = (struct helper_work){.run = on_help, .done = on_helped};
        helped->self = self;
        helped->batch = batch_ref(batch);
        helped->receipt = receipt;
        self->helped++;
        lane_help(component->lane, &helped->work);
        return;
    }
    struct ottl_result result = run_plans(self, self->runners, batch);
    pass_on(self, batch, &result, receipt);
}

void statement_stage_stop(struct component *component)
{
    struct statement_stage *self = (struct statement_stage *)component;
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

void statement_stage_destroy(struct component *component)
{
    struct statement_stage *self = (struct statement_stage *)component;
    assert(self->helped == 0);
    for (size_t i = 0; i < self->plans_count; i++) {
        ottl_runner_fini(&self->runners[i]);
        ottl_runner_fini(&self->helper_runners[i]);
        ottl_plan_destroy(self->plans[i]);
    }
    mem_free(self->runners);
    mem_free(self->helper_runners);
    mem_free(self->plans);
}
