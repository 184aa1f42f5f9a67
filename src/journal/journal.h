/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of one pipeline, for all its lanes: commits requests before their clients get an OK,
 * gives them to the pipeline, and keeps each until every exporter that stores has finished it.
 *
 * Two threads: one commits, in groups (at once when it is idle; what comes while a flush runs makes
 * the next group), the other prepares segments and reads back. An exporter that keeps up gets its
 * records from memory, right after their commit. One that refuses falls behind: from then on its
 * records stay on the disk alone and are read back in order, as far as the window has room, until
 * it has caught up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/base/lane.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

struct budget;
struct error;
struct journal;
struct logger;

/* Records that an exporter may hold at once, in memory; after a refusal: several, so that one that
 * the back-end never takes does not keep the others from it; and while all of those wait for
 * retries, so many more at a time, up to the last. */
enum { JOURNAL_GIVEN_MAX = 16384, JOURNAL_PROBES = 10, JOURNAL_STUCK_MAX = 100 };

/* A request on its way through the journal, from any lane. The journal owns it from journal_append
 * until fn runs and again from journal_settle on, which frees it (mem_free); so it is the first
 * member of what its user allocates. */
struct journal_entry {
    struct journal_record record; /* batch and meta are borrowed until fn runs */
    struct lane_task task;        /* the journal's */
    struct lane *lane;
    struct journal *journal;
    void (*fn)(struct journal_entry *entry); /* on the lane; record.error says whether it worked */
    uint32_t given; /* exporters, by bit, that get it now; the others get it from the disk */
    uint32_t owed;  /* journal_settle: those of them that did not finish it */
    uint64_t bytes; /* in memory until it is settled */
    struct journal_amount amount; /* the journal's: what the record holds */
    bool is_settled;
    struct journal_stored stored; /* replayed: the record; the payload is the entry's */
};

/* Gives a record that was read back to a pipeline on its lane: entry->given and entry->stored are
 * set. Ends with journal_settle. The entry has room for `entry_bytes`. */
typedef void (*journal_replay_fn)(struct journal_entry *entry, void *arg);

struct journal_settings {
    struct journal_store_settings store;
    const char *const *exporters; /* that store, at most JOURNAL_EXPORTERS_MAX; copied */
    size_t exporters_count;
    /* By exporter: records that it may hold at once, up to JOURNAL_GIVEN_MAX; 0: that. NULL: all.
     */
    const uint64_t *given_max;
    struct budget *memory;    /* for what is read back */
    uint64_t given_bytes_max; /* of records in memory, for each exporter */
    size_t entry_bytes;       /* of the user's struct that begins with the entry */
    const struct logger *logger;
};

/* Why records could not be written. */
enum journal_refusal { JOURNAL_MAX_SIZE, JOURNAL_DISK_FULL, JOURNAL_ERROR, JOURNAL_REFUSALS };

struct journal_counters {
    counter records;   /* committed */
    counter commits;   /* groups */
    counter replayed;  /* given from the disk */
    counter corrupt;   /* could not be read */
    counter abandoned; /* dropped: they waited for an exporter that is gone, and space was needed */
    counter refusals[JOURNAL_REFUSALS];
};
extern const struct counter_row journal_rows[];
/* Of journal_flushes(). */
extern const struct counter_row journal_flush_rows[];

/* Recovers what is there. NULL: error says why. */
struct journal *journal_create(const struct journal_settings *settings, struct error *error);
/* After journal_stop, or without a start. NULL is a no-op. */
void journal_destroy(struct journal *journal);
/* A lane to replay on. Before journal_start. */
void journal_add_lane(struct journal *journal, struct lane *lane, journal_replay_fn fn, void *arg);
bool journal_start(struct journal *journal, struct error *error);
/* Nothing more is given, from memory or from the disk; commits go on. Waits for a read that is
 * under way. Call it before the pipeline drains, on the main thread. */
void journal_pause(struct journal *journal);
/* Every entry that was given has been settled. Any thread. */
bool journal_is_idle(struct journal *journal);
/* Writes what is finished and ends the threads. The journal is idle. */
void journal_stop(struct journal *journal);

/* Commits the entry's record and then calls fn. Any lane. */
void journal_append(struct journal *journal, struct journal_entry *entry);
/* Takes back an entry that all its exporters have resolved. Any lane. */
void journal_settle(struct journal_entry *entry);

/* The same while entries are still given, on lanes that have ended: they stay on the disk. */
void journal_abandon(struct journal *journal);

struct journal_counters *journal_counters(struct journal *journal);
/* Any thread. */
struct journal_figures journal_figures(struct journal *journal);
/* Records that the exporter (by its place in the settings) has not finished. */
uint64_t journal_backlog(struct journal *journal, size_t exporter);
/* The same with all that is known of them. Any thread. */
struct journal_backlog journal_backlog_of(struct journal *journal, size_t exporter);
/* Of every exporter that the journal knows, those that the configuration has no more included.
 * False: there are no more. Any thread. */
bool journal_each_backlog(struct journal *journal, size_t index,
                          struct journal_backlog *ret_backlog);
/* How long the flushes of commits took. */
const struct histogram *journal_flushes(struct journal *journal);
const char *journal_directory(struct journal *journal);

/* Whether it takes requests, and what was wrong last. Any thread. */
struct journal_health {
    bool is_refusing;      /* since a request was refused, until one is committed */
    bool is_full;          /* for lack of room */
    int last_error;        /* a negative errno; 0: none so far */
    uint64_t last_wall_ns; /* when that was, last */
};
struct journal_health journal_health(struct journal *journal);
/* What a refusal means to the user: "max_size is used up", or the system's words. */
const char *journal_error_text(int error);
