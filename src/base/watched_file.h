/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the current content of a small file: checked on use, but at most once a second. While it
 * cannot be read, the last content stays. One owner, one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;

struct watched_file {
    char *path;
    size_t max_bytes;
    char *text; /* the content, terminated; overwritten when freed */
    size_t size;
    uint64_t looked_ns;
    int64_t seen[4]; /* device, inode, modification time in seconds and nanoseconds */
    int64_t seen_size;
    bool is_failing;
};

enum watched_change {
    WATCHED_SAME,
    WATCHED_CHANGED,
    WATCHED_FAILED, /* it has just become unreadable; reported once, until it can be read again */
};

/* Reads the file. False: error has the reason. */
bool watched_file_open(struct watched_file *file, const char *path, size_t max_bytes,
                       struct error *error);
/* A no-op for an all-zero struct. */
void watched_file_close(struct watched_file *file);
/* Fills error when it returns WATCHED_FAILED. */
enum watched_change watched_file_look(struct watched_file *file, struct error *error);
