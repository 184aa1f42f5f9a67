/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the otlp_json_file receiver, as in the Go collector. Constants; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/field.h"

/* File attributes that records get. */
struct json_file_attributes_config {
    bool name;
    bool path;
    bool name_resolved;
    bool path_resolved;
    bool owner_name;
    bool owner_group_name;
    bool permissions;
};

struct json_file_config {
    struct config_texts include;
    struct config_texts exclude;
    uint64_t exclude_older_ns;
    const struct config_value *ordering_criteria;
    const struct config_value *multiline;
    const struct config_value *header;
    struct json_file_attributes_config attributes;
    uint64_t poll_interval_ns;
    uint64_t max_concurrent_files;
    uint64_t max_batches;
    int start_at; /* 0: beginning, 1: end */
    uint64_t fingerprint_size;
    uint64_t initial_buffer_size;
    uint64_t max_log_size;
    int max_log_size_behavior; /* 0: split, 1: truncate */
    const char *encoding;
    bool keeps_leading;
    bool keeps_trailing;
    uint64_t force_flush_ns;
    bool delete_after_read;
    bool has_record_number;
    bool has_record_offset;
    int compression; /* enum follow_compression */
    int64_t polls_to_archive;
    bool acquire_fs_lock;
    bool file_cache_advise;
    int on_truncate; /* enum follow_truncation */
    const char *storage;
    bool replay_file;
};

/* "" when it is none that we have. */
enum json_file_encoding { JSON_FILE_UTF8, JSON_FILE_RAW, JSON_FILE_WHOLE, JSON_FILE_ENCODINGS };
enum json_file_encoding json_file_encoding_of(const char *name);

extern const struct config_field json_file_fields[];
bool json_file_check(const void *section, struct error *error);
