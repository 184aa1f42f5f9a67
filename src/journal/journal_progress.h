/* SPDX-License-Identifier: Apache-2.0 */
/* What each exporter of a journal has finished: every record below its low mark, and some of the
 * next JOURNAL_WINDOW_IDS. This is all that is ever kept about records, in memory and on disk.
 * Plain data; its user locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { JOURNAL_EXPORTERS_MAX = 32, JOURNAL_WINDOW_IDS = 65536, JOURNAL_EXPORTER_BYTES_MAX = 1024 };

/* Of several records: their items and the bytes of their requests. */
struct journal_amount {
    uint64_t items;
    uint64_t bytes;
};

struct journal_exporter {
    char *name; /* "traces/otlp_http/tempo": as in the configuration; owned */
    bool is_configured;
    uint64_t low;   /* it has finished every record below */
    uint64_t ahead; /* and so many above */
    /* What it has not finished. Of records that were lost to damage nothing is known: they count
     * until it has finished everything. */
    struct journal_amount owed;
    uint64_t *window; /* a bit for each id from low on, at id % JOURNAL_WINDOW_IDS; owned */
};

struct journal_progress {
    size_t count;
    struct journal_exporter exporters[JOURNAL_EXPORTERS_MAX];
};

void journal_progress_init(struct journal_progress *progress);
void journal_progress_fini(struct journal_progress *progress);
/* Returns the index of the exporter, which is added, with nothing to do before next_id, when it is
 * new. -1: there are too many. */
int journal_progress_add(struct journal_progress *progress, const char *name, uint64_t next_id);

/* Forgets an exporter; those behind it move up. */
void journal_progress_remove(struct journal_progress *progress, size_t index);

bool journal_progress_is_done(const struct journal_progress *progress, size_t index, uint64_t id);
/* Whether ids below end fit into the window now. */
bool journal_progress_has_room(const struct journal_progress *progress, size_t index, uint64_t end);
/* The exporter has finished the ids from first to end, exclusive; they must fit into the window,
 * unless first is at most the low mark. */
void journal_progress_done(struct journal_progress *progress, size_t index, uint64_t first,
                           uint64_t end);
/* The id behind the highest that some exporter has finished, but for those that were given up
 * (finished up to UINT64_MAX); 0 without exporters. */
uint64_t journal_progress_end(const struct journal_progress *progress);
/* Every exporter owes this, too: records from that id on. */
void journal_progress_owe(struct journal_progress *progress, uint64_t first,
                          struct journal_amount amount);
/* The exporter has finished this. */
void journal_progress_pay(struct journal_progress *progress, size_t index,
                          struct journal_amount amount);
/* Records below end that the exporter has not finished. */
uint64_t journal_progress_backlog(const struct journal_progress *progress, size_t index,
                                  uint64_t end);
/* The lowest low mark: no exporter needs anything below. UINT64_MAX without exporters. */
uint64_t journal_progress_low(const struct journal_progress *progress);

/* As bytes, for a checkpoint. */
size_t journal_progress_bytes(const struct journal_progress *progress);
size_t journal_progress_bytes_max(const struct journal_progress *progress);
void journal_progress_write(const struct journal_progress *progress, uint8_t *to);
/* Replaces the progress. False, with nothing changed: the bytes are no progress. */
bool journal_progress_read(struct journal_progress *progress, struct slice bytes)
    __attribute__((warn_unused_result));
