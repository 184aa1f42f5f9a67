/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the file exporter, as in the Go collector. Constants; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/shared/exporter_queue_config.h"

enum file_format { FILE_JSON, FILE_PROTO };

struct file_rotation_config {
    int64_t max_megabytes; /* 0: 100 */
    int64_t max_days;
    int64_t max_backups;
    bool has_local_time;
};

struct file_group_config {
    bool is_enabled;
    const char *resource_attribute;
    int64_t max_open_files;
};

struct file_compression_config {
    int64_t level;
};

struct file_exporter_config {
    struct exporter_queue_config exporter_queue; /* it has neither queue nor retries */
    const char *path;
    bool appends;
    bool is_rotated;
    struct file_rotation_config rotation;
    int format; /* enum file_format */
    const char *encoding;
    int compression; /* 0: none, 1: zstd */
    struct file_compression_config compression_params;
    uint64_t flush_interval_ns;
    struct file_group_config group_by;
    bool creates_directory;
    const char *directory_permissions;
};

extern const struct config_field file_exporter_fields[];
bool file_exporter_check(const void *section, struct error *error);
/* Of a checked configuration: the mode of directories that are made. */
unsigned file_directory_mode(const struct file_exporter_config *config);
/* Of a file, with rotation. */
uint64_t file_bytes_max(const struct file_rotation_config *rotation);
