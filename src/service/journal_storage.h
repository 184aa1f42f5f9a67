/* SPDX-License-Identifier: Apache-2.0 */
/* Where a journal lies and how it is written: as its file_storage says, or as the `wal` of an
 * exporter does. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct config_component;
struct service;

struct journal_storage {
    const char *label;     /* of metrics that name it: "extension" or "wal" */
    const char *directory; /* above those of the journals */
    bool is_synced;        /* commits are flushed to the disk */
    bool is_made;          /* the directory is made if it is missing */
    unsigned mode;         /* of directories that are made */
    uint64_t bytes_max;    /* of all its journals; UINT64_MAX: no limit */
};

/* component: a file_storage, or an exporter with a wal. */
struct journal_storage journal_storage_of(const struct config_component *component);
/* The storage of an exporter; NULL: it does not store, or is none. */
const struct config_component *journal_storage_find(const struct service *service,
                                                    const struct config_component *exporter);
