/* SPDX-License-Identifier: Apache-2.0 */
/* A pyroscope receiver on a hand-turned lane, between loopback clients and a pipeline that records
 * what it is offered and resolves it as configured. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/slice.h"
#include "src/base/timer.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"

enum { PYROSCOPE_BYTES_MAX = 1 << 16, PYROSCOPE_HELD_MAX = 256 };

struct pyroscope_fixture {
    struct lane *lane;
    struct budget budget;
    struct ledger ledger;
    struct config *config;
    struct component *receiver;
    size_t pipelines;       /* the first may have a delay; the others respond at once */
    struct outcome outcome; /* the result of the pipeline … */
    unsigned busy_times;    /* … after it was busy so often */
    uint64_t delay_ns; /* not 0: it resolves all that it has together, so long after the first */
    struct receipt *held[PYROSCOPE_HELD_MAX]; /* meanwhile */
    unsigned held_count;
    unsigned held_max; /* the most that it had at a time */
    struct timer delay;
    unsigned offers;
    unsigned received;        /* of these, those that were none of an earlier one again */
    unsigned turn_offers_max; /* in one turn of the lane */
    unsigned given_up;
    unsigned accepted;
    uint64_t items;
    char tenant[64];
    uint8_t bytes[PYROSCOPE_BYTES_MAX]; /* of the last offer */
    size_t size;
    bool is_stopped;
    char address[64];
    char response[PYROSCOPE_BYTES_MAX]; /* as it stands on the wire */
};

extern struct pyroscope_fixture pyroscope;

/* options: YAML flow text of the map below receivers::pyroscope. Listens on a random port. */
void pyroscope_start(const char *options);
/* Stops the receiver and checks that nothing is left. */
void pyroscope_stop(void);
/* One HTTP/1.1 request on a connection of its own, up to its response or for so many turns, each of
 * which takes ten milliseconds. headers: whole lines. */
void pyroscope_ask(const char *line, const char *headers, struct slice body, unsigned turns);
/* The response's status, and a string in it. */
void pyroscope_assert_response(const char *what, unsigned status, const char *part);
