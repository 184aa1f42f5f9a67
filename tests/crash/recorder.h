/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that remembers every write and every flush in order, to rebuild what it held at any
 * moment. It is one file, served over the kernel's FUSE protocol (linux/fuse.h) by a process of its
 * own, so that no file system on it can block its own disk. A loop device makes it a block device;
 * see volume.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

/* Sectors are written whole or not at all. */
enum { RECORDER_SECTOR_BYTES = 512 };

enum recorder_event { RECORDER_WRITE, RECORDER_FLUSH, RECORDER_MARK };

struct recorder_entry {
    enum recorder_event event;
    uint32_t size; /* of the bytes written, or of the mark */
    uint64_t offset;
    const uint8_t *bytes; /* valid until recorder_truncate forgets the entry */
};

/* Mounts the disk, of zeros, on an empty directory of the caller's own mount namespace. Needs root
 * and /dev/fuse. NULL: *ret_why says why. */
struct recorder *recorder_create(const char *directory, uint64_t bytes, const char **ret_why);
/* Nothing has it open any more. */
void recorder_destroy(struct recorder *recorder);
/* Path of the file. */
const char *recorder_path(const struct recorder *recorder);
/* Waits until the file is closed. False: it was still open after 30 seconds. */
bool recorder_wait_closed(struct recorder *recorder);

/* The log. A mark is the user's own entry: what is logged before it had happened before it. */
void recorder_mark(struct recorder *recorder, const void *mark, size_t size);
size_t recorder_count(struct recorder *recorder);
struct recorder_entry recorder_entry(struct recorder *recorder, size_t index);
/* Forgets the entries from count on. The file is closed. */
void recorder_truncate(struct recorder *recorder, size_t count);

/* The bytes, while the file is closed. Everything written, by the file system as well, can be
 * taken back: to what they were when recorder_save returned this position. */
void recorder_put(struct recorder *recorder, uint64_t offset, const uint8_t *bytes, size_t size);
uint64_t recorder_save(struct recorder *recorder);
void recorder_restore(struct recorder *recorder, uint64_t saved);
/* What was written so far is not taken back any more. */
void recorder_settle(struct recorder *recorder);
/* Writes the image to a file. */
bool recorder_export(struct recorder *recorder, const char *path);

/* The n-th write or flush from now on fails with EIO (1 is the next; 0: none does), and as many as
 * count after it. */
void recorder_fail(struct recorder *recorder, uint64_t nth, uint64_t count);
/* How many failed since. */
uint64_t recorder_failed(struct recorder *recorder);
