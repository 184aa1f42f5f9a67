/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one journal: a directory of segments (journal_format.h), written at the end and
 * freed from the beginning. Blocking; src/journal/journal.h runs it on threads of its own. One
 * thread commits, another prepares segments and reads; what any thread may call says so.
 *
 * - Committing a group of records is one write and one flush (fdatasync) in a segment that was
 * filled with zeros, or used, before: overwriting needs no flush of the file system's own journal.
 * - A segment whose write or flush failed is never written or flushed again (a second flush of
 * pages that failed would report success): the group goes to a new one.
 * - A new process never writes to a segment of an earlier one, and needs no write at all to read.
 * - Segments are freed by number, the oldest first, once every exporter has finished what they
 * hold. A freed one becomes the next one by a rename; more than that are deleted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/counter.h"
#include "src/journal/journal_format.h"
#include "src/journal/journal_progress.h"

struct batch;
struct budget;
struct error;
struct journal_store;

/* What may be written at once: more waits for the next group. */
enum { JOURNAL_GROUP_RECORDS_MAX = 1024 };
enum { JOURNAL_FLUSH_BOUNDS = 16 };
#define JOURNAL_GROUP_BYTES_MAX   ((uint64_t)8 << 20)
#define JOURNAL_SEGMENT_BYTES     ((uint64_t)32 << 20)
#define JOURNAL_SEGMENT_BYTES_MIN ((uint64_t)64 << 10)

struct journal_store_settings {
    const char *directory;  /* copied */
    uint64_t segment_bytes; /* of a segment; one larger record gets a larger segment */
    struct budget *disk;    /* bytes of files, shared by the journals of a storage; outlives it */
    bool is_synced;         /* flush to the disk: survives a power cut */
    bool is_read_only;      /* writes nothing and takes no lock; for journal_reader only */
    mode_t directory_mode;
};

/* A request to append, and then what became of it. */
struct journal_record {
    struct journal_record *next;
    const struct batch *batch;
    struct slice meta; /* at most JOURNAL_META_BYTES_MAX */
    uint64_t wall_ns;
    uint64_t id; /* set by journal_store_commit */
    int error;   /* 0, or a negative errno: it is not in the journal */
};

/* Opens or makes the directory and locks it. NULL: error says why.
 * is_read_only: another process may be using the directory. What is there at this moment is read;
 * segments that are freed later are passed over. A file that cannot be opened is an error. */
struct journal_store *journal_store_open(const struct journal_store_settings *settings,
                                         struct error *error);
/* Unlocks it. No thread reads or commits any more. NULL is a no-op. */
void journal_store_close(struct journal_store *store);

/* An exporter of this journal; new ones need nothing of what is there. Before records are
 * committed. -1: there are JOURNAL_EXPORTERS_MAX. */
int journal_store_exporter(struct journal_store *store, const char *name);
/* Forgets exporters that need nothing any more, so that those that are not there again do not hold
 * what comes. Before journal_store_exporter. */
void journal_store_forget_finished(struct journal_store *store);

/* Writes and flushes records, up to NULL or JOURNAL_GROUP_RECORDS_MAX and _BYTES_MAX, and what was
 * noted as done. Sets id and error of each. Returns the first that it left. Committing thread. */
struct journal_record *journal_store_commit(struct journal_store *store,
                                            struct journal_record *records);
/* After a failure commits are refused for a second. This ends it. Any thread. */
void journal_store_open_again(struct journal_store *store);
/* Ids from position on that no record has, since commits failed, are finished for the exporter.
 * Returns where it goes on. Any thread. */
uint64_t journal_store_pass_unused(struct journal_store *store, size_t exporter, uint64_t position);
/* Whether something is noted that the next commit would write. Any thread. */
bool journal_store_has_news(struct journal_store *store);

/* Notes that an exporter has finished these records: first to end, exclusive. Any thread. */
void journal_store_done(struct journal_store *store, size_t exporter, uint64_t first, uint64_t end);
/* The same of one record, with what it held. Any thread. */
void journal_store_pay(struct journal_store *store, size_t exporter, uint64_t id,
                       struct journal_amount amount);
bool journal_store_is_done(struct journal_store *store, size_t exporter, uint64_t id);
/* False: too far ahead of the oldest that the exporter has not finished. Any thread. */
bool journal_store_has_window(struct journal_store *store, size_t exporter, uint64_t id);

/* Makes the next segment ready if it will be needed soon, and frees what is not needed any more.
 * Returns 0 or a negative errno; -EDQUOT: the disk's budget is used up. One thread. */
int journal_store_keep(struct journal_store *store);
/* Whether it has something to do at once. Any thread. */
bool journal_store_needs_keeping(struct journal_store *store);

/* Figures; any thread. */
struct journal_figures {
    uint64_t bytes;          /* of all files */
    uint64_t next_id;        /* of the next record */
    uint64_t low_id;         /* the oldest that some exporter has not finished */
    uint64_t oldest_wall_ns; /* when that came, about; 0: there is none, or it is not known */
    /* Since the store was opened: records that were committed, and their bytes on the disk with
     * all that goes along. */
    uint64_t written_records;
    struct journal_amount written;
    uint64_t written_disk_bytes;
};
struct journal_figures journal_store_figures(struct journal_store *store);
/* What waits for one exporter. */
struct journal_backlog {
    const char *name; /* as in journal_store_exporter */
    bool is_configured;
    uint64_t records;
    struct journal_amount amount;
    uint64_t oldest_wall_ns; /* as in journal_figures */
};
/* False: there are no more exporters. Any thread. */
bool journal_store_backlog(struct journal_store *store, size_t exporter,
                           struct journal_backlog *ret_backlog);
/* Nanoseconds of each flush to the disk; written by the committing thread. Any thread. */
extern const uint64_t journal_flush_bounds[JOURNAL_FLUSH_BOUNDS];
const struct histogram *journal_store_flushes(const struct journal_store *store);
const char *journal_store_directory(const struct journal_store *store);
/* The oldest record that this exporter has not finished. Any thread. */
uint64_t journal_store_low(struct journal_store *store, size_t exporter);
/* Every exporter that the journal knows, configured or not. NULL: there are no more. */
const char *journal_store_exporter_name(const struct journal_store *store, size_t exporter);

/* The files, oldest first, then those that hold no records. */
struct journal_file {
    uint64_t segment;
    uint64_t bytes;
    uint32_t version; /* 0: the header is damaged or there is none yet */
    bool is_free;     /* holds no records */
    bool is_foreign;  /* of a version that we cannot read, or of another journal */
    bool is_stranger; /* the latter */
};
/* False: there are no more. For a store that is read only. */
bool journal_store_file(const struct journal_store *store, size_t index,
                        struct journal_file *ret_file);
/* Whether the file "key" was there and sound; the segments hold the key as well. */
bool journal_store_has_key_file(const struct journal_store *store);
/* What the newest segment ended with when it was opened, if that did not verify: damaged, or a
 * group that was being written when the process or the machine stopped. records is 0 or 1. */
struct journal_damage journal_store_tail(const struct journal_store *store);
