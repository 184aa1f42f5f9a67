/* SPDX-License-Identifier: Apache-2.0 */
/* What the three parts of a store share: its state, and how they reach its files. Only writing
 * (journal_store.c), reading (journal_reader.c) and recovery (journal_recovery.c) include it. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/counter.h"
#include "src/journal/journal_ages.h"
#include "src/journal/journal_format.h"
#include "src/journal/journal_progress.h"

struct budget;
struct error;
struct iovec;

enum {
    JOURNAL_DONE_BYTES = 40, /* exporter, first, end, items, bytes */
    JOURNAL_DONES_MAX = 4096,
    JOURNAL_FREE_FILES_ROOM = 8,
    JOURNAL_DAMAGED_MAX = 64, /* ranges of lost ids that are known to be reported */
    JOURNAL_READ_BYTES = 64 * 1024,
    JOURNAL_CHECKPOINT_HEAD_BYTES = 16, /* previous_end and first_id, before the progress */
};
/* Files with higher numbers are of others. */
#define JOURNAL_SEGMENTS_MAX ((uint64_t)1 << 62)

struct journal_segment {
    uint64_t number;
    uint64_t bytes;    /* of the file */
    uint64_t end;      /* nothing was committed from this offset on */
    uint64_t end_id;   /* its records have ids below; UINT64_MAX while it is active */
    bool is_end_known; /* end_id is exact: otherwise the next segment's records show what is lost */
    bool has_spare_ids; /* end_id may be too high: some could not be read when the store was opened
                         */
    bool is_newest;     /* when the store was opened: no other one tells what it should end with */
    bool is_foreign;    /* of a version that we cannot read, or a stranger: left alone */
    bool is_stranger;   /* its header has the key of another journal */
    uint32_t version;   /* in its header; 0: it has none of its own number */
};

/* Ids from first to end, exclusive. */
struct journal_range {
    uint64_t first;
    uint64_t end;
};

struct journal_done {
    uint64_t exporter;
    uint64_t first;
    uint64_t end;
    struct journal_amount amount;
};

struct group;

struct journal_store {
    char *directory;
    uint64_t segment_bytes;
    struct budget *disk;
    bool is_synced;
    bool is_read_only;
    uint64_t oldest_id; /* what an exporter begins with that the checkpoints found do not know,
                           since some could not be read; 0: with next_id. Constant */
    bool has_key_file;  /* sound, when the store was opened */
    bool has_changed;   /* read only: by another process, while the store was opened */
    int directory_fd;   /* locked while the store is open, unless it is read only */
    uint64_t key;
    pthread_mutex_t preparing;        /* held while a segment is prepared; before mutex */
    pthread_mutex_t mutex;            /* guards everything from here to the next comment */
    struct journal_segment *segments; /* written, oldest first */
    size_t segments_count;
    size_t segments_capacity;
    /* Being written; newer than all others. Only the committing thread changes it and the next, so
     * it reads them without the mutex. */
    struct journal_segment active;
    bool has_active;
    bool has_next;
    struct journal_segment next; /* prepared */
    uint64_t next_number;        /* of the segment after that */
    struct journal_segment free_files[JOURNAL_FREE_FILES_ROOM];
    size_t free_count;
    size_t kept_files;      /* of the free ones; grows while files are deleted and then missed */
    uint64_t kept_since_ns; /* when that last changed */
    uint64_t deleted_ns;    /* when the last file was; 0: never */
    struct journal_progress progress;
    struct journal_ages ages;
    struct journal_amount unclaimed; /* from oldest_id on */
    uint64_t written_records;
    struct journal_amount written;
    uint64_t written_disk_bytes;
    struct journal_done dones[JOURNAL_DONES_MAX]; /* not written yet */
    size_t dones_count;
    bool has_lost_dones; /* only a checkpoint can still tell */
    uint64_t next_id;
    uint64_t durable_id; /* records below are committed */
    /* Every exporter's progress beyond this is on the disk; segments below may be freed. Otherwise
     * a start after a power cut would miss them. */
    uint64_t stable_low;
    int last_error; /* of the last commit */
    uint64_t closed_until_ns;
    struct journal_range damaged[JOURNAL_DAMAGED_MAX]; /* lost and reported; apart, in no order */
    size_t damaged_count;
    struct journal_damage tail; /* constant */
    /* Committing thread. */
    int active_fd;
    struct group *group;      /* NULL before the first */
    struct histogram flushes; /* nanoseconds */
};

/* The path of a file of the journal. */
void journal_path(const struct journal_store *store, char path[static PATH_MAX], const char *name);
void journal_segment_path(const struct journal_store *store, char path[static PATH_MAX],
                          uint64_t number);
int journal_sync_directory(const struct journal_store *store);
/* Whether an error says nothing about the file: descriptors, memory or permission are missing. */
bool journal_error_passes(int error);
/* Writes it all, however many calls that takes. Changes parts. Returns 0 or a negative errno. */
int journal_write_all(int fd, struct iovec *parts, int count, uint64_t offset);
/* Returns how many bytes it got; *ret_failed says why they are not more, 0: the file ends there. */
size_t journal_read_all(int fd, uint8_t *to, size_t size, uint64_t offset, int *ret_failed);
/* Sets the error to "cannot WHAT PATH: …". Returns false. */
bool journal_file_error(struct error *error, const char *what, const char *path, int failed);
