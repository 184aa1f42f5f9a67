/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_json_file/json_file_config.h"

#include <strings.h>

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/config/shared/file_storage_config.h"
#include "src/follow/follower.h"

static const char *const starts[] = {"beginning", "end", NULL};
static const char *const behaviors[] = {"split", "truncate", NULL};
static const char *const compressions[] = {"", "gzip", "auto", NULL};
static const char *const truncations[] = {"ignore", "read_whole_file", "read_new", NULL};

const struct config_field json_file_fields[] = {
    CONFIG_TEXTS(struct json_file_config, include, "include", NULL,
                 "Patterns of the files to read: *, ?, [a-z], {a,b}, and ** for any directories."),
    CONFIG_TEXTS(struct json_file_config, exclude, "exclude", NULL,
                 "Patterns of files that are left out."),
    CONFIG_DURATION(struct json_file_config, exclude_older_ns, "exclude_older_than", "0s", 0,
                    INT64_MAX, "Leave out files that were not changed for so long; 0: none."),
    CONFIG_VALUE(struct json_file_config, ordering_criteria, "ordering_criteria",
                 "Not supported: name the files by include and exclude."),
    CONFIG_BOOL(struct json_file_config, attributes.name, "include_file_name", "true",
                "Records get the attribute log.file.name: spans, log records, and metrics in their "
                "metadata; profiles get none."),
    CONFIG_BOOL(struct json_file_config, attributes.path, "include_file_path", "false",
                "The same: log.file.path."),
    CONFIG_BOOL(struct json_file_config, attributes.name_resolved, "include_file_name_resolved",
                "false", "The same: log.file.name_resolved, behind symbolic links."),
    CONFIG_BOOL(struct json_file_config, attributes.path_resolved, "include_file_path_resolved",
                "false", "The same: log.file.path_resolved, absolute."),
    CONFIG_BOOL(struct json_file_config, attributes.owner_name, "include_file_owner_name", "false",
                "The same: log.file.owner.name."),
    CONFIG_BOOL(struct json_file_config, attributes.owner_group_name,
                "include_file_owner_group_name", "false", "The same: log.file.owner.group.name."),
    CONFIG_BOOL(struct json_file_config, attributes.permissions, "include_file_permissions",
                "false", "The same: log.file.permissions, in octal."),
    CONFIG_DURATION(struct json_file_config, poll_interval_ns, "poll_interval", "200ms", 1,
                    INT64_MAX, "How often files are looked for and read."),
    CONFIG_COUNT(struct json_file_config, max_concurrent_files, "max_concurrent_files", "1024", 1,
                 1000000, "Files that are open at once."),
    CONFIG_COUNT(struct json_file_config, max_batches, "max_batches", "0", 0, INT64_MAX,
                 "Batches of half of max_concurrent_files that one poll reads; 0: all."),
    CONFIG_CHOICE(struct json_file_config, start_at, "start_at", "end", starts,
                  "Where files that are there at the start are read from: beginning or end. Files "
                  "that come later are read from their beginning."),
    CONFIG_BYTES_ANY_CASE(
        struct json_file_config, fingerprint_size, "fingerprint_size", "1000",
        FOLLOW_FINGERPRINT_BYTES_MIN, FOLLOW_FINGERPRINT_BYTES_MAX,
        "First bytes by which a file is known again: larger than what all files begin "
        "with."),
    CONFIG_BYTES_ANY_CASE(struct json_file_config, initial_buffer_size, "initial_buffer_size",
                          "16KiB", 0, INT64_MAX, "No effect: buffers grow with the lines."),
    CONFIG_BYTES_ANY_CASE(struct json_file_config, max_log_size, "max_log_size", "1MiB", 1,
                          (int64_t)1 << 30, "Longest line; more is cut."),
    CONFIG_CHOICE(struct json_file_config, max_log_size_behavior, "max_log_size_behavior", "split",
                  behaviors,
                  "What becomes of the rest of such a line: split: lines of its own; "
                  "truncate: it is left out."),
    CONFIG_TEXT(struct json_file_config, encoding, "encoding", "utf-8",
                "utf-8 (also ascii), utf-8-raw, or nop: the whole file is one request."),
    CONFIG_VALUE(struct json_file_config, multiline, "multiline",
                 "Not supported: each request is one line, or with encoding: nop the whole file."),
    CONFIG_BOOL(struct json_file_config, keeps_leading, "preserve_leading_whitespaces", "false",
                "JSON does not mind white space."),
    CONFIG_BOOL(struct json_file_config, keeps_trailing, "preserve_trailing_whitespaces", "false",
                "The same."),
    CONFIG_DURATION(struct json_file_config, force_flush_ns, "force_flush_period", "500ms", 0,
                    INT64_MAX,
                    "A last line without an end is read when it has not grown for so long; 0: "
                    "never."),
    CONFIG_VALUE(struct json_file_config, header, "header",
                 "Not supported: lines that are no OTLP/JSON are left out."),
    CONFIG_BOOL(struct json_file_config, delete_after_read, "delete_after_read", "false",
                "Delete files once all of their lines were taken. Needs start_at: beginning and "
                "--feature-gates filelog.allowFileDeletion."),
    CONFIG_UNUSED_BOOL(struct json_file_config, has_record_number, "include_file_record_number",
                       "false", "As in the Go collector."),
    CONFIG_UNUSED_BOOL(struct json_file_config, has_record_offset, "include_file_record_offset",
                       "false", "As in the Go collector."),
    CONFIG_CHOICE(struct json_file_config, compression, "compression", "", compressions,
                  "gzip or auto: files that begin as gzip does are inflated."),
    CONFIG_INT(struct json_file_config, polls_to_archive, "polls_to_archive", "0", INT64_MIN,
               INT64_MAX, "Not supported: leave it out."),
    CONFIG_BOOL(struct json_file_config, acquire_fs_lock, "acquire_fs_lock", "false",
                "Read only files whose lock (flock) is free."),
    CONFIG_BOOL(struct json_file_config, file_cache_advise, "file_cache_advise", "false",
                "Tell the system not to keep files in its cache (posix_fadvise)."),
    CONFIG_CHOICE(struct json_file_config, on_truncate, "on_truncate", "ignore", truncations,
                  "When a file with the same beginning is shorter than what was read: ignore: wait "
                  "until it is longer; read_whole_file; read_new: what comes from now on."),
    CONFIG_EXTENSION(struct json_file_config, storage, "storage", "storage client extension",
                     file_storage_accepts,
                     "Storage extension: keeps how far files have been read, over restarts."),
    CONFIG_BOOL(struct json_file_config, replay_file, "replay_file", "false",
                "Read every file from its beginning at each poll."),
    CONFIG_END,
};

enum json_file_encoding json_file_encoding_of(const char *name)
{
    static const struct {
        const char *name;
        enum json_file_encoding encoding;
    } rows[] = {
        {"", JSON_FILE_UTF8},        {"utf-8", JSON_FILE_UTF8},    {"utf8", JSON_FILE_UTF8},
        {"ascii", JSON_FILE_UTF8},   {"us-ascii", JSON_FILE_UTF8}, {"utf-8-raw", JSON_FILE_RAW},
        {"utf8-raw", JSON_FILE_RAW}, {"nop", JSON_FILE_WHOLE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return rows[i].encoding;
    return JSON_FILE_ENCODINGS;
}

static bool check_patterns(const struct config_texts *patterns, const char *key,
                           struct error *error)
{
    for (size_t i = 0; i < patterns->count; i++) {
        const char *reason;
        if (!follow_pattern_check(patterns->texts[i], &reason))
            return error_set(error, "parse glob: %s: found \"%s\"", reason, patterns->texts[i]) ||
                   error_at_index(error, i) || error_at(error, key);
    }
    return true;
}

static bool unsupported(struct error *error, const char *key, const char *advice)
{
    return error_set(error, "%s is not supported: %s", key, advice) || error_unsupported(error) ||
           error_at(error, key);
}

static bool is_given(const struct config_value *value)
{
    return value != NULL && value->type != CONFIG_VALUE_NULL &&
           (value->type != CONFIG_VALUE_MAP || value->count > 0);
}

bool json_file_check(const void *section, struct error *error)
{
    const struct json_file_config *config = section;
    if (config->include.count == 0)
        return error_set(error, "'include' must be specified: patterns of the files to read, as in "
                                "[/var/lib/telemetry/*.json]") ||
               error_at(error, "include");
    if (!check_patterns(&config->include, "include", error) ||
        !check_patterns(&config->exclude, "exclude", error))
        return false;
    if (json_file_encoding_of(config->encoding) == JSON_FILE_ENCODINGS)
        return error_set(error,
                         "encoding \"%s\" is not supported: OTLP/JSON is UTF-8; expected "
                         "utf-8, utf-8-raw, ascii or nop",
                         config->encoding) ||
               error_unsupported(error) || error_at(error, "encoding");
    if (config->delete_after_read && config->start_at == 1)
        return error_set(error, "'delete_after_read' cannot be used with 'start_at: end'; set "
                                "start_at: beginning") ||
               error_at(error, "delete_after_read");
    if (is_given(config->ordering_criteria))
        return unsupported(error, "ordering_criteria", "name the files by include and exclude");
    if (is_given(config->multiline))
        return unsupported(error, "multiline",
                           "each request is one line; encoding: nop reads a whole file as one");
    if (is_given(config->header))
        return unsupported(error, "header", "lines that are no OTLP/JSON are left out anyway");
    if (config->polls_to_archive > 0)
        return unsupported(error, "polls_to_archive",
                           "with storage, files are known again for three polls after they are "
                           "gone; remove the key");
    return true;
}
