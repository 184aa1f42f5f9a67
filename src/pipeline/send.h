/* SPDX-License-Identifier: Apache-2.0 */
/* One piece on its way through an exporter: attempts, back-off, and the books when it ends. Runs on
 * the exporter's lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/timer.h"
#include "src/core/receipt.h"
#include "src/pipeline/gather.h"
#include "src/pipeline/retry.h"

struct component;
struct send;
struct sender_config;
struct sender_counters;

/* All sends of one sender; embedded by it. */
struct sends {
    struct component *exporter;
    const struct sender_config *config;
    struct sender_counters *counters;
    void (*on_end)(void *arg); /* after each send has ended and is gone */
    void *arg;
    struct send *first;
    uint64_t count;
    bool is_stopping; /* retries have ended: what fails now is lost */
};

/* What would have helped, for the end of "Exporting failed. Dropping data.": as the Go collector
 * says it; "" when queue and retries are on. */
enum { SEND_ADVICE_MAX = 256 };
const char *sends_advice(const struct sender_config *config);

void sends_init(struct sends *sends, struct component *exporter, struct sender_counters *counters,
                void (*on_end)(void *arg), void *arg);
/* Starts the first attempt; takes over the piece. */
void sends_start(struct sends *sends, struct piece *piece);
/* Counts a piece that will never be sent, and answers whoever waits for it. Takes over the piece.
 */
void sends_refuse(struct sends *sends, struct piece *piece, const struct outcome *outcome);
/* Who waits for a retry is tried at once, for the last time. */
void sends_hurry(struct sends *sends);
