/* SPDX-License-Identifier: Apache-2.0 */
/* A whole service in this process: built from YAML text with the test components, on the fake clock
 * and on lanes that are turned by hand. After every turn the ledger must add up; at the end nothing
 * may be in flight and the budget must be whole again. One thread. */
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/core/ledger.h"
#include "tests/support/test_components.h"

struct client_info;
struct config;
struct journal;
struct service;

enum {
    HARNESS_LANES_MAX = 4,
    HARNESS_REQUESTS_MAX = 4096,
    HARNESS_TURNS_MAX = 100000,
    HARNESS_TEXT_MAX = 256,
};
#define MS ((uint64_t)NS_PER_MS)
#define S  ((uint64_t)NS_PER_S)

struct harness {
    struct config *config;
    struct service *service;
    unsigned lanes_count;
    struct lane *lanes[HARNESS_LANES_MAX];
    size_t requests_count;
    struct test_request *requests[HARNESS_REQUESTS_MAX];
    uint64_t next_item;
    bool is_stopping;
    bool has_stopped;
    bool was_forced;
};

struct harness_offer {
    const char *receiver; /* NULL: "test" */
    unsigned lane;
    enum signal_kind signal;
    uint64_t items;
    struct client_info *client; /* NULL: unknown; stays the caller's */
};

/* Sums over the lanes of one signal. */
struct harness_totals {
    uint64_t received;
    uint64_t delivered;
    uint64_t rejected;
    uint64_t dropped;
    uint64_t in_flight;
    uint64_t deferred;
    uint64_t by_reason[LOSS_REASONS]; /* rejected and dropped */
};

/* --feature-gates of services that are built from now on; NULL: the defaults. */
void harness_set_gates(const char *list);
/* What services that are built from now on may use; NULL: test_components. Exporters other than the
 * test's are trusted to deliver what the ledger says. */
void harness_set_components(const struct component_factory *const *components);
/* Builds and starts; the configuration needs no receivers: section and no telemetry. Fails the test
 * with the problems when it does not load. */
struct harness *harness_create(const char *yaml);
struct harness *harness_create_on(const char *yaml, unsigned lanes);
/* Builds without starting; NULL when it does not load or build, which is no failure. */
struct harness *harness_try_build(const char *yaml, unsigned lanes);
/* It does not load, and one of the problems contains the string; or it does not build for such a
 * reason. */
bool harness_is_wrong(const char *yaml, const char *text);
/* Stops in an orderly way (what is held is let go), checks that nothing is left, destroys. */
void harness_destroy(struct harness *harness);
/* Destroys what has stopped already. */
void harness_discard(struct harness *harness);
/* After a forced stop, of which nothing may be freed: keeps it reachable for the leak checker. */
void harness_abandon(struct harness *harness);

/* Offers a request of traces to receiver "test"; it stays valid until the harness is gone. */
struct test_request *harness_send(struct harness *harness, uint64_t items);
/* NULL when memory for it was refused. */
struct test_request *harness_offer(struct harness *harness, struct harness_offer offer);
/* A request of those bytes to receiver "test" on that lane, without a turn. */
struct test_request *harness_put_bytes(struct harness *harness, unsigned lane,
                                       enum signal_kind signal, struct slice bytes, uint64_t items);
/* harness_put_bytes, then harness_turn. */
struct test_request *harness_offer_bytes(struct harness *harness, unsigned lane,
                                         enum signal_kind signal, struct slice bytes,
                                         uint64_t items);
/* harness_send, then harness_turn. */
struct test_request *harness_send_now(struct harness *harness, uint64_t items);

/* Turns all lanes at this instant until nothing more happens. */
void harness_turn(struct harness *harness);
/* Lets time go by, stopping at each timer on the way. */
void harness_advance(struct harness *harness, uint64_t by_ns);
/* Waits until the helper of that lane has done all that it was given; then turns. */
void harness_turn_helped(struct harness *harness, unsigned lane);

/* Keeps the helper of a lane from all that it is given afterwards, until the gate opens; the lane
 * must not turn before. The gate must live until the lane has turned after that. */
struct harness_gate {
    struct helper_work work; /* first */
    sem_t opens;
};

void harness_close_gate(struct harness *harness, unsigned lane, struct harness_gate *gate);
void harness_open_gate(struct harness_gate *gate);

/* Two requests that a stage on lane 0 leaves to the helper and refuses: what the lane hears of
 * each, once the helper has done both. */
void harness_refuse_two(struct harness *harness, struct component *stage,
                        const struct slice bytes[static 2], char texts[2][HARNESS_TEXT_MAX]);
/* With threads of journals at work: turns, and lets time go by, until is_done(arg). Fails the test
 * when that takes more than half a minute of real time. */
void harness_await(struct harness *harness, bool (*is_done)(void *arg), void *arg,
                   const char *what);
/* The same of what takes minutes of the fake clock: it goes on by step_ns whenever nothing happens
 * for some milliseconds. */
void harness_await_long(struct harness *harness, bool (*is_done)(void *arg), void *arg,
                        const char *what, uint64_t step_ns);
/* From now on every exporter accepts, also what it holds. */
void harness_let_go(const struct harness *harness);
/* Begins to stop; has_stopped follows from turns. */
void harness_stop(struct harness *harness);

/* The ledger adds up, and agrees with the exporters. harness_turn calls it. */
void harness_check(const struct harness *harness);
struct component *harness_receiver(const struct harness *harness, const char *id, unsigned lane);
/* The exporter instance for traces on lane 0, or for another signal or lane. */
struct test_exporter *harness_exporter(const struct harness *harness, const char *id);
struct test_exporter *harness_exporter_on(const struct harness *harness, const char *id,
                                          unsigned lane, enum signal_kind signal);
/* The instance of lane 0 in the first pipeline of that signal. */
struct component *harness_processor(const struct harness *harness, const char *id,
                                    enum signal_kind signal);
/* The instance of lane 0 for that pair of signals. */
struct component *harness_connector(const struct harness *harness, const char *id,
                                    enum signal_kind taken, enum signal_kind given);
/* Of a pipeline, by its place in the configuration; NULL: it has none. */
struct journal *harness_journal(const struct harness *harness, size_t pipeline);
/* What the instances of that component share. */
void *harness_shared(const struct harness *harness, const char *id);
struct harness_totals harness_totals(const struct harness *harness, enum signal_kind signal);
uint64_t harness_budget_used(const struct harness *harness);
/* The most so far. */
uint64_t harness_budget_peak(const struct harness *harness);
/* The metrics page; freed with free(). */
char *harness_metrics(const struct harness *harness);
