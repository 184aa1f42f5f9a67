/* SPDX-License-Identifier: Apache-2.0 */
/* A question to the explore worker with its answer, and what the worker is told at its start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/lane.h"
#include "src/explore/explore_limits.h"

struct budget;
struct buffer;
struct logger;

struct explore_settings {
    uint64_t max_bytes;
    struct budget *budget;
    const char *directory; /* what survives a restart; "": nothing does */
    const char *version;
    bool is_token_required;
    const struct logger *logger; /* outlives the hub's work */
};

/* A question and its answer. Embedded by its user, which keeps it until done has run. */
enum { EXPLORE_DISPOSITION_MAX = 128 };

struct explore_job {
    struct lane_task task; /* of the hub: runs `done` on the lane */
    struct explore_job *next;
    struct lane *lane;
    void (*done)(struct explore_job *job);
    bool has_join;          /* the configuration joins traces and profiles … */
    uint64_t held_requests; /* … and the join holds these at the moment */
    char *path;             /* below /api/v1/ */
    char *query;
    /* The answer. */
    unsigned status;
    const char *type;
    char disposition[EXPLORE_DISPOSITION_MAX]; /* "": none */
    struct buffer *body;                       /* the user's from done on; NULL: no memory */
};

/* Why spans and samples are not kept. */
enum explore_loss {
    EXPLORE_LOST_RING,   /* the lane's ring was full */
    EXPLORE_LOST_RAW,    /* not indexed in time */
    EXPLORE_LOST_MEMORY, /* no memory */
    EXPLORE_LOST_LARGE,  /* a span, or a profile, beyond the limits */
    EXPLORE_LOSSES,
};
