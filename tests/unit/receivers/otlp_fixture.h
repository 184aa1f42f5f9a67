/* SPDX-License-Identifier: Apache-2.0 */
/* An otlp, a jaeger or a zipkin receiver on a hand-turned lane, between loopback clients and a
 * pipeline that records what it is offered and resolves it as configured. */
#pragma once

#include "src/base/budget.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"
#include "tests/support/h2_peer.h"

enum { OFFERS_MAX = 64, OFFER_BYTES_MAX = 1 << 18 };

struct offered {
    enum signal_kind signal;
    uint64_t items;
    size_t size;
    uint8_t bytes[OFFER_BYTES_MAX];
    char address[64];
    char tenant[64]; /* of the client's metadata */
    char host[64];
    char authority[64];
    bool has_te;
    bool is_client_charged; /* to the fixture's budget */
};

struct fixture {
    struct lane *lane;
    struct budget budget;
    struct ledger ledger;
    struct config *config;
    struct component *receiver;
    struct outcome outcome; /* the result of the pipeline */
    bool holds;             /* it comes later: held */
    struct receipt *held;
    bool keeps_no_bytes; /* of offers, which are too large */
    /* The first offer that is refused for now, from 1 on, and how many are. */
    unsigned busy_first;
    unsigned busy_count;
    unsigned given_up;
    uint64_t taken; /* items */
    unsigned offers;
    struct offered last;
    bool is_stopping;
    bool is_stopped;
    char grpc_address[64];
    char http_address[64];
};

extern struct fixture fixture;

/* protocols: YAML flow text of the map below receivers::otlp. Listens on random ports. */
void fixture_start(const char *protocols);
/* The same with a zipkin receiver: YAML flow text of its section; http_address is its address. */
void fixture_start_zipkin(const char *section);
/* The same with a jaeger receiver. */
void fixture_start_jaeger(const char *section);
/* Loads only; returns the problems' messages joined by newlines, "" when it loads. To be freed. */
char *fixture_problems(const char *protocols);
/* Tells the receiver to stop, no more. */
void fixture_begin_stop(void);
/* Stops the receiver, checks that nothing is left, and clears the fixture. */
void fixture_stop(void);
void fixture_turn(struct h2_peer *peer, unsigned times);
/* Until nothing is left to do. */
void fixture_turn_alone(void);
void fixture_turn_until_closed(struct h2_peer *peer, int32_t id);
/* transport: the value of the metric's label; "": it has none. signal TRACES: it has no signals. */
uint64_t fixture_count(const char *metric, const char *transport, enum signal_kind signal);
/* A request with that many spans in one resource; returns its size. */
size_t fixture_traces(uint8_t *room, unsigned spans);
