/* SPDX-License-Identifier: Apache-2.0 */
/* routing: gives each item to the pipelines that a table of conditions names (contrib,
 * connector/routingconnector). A request is divided without copying its bytes; each pipeline gets
 * its part as one request, and the client the joined response. One instance per lane and signal, on
 * its lane; the lane's helper divides large requests. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "connectors/routing/routing_table.h"
#include "src/base/budget.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/feature_gates.h"
#include "src/core/batch.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/otlp/rope.h"
#include "src/ottl/ottl_runner.h"

#define ROUTED_SIGNALS (SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES)

struct routing_counters {
    counter consumed[SIGNAL_KINDS];
};

/* Pipelines, by their place in the outlet. */
struct places {
    size_t *items;
    size_t count;
};

/* An entry of the table that is used. */
struct routing_row {
    struct route route;
    struct places places;
    struct ottl_runner runner; /* of routes with a plan that can match */
    struct ottl_runner helper_runner;
};

struct routing {
    struct component base;
    struct routing_row *rows;
    size_t rows_count;
    struct places defaults;
    unsigned helped; /* requests that are with the helper */
    bool is_stopping;
};

/* One pipeline's part of a request. */
struct routed_part {
    struct receipt receipt;
    struct routed *routed;
    struct batch *batch; /* a reference; NULL: nothing goes there */
    bool is_own;         /* made here from several: it may grow */
    bool is_refused;
    enum loss_reason reason; /* of the refusal */
};

/* A request that is divided, until all its parts have their outcomes. */
struct routed {
    struct helper_work work; /* first */
    struct routing *self;
    struct batch *batch; /* a reference */
    struct receipt *upstream;
    struct receipt sum;
    enum ottl_verdict verdict;
    bool never_fits;
    char error[OTTL_ERROR_BYTES_MAX];
    bool is_taken; /* by one of the pipelines, whatever happened to it then */
    size_t parts_count;
    struct routed_part parts[]; /* by the pipelines' places */
};

static size_t bytes_of(const struct routed *routed)
{
    return sizeof(*routed) + routed->parts_count * sizeof(routed->parts[0]);
}

static const struct outlet *outlet_of(const struct routed *routed)
{
    return routed->self->base.outlets[routed->self->base.output];
}

/* Appends profiles without the dictionary that they share with others of the request. */
static void append_profiles(struct batch *to, const struct batch *from)
{
    enum { DICTIONARY = 2 };
    struct rope rope = rope_of(from);
    struct rope_field field;
    while (rope_read_field(&rope, from->bytes, &field)) {
        uint64_t left = field.number == DICTIONARY ? 0 : field.size;
        while (left > 0) {
            const struct slice bytes = rope_contiguous(&field.begin, left);
            batch_append(to, from->parts[field.begin.part].owner, bytes);
            left -= bytes.size;
            rope_skip(&field.begin, bytes.size);
        }
    }
    batch_take_in(to, from);
}

/* The part, to which more is about to be appended. Statements only append to a dictionary: the one
 * of the last division serves those before it, too. */
static struct batch *growing_part(const struct routed *routed, struct routed_part *part,
                                  size_t more)
{
    const bool has_dictionary = part->batch->signal == PROFILES;
    if (part->is_own && !has_dictionary)
        return part->batch;
    struct batch *own = batch_create_like(routed->batch, part->batch->parts_count + more);
    if (has_dictionary)
        append_profiles(own, part->batch);
    else
        batch_append_batch(own, part->batch);
    batch_unref(part->batch);
    part->batch = own;
    part->is_own = true;
    return own;
}

static void add_part(struct routed *routed, const struct places *places, struct batch *batch)
{
    for (size_t i = 0; i < places->count; i++) {
        struct routed_part *part = &routed->parts[places->items[i]];
        if (part->batch == NULL) {
            part->batch = batch_ref(batch);
            continue;
        }
        batch_append_batch(growing_part(routed, part, batch->parts_count), batch);
    }
}

/* Takes what matches out of *rest, or copies it; returns it, or NULL. */
static struct batch *match(struct routed *routed, const struct routing_row *row,
                           struct ottl_runner *runner, struct batch **rest)
{
    struct batch *batch = *rest;
    if (row->route.is_of_request) {
        if (!request_condition_holds(&row->route.request, routed->batch->client))
            return NULL;
        *rest = row->route.is_copy ? batch_ref(batch) : NULL;
        return batch;
    }
    if (row->route.plan->contexts == OTTL_CONTEXT_BIT(OTTL_OTELCOL)) {
        const int result = ottl_runner_test_request(runner, batch);
        if (result == OTTL_FAILED) {
            routed->verdict = runner->run.is_out_of_memory ? OTTL_NO_MEMORY
                              : runner->is_too_long        ? OTTL_TOO_LONG
                                                           : OTTL_REFUSED;
            snprintf(routed->error, sizeof(routed->error), "%s", runner->run.error);
        }
        if (result != OTTL_TRUE)
            return NULL;
        *rest = row->route.is_copy ? batch_ref(batch) : NULL;
        return batch;
    }
    const struct ottl_division division = ottl_runner_divide(runner, batch, row->route.is_copy);
    batch_unref(batch);
    *rest = division.rest;
    routed->verdict = division.verdict;
    routed->never_fits = division.never_fits;
    if (division.verdict != OTTL_PASSED)
        snprintf(routed->error, sizeof(routed->error), "%s", division.error);
    return division.matched;
}

static void divide(struct routed *routed, bool is_helper)
{
    const struct routing *self = routed->self;
    struct batch *rest = routed->batch->bytes > 0 ? batch_ref(routed->batch) : NULL;
    routed->verdict = OTTL_PASSED;
    for (size_t i = 0; i < self->rows_count && rest != NULL; i++) {
        struct routing_row *row = &self->rows[i];
        if (row->route.is_never)
            continue;
        struct batch *matched =
            match(routed, row, is_helper ? &row->helper_runner : &row->runner, &rest);
        if (routed->verdict != OTTL_PASSED) {
            batch_unref(rest);
            return;
        }
        if (matched != NULL)
            add_part(routed, &row->places, matched);
        batch_unref(matched);
    }
    if (rest != NULL)
        add_part(routed, &self->defaults, rest);
    batch_unref(rest);
}

/* Destinations of copies to a pipeline that gets the same items more than once: they are more than
 * the items that are owed to it. */
static struct batch *surplus_of(const struct routed *routed, size_t place)
{
    const struct batch *part = routed->parts[place].batch;
    if (part == NULL || part->items <= routed->batch->items)
        return NULL;
    struct batch *surplus = batch_create_like(routed->batch, 0);
    surplus->items = part->items - routed->batch->items;
    return surplus;
}

/* Items owed to pipelines that do not get them: the table says so. */
static void book_unwanted(const struct routed *routed, bool is_rejected)
{
    const uint64_t items = routed->batch->items;
    uint64_t unwanted = 0;
    for (size_t i = 0; i < routed->parts_count; i++) {
        const struct batch *part = routed->parts[i].batch;
        const uint64_t given = part != NULL ? part->items : 0;
        if (given < items)
            unwanted += (items - given) * outlet_exporters_at(outlet_of(routed), i);
    }
    if (unwanted > 0)
        ledger_lose(routed->self->base.ledger, routed->batch->signal, unwanted, LOSS_UNWANTED,
                    is_rejected);
}

/* What some pipelines refused although others took their part is lost. */
static void book_refused(const struct routed *routed)
{
    struct ledger *ledger = routed->self->base.ledger;
    for (size_t i = 0; i < routed->parts_count; i++) {
        const struct routed_part *part = &routed->parts[i];
        if (!part->is_refused)
            continue;
        const unsigned exporters = outlet_exporters_at(outlet_of(routed), i);
        if (routed->batch->is_acknowledged)
            ledger_drop(ledger, part->batch, part->reason, exporters);
        else
            ledger_reject(ledger, part->batch, part->reason, exporters);
    }
}

/* The request is refused as a whole, and may come again: only what was counted beyond it is. */
static void book_surplus(const struct routed *routed, enum loss_reason reason)
{
    for (size_t i = 0; i < routed->parts_count; i++) {
        struct batch *surplus = surplus_of(routed, i);
        if (surplus != NULL)
            ledger_reject(routed->self->base.ledger, surplus, reason,
                          outlet_exporters_at(outlet_of(routed), i));
        batch_unref(surplus);
    }
}

static void free_routed(struct routed *routed)
{
    for (size_t i = 0; i < routed->parts_count; i++)
        batch_unref(routed->parts[i].batch);
    budget_return(routed->self->base.budget, bytes_of(routed));
    batch_unref(routed->batch);
    mem_free(routed);
}

static void on_all_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct routed *routed = arg;
    struct outcome joined = *outcome;
    assert(receipt == &routed->sum);
    if (routed->is_taken) {
        book_refused(routed);
        if (joined.verdict == REFUSED)
            joined.verdict = LOST;
        book_unwanted(routed, joined.verdict != ACCEPTED && !routed->batch->is_acknowledged);
    } else {
        book_surplus(routed, joined.reason);
    }
    if (joined.rejected_items > routed->batch->items)
        joined.rejected_items = routed->batch->items;
    receipt_resolve(routed->upstream, &joined);
    free_routed(routed);
}

static void on_part_resolved(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct routed_part *part = arg;
    assert(receipt == &part->receipt);
    part->is_refused = outcome->verdict == REFUSED;
    part->reason = outcome->reason;
    part->routed->is_taken |= !part->is_refused;
    receipt_resolve(&part->routed->sum, outcome);
}

static void refuse(struct routed *routed)
{
    struct outcome outcome;
    if (routed->verdict == OTTL_REFUSED) {
        /* As the Go collector's: an error that is not permanent. */
        outcome = outcome_failed(routed->error);
    } else if (routed->never_fits) {
        outcome = outcome_too_large("what it takes to route the request is more than the whole "
                                    "memory budget (service::budget_mib); send less at a time");
    } else {
        outcome = outcome_busy("the memory budget has no room to route the request");
        outcome.reason = LOSS_MEMORY;
    }
    receipt_resolve(routed->upstream, &outcome);
    free_routed(routed);
}

static void pass_parts(struct routed *routed)
{
    struct outlet *outlet = routed->self->base.outlets[routed->self->base.output];
    size_t given = 0;
    if (routed->verdict != OTTL_PASSED) {
        refuse(routed);
        return;
    }
    receipt_init(&routed->sum, on_all_resolved, routed);
    for (size_t i = 0; i < routed->parts_count; i++) {
        struct routed_part *part = &routed->parts[i];
        struct batch *surplus = surplus_of(routed, i);
        if (surplus != NULL)
            ledger_receive(routed->self->base.ledger, surplus, outlet_exporters_at(outlet, i));
        batch_unref(surplus);
        part->routed = routed;
        receipt_init(&part->receipt, on_part_resolved, part);
        given += part->batch != NULL;
    }
    if (given == 0) {
        routed->is_taken = true;
        receipt_resolve(&routed->sum, &outcome_accepted);
        return;
    }
    receipt_expect(&routed->sum, (unsigned)given - 1);
    for (size_t i = 0; given > 0; i++) {
        struct routed_part *part = &routed->parts[i];
        if (part->batch == NULL)
            continue;
        given--; /* the last outcome frees the parts */
        outlet_pass_to(outlet, i, part->batch, &part->receipt);
    }
}

static void on_help(struct helper_work *work)
{
    divide((struct routed *)work, true);
}

static void on_helped(struct helper_work *work)
{
    struct routed *routed = (struct routed *)work;
    struct routing *self = routed->self;
    pass_parts(routed);
    assert(self->helped > 0);
    self->helped--;
    if (self->is_stopping && self->helped == 0)
        component_stopped(&self->base);
}

static void forget_parts(struct routed *routed)
{
    for (size_t i = 0; i < routed->parts_count; i++) {
        batch_unref(routed->parts[i].batch);
        routed->parts[i] = (struct routed_part){.batch = NULL};
    }
}

static void routing_consume(struct component *component, struct batch *batch,
                            struct receipt *receipt)
{
    struct routing *self = (struct routing *)component;
    struct routing_counters *counters = component->counters;
    const size_t parts = outlet_pipelines(component->outlets[component->output]);
    assert(batch->signal == component->output);
    counter_add(&counters->consumed[batch->signal], batch->items);
    struct routed *routed = mem_zalloc(sizeof(*routed) + parts * sizeof(routed->parts[0]));
    routed->self = self;
    routed->batch = batch_ref(batch);
    routed->upstream = receipt;
    routed->parts_count = parts;
    budget_take(component->budget, bytes_of(routed));
    /* Each row may look at all of it. */
    if (batch->bytes * (self->rows_count + 1) < HELPED_BYTES_MIN) {
        divide(routed, false);
        if (routed->verdict != OTTL_TOO_LONG) {
            pass_parts(routed);
            return;
        }
        forget_parts(routed); /* the helper begins anew */
    }
    routed->work = (struct helper_work){.run = on_help, .done = on_helped};
    self->helped++;
    lane_help(component->lane, &routed->work);
}

static void routing_stop(struct component *component)
{
    struct routing *self = (struct routing *)component;
    self->is_stopping = true;
    if (self->helped == 0)
        component_stopped(component);
}

/* Pipelines that --skip-unsupported leaves out have no place: what is for them alone goes nowhere.
 */
static bool find_places(const struct routing *self, const struct config_texts *pipelines,
                        struct places *ret, struct error *error)
{
    const struct outlet *outlet = self->base.outlets[self->base.output];
    const struct service_view *service = self->base.service;
    ret->items = mem_alloc((pipelines->count + 1) * sizeof(*ret->items));
    for (size_t i = 0; i < pipelines->count; i++) {
        size_t place = 0;
        while (place < outlet_pipelines(outlet) &&
               strcmp(outlet_pipeline_at(outlet, place), pipelines->texts[i]) != 0)
            place++;
        if (place == outlet_pipelines(outlet) && service != NULL && service->leaves_out != NULL &&
            service->leaves_out(service, pipelines->texts[i]))
            continue;
        if (place == outlet_pipelines(outlet))
            return error_set(error,
                             "pipeline not found: missing consumer: \"%s\"; expected a pipeline "
                             "of %s that has \"%s\" among its receivers",
                             pipelines->texts[i], signal_name(self->base.output), self->base.id) ||
                   error_at_index(error, i);
        ret->items[ret->count++] = place;
    }
    return true;
}

static enum ottl_error_mode error_mode_of(const struct component *component)
{
    const struct routing_config *config = component->config;
    struct error ignored = {.text = ""};
    enum ottl_error_mode mode = OTTL_IGNORE;
    if (config->error_mode[0] != '\0')
        (void)ottl_error_mode_read(config->error_mode, &mode, &ignored);
    else if (!feature_gate_is_enabled(component->service != NULL ? component->service->gates : NULL,
                                      GATE_ROUTING_IGNORES))
        mode = OTTL_PROPAGATE;
    return mode;
}

/* Whether an earlier row decides alike. */
static bool is_repeated(const struct routing *self, const struct route *route)
{
    for (size_t i = 0; i < self->rows_count; i++)
        if (routes_are_equal(&self->rows[i].route, route))
            return true;
    return false;
}

static bool add_row(struct routing *self, size_t index, enum ottl_error_mode mode,
                    struct error *error)
{
    const struct routing_config *config = self->base.config;
    const struct routing_entry *entry = (const struct routing_entry *)config->table.items + index;
    struct routing_row *row = &self->rows[self->rows_count];
    if (!route_init(&row->route, config, index, self->base.signal, mode, error))
        return false;
    if (is_repeated(self, &row->route)) {
        log_warn(&self->base.logger,
                 "the condition is in the routing table already, and this entry is ignored",
                 log_text("condition",
                          entry->condition[0] != '\0' ? entry->condition : entry->statement));
        route_fini(&row->route);
        return true;
    }
    self->rows_count++;
    if (row->route.is_never)
        log_warn(&self->base.logger,
                 "the entry of the routing table matches nothing: the signal "
                 "has no such context",
                 log_text("condition",
                          entry->condition[0] != '\0' ? entry->condition : entry->statement));
    if (row->route.plan != NULL && !row->route.is_never) {
        ottl_runner_init(&row->runner, row->route.plan, self->base.budget);
        ottl_runner_init(&row->helper_runner, row->route.plan, self->base.budget);
        row->runner.lane = self->base.lane;
    }
    return find_places(self, &entry->pipelines, &row->places, error) ||
           error_at(error, "pipelines") || error_at_index(error, index) || error_at(error, "table");
}

static bool routing_create(struct component *component, struct error *error)
{
    struct routing *self = (struct routing *)component;
    const struct routing_config *config = component->config;
    const enum ottl_error_mode mode = error_mode_of(component);
    self->rows = mem_zalloc((config->table.count + 1) * sizeof(*self->rows));
    if (!find_places(self, &config->default_pipelines, &self->defaults, error))
        return error_at(error, "default_pipelines");
    for (size_t i = 0; i < config->table.count; i++)
        if (!add_row(self, i, mode, error))
            return false;
    return true;
}

static void routing_destroy(struct component *component)
{
    struct routing *self = (struct routing *)component;
    const struct routing_config *config = component->config;
    assert(self->helped == 0);
    for (size_t i = 0; self->rows != NULL && i < config->table.count; i++) {
        struct routing_row *row = &self->rows[i];
        if (row->runner.plan != NULL) {
            ottl_runner_fini(&row->runner);
            ottl_runner_fini(&row->helper_runner);
        }
        route_fini(&row->route);
        mem_free(row->places.items);
    }
    mem_free(self->rows);
    mem_free(self->defaults.items);
}

static const struct counter_row routing_rows[] = {
    COUNTER_BY_SIGNAL(struct routing_counters, consumed, COUNTER_SUM,
                      "spanflame_connector_consumed_%s", ROUTED_SIGNALS, NULL, NULL,
                      "Items passed to the connector, refused ones included."),
    COUNTER_END,
};

const struct component_factory routing_connector_factory = {
    .type = "routing",
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_TRACES,
                 [METRICS] = SIGNAL_METRICS,
                 [LOGS] = SIGNAL_LOGS,
                 [PROFILES] = SIGNAL_PROFILES},
    .passes_on = true,
    .chooses = true,
    .instance_size = sizeof(struct routing),
    .config_size = sizeof(struct routing_config),
    .fields = routing_fields,
    .counters_size = sizeof(struct routing_counters),
    .counters = routing_rows,
    .check = routing_check,
    .create = routing_create,
    .consume = routing_consume,
    .stop = routing_stop,
    .destroy = routing_destroy,
};
