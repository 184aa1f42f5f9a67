/* SPDX-License-Identifier: Apache-2.0 */
/* How far files have been read, kept in a file of its own between two runs: a line for each, and
 * one with their checksum, so that a file that was written in part or changed is told from a whole
 * one. It is replaced by a rename. Blocking; of the follower's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget;
struct error;
struct followed_file;

enum { FOLLOW_OFFSETS_BYTES_MAX = 256 << 20 };

/* Replaces the file. is_synced: flush it to the disk first. The first of the files are kept, as
 * many as have room in FOLLOW_OFFSETS_BYTES_MAX, which _load takes; *ret_kept: how many. */
bool follow_offsets_save(const char *path, struct followed_file *const *files, size_t count,
                         bool is_synced, size_t *ret_kept, struct error *error);
/* Reads what such a file has: text is terminated. path is for errors. As follow_offsets_load. */
bool follow_offsets_read(const char *path, const char *text, size_t size, size_t fingerprint_size,
                         struct budget *budget, void (*each)(struct followed_file *file, void *arg),
                         void *arg, struct error *error);
/* Calls each(file, arg) for every file, which takes it. True without any if there is no such file
 * yet. False: error says why; files that were given before stay given. */
bool follow_offsets_load(const char *path, size_t fingerprint_size, struct budget *budget,
                         void (*each)(struct followed_file *file, void *arg), void *arg,
                         struct error *error);
