/* SPDX-License-Identifier: Apache-2.0 */
/* The section of the file_storage extension, which the service reads to open the journals of
 * pipelines whose exporters name it. Constants; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

struct config_component;

/* Checked as in the Go collector; the journal has no use for it. */
struct file_storage_compaction_config {
    bool on_start;
    bool on_rebound;
    const char *directory;
    int64_t max_transaction_size;
    uint64_t check_interval_ns;
};

struct file_storage_config {
    const char *directory;
    bool fsync;
    bool create_directory;
    const char *directory_permissions; /* octal, when directories are created */
    uint64_t max_size;                 /* bytes of all its journals; UINT64_MAX: no limit */
    struct file_storage_compaction_config compaction;
};

extern const struct config_field file_storage_fields[];
bool file_storage_check(const void *section, struct error *error);
/* For option tables (CONFIG_EXTENSION): whether the extension keeps data. */
bool file_storage_accepts(const struct config_component *extension, struct error *error);
/* directory_permissions as a number. */
unsigned file_storage_mode(const struct file_storage_config *config);
