/* SPDX-License-Identifier: Apache-2.0 */
/* The fakes of the core, and the receiver between them. */
#include "tests/unit/receivers/pyroscope_fixture.h"

#include "receivers/pyroscope/pyroscope_receiver.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/config.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/net/server/http_server.h"
#include "tests/support/h2_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 3000, TEXT_MAX = 4096 };

extern const struct component_factory pyroscope_receiver_factory;
static const struct component_factory sink_factory = {
    .type = "sink",
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
};
static const struct component_factory *const factories[] = {&pyroscope_receiver_factory,
                                                            &sink_factory, NULL};

struct pyroscope_fixture pyroscope;

struct outlet {
    enum signal_kind signal;
};
static struct outlet profiles = {PROFILES};

void component_stopped(struct component *self)
{
    assert_ptr_equal(self, pyroscope.receiver);
    pyroscope.is_stopped = true;
}

static void keep(const struct batch *batch)
{
    const struct client_info *client = batch->client;
    pyroscope.items = batch->items;
    pyroscope.size = 0;
    for (size_t i = 0; i < batch->parts_count; i++) {
        struct slice bytes = batch->parts[i].bytes;
        assert_true(pyroscope.size + bytes.size <= PYROSCOPE_BYTES_MAX);
        memcpy(pyroscope.bytes + pyroscope.size, bytes.data, bytes.size);
        pyroscope.size += bytes.size;
    }
    for (size_t i = 0; i < client->metadata_count; i++)
        if (strcmp(client->metadata[i].key, "x-scope-orgid") == 0)
            snprintf(pyroscope.tenant, sizeof(pyroscope.tenant), "%s", client->metadata[i].value);
}

size_t outlet_pipelines(const struct outlet *outlet)
{
    assert_ptr_equal(outlet, &profiles);
    return pyroscope.pipelines;
}

/* Of receivers in the same library. */
void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    (void)outlet;
    (void)batch;
    (void)receipt;
    fail_msg("this receiver offers patiently");
}

void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason)
{
    assert_ptr_equal(outlet, &profiles);
    assert_int_equal(place, 0);
    assert_true(batch->items > 0);
    assert_int_equal(reason, LOSS_BUSY);
    pyroscope.given_up++;
}

static void on_delay(struct timer *timer, void *arg)
{
    struct receipt *held[PYROSCOPE_HELD_MAX];
    unsigned count = pyroscope.held_count;
    (void)timer;
    (void)arg;
    memcpy(held, pyroscope.held, sizeof(held));
    pyroscope.held_count = 0;
    for (unsigned i = 0; i < count; i++)
        receipt_resolve(held[i], &pyroscope.outcome);
}

static void hold(struct receipt *receipt)
{
    assert_in_range(pyroscope.held_count, 0, PYROSCOPE_HELD_MAX - 1);
    pyroscope.held[pyroscope.held_count++] = receipt;
    if (pyroscope.held_count == 1)
        lane_timer_start(pyroscope.lane, &pyroscope.delay, pyroscope.delay_ns);
    if (pyroscope.held_count > pyroscope.held_max)
        pyroscope.held_max = pyroscope.held_count;
}

void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again)
{
    struct outcome busy = outcome_busy("the pipeline is busy");
    assert_ptr_equal(outlet, &profiles);
    assert_in_range(place, 0, pyroscope.pipelines - 1);
    pyroscope.offers++;
    pyroscope.received += !is_again;
    keep(batch);
    bool is_busy = pyroscope.busy_times > 0;
    pyroscope.busy_times -= is_busy;
    pyroscope.accepted += !is_busy && pyroscope.outcome.verdict == ACCEPTED;
    if (!is_busy && place == 0 && pyroscope.delay_ns > 0)
        hold(receipt);
    else
        receipt_resolve(receipt, is_busy ? &busy : &pyroscope.outcome);
}

static struct config *load(const char *options)
{
    char text[TEXT_MAX];
    const char *locations[] = {text};
    struct config_problems problems = {.count = 0};
    snprintf(text, sizeof(text),
             "yaml:{receivers: {pyroscope: %s}, exporters: {sink: {}}, service: {pipelines: "
             "{profiles: {receivers: [pyroscope], exporters: [sink]}}}}",
             options);
    struct config *config = config_load(&(struct config_request){.locations = locations,
                                                                 .locations_count = 1,
                                                                 .factories = factories},
                                        &problems);
    if (config == NULL)
        fail_msg("%s", problems.texts[0]);
    config_problems_clear(&problems);
    return config;
}

static const void *config_of(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->components_count; i++)
        if (strcmp(config->components[i].id, id) == 0)
            return config->components[i].config;
    fail_msg("no component %s", id);
    return NULL;
}

void pyroscope_start(const char *options)
{
    struct error error = {.text = ""};
    memset(&pyroscope, 0, sizeof(pyroscope));
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1790000000 * (uint64_t)NS_PER_S);
    random_fix(0.5);
    pyroscope.pipelines = 1;
    pyroscope.outcome = outcome_accepted;
    pyroscope.lane = lane_create(0);
    timer_init(&pyroscope.delay, on_delay, NULL);
    budget_init(&pyroscope.budget, 16 * MIB);
    pyroscope.config = load(options);
    struct component *receiver = mem_zalloc(pyroscope_receiver_factory.instance_size);
    pyroscope.receiver = receiver;
    receiver->factory = &pyroscope_receiver_factory;
    receiver->id = "pyroscope";
    receiver->config = config_of(pyroscope.config, "pyroscope");
    receiver->lane = pyroscope.lane;
    receiver->budget = &pyroscope.budget;
    receiver->ledger = &pyroscope.ledger;
    receiver->first = receiver;
    receiver->outlets[PROFILES] = &profiles;
    receiver->counters = mem_zalloc(pyroscope_receiver_factory.counters_size);
    if (!pyroscope_receiver_factory.create(receiver, &error) ||
        !pyroscope_receiver_factory.start(receiver, &error))
        fail_msg("%s", error.text);
    snprintf(pyroscope.address, sizeof(pyroscope.address), "%s",
             http_server_address(((struct pyroscope_receiver *)receiver)->http.server));
}

static void turn(void)
{
    unsigned before = pyroscope.offers;
    lane_turn(pyroscope.lane);
    if (pyroscope.offers - before > pyroscope.turn_offers_max)
        pyroscope.turn_offers_max = pyroscope.offers - before;
    clock_fake_advance(10 * (uint64_t)NS_PER_MS);
}

void pyroscope_stop(void)
{
    pyroscope_receiver_factory.stop(pyroscope.receiver);
    for (unsigned i = 0; i < TURNS_MAX && !pyroscope.is_stopped; i++)
        turn();
    assert_true(pyroscope.is_stopped);
    pyroscope_receiver_factory.destroy(pyroscope.receiver);
    mem_free(pyroscope.receiver->counters);
    mem_free(pyroscope.receiver);
    config_destroy(pyroscope.config);
    assert_int_equal(budget_used(&pyroscope.budget), 0);
    budget_fini(&pyroscope.budget);
    lane_destroy(pyroscope.lane);
    random_fix(-1);
    clock_fake_stop();
}

void pyroscope_ask(const char *line, const char *headers, struct slice body, unsigned turns)
{
    char head[TEXT_MAX];
    struct h2_peer *peer = h2_peer_connect_raw(pyroscope.address);
    int used =
        snprintf(head, sizeof(head), "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s%s", line,
                 headers, strcasestr(headers, "content-length") == NULL ? "Content-Length: " : "");
    if (strcasestr(headers, "content-length") == NULL)
        used += snprintf(head + used, sizeof(head) - (size_t)used, "%zu\r\n", body.size);
    used += snprintf(head + used, sizeof(head) - (size_t)used, "\r\n");
    h2_peer_write(peer, head, (size_t)used);
    if (body.size > 0)
        h2_peer_write(peer, body.data, body.size);
    for (unsigned i = 0; i < turns && !peer->has_ended; i++) {
        h2_peer_turn(peer);
        turn();
        h2_peer_turn(peer);
    }
    assert_true(peer->raw_size < PYROSCOPE_BYTES_MAX);
    memcpy(pyroscope.response, peer->raw_input != NULL ? (char *)peer->raw_input : "",
           peer->raw_size);
    pyroscope.response[peer->raw_size] = '\0';
    h2_peer_close(peer);
    turn();
}

void pyroscope_assert_response(const char *what, unsigned status, const char *part)
{
    char line[32];
    snprintf(line, sizeof(line), "HTTP/1.1 %u", status);
    if (strncmp(pyroscope.response, line, strlen(line)) != 0 ||
        strcasestr(pyroscope.response, part) == NULL)
        fail_msg("%s: expected %u and \"%s\", found\n%s", what, status, part, pyroscope.response);
}
