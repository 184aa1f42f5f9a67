/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of one otlp_json_file receiver: it follows the files, turns lines into requests, and
 * hands them to the receiver's lanes, those of one file always to the same. A file's position moves
 * when a request was taken, or refused for good; what is refused for now is offered again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/base/timer.h"
#include "src/core/component.h"

struct error;
struct json_file_delivery;
struct json_file_reader;

struct json_file_counters {
    counter accepted[SIGNAL_KINDS]; /* of the lane */
    counter refused[SIGNAL_KINDS];
    counter wrong_lines; /* of the first instance, by the thread alone */
    counter open_files;
    counter retries; /* of the lane */
};

/* What goes to the pipelines of one signal: as many requests at once as they take, one after a
 * refusal. */
struct json_file_outlet {
    struct json_file_receiver *receiver;
    struct json_file_delivery *waiting; /* to be offered, in the order of the lines */
    size_t offered;                     /* whose receipts are not back */
    size_t offered_max;
    uint64_t pause_ns; /* after the next refusal */
    bool is_offering;
    struct timer timer; /* runs after a refusal: nothing is offered meanwhile */
};

/* An instance of the receiver, on its lane. */
struct json_file_receiver {
    struct component base;
    struct json_file_reader *reader; /* of the first instance; else NULL */
    struct json_file_outlet outlets[SIGNAL_KINDS];
    bool has_logged_refusal;
    bool is_stopping;
    bool is_released; /* the thread needs it no more */
    bool has_stopped;
    struct lane_task release; /* the thread's */
};

/* first: the instance of lane 0, linked with the others. NULL: error says why. */
struct json_file_reader *json_file_reader_create(struct json_file_receiver *first,
                                                 struct error *error);
bool json_file_reader_start(struct json_file_reader *reader, struct error *error);
/* Any lane: begins to end. Every instance is released (json_file_receiver_released) later, on its
 * lane; false: the thread does not run, and nothing more happens. */
bool json_file_reader_stop(struct json_file_reader *reader);
/* NULL is a no-op. */
void json_file_reader_destroy(struct json_file_reader *reader);

/* Before the start. */
void json_file_receiver_init(struct json_file_receiver *receiver);
/* On the receiver's lane: gives up what waits to be offered. */
void json_file_receiver_give_up(struct json_file_receiver *receiver);
/* Called on the receiver's lane by the thread's last task for it. */
void json_file_receiver_released(struct json_file_receiver *receiver);
