/* SPDX-License-Identifier: Apache-2.0 */
/* The last point of every series that came, until it expires. One store per exporter, used by all
 * lanes under its lock, which is never held for longer than a piece of a request, of a snapshot, or
 * of an expiry takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus/metric_labels.h"
#include "src/base/slice.h"

struct budget;
struct exposition;
struct metric_addition;
struct metric_snapshot;
struct metric_store;

struct metric_store_settings {
    struct metric_label_settings labels;
    uint64_t expiration_ns;
    bool has_timestamps;   /* they are shown */
    struct budget *budget; /* series are charged to it */
    uint64_t bytes_max;    /* that they may take of it; 0: all */
};

struct metric_store *metric_store_create(const struct metric_store_settings *settings);
/* No snapshot may be left. NULL is a no-op. */
void metric_store_destroy(struct metric_store *store);

/* What became of the points of a request. */
struct metric_store_losses {
    uint64_t unusable;  /* Prometheus has nothing for them, or their names or types clash */
    uint64_t no_room;   /* the budget is used up */
    const char *reason; /* of the last one; a constant, or NULL */
    struct slice name;  /* of its metric, borrowed from the request */
};

/* Takes the points of an encoded ExportMetricsServiceRequest, which outlives it, piece by piece, of
 * a millisecond or two. now_ns: clock_now_ns. Requests whose points shall be taken in order come
 * one after the other. */
struct metric_addition *metric_addition_create(struct metric_store *store, struct slice request,
                                               uint64_t now_ns);
/* False: all of it was taken. */
bool metric_addition_go_on(struct metric_addition *addition);
/* Frees it. */
struct metric_store_losses metric_addition_end(struct metric_addition *addition);
/* Forgets what did not come for too long, piece by piece, of a millisecond or two:
 * METRIC_EXPIRY_ALL begins. Returns what to go on with, or 0: nothing is left. What moves in the
 * tables meanwhile may be passed over; scrapes do not show it. */
#define METRIC_EXPIRY_ALL SIZE_MAX
size_t metric_store_expire(struct metric_store *store, uint64_t now_ns, size_t at);

struct metric_store_figures {
    uint64_t series;
    uint64_t families;
    uint64_t bytes;
};
struct metric_store_figures metric_store_figures(struct metric_store *store);

/* What a scrape shows: all series that are there when it begins, with their points as they are when
 * they are taken, without those that have expired. Taken and released piece by piece, of a
 * millisecond or two; one at a time. NULL: no memory. */
struct metric_snapshot *metric_store_snapshot(struct metric_store *store, uint64_t now_ns);
/* False: all of it was taken. */
bool metric_store_take(struct metric_store *store, struct metric_snapshot *snapshot);
/* About how long what it shows is as text. */
uint64_t metric_snapshot_bytes(const struct metric_snapshot *snapshot);
/* Sorts and writes all of it. Any thread; the snapshot is not used elsewhere meanwhile. */
void metric_snapshot_write(struct metric_snapshot *snapshot, struct exposition *exposition);
/* False: all of it was released, and it is freed. NULL is a no-op. */
bool metric_store_release(struct metric_store *store, struct metric_snapshot *snapshot);
