/* SPDX-License-Identifier: Apache-2.0 */
/* The in-process service. Looks into the service's own tables, as no other code may. */
#include "tests/support/harness.h"

#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/config.h"
#include "src/config/feature_gates.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/core/component.h"
#include "src/core/receipt.h"
#include "src/service/service.h"
#include "src/service/service_parts.h"
#include "src/service/telemetry.h"
#include "tests/support/telemetry_bytes.h"

#include <assert.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char base_yaml[] = "yaml:\n"
                                "receivers: {test: {}}\n"
                                "service: {telemetry: {metrics: {level: none}}}\n";

static const struct component_factory *const *known_components = test_components;
static struct feature_gates gates;
static bool has_gates;

void harness_set_gates(const char *list)
{
    struct error error;
    gates = feature_gates_default();
    has_gates = list != NULL;
    if (has_gates)
        assert_true(feature_gates_parse(&gates, list, &error));
}

void harness_set_components(const struct component_factory *const *components)
{
    known_components = components != NULL ? components : test_components;
}

static struct config *load(const char *yaml, struct config_problems *problems)
{
    size_t size = strlen(yaml) + sizeof("yaml:\n");
    char *location = mem_alloc(size);
    snprintf(location, size, "yaml:\n%s", yaml);
    struct config *config = config_load(
        &(struct config_request){
            .locations = (const char *const[]){base_yaml, location},
            .locations_count = 2,
            .factories = known_components,
            .gates = has_gates ? &gates : NULL,
        },
        problems);
    mem_free(location);
    return config;
}

bool harness_is_wrong(const char *yaml, const char *text)
{
    struct config_problems problems = {0};
    struct config *config = load(yaml, &problems);
    bool is_named = false;
    for (size_t i = 0; i < problems.count; i++)
        is_named |= strstr(problems.texts[i], text) != NULL;
    for (size_t i = 0; !is_named && i < problems.count; i++)
        print_error("%s\n", problems.texts[i]);
    bool is_wrong = config == NULL && is_named;
    if (config != NULL) {
        struct error error = {.text = ""};
        struct lane *lane = lane_create(0);
        bool can_build = service_can_build(config, lane, false, &error);
        is_wrong = !can_build && strstr(error.text, text) != NULL;
        if (!is_wrong)
            print_error("%s\n", error.text);
        lane_destroy(lane);
    }
    config_destroy(config);
    config_problems_clear(&problems);
    return is_wrong;
}

static struct harness *build(const char *yaml, unsigned lanes, bool is_tried)
{
    struct error error = {.text = ""};
    assert(lanes > 0 && lanes <= HARNESS_LANES_MAX);
    clock_fake_start(1000 * S, 1700000000 * S);
    random_fix(0.5);
    test_events_clear();
    struct config_problems problems = {0};
    struct config *config = load(yaml, &problems);
    for (size_t i = 0; !is_tried && i < problems.count; i++)
        print_error("%s\n", problems.texts[i]);
    config_problems_clear(&problems);
    if (config == NULL)
        return NULL;
    struct harness *harness = mem_zalloc(sizeof(*harness));
    harness->config = config;
    harness->lanes_count = lanes;
    for (unsigned i = 0; i < lanes; i++)
        harness->lanes[i] = lane_create(i);
    harness->service = service_create(config, harness->lanes, lanes, &error);
    if (harness->service != NULL)
        return harness;
    if (!is_tried)
        print_error("%s\n", error.text);
    harness_discard(harness);
    return NULL;
}

struct harness *harness_try_build(const char *yaml, unsigned lanes)
{
    return build(yaml, lanes, true);
}

struct harness *harness_create_on(const char *yaml, unsigned lanes)
{
    struct error error = {.text = ""};
    struct harness *harness = build(yaml, lanes, false);
    assert_non_null(harness);
    if (!service_start(harness->service, &error))
        fail_msg("%s", error.text);
    return harness;
}

struct harness *harness_create(const char *yaml)
{
    return harness_create_on(yaml, 1);
}

void harness_discard(struct harness *harness)
{
    service_destroy(harness->service);
    for (unsigned i = 0; i < harness->lanes_count; i++)
        lane_destroy(harness->lanes[i]);
    config_destroy(harness->config);
    for (size_t i = 0; i < harness->requests_count; i++)
        mem_free(harness->requests[i]);
    mem_free(harness);
    clock_fake_stop();
    random_fix(-1);
}

void harness_abandon(struct harness *harness)
{
    static struct harness *kept[8];
    static size_t kept_count;
    assert(harness->was_forced);
    assert(kept_count < sizeof(kept) / sizeof(kept[0]));
    kept[kept_count++] = harness;
    clock_fake_stop();
}

struct harness_totals harness_totals(const struct harness *harness, enum signal_kind signal)
{
    struct harness_totals totals = {0};
    for (unsigned i = 0; i < harness->lanes_count; i++) {
        const struct ledger_signal *row = &harness->service->lanes[i].ledger.signals[signal];
        totals.received += atomic_load(&row->received);
        totals.delivered += atomic_load(&row->delivered);
        totals.in_flight += (uint64_t)ledger_in_flight(row);
        totals.deferred += atomic_load(&row->deferred);
        for (int reason = 0; reason < LOSS_REASONS; reason++) {
            totals.rejected += atomic_load(&row->rejected[reason]);
            totals.dropped += atomic_load(&row->dropped[reason]);
            totals.by_reason[reason] +=
                atomic_load(&row->rejected[reason]) + atomic_load(&row->dropped[reason]);
        }
    }
    return totals;
}

/* What ended in a connector: its own count, which is the first counter of all but the test's. */
static uint64_t taken_items(const struct component *connector)
{
    return connector->factory == &test_connector_factory
               ? ((const struct test_connector *)connector)->items
               : counter_read((const counter *)connector->counters + connector->signal);
}

/* NULL: it is another one than the test's. */
static struct test_exporter *test_exporter_or_null(struct component *exporter)
{
    bool is_test = exporter != NULL && exporter->factory == &test_exporter_factory;
    return is_test ? test_exporter_of(exporter) : NULL;
}

/* Whether all exporters of the signal are the test's. */
static bool counts_exports(const struct harness *harness, enum signal_kind signal)
{
    for (size_t i = 0; i < harness->config->components_count; i++) {
        struct component *exporter = harness->service->lanes[0].exporters[exporter_slot(i, signal)];
        if (exporter != NULL && test_exporter_or_null(exporter) == NULL)
            return false;
    }
    return true;
}

static uint64_t delivered_items(const struct harness *harness, enum signal_kind signal)
{
    uint64_t items = 0;
    for (unsigned lane = 0; lane < harness->lanes_count; lane++)
        for (size_t i = 0; i < harness->config->components_count; i++) {
            struct component *exporter =
                harness->service->lanes[lane].exporters[exporter_slot(i, signal)];
            if (exporter != NULL)
                items += test_exporter_of(exporter)->delivered_items;
        }
    for (unsigned lane = 0; lane < harness->lanes_count; lane++)
        for (size_t i = 0; i < harness->config->components_count * SIGNAL_PAIRS; i++) {
            struct component *connector = harness->service->lanes[lane].connectors[i];
            if (connector != NULL && connector->signal == signal && !connector->factory->passes_on)
                items += taken_items(connector);
        }
    return items;
}

void harness_check(const struct harness *harness)
{
    if (harness->was_forced)
        return;
    for (int signal = 0; signal < SIGNAL_KINDS; signal++) {
        struct harness_totals totals = harness_totals(harness, (enum signal_kind)signal);
        assert_int_equal(totals.received, totals.delivered + totals.rejected + totals.dropped +
                                              totals.deferred + totals.in_flight);
        if (counts_exports(harness, (enum signal_kind)signal))
            assert_int_equal(totals.delivered, delivered_items(harness, (enum signal_kind)signal));
    }
}

void harness_turn(struct harness *harness)
{
    unsigned turns = 0;
    for (bool is_busy = true; is_busy;) {
        is_busy = false;
        for (unsigned i = 0; i < harness->lanes_count; i++)
            is_busy |= lane_turn(harness->lanes[i]);
        harness_check(harness);
        if (++turns == HARNESS_TURNS_MAX)
            fail_msg("the lanes never come to rest at this instant");
    }
}

static uint64_t next_timer_ns(const struct harness *harness)
{
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < harness->lanes_count; i++) {
        uint64_t due = timers_next_ns(lane_timers(harness->lanes[i]));
        next = due < next ? due : next;
    }
    return next;
}

void harness_advance(struct harness *harness, uint64_t by_ns)
{
    uint64_t end_ns = clock_now_ns() + by_ns;
    harness_turn(harness);
    while (clock_now_ns() < end_ns) {
        uint64_t due_ns = next_timer_ns(harness);
        clock_fake_advance((due_ns < end_ns ? due_ns : end_ns) - clock_now_ns());
        harness_turn(harness);
    }
}

enum { AWAIT_MAX = 6000, AWAIT_REAL_MS = 5, AWAIT_STEP_MS = 20 };

void harness_await(struct harness *harness, bool (*is_done)(void *arg), void *arg, const char *what)
{
    harness_await_long(harness, is_done, arg, what, AWAIT_STEP_MS * MS);
}

void harness_await_long(struct harness *harness, bool (*is_done)(void *arg), void *arg,
                        const char *what, uint64_t step_ns)
{
    harness_turn(harness);
    for (unsigned i = 0; !is_done(arg); i++) {
        struct pollfd events[HARNESS_LANES_MAX];
        if (i == AWAIT_MAX)
            fail_msg("never: %s", what);
        for (unsigned lane = 0; lane < harness->lanes_count; lane++)
            events[lane] = (struct pollfd){
                .fd = uv_backend_fd(lane_loop(harness->lanes[lane])),
                .events = POLLIN,
            };
        if (poll(events, harness->lanes_count, AWAIT_REAL_MS) > 0)
            harness_turn(harness);
        else
            harness_advance(harness, step_ns);
    }
}

static void note_refusal(struct receipt *receipt, const struct outcome *outcome, void *arg)
{
    assert_non_null(receipt);
    assert_int_equal(outcome->verdict, REFUSED);
    snprintf(arg, HARNESS_TEXT_MAX, "%s", outcome->message);
}

/* Work behind that of others. */
struct barrier {
    struct helper_work work; /* first */
    sem_t reached;
};

static void reach(struct helper_work *work)
{
    sem_post(&((struct barrier *)work)->reached);
}

static void pass(struct helper_work *work)
{
    sem_destroy(&((struct barrier *)work)->reached);
}

void harness_turn_helped(struct harness *harness, unsigned lane)
{
    enum { WAIT_S = 30 };
    struct barrier barrier = {.work = {.run = reach, .done = pass}};
    struct timespec until;
    sem_init(&barrier.reached, 0, 0);
    lane_help(harness->lanes[lane], &barrier.work);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    assert_int_equal(sem_timedwait(&barrier.reached, &until), 0);
    harness_turn(harness);
}

static void wait_at(struct helper_work *work)
{
    assert_int_equal(sem_wait(&((struct harness_gate *)work)->opens), 0);
}

static void go_through(struct helper_work *work)
{
    assert_int_equal(sem_destroy(&((struct harness_gate *)work)->opens), 0);
}

void harness_close_gate(struct harness *harness, unsigned lane, struct harness_gate *gate)
{
    *gate = (struct harness_gate){.work = {.run = wait_at, .done = go_through}};
    assert_int_equal(sem_init(&gate->opens, 0, 0), 0);
    lane_help(harness->lanes[lane], &gate->work);
}

void harness_open_gate(struct harness_gate *gate)
{
    assert_int_equal(sem_post(&gate->opens), 0);
}

void harness_refuse_two(struct harness *harness, struct component *stage,
                        const struct slice bytes[static 2], char texts[2][HARNESS_TEXT_MAX])
{
    struct receipt receipts[2];
    for (size_t i = 0; i < 2; i++) {
        struct batch *batch = plain_request(NULL, stage->signal, bytes[i], 1);
        texts[i][0] = '\0';
        receipt_init(&receipts[i], note_refusal, texts[i]);
        component_consume(stage, batch, &receipts[i]);
        batch_unref(batch);
        assert_string_equal(texts[i], "");
    }
    harness_turn_helped(harness, 0);
}

struct component *harness_receiver(const struct harness *harness, const char *id, unsigned lane)
{
    const struct service_lane *part = &harness->service->lanes[lane];
    for (size_t i = 0; i < harness->config->components_count; i++)
        if (part->receivers[i] != NULL && strcmp(part->receivers[i]->id, id) == 0)
            return part->receivers[i];
    fail_msg("no receiver %s", id);
    return NULL;
}

/* It stays valid until the harness is gone. */
static struct test_request *add_request(struct harness *harness, uint64_t items)
{
    struct test_request *request = mem_zalloc(sizeof(*request));
    assert(harness->requests_count < HARNESS_REQUESTS_MAX);
    harness->requests[harness->requests_count++] = request;
    request->items = items;
    return request;
}

struct test_request *harness_put_bytes(struct harness *harness, unsigned lane,
                                       enum signal_kind signal, struct slice bytes, uint64_t items)
{
    struct batch *batch = plain_request(NULL, signal, bytes, items);
    struct test_request *request = add_request(harness, items);
    test_receiver_offer(harness_receiver(harness, "test", lane), batch, request);
    batch_unref(batch);
    return request;
}

struct test_request *harness_offer_bytes(struct harness *harness, unsigned lane,
                                         enum signal_kind signal, struct slice bytes,
                                         uint64_t items)
{
    struct test_request *request = harness_put_bytes(harness, lane, signal, bytes, items);
    harness_turn(harness);
    return request;
}

struct test_request *harness_offer(struct harness *harness, struct harness_offer offer)
{
    struct component *receiver =
        harness_receiver(harness, offer.receiver != NULL ? offer.receiver : "test", offer.lane);
    struct batch *batch =
        numbered_request(&harness->service->budget, offer.signal, harness->next_item, offer.items);
    if (batch == NULL)
        return NULL;
    batch->client = offer.client != NULL ? client_info_ref(offer.client) : NULL;
    struct test_request *request = add_request(harness, offer.items);
    request->first_item = harness->next_item;
    harness->next_item += offer.items;
    test_receiver_offer(receiver, batch, request);
    batch_unref(batch);
    harness_check(harness);
    return request;
}

struct test_request *harness_send(struct harness *harness, uint64_t items)
{
    return harness_offer(harness, (struct harness_offer){.items = items});
}

struct test_request *harness_send_now(struct harness *harness, uint64_t items)
{
    struct test_request *request = harness_send(harness, items);
    harness_turn(harness);
    return request;
}

static void on_stopped(bool is_forced, void *arg)
{
    struct harness *harness = arg;
    assert(!harness->has_stopped);
    harness->has_stopped = true;
    harness->was_forced = is_forced;
}

void harness_stop(struct harness *harness)
{
    assert(!harness->is_stopping);
    harness->is_stopping = true;
    service_stop(harness->service, on_stopped, harness);
}

void harness_let_go(const struct harness *harness)
{
    for (unsigned lane = 0; lane < harness->lanes_count; lane++)
        for (size_t i = 0; i < harness->config->components_count * SIGNAL_KINDS; i++) {
            struct test_exporter *exporter =
                test_exporter_or_null(harness->service->lanes[lane].exporters[i]);
            if (exporter == NULL)
                continue;
            exporter->result = RESULT_OK;
            exporter->script_count = 0;
            test_exporter_release(exporter, RESULT_OK);
        }
}

static bool has_stopped(void *arg)
{
    const struct harness *harness = arg;
    return harness->has_stopped;
}

void harness_destroy(struct harness *harness)
{
    if (!harness->is_stopping)
        harness_stop(harness);
    harness_let_go(harness);
    harness_advance(harness, 1 * S);
    harness_await(harness, has_stopped, harness, "it stops");
    assert_false(harness->was_forced);
    for (int signal = 0; signal < SIGNAL_KINDS; signal++)
        assert_int_equal(harness_totals(harness, (enum signal_kind)signal).in_flight, 0);
    for (size_t i = 0; i < harness->requests_count; i++)
        assert_true(harness->requests[i]->is_resolved);
    assert_int_equal(harness_budget_used(harness), 0);
    harness_discard(harness);
}

struct test_exporter *harness_exporter_on(const struct harness *harness, const char *id,
                                          unsigned lane, enum signal_kind signal)
{
    for (size_t i = 0; i < harness->config->components_count; i++) {
        struct component *exporter =
            harness->service->lanes[lane].exporters[exporter_slot(i, signal)];
        if (exporter != NULL && strcmp(exporter->id, id) == 0)
            return test_exporter_of(exporter);
    }
    fail_msg("no exporter %s", id);
    return NULL;
}

struct test_exporter *harness_exporter(const struct harness *harness, const char *id)
{
    return harness_exporter_on(harness, id, 0, TRACES);
}

struct component *harness_processor(const struct harness *harness, const char *id,
                                    enum signal_kind signal)
{
    const struct config *config = harness->config;
    for (size_t i = 0; i < config->pipelines_count; i++)
        for (size_t k = 0; k < config->pipelines[i].processors_count; k++) {
            struct component *processor = harness->service->lanes[0].processors[i][k];
            if (processor->signal == signal && strcmp(processor->id, id) == 0)
                return processor;
        }
    fail_msg("no processor %s", id);
    return NULL;
}

struct component *harness_connector(const struct harness *harness, const char *id,
                                    enum signal_kind taken, enum signal_kind given)
{
    for (size_t i = 0; i < harness->config->components_count; i++) {
        struct component *connector =
            harness->service->lanes[0].connectors[connector_slot(i, taken, given)];
        if (connector != NULL && strcmp(connector->id, id) == 0)
            return connector;
    }
    fail_msg("no connector %s", id);
    return NULL;
}

struct journal *harness_journal(const struct harness *harness, size_t pipeline)
{
    return harness->service->journals[pipeline];
}

void *harness_shared(const struct harness *harness, const char *id)
{
    for (size_t i = 0; i < harness->config->components_count; i++)
        if (harness->service->commons[i] != NULL &&
            strcmp(harness->config->components[i].id, id) == 0)
            return harness->service->commons[i];
    fail_msg("nothing is shared by %s", id);
    return NULL;
}

uint64_t harness_budget_peak(const struct harness *harness)
{
    return atomic_load(&harness->service->budget.high_water);
}

uint64_t harness_budget_used(const struct harness *harness)
{
    return budget_used(&harness->service->budget);
}

char *harness_metrics(const struct harness *harness)
{
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    assert_non_null(out);
    telemetry_print(harness->service, METRICS_NORMAL, out);
    fclose(out);
    return page;
}
