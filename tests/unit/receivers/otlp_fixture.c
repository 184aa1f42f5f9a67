/* SPDX-License-Identifier: Apache-2.0 */
/* The fakes of the core, and the receiver between them. */
#include "tests/unit/receivers/otlp_fixture.h"

#include "receivers/jaeger/jaeger_receiver.h"
#include "receivers/otlp/otlp_receiver.h"
#include "receivers/zipkin/zipkin_receiver.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/counter.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/config/config.h"
#include "src/core/batch.h"
#include "src/core/client_info.h"
#include "src/net/server/http_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 3000, TEXT_MAX = 8192 };

extern const struct component_factory otlp_receiver_factory;
extern const struct component_factory jaeger_receiver_factory;
extern const struct component_factory zipkin_receiver_factory;
static const struct component_factory sink_factory = {
    .type = "sink",
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
};
static const struct component_factory *const factories[] = {
    &otlp_receiver_factory, &jaeger_receiver_factory, &zipkin_receiver_factory, &sink_factory,
    NULL};

struct fixture fixture;

struct outlet {
    enum signal_kind signal;
};
static struct outlet outlets[] = {{TRACES}, {METRICS}, {PROFILES}};

void component_stopped(struct component *self)
{
    assert_ptr_equal(self, fixture.receiver);
    fixture.is_stopped = true;
}

static void copy_metadata(const struct client_info *client)
{
    if (client == NULL)
        return; /* of a packet */
    snprintf(fixture.last.address, sizeof(fixture.last.address), "%s", client->address);
    fixture.last.is_client_charged = client->budget == &fixture.budget;
    for (size_t i = 0; i < client->metadata_count; i++) {
        const struct client_metadata *row = &client->metadata[i];
        if (strcmp(row->key, "x-tenant") == 0)
            snprintf(fixture.last.tenant, sizeof(fixture.last.tenant), "%s", row->value);
        if (strcmp(row->key, "host") == 0)
            snprintf(fixture.last.host, sizeof(fixture.last.host), "%s", row->value);
        if (strcmp(row->key, ":authority") == 0)
            snprintf(fixture.last.authority, sizeof(fixture.last.authority), "%s", row->value);
        fixture.last.has_te |= strcmp(row->key, "te") == 0;
    }
}

void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt)
{
    fixture.offers++;
    memset(&fixture.last, 0, sizeof(fixture.last));
    fixture.last.signal = outlet->signal;
    fixture.last.items = batch->items;
    for (size_t i = 0; i < batch->parts_count && !fixture.keeps_no_bytes; i++) {
        struct slice bytes = batch->parts[i].bytes;
        assert_true(fixture.last.size + bytes.size <= OFFER_BYTES_MAX);
        memcpy(fixture.last.bytes + fixture.last.size, bytes.data, bytes.size);
        fixture.last.size += bytes.size;
    }
    assert_int_equal(batch->bytes, fixture.keeps_no_bytes ? batch->bytes : fixture.last.size);
    copy_metadata(batch->client);
    struct outcome outcome = fixture.outcome;
    if (fixture.offers >= fixture.busy_first &&
        fixture.offers - fixture.busy_first < fixture.busy_count)
        outcome = outcome_busy("full");
    if (fixture.holds) {
        fixture.held = receipt;
        return;
    }
    fixture.taken += outcome.verdict == ACCEPTED ? batch->items : 0;
    receipt_resolve(receipt, &outcome);
}

size_t outlet_pipelines(const struct outlet *outlet)
{
    (void)outlet;
    return 1;
}

void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason)
{
    (void)outlet;
    (void)batch;
    assert_int_equal(place, 0);
    assert_int_equal(reason, LOSS_BUSY);
    fixture.given_up++;
}

void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again)
{
    (void)is_again;
    assert_int_equal(place, 0);
    outlet_offer(outlet, batch, receipt);
}

static struct config *load(const char *type, const char *section, struct config_problems *problems)
{
    char text[TEXT_MAX];
    const char *locations[] = {text};
    snprintf(text, sizeof(text),
             "yaml:{receivers: {%s: %s}, exporters: {sink: {}}, service: {pipelines: {traces: "
             "{receivers: [%s], exporters: [sink]}}}}",
             type, section, type);
    return config_load(&(struct config_request){.locations = locations,
                                                .locations_count = 1,
                                                .factories = factories},
                       problems);
}

char *fixture_problems(const char *protocols)
{
    struct config_problems problems = {.count = 0};
    char *text = calloc(1, TEXT_MAX);
    assert_non_null(text);
    struct config *config = load("otlp", protocols, &problems);
    for (size_t i = 0; i < problems.count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, TEXT_MAX - used, "%s\n", problems.texts[i]);
    }
    config_problems_clear(&problems);
    config_destroy(config);
    return text;
}

static const void *config_of(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->components_count; i++)
        if (strcmp(config->components[i].id, id) == 0)
            return config->components[i].config;
    fail_msg("no component %s", id);
    return NULL;
}

/* The receiver of that factory. */
static void start(const struct component_factory *factory, const char *section)
{
    struct config_problems problems = {.count = 0};
    struct error error = {.text = ""};
    memset(&fixture, 0, sizeof(fixture));
    clock_fake_start(1000 * (uint64_t)NS_PER_S, 1000 * (uint64_t)NS_PER_S);
    random_fix(0.5);
    fixture.outcome = outcome_accepted;
    fixture.lane = lane_create(0);
    budget_init(&fixture.budget, 64 * MIB);
    fixture.config = load(factory->type, section, &problems);
    if (fixture.config == NULL)
        fail_msg("%s", problems.texts[0]);
    config_problems_clear(&problems);
    struct component *receiver = mem_zalloc(factory->instance_size);
    fixture.receiver = receiver;
    receiver->factory = factory;
    receiver->id = factory->type;
    receiver->config = config_of(fixture.config, factory->type);
    receiver->lane = fixture.lane;
    receiver->budget = &fixture.budget;
    receiver->ledger = &fixture.ledger;
    receiver->first = receiver;
    receiver->outlets[TRACES] = &outlets[0];
    receiver->outlets[METRICS] = &outlets[1]; /* logs have no pipeline */
    receiver->outlets[PROFILES] = &outlets[2];
    receiver->counters = mem_zalloc(factory->counters_size);
    if (!factory->create(receiver, &error) || !factory->start(receiver, &error))
        fail_msg("%s", error.text);
}

static void keep_address(char address[64], const struct http_server *server)
{
    if (server != NULL)
        snprintf(address, 64, "%s", http_server_address(server));
}

void fixture_start(const char *protocols)
{
    start(&otlp_receiver_factory, protocols);
    struct otlp_receiver *receiver = (struct otlp_receiver *)fixture.receiver;
    keep_address(fixture.grpc_address, receiver->servers[OTLP_GRPC].server);
    keep_address(fixture.http_address, receiver->servers[OTLP_HTTP].server);
}

void fixture_start_zipkin(const char *section)
{
    start(&zipkin_receiver_factory, section);
    keep_address(fixture.http_address, ((struct zipkin_receiver *)fixture.receiver)->http.server);
}

void fixture_start_jaeger(const char *section)
{
    start(&jaeger_receiver_factory, section);
    struct jaeger_receiver *receiver = (struct jaeger_receiver *)fixture.receiver;
    if (receiver->servers[JAEGER_GRPC].server != NULL)
        keep_address(fixture.grpc_address, receiver->servers[JAEGER_GRPC].server);
    if (receiver->servers[JAEGER_HTTP].server != NULL)
        keep_address(fixture.http_address, receiver->servers[JAEGER_HTTP].server);
}

void fixture_begin_stop(void)
{
    fixture.is_stopping = true;
    fixture.receiver->factory->stop(fixture.receiver);
}

void fixture_stop(void)
{
    if (!fixture.is_stopping)
        fixture_begin_stop();
    for (unsigned i = 0; i < TURNS_MAX && !fixture.is_stopped; i++) {
        lane_turn(fixture.lane);
        clock_fake_advance(10 * (uint64_t)NS_PER_MS);
    }
    assert_true(fixture.is_stopped);
    fixture.receiver->factory->destroy(fixture.receiver);
    mem_free(fixture.receiver->counters);
    mem_free(fixture.receiver);
    config_destroy(fixture.config);
    assert_int_equal(budget_used(&fixture.budget), 0);
    budget_fini(&fixture.budget);
    lane_destroy(fixture.lane);
    random_fix(-1);
    clock_fake_stop();
}

void fixture_turn(struct h2_peer *peer, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        h2_peer_turn(peer);
        lane_turn(fixture.lane);
    }
    h2_peer_turn(peer);
}

void fixture_turn_alone(void)
{
    for (unsigned i = 0; i < TURNS_MAX && lane_turn(fixture.lane); i++)
        clock_fake_advance(NS_PER_MS);
}

void fixture_turn_until_closed(struct h2_peer *peer, int32_t id)
{
    for (unsigned i = 0; i < TURNS_MAX && !h2_peer_response(peer, id)->is_closed; i++)
        fixture_turn(peer, 1);
    assert_true(h2_peer_response(peer, id)->is_closed);
}

uint64_t fixture_count(const char *metric, const char *transport, enum signal_kind signal)
{
    const uint8_t *counters = fixture.receiver->counters;
    const struct counter_row *rows = fixture.receiver->factory->counters;
    for (const struct counter_row *row = rows; row->name != NULL; row++)
        if (strcmp(row->name, metric) == 0 &&
            strcmp(row->label_value != NULL ? row->label_value : "", transport) == 0)
            return counter_read((const counter *)(const void *)(counters + row->offset) + signal);
    fail_msg("no metric %s", metric);
    return 0;
}

/* ResourceSpans { ScopeSpans { Span { name: "abc" } × spans } }, each length below 128 or two
 * bytes. */
size_t fixture_traces(uint8_t *room, unsigned spans)
{
    static const uint8_t span[] = {0x12, 0x05, 0x2a, 0x03, 'a', 'b', 'c'};
    size_t inner = spans * sizeof(span);
    assert_true(inner < 16000);
    uint8_t scope_head[] = {0x12, (uint8_t)(inner | 0x80), (uint8_t)(inner >> 7)};
    size_t middle = inner + sizeof(scope_head);
    uint8_t head[] = {0x0a, (uint8_t)(middle | 0x80), (uint8_t)(middle >> 7)};
    size_t used = 0;
    memcpy(room, head, sizeof(head));
    used += sizeof(head);
    memcpy(room + used, scope_head, sizeof(scope_head));
    used += sizeof(scope_head);
    for (unsigned i = 0; i < spans; i++, used += sizeof(span))
        memcpy(room + used, span, sizeof(span));
    return used;
}
