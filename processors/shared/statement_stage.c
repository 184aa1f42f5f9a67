/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a processor, one after the other, and their result, told to the stage. */
#include "processors/shared/statement_stage.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/core/batch.h"

static void log_failure(void *arg, const char *text, const char *error)
{
    const struct statement_stage *self = arg;
    log_warn(&self->stage.base.logger, self->failure_message, log_text("error", error),
             log_text("statement", text));
}

static struct ottl_runner *make_runners(struct statement_stage *self, enum edit_place place,
                                        bool prunes)
{
    struct ottl_runner *runners = mem_alloc((self->plans_count + 1) * sizeof(*runners));
    for (size_t i = 0; i < self->plans_count; i++) {
        ottl_runner_init(&runners[i], self->plans[i], self->stage.base.budget);
        runners[i].prunes = prunes;
        runners[i].lane = place == EDIT_ON_LANE ? self->stage.base.lane : NULL;
        runners[i].on_failure = log_failure;
        runners[i].arg = self;
    }
    return runners;
}

/* Runs all plans, each on what the one before has left. */
static struct edit_result run(struct statement_stage *self, enum edit_place place,
                              struct batch *batch)
{
    struct ottl_runner *runners = self->runners[place];
    struct ottl_result ran = {.verdict = OTTL_PASSED, .batch = batch_ref(batch)};
    uint64_t dropped = 0;
    uint64_t made = 0;
    for (size_t i = 0; i < self->plans_count && ran.verdict == OTTL_PASSED; i++) {
        struct batch *before = ran.batch;
        ran = ottl_runner_run(&runners[i], before);
        dropped += ran.dropped;
        made += ran.made;
        batch_unref(before);
    }
    if (ran.verdict == OTTL_TOO_LONG)
        return (struct edit_result){.verdict = EDIT_LONG};
    if (ran.verdict == OTTL_NO_MEMORY)
        return (struct edit_result){.verdict = ran.never_fits ? EDIT_NEVER_FITS : EDIT_NO_ROOM};
    if (ran.verdict == OTTL_REFUSED) /* as the Go collector's: an error that is not permanent */
        return (struct edit_result){.verdict = EDIT_FAILED, .failure = ran.error};
    const uint64_t both = dropped < made ? dropped : made;
    return (struct edit_result){.batch = ran.batch, .dropped = dropped - both, .made = made - both};
}

/* The same on records that each have their own Resource and scope; statements drop none of them. */
static struct edit_result run_flattened(struct statement_stage *self, enum edit_place place,
                                        struct batch *batch)
{
    struct log_flattening *flattening = &self->flattenings[place];
    struct batch *split = NULL;
    struct batch *joined = NULL;
    struct edit_result result = {.verdict = EDIT_NEVER_FITS};
    enum log_flattening_verdict verdict = log_flattening_split(flattening, batch, &split);
    if (verdict == LOGS_DONE) {
        result = run(self, place, split);
        batch_unref(split);
        if (result.verdict != EDIT_DONE || result.batch == NULL)
            return result;
        verdict = log_flattening_join(flattening, result.batch, &joined);
        batch_unref(result.batch);
        result.batch = joined;
    }
    if (verdict != LOGS_DONE)
        return (struct edit_result){.verdict =
                                        verdict == LOGS_NO_ROOM ? EDIT_NO_ROOM : EDIT_NEVER_FITS};
    if (joined->bytes == 0) {
        batch_unref(joined);
        result.batch = NULL;
    }
    return result;
}

static struct edit_result edit(struct edit_stage *stage, enum edit_place place, struct batch *batch)
{
    struct statement_stage *self = (struct statement_stage *)stage;
    return self->flattens ? run_flattened(self, place, batch) : run(self, place, batch);
}

static void count_dropped(struct edit_stage *stage, const struct batch *dropped)
{
    struct statement_stage_counters *counters = stage->base.counters;
    counter_add(&counters->filtered[dropped->signal], dropped->items);
}

static const struct edit_stage_ops stage_ops = {
    .edit = edit,
    .dropped = count_dropped,
    .no_room = "the memory budget has no room to run the statements",
    .never_fits = "what the statements make takes more than the whole memory budget "
                  "(service::budget_mib), or than one request may become; send less at a time",
};

void statement_stage_init(struct statement_stage *self, struct ottl_plan *const *plans,
                          size_t count, bool prunes, const char *failure_message)
{
    self->plans = mem_alloc((count + 1) * sizeof(struct ottl_plan *));
    for (size_t i = 0; i < count; i++)
        self->plans[i] = plans[i];
    self->plans_count = count;
    self->failure_message = failure_message;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        self->runners[i] = make_runners(self, (enum edit_place)i, prunes);
    self->stage.ops = &stage_ops;
}

void statement_stage_flatten(struct statement_stage *self)
{
    self->flattens = true;
    for (size_t i = 0; i < EDIT_PLACES; i++)
        log_flattening_init(&self->flattenings[i], self->stage.base.budget);
}

void statement_stage_destroy(struct component *component)
{
    struct statement_stage *self = (struct statement_stage *)component;
    assert(self->stage.helped == 0);
    for (size_t place = 0; self->flattens && place < EDIT_PLACES; place++)
        log_flattening_fini(&self->flattenings[place]);
    for (size_t place = 0; place < EDIT_PLACES; place++) {
        for (size_t i = 0; i < self->plans_count; i++)
            ottl_runner_fini(&self->runners[place][i]);
        mem_free(self->runners[place]);
    }
    for (size_t i = 0; i < self->plans_count; i++)
        ottl_plan_destroy(self->plans[i]);
    mem_free(self->plans);
}
