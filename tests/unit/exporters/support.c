/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters on their own: configuration through the real loader, everything else by hand. */
#include "tests/unit/exporters/support.h"

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { TEST_SECONDS_MAX = 20 };

static void consume_nothing(struct component *self, struct batch *batch, struct receipt *receipt)
{
    (void)self;
    (void)batch;
    receipt_resolve(receipt, &outcome_accepted);
}

static const struct component_factory source_factory = {
    .type = "source",
    .kind = RECEIVER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
    .config_size = 1,
    .consume = consume_nothing,
};

bool exporter_try_load(const struct component_factory *factory, const char *yaml,
                       struct config **ret_config, char *problems_text, size_t problems_size)
{
    const struct component_factory *const factories[] = {&source_factory, factory, NULL};
    struct config_problems problems = {0};
    char location[4096];
    const char *signal = (factory->signals & SIGNAL_TRACES) != 0    ? "traces"
                         : (factory->signals & SIGNAL_METRICS) != 0 ? "metrics"
                                                                    : "profiles";
    snprintf(location, sizeof(location),
             "yaml:\nreceivers: {source: }\nexporters:\n  %s: %s\n"
             "service: {pipelines: {%s: {receivers: [source], exporters: [%s]}}}\n",
             factory->type, yaml, signal, factory->type);
    const char *locations[] = {location};
    *ret_config = config_load(&(struct config_request){.locations = locations,
                                                       .locations_count = 1,
                                                       .factories = factories},
                              &problems);
    problems_text[0] = '\0';
    for (size_t i = 0; i < problems.count; i++)
        strncat(problems_text, problems.texts[i], problems_size - strlen(problems_text) - 1);
    config_problems_clear(&problems);
    return *ret_config != NULL;
}

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

void exporter_open(struct exporter_fixture *fixture, struct lane *lane,
                   const struct component_factory *factory, const char *yaml,
                   enum signal_kind signal)
{
    char problems[4096];
    struct error error = {.text = ""};
    memset(fixture, 0, sizeof(*fixture));
    if (!exporter_try_load(factory, yaml, &fixture->config, problems, sizeof(problems)))
        fail_msg("%s", problems);
    fixture->lane = lane;
    budget_init(&fixture->budget, 64 << 20);
    struct component *component = mem_zalloc(factory->instance_size);
    component->factory = factory;
    component->id = factory->type;
    component->lane = lane;
    component->budget = &fixture->budget;
    component->signal = signal;
    component->first = component;
    component->counters = mem_zalloc(factory->counters_size + 1);
    component->logger = (struct logger){.component_id = factory->type};
    for (size_t i = 0; i < fixture->config->components_count; i++)
        if (fixture->config->components[i].factory == factory)
            component->config = fixture->config->components[i].config;
    fixture->component = component;
    if (factory->share != NULL) {
        component->shared = factory->share(component, 1, &error);
        if (component->shared == NULL)
            fail_msg("%s", error.text);
    }
    if (factory->create != NULL && !factory->create(component, &error))
        fail_msg("%s", error.text);
    if (factory->start != NULL && !factory->start(component, &error))
        fail_msg("%s", error.text);
}

static void on_receipt(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    struct exporter_fixture *fixture = arg;
    mem_free(receipt);
    fixture->results++;
    fixture->outcome = *outcome;
    snprintf(fixture->message, sizeof(fixture->message), "%s",
             outcome->message == NULL ? "" : outcome->message);
}

static void append_part(struct batch *batch, struct slice bytes)
{
    struct buffer *buffer = buffer_try_create(NULL, bytes.size + 1);
    assert_non_null(buffer);
    if (bytes.size > 0)
        memcpy(buffer->data, bytes.data, bytes.size);
    buffer->size = bytes.size;
    batch_append(batch, buffer, buffer_slice(buffer));
    buffer_unref(buffer);
}

void exporter_offer(struct exporter_fixture *fixture, struct slice body, uint64_t items)
{
    struct batch *batch = batch_create(fixture->component->signal, 2);
    const size_t first = fixture->has_two_parts ? body.size / 2 : body.size;
    append_part(batch, slice_of(body.data, first));
    if (first < body.size)
        append_part(batch, slice_of(body.data + first, body.size - first));
    batch->items = items;
    if (fixture->client != NULL)
        batch->client = client_info_ref(fixture->client);
    if (fixture->arrival_ns != 0)
        batch->arrival_ns = fixture->arrival_ns;
    struct receipt *receipt = mem_alloc(sizeof(*receipt));
    receipt_init(receipt, on_receipt, fixture);
    fixture->component->factory->consume(fixture->component, batch, receipt);
    batch_unref(batch);
}

void exporter_wait(struct exporter_fixture *fixture, unsigned results)
{
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    while (fixture->results < results) {
        lane_turn(fixture->lane);
        if (time(NULL) > end)
            fail_msg("no result for %d seconds", TEST_SECONDS_MAX);
    }
    assert_int_equal(fixture->results, results);
}

void exporter_export(struct exporter_fixture *fixture, struct slice body, uint64_t items)
{
    unsigned before = fixture->results;
    exporter_offer(fixture, body, items);
    exporter_wait(fixture, before + 1);
}

void exporter_wait_for_memory(struct exporter_fixture *fixture)
{
    assert_int_equal(fixture->outcome.verdict, REFUSED);
    assert_int_not_equal(atomic_load(&fixture->budget.export_refused_ns), 0);
    atomic_fetch_sub(&fixture->budget.export_refused_ns, BUDGET_EXPORT_WAIT_NS);
}

void exporter_close(struct exporter_fixture *fixture)
{
    struct component *component = fixture->component;
    time_t end = time(NULL) + TEST_SECONDS_MAX;
    fixture->stopping = (struct stop_latch){.fn = on_stopped, .arg = &fixture->has_stopped};
    component->stopping = &fixture->stopping;
    stop_latch_hold(&fixture->stopping);
    if (component->factory->stop != NULL)
        component->factory->stop(component);
    else
        component_stopped(component);
    while (!fixture->has_stopped && time(NULL) <= end)
        lane_turn(fixture->lane);
    assert_true(fixture->has_stopped);
    assert_int_equal(budget_used(&fixture->budget), 0);
    if (component->factory->destroy != NULL)
        component->factory->destroy(component);
    if (component->factory->unshare != NULL)
        component->factory->unshare(component->shared);
    mem_free(component->counters);
    mem_free(component);
    budget_fini(&fixture->budget);
    config_destroy(fixture->config);
}
