/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the files that patterns name, with the rules of the Go collector's file receivers
 * (pkg/stanza/fileconsumer): a file is known by its first bytes, so that it is read on under
 * another name, and what a rename has taken out of the patterns is read to its end. Each poll reads
 * what has been written since. Blocking; everything runs on the thread that polls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct error;
struct follower;
struct logger;

enum {
    FOLLOW_FINGERPRINT_BYTES_MIN = 16,
    FOLLOW_FINGERPRINT_BYTES_MAX = 1 << 20,
    FOLLOW_UNREADABLE_MAX = 10000, /* paths whose error is logged once only */
};

enum follow_compression { FOLLOW_PLAIN, FOLLOW_GZIP, FOLLOW_AUTO };
enum follow_truncation { FOLLOW_IGNORE, FOLLOW_READ_WHOLE, FOLLOW_READ_NEW };

/* A line of a file, borrowed for the call. */
struct follow_line {
    struct slice bytes;
    const char *path;
    uint64_t number; /* from 1 on */
    int fd;          /* of the file */
    uint64_t end;    /* for follower_done */
};

struct follow_settings {
    const char *const *include; /* patterns; all strings are borrowed */
    size_t include_count;
    const char *const *exclude;
    size_t exclude_count;
    uint64_t exclude_older_ns; /* 0: none */
    bool starts_at_end;        /* at the first poll */
    size_t fingerprint_size;
    size_t line_bytes_max;
    bool truncates_lines;
    bool takes_all; /* no lines: see line_splitter.h */
    bool keeps_leading;
    bool keeps_trailing;
    uint64_t flush_ns;  /* a last line without an end counts when it was as long for so long */
    size_t files_max;   /* open at once */
    size_t batches_max; /* of half as many files, in a poll; 0: all */
    int compression;    /* enum follow_compression */
    int truncation;     /* enum follow_truncation: of a file that is shorter than what was read */
    bool deletes;       /* files that have been read to the end */
    bool locks;         /* read only what flock(2) gives, shared */
    bool drops_cache;   /* posix_fadvise(2), POSIX_FADV_DONTNEED */
    bool replays;       /* every poll reads every file from the beginning */
    const char *offsets_path; /* NULL: forgotten at the end */
    bool is_synced;           /* that file is flushed to the disk */
    struct budget *budget;
    const struct logger *logger;
    /* Takes a line; may block. False: stop, the line counts as not read. follower_done says when it
     * is through, in the order of the lines. */
    bool (*take)(const struct follow_line *line, void *arg);
    /* After the last line of a file that was taken: returns when all of them are through, or will
     * not be. */
    void (*settle)(void *arg);
    bool (*is_stopping)(void *arg);
    void *arg;
};

/* Nothing is opened. NULL: error says why; a pattern is wrong. */
struct follower *follower_create(const struct follow_settings *settings, struct error *error);
/* Reads what is known from an earlier run. False: error says why. */
bool follower_load(struct follower *follower, struct error *error);
/* Looks for files and reads what is new. */
void follower_poll(struct follower *follower);
/* Of the file that is being read: everything up to there was taken. */
void follower_done(struct follower *follower, uint64_t end);
/* Saves what is known. NULL is a no-op. */
void follower_destroy(struct follower *follower);

/* What the line that is being taken lies in, as it is charged. */
size_t follower_line_bytes(const struct follower *follower);

/* Files that are known now, and that are open: for tests and counters. */
size_t follower_known(const struct follower *follower);
size_t follower_open_files(const struct follower *follower);

/* Whether a pattern is well-formed: for configurations. *ret_reason is a constant string. */
bool follow_pattern_check(const char *pattern, const char **ret_reason);
