/* SPDX-License-Identifier: Apache-2.0 */
/* One file that records are appended to, whole or not at all, with rotation by size as the Go
 * collector's: a file that has no room for the next record gets a name with the time, and a new one
 * is begun; old ones are deleted. Blocking; one owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct error;
struct logger;

struct output_file_settings {
    bool appends;       /* to what is there; else it is replaced */
    bool is_kept_since; /* a file written at since_ns or later is appended to, too */
    int64_t since_ns;   /* Unix time */
    bool has_lines;     /* a record that was left torn is ended by a line end */
    bool is_rotated;
    uint64_t bytes_max;  /* rotation: of one file */
    int64_t backups_max; /* rotation: rotated files that are kept; 0 or less: all */
    int64_t days_max;    /* rotation: and how long; 0 or less: for ever */
    bool has_local_time; /* rotation: in names */
    const struct logger *logger;
};

enum { OUTPUT_RECORD_PARTS = 3 };

struct output_record {
    struct iovec parts[OUTPUT_RECORD_PARTS];
    int parts_count;
    size_t bytes;
};

struct output_file;

/* Opens or makes the file; with rotation that happens at the first record. path is copied. NULL:
 * error says why, *ret_failed is a negative errno. */
struct output_file *output_file_open(const char *path, const struct output_file_settings *settings,
                                     struct error *error, int *ret_failed);
/* NULL is a no-op. A failure to close is logged. */
void output_file_close(struct output_file *file);
const char *output_file_path(const struct output_file *file);
/* Writes the records in order and returns how many are in the file, whole. If those are not all,
 * error says why the next one is not, *ret_failed is a negative errno (-EFBIG: it is larger than
 * any file may be), and nothing of it is in the file. */
size_t output_file_write(struct output_file *file, const struct output_record *records,
                         size_t count, struct error *error, int *ret_failed);