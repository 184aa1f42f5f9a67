/* SPDX-License-Identifier: Apache-2.0 */
/* Components for in-process pipelines: a receiver that is fed by hand and waits for results, a
 * processor that passes on or refuses as configured, and an exporter with scripted results that
 * keeps what it was given. Lane of their service. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/core/component.h"
#include "src/core/receipt.h"

enum { TEST_ATTEMPTS_MAX = 4096, TEST_ITEMS_MAX = 1 << 16, TEST_SCRIPT_MAX = 16 };

enum test_result {
    RESULT_OK,
    RESULT_BUSY,       /* retryable */
    RESULT_HINT,       /* retryable, with test_exporter.hint_ns */
    RESULT_NO_MEMORY,  /* retryable: it lacked memory */
    RESULT_PERMANENT,  /* INVALID_ARGUMENT */
    RESULT_PARTIAL,    /* taken, one item rejected */
    RESULT_LEFT_OUT,   /* taken, but for one that cannot be sent, two too large, one rejected */
    RESULT_BROKEN_OFF, /* retryable, but one item arrived */
    RESULT_HOLD,       /* none until test_exporter_release */
};

struct test_attempt {
    uint64_t at_ns;
    uint64_t items;
    uint64_t bytes;
    size_t parts;
    char client[32]; /* first metadata value of the batch's client, or "" */
};

struct test_exporter {
    struct component base;
    enum test_result result; /* once the script is over */
    enum test_result script[TEST_SCRIPT_MAX];
    size_t script_count;
    size_t script_next;
    uint64_t hint_ns;
    bool has_own_items; /* items are not numbered: the test knows what they are */
    bool has_poison;    /* any batch with an item up to `poison` gets RESULT_BUSY */
    uint64_t poison;
    size_t poisoned; /* attempts that were refused for it */
    size_t attempts_count;
    struct test_attempt attempts[TEST_ATTEMPTS_MAX];
    size_t held_count;
    struct {
        struct batch *batch;
        struct receipt *receipt;
    } held[TEST_ATTEMPTS_MAX];
    uint64_t cost_ns; /* of an attempt: the clock advances by it */
    unsigned in_turn; /* attempts of the current turn of the loop, and the most of any */
    unsigned most_in_turn;
    struct lane_job end_of_turn;
    uint64_t delivered_items; /* counted once per delivery */
    uint64_t doubled_items;
    uint8_t seen[TEST_ITEMS_MAX]; /* how often each item was delivered */
};

/* Resolves everything that is held. */
void test_exporter_release(struct test_exporter *exporter, enum test_result result);
/* The same, of the oldest only. */
void test_exporter_release_first(struct test_exporter *exporter, enum test_result result);
struct test_exporter *test_exporter_of(struct component *component);

/* Counts requests of spans, and says how many log records that makes when it stops. */
struct test_connector {
    struct component base;
    bool refuses;
    uint64_t items;
    uint64_t requests;
};

extern const struct component_factory test_receiver_factory;
extern const struct component_factory test_exporter_factory;
extern const struct component_factory test_connector_factory;

/* A request on its way from the receiver. */
struct test_request {
    struct receipt receipt;
    struct component *receiver;
    bool is_resolved;
    struct outcome outcome; /* once resolved; message points to text */
    char text[256];
    uint64_t first_item;
    uint64_t items;
};

/* Offers a batch of numbered items; request stays where it is until it is resolved. */
void test_receiver_offer(struct component *receiver, struct batch *batch,
                         struct test_request *request);

/* What was started and stopped on lane 0, in order: "start exporter test/a\n…". */
const char *test_events(void);
void test_events_clear(void);

/* NULL-ended: the four above, the processors of the core, the connectors and file_storage. */
extern const struct component_factory *const test_components[];
