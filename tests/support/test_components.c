/* SPDX-License-Identifier: Apache-2.0 */
/* The test components. Instances are found by the harness; the list of events is the process's. */
#include "tests/support/test_components.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/file_storage_config.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "tests/support/telemetry_bytes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_BYTES_MAX = 4096 };

static char events[EVENTS_BYTES_MAX];

static void note(const char *what, const struct component *component)
{
    static const char *const kinds[] = {"receiver", "processor", "exporter", "connector",
                                        "extension"};
    if (lane_index(component->lane) != 0)
        return;
    size_t used = strlen(events);
    snprintf(events + used, sizeof(events) - used, "%s %s %s\n", what,
             kinds[component->factory->kind], component->id);
}

const char *test_events(void)
{
    return events;
}

void test_events_clear(void)
{
    events[0] = '\0';
}

static bool note_start(struct component *self, struct error *error)
{
    (void)error;
    note("start", self);
    return true;
}

struct test_receiver {
    struct component base;
    unsigned waiting;
    bool is_stopping;
};

extern const struct component_factory test_processor_factory;
extern const struct component_factory attributes_processor_factory;
extern const struct component_factory batch_processor_factory;
extern const struct component_factory count_connector_factory;
extern const struct component_factory exceptions_connector_factory;
extern const struct component_factory forward_connector_factory;
extern const struct component_factory routing_connector_factory;
extern const struct component_factory profile_metrics_connector_factory;
extern const struct component_factory service_graph_connector_factory;
extern const struct component_factory span_metrics_connector_factory;
extern const struct component_factory cumulativetodelta_processor_factory;
extern const struct component_factory deltatocumulative_processor_factory;
extern const struct component_factory groupbyattrs_processor_factory;
extern const struct component_factory groupbytrace_processor_factory;
extern const struct component_factory memory_limiter_processor_factory;
extern const struct component_factory probabilistic_sampler_processor_factory;
extern const struct component_factory profile_limits_processor_factory;
extern const struct component_factory redaction_processor_factory;
extern const struct component_factory filter_processor_factory;
extern const struct component_factory transform_processor_factory;
extern const struct component_factory resource_detection_processor_factory;
extern const struct component_factory resource_processor_factory;
extern const struct component_factory tail_sampling_processor_factory;
extern const struct component_factory trace_profile_join_processor_factory;

static struct test_receiver *test_receiver_of(struct component *component)
{
    assert(component->factory == &test_receiver_factory);
    return (struct test_receiver *)component;
}

static void on_result(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct test_request *request = arg;
    struct test_receiver *self = test_receiver_of(request->receiver);
    assert(receipt == &request->receipt);
    (void)receipt;
    assert(!request->is_resolved);
    request->is_resolved = true;
    request->outcome = *outcome;
    snprintf(request->text, sizeof(request->text), "%s",
             outcome->message != NULL ? outcome->message : "");
    request->outcome.message = request->text;
    self->waiting--;
    if (self->is_stopping && self->waiting == 0)
        component_stopped(&self->base);
}

void test_receiver_offer(struct component *receiver, struct batch *batch,
                         struct test_request *request)
{
    struct test_receiver *self = test_receiver_of(receiver);
    assert(receiver->outlets[batch->signal] != NULL);
    self->waiting++;
    request->receiver = receiver;
    receipt_init(&request->receipt, on_result, request);
    outlet_offer(receiver->outlets[batch->signal], batch, &request->receipt);
}

/* As in real receivers, requests that wait for a result get it first. */
static void test_receiver_stop(struct component *component)
{
    struct test_receiver *self = test_receiver_of(component);
    note("stop", component);
    self->is_stopping = true;
    if (self->waiting == 0)
        component_stopped(component);
}

const struct component_factory test_receiver_factory = {
    .type = "test",
    .kind = RECEIVER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct test_receiver),
    .start = note_start,
    .stop = test_receiver_stop,
};

static void test_processor_consume(struct component *self, struct batch *batch,
                                   struct receipt *receipt)
{
    assert(self->factory == &test_processor_factory);
    component_consume(self->next, batch, receipt);
}

static void test_processor_stop(struct component *self)
{
    note("stop", self);
    component_stopped(self);
}

const struct component_factory test_processor_factory = {
    .type = "pass",
    .kind = PROCESSOR,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
    .start = note_start,
    .consume = test_processor_consume,
    .stop = test_processor_stop,
};

struct test_exporter_config {
    struct exporter_queue_config exporter_queue;
    int fails_to;
};

enum failure { FAILS_NEVER, FAILS_TO_CREATE, FAILS_TO_START };
static const char *const failures[] = {"", "create", "start", NULL};

static const struct config_field test_exporter_fields[] = {
    CONFIG_CHOICE(struct test_exporter_config, fails_to, "fails_to", "", failures,
                  "What it is to fail at."),
    SENDING_QUEUE_ROW(struct test_exporter_config, CONFIG_DEFAULT_ON),
    RETRY_ROW(struct test_exporter_config),
    CONFIG_END,
};

struct test_exporter *test_exporter_of(struct component *component)
{
    assert(component->factory == &test_exporter_factory);
    return (struct test_exporter *)component;
}

static bool test_exporter_create(struct component *self, struct error *error)
{
    const struct test_exporter_config *config = self->config;
    return config->fails_to != FAILS_TO_CREATE || error_set(error, "configured to fail");
}

static bool test_exporter_start(struct component *self, struct error *error)
{
    const struct test_exporter_config *config = self->config;
    note_start(self, error);
    return config->fails_to != FAILS_TO_START || error_set(error, "configured to fail");
}

static void see(uint64_t number, void *arg)
{
    struct test_exporter *self = arg;
    assert(number < TEST_ITEMS_MAX);
    self->doubled_items += self->seen[number] > 0;
    self->seen[number]++;
}

static struct outcome outcome_of(const struct test_exporter *self, enum test_result result,
                                 uint64_t items)
{
    struct outcome outcome = outcome_accepted;
    switch (result) {
    case RESULT_BUSY:
    case RESULT_HINT:
        outcome = outcome_busy("back-end is busy");
        outcome.retry_after_ns = result == RESULT_HINT ? self->hint_ns : 0;
        break;
    case RESULT_NO_MEMORY:
        outcome = outcome_no_memory("no memory");
        outcome.retry_after_ns = 0;
        break;
    case RESULT_PERMANENT:
        outcome = outcome_refused(STATUS_INVALID_ARGUMENT, "back-end says no");
        outcome.reason = LOSS_PERMANENT;
        break;
    case RESULT_PARTIAL:
        outcome.rejected_items = items > 0;
        break;
    case RESULT_LEFT_OUT:
        outcome.rejected_items = 4;
        outcome.invalid_items = 1;
        outcome.too_large_items = 2;
        break;
    case RESULT_BROKEN_OFF:
        outcome = outcome_busy("back-end is busy");
        outcome.delivered_items = 1;
        break;
    case RESULT_OK:
    case RESULT_HOLD:
        break;
    }
    return outcome;
}

static void reply(struct test_exporter *self, enum test_result result, const struct batch *batch,
                  struct receipt *receipt)
{
    struct outcome outcome = outcome_of(self, result, batch->items);
    /* What a refused batch left at the back-end counts when it is given up: tests do so at once. */
    self->delivered_items += outcome.delivered_items;
    if (outcome.verdict == ACCEPTED) {
        self->delivered_items += batch->items - outcome.rejected_items;
        if (batch->signal != PROFILES && !self->has_own_items)
            numbered_read(batch, see, self);
    }
    receipt_resolve(receipt, &outcome);
}

static void on_end_of_turn(void *arg)
{
    struct test_exporter *self = arg;
    self->in_turn = 0;
}

static void remember(struct test_exporter *self, const struct batch *batch)
{
    const struct client_info *client = batch->client;
    assert(self->attempts_count < TEST_ATTEMPTS_MAX);
    struct test_attempt *attempt = &self->attempts[self->attempts_count++];
    attempt->at_ns = clock_now_ns();
    attempt->items = batch->items;
    attempt->bytes = batch->bytes;
    attempt->parts = batch->parts_count;
    if (client != NULL && client->metadata_count > 0)
        snprintf(attempt->client, sizeof(attempt->client), "%s", client->metadata[0].value);
}

static void look_for_poison(uint64_t number, void *arg)
{
    struct test_exporter *self = arg;
    self->poisoned += number <= self->poison;
}

static void test_exporter_consume(struct component *component, struct batch *batch,
                                  struct receipt *receipt)
{
    struct test_exporter *self = test_exporter_of(component);
    bool is_scripted = self->script_next < self->script_count;
    enum test_result result = is_scripted ? self->script[self->script_next++] : self->result;
    size_t poisoned = self->poisoned;
    remember(self, batch);
    if (self->has_poison)
        numbered_read(batch, look_for_poison, self);
    if (self->poisoned > poisoned)
        result = RESULT_BUSY;
    if (self->cost_ns > 0) {
        clock_fake_advance(self->cost_ns);
        self->end_of_turn = self->end_of_turn.fn != NULL
                                ? self->end_of_turn
                                : (struct lane_job){.fn = on_end_of_turn, .arg = self};
        lane_defer(component->lane, &self->end_of_turn);
        self->in_turn++;
        if (self->in_turn > self->most_in_turn)
            self->most_in_turn = self->in_turn;
    }
    if (result != RESULT_HOLD) {
        reply(self, result, batch, receipt);
        return;
    }
    self->held[self->held_count].batch = batch_ref(batch);
    self->held[self->held_count++].receipt = receipt;
}

void test_exporter_release(struct test_exporter *self, enum test_result result)
{
    size_t count = self->held_count;
    assert(result != RESULT_HOLD);
    self->held_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct batch *batch = self->held[i].batch;
        reply(self, result, batch, self->held[i].receipt);
        assert(self->held_count == 0); /* waiting requests go on from the loop */
        batch_unref(batch);
    }
}

void test_exporter_release_first(struct test_exporter *self, enum test_result result)
{
    struct batch *batch = self->held[0].batch;
    struct receipt *receipt = self->held[0].receipt;
    assert(result != RESULT_HOLD);
    assert(self->held_count > 0);
    self->held_count--;
    memmove(&self->held[0], &self->held[1], self->held_count * sizeof(self->held[0]));
    reply(self, result, batch, receipt);
    batch_unref(batch);
}

static void test_exporter_stop(struct component *component)
{
    assert(test_exporter_of(component)->held_count == 0);
    note("stop", component);
    component_stopped(component);
}

const struct component_factory test_exporter_factory = {
    .type = "test",
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct test_exporter),
    .config_size = sizeof(struct test_exporter_config),
    .fields = test_exporter_fields,
    .create = test_exporter_create,
    .start = test_exporter_start,
    .consume = test_exporter_consume,
    .stop = test_exporter_stop,
};

static struct test_connector *test_connector_of(struct component *component)
{
    assert(component->factory == &test_connector_factory);
    return (struct test_connector *)component;
}

/* One log record for each request of spans, once all is over. */
static void test_connector_consume(struct component *component, struct batch *batch,
                                   struct receipt *receipt)
{
    struct test_connector *self = test_connector_of(component);
    struct outcome busy = outcome_busy("connector is busy");
    assert(batch->signal == TRACES);
    if (self->refuses) {
        receipt_resolve(receipt, &busy);
        return;
    }
    self->items += batch->items;
    self->requests++;
    receipt_resolve(receipt, &outcome_accepted);
}

static void test_connector_stop(struct component *component)
{
    struct test_connector *self = test_connector_of(component);
    note("stop", component);
    if (self->requests > 0) {
        struct batch *batch = numbered_request(component->budget, LOGS, 0, self->requests);
        outlet_offer(component->outlets[LOGS], batch, NULL);
        batch_unref(batch);
    }
    component_stopped(component);
}

const struct component_factory test_connector_factory = {
    .type = "test_count",
    .kind = CONNECTOR,
    .stability = "stable",
    .connects = {[TRACES] = SIGNAL_LOGS},
    .instance_size = sizeof(struct test_connector),
    .start = note_start,
    .consume = test_connector_consume,
    .stop = test_connector_stop,
};

/* As extensions/file_storage_extension.c, without the other extensions. */
const struct component_factory test_file_storage_factory = {
    .type = "file_storage",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct file_storage_config),
    .fields = file_storage_fields,
    .check = file_storage_check,
};

const struct component_factory *const test_components[] = {
    &test_receiver_factory,
    &test_processor_factory,
    &test_exporter_factory,
    &test_connector_factory,
    &count_connector_factory,
    &exceptions_connector_factory,
    &forward_connector_factory,
    &routing_connector_factory,
    &profile_metrics_connector_factory,
    &service_graph_connector_factory,
    &span_metrics_connector_factory,
    &attributes_processor_factory,
    &batch_processor_factory,
    &cumulativetodelta_processor_factory,
    &deltatocumulative_processor_factory,
    &groupbyattrs_processor_factory,
    &groupbytrace_processor_factory,
    &memory_limiter_processor_factory,
    &probabilistic_sampler_processor_factory,
    &profile_limits_processor_factory,
    &redaction_processor_factory,
    &filter_processor_factory,
    &transform_processor_factory,
    &resource_detection_processor_factory,
    &resource_processor_factory,
    &tail_sampling_processor_factory,
    &trace_profile_join_processor_factory,
    &test_file_storage_factory,
    NULL,
};
