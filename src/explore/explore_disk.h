/* SPDX-License-Identifier: Apache-2.0 */
/* The explore directory: requests that a restart finds again. A file holds what became one block of
 * the store and is written once, whole, under a temporary name; what is not a block yet is written
 * anew now and then to a file of the same number that ends in ".open". The oldest files go when all
 * together are larger than max_bytes. After a crash what came since the last write is missing; a
 * broken file costs what it held. One owner (the explore worker). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct buffer;
struct error;
struct explore_disk;
struct logger;

enum explore_kept { EXPLORE_KEPT_TRACES, EXPLORE_KEPT_PROFILES, EXPLORE_KEPT_KINDS };

struct explore_disk_settings {
    const char *directory; /* made if it is missing, with mode 0700; copied */
    uint64_t max_bytes;    /* of all files */
    const struct logger *logger;
};

/* Locks the directory. NULL: error says why. */
struct explore_disk *explore_disk_open(const struct explore_disk_settings *settings,
                                       struct error *error);
/* NULL is a no-op. */
void explore_disk_close(struct explore_disk *disk);

/* The buffer holds a request that has passed its checks, the callee's to keep. False: stop. */
typedef bool (*explore_disk_fn)(void *arg, enum explore_kept kind, struct buffer *request,
                                struct slice bytes, uint64_t time_ns);
/* Reads all files, the oldest first. Broken ones are named in the log and counted. */
void explore_disk_load(struct explore_disk *disk, explore_disk_fn fn, void *arg);

struct explore_disk_request {
    struct slice bytes;
    uint64_t time_ns;
};
/* Writes requests as the next file of that kind. is_open: it will be written again. False: it
 * could not be written, which the log says once. */
bool explore_disk_write(struct explore_disk *disk, enum explore_kept kind,
                        const struct explore_disk_request *requests, size_t count, bool is_open);
