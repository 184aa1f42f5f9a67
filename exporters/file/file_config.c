/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file/file_config.h"

#include <stdlib.h>
#include <string.h>

#include "exporters/file/file_paths.h"
#include "src/base/error.h"
#include "src/base/limits.h"

enum { STANDARD_MEGABYTES = 100, DIRECTORY_MODE = 0755, MODE_BITS = 0777 };

static const char *const formats[] = {"json", "proto", NULL};
static const char *const compressions[] = {"", "zstd", NULL};

static const struct config_field rotation_fields[] = {
    CONFIG_INT(struct file_rotation_config, max_megabytes, "max_megabytes", "0", 0,
               INT64_MAX / (int64_t)MIB,
               "A file that would grow beyond so many MiB is renamed, with the time in its name, "
               "and a new one is begun. 0: 100."),
    CONFIG_INT(struct file_rotation_config, max_days, "max_days", "0", INT64_MIN, INT64_MAX,
               "Renamed files older than so many days, by their names, are deleted; 0: none."),
    CONFIG_INT(struct file_rotation_config, max_backups, "max_backups", "100", INT64_MIN, INT64_MAX,
               "So many renamed files are kept; 0: all."),
    CONFIG_BOOL(struct file_rotation_config, has_local_time, "localtime", "false",
                "Names have local time instead of UTC."),
    CONFIG_END,
};

static const struct config_field group_fields[] = {
    CONFIG_BOOL(struct file_group_config, is_enabled, "enabled", "false",
                "Write a file for each value of resource_attribute, which takes the place of the * "
                "in path."),
    CONFIG_TEXT(struct file_group_config, resource_attribute, "resource_attribute",
                "fileexporter.path_segment",
                "Resource attribute, a string. Resources without it are left out and counted."),
    CONFIG_INT(struct file_group_config, max_open_files, "max_open_files", "100", INT64_MIN,
               INT64_MAX,
               "So many files are open at once; the one not used for longest is closed."),
    CONFIG_END,
};

static const struct config_field compression_fields[] = {
    CONFIG_INT(struct file_compression_config, level, "level", "0", INT32_MIN, INT32_MAX,
               "Of a file that is compressed as a whole; messages are compressed at the default "
               "level, as in the Go collector."),
    CONFIG_END,
};

const struct config_field file_exporter_fields[] = {
    CONFIG_TEXT(struct file_exporter_config, path, "path", NULL,
                "File that is written; /dev/stdout for standard output. With group_by it has one "
                "*."),
    CONFIG_BOOL(struct file_exporter_config, appends, "append", "false",
                "Append to the file that is there; else it is replaced at the start. Not with "
                "rotation, which appends."),
    CONFIG_OPTIONAL(struct file_exporter_config, rotation, struct file_rotation_config, is_rotated,
                    CONFIG_NULL_ENABLES, "rotation", rotation_fields, NULL,
                    "Begin new files by size, and delete old ones."),
    CONFIG_CHOICE(struct file_exporter_config, format, "format", "json", formats,
                  "json: a line of OTLP/JSON for each request; proto: protobuf, each message "
                  "behind its size (4 bytes, big-endian)."),
    CONFIG_TEXT(struct file_exporter_config, encoding, "encoding", NULL,
                "Not supported: use format."),
    CONFIG_CHOICE(struct file_exporter_config, compression, "compression", "", compressions,
                  "zstd: compress each message, which goes behind its size as with format: proto; "
                  "with --feature-gates exporter.file.nativeCompression the file as a whole."),
    CONFIG_SECTION(struct file_exporter_config, compression_params, struct file_compression_config,
                   "compression_params", compression_fields, NULL,
                   "Parameters of the compression."),
    CONFIG_DURATION(struct file_exporter_config, flush_interval_ns, "flush_interval", "1s", 0,
                    INT64_MAX,
                    "No effect: each request is written at once, before it counts as delivered."),
    CONFIG_SECTION(struct file_exporter_config, group_by, struct file_group_config, "group_by",
                   group_fields, NULL, "Files by resource."),
    CONFIG_BOOL(struct file_exporter_config, creates_directory, "create_directory", "false",
                "Make the directory of path at the start."),
    CONFIG_TEXT(
        struct file_exporter_config, directory_permissions, "directory_permissions", NULL,
        "Of directories that are made, in octal; needs create_directory. Without it: 0755."),
    CONFIG_END,
};

/* As Go's ParseInt of base 8. False: it is none. */
static bool read_octal(const char *text, long *ret_number)
{
    const char *digits = text + (text[0] == '+' || text[0] == '-');
    size_t size = strlen(digits);
    enum { DIGITS_MAX = 20 };
    if (size == 0 || size > DIGITS_MAX || strspn(digits, "01234567") != size)
        return false;
    long long number = strtoll(text, NULL, 8);
    *ret_number = (long)number;
    return number >= INT32_MIN && number <= INT32_MAX;
}

static bool check_directory(const struct file_exporter_config *config, struct error *error)
{
    long mode;
    const char *text = config->directory_permissions;
    if (text[0] == '\0')
        return true;
    if (!config->creates_directory)
        error_set(error, "directory_permissions requires create_directory to be true");
    else if (!read_octal(text, &mode))
        error_set(error,
                  "directory_permissions value must be a valid octal representation, as in "
                  "\"0755\": found \"%s\"",
                  text);
    else if ((mode & MODE_BITS) != mode)
        error_set(error,
                  "directory_permissions contain invalid bits for file access: found \"%s\", "
                  "expected \"0\" to \"0777\"",
                  text);
    else
        return true;
    return error_at(error, "directory_permissions");
}

static bool check_groups(const struct file_exporter_config *config, struct error *error)
{
    const char *star = strchr(config->path, '*');
    if (!config->group_by.is_enabled)
        return true;
    if (star == NULL || strchr(star + 1, '*') != NULL)
        return error_set(error, "path must contain exactly one * when group_by is enabled: it "
                                "stands for the value of the resource attribute") ||
               error_at(error, "path");
    if (star == config->path)
        return error_set(error, "path must not start with * when group_by is enabled: name a "
                                "directory, as in /var/lib/telemetry/*.json") ||
               error_at(error, "path");
    if (config->group_by.resource_attribute[0] == '\0')
        return error_set(error, "resource_attribute must not be empty when group_by is enabled") ||
               error_at(error, "resource_attribute") || error_at(error, "group_by");
    if (config->group_by.max_open_files <= 0)
        return error_set(error, "max_open_files must be positive when group_by is enabled") ||
               error_at(error, "max_open_files") || error_at(error, "group_by");
    return true;
}

bool file_exporter_check(const void *section, struct error *error)
{
    const struct file_exporter_config *config = section;
    if (config->path[0] == '\0')
        return error_set(error, "path must be non-empty: the file to write, or /dev/stdout") ||
               error_at(error, "path");
    if (strlen(config->path) >= FILE_PATH_BYTES_MAX)
        return error_set(error, "path has %zu bytes, expected less than %d", strlen(config->path),
                         FILE_PATH_BYTES_MAX) ||
               error_at(error, "path");
    if (config->appends && config->is_rotated)
        return error_set(error, "append and rotation enabled at the same time is not supported; "
                                "remove append, since rotation continues the file that is there") ||
               error_at(error, "append");
    if (config->encoding[0] != '\0')
        return error_set(error, "encoding is not supported: remove it and set format: json or "
                                "format: proto") ||
               error_unsupported(error) || error_at(error, "encoding");
    return check_groups(config, error) && check_directory(config, error);
}

unsigned file_directory_mode(const struct file_exporter_config *config)
{
    long mode;
    bool is_set = config->directory_permissions[0] != '\0' &&
                  read_octal(config->directory_permissions, &mode) && mode != 0;
    return is_set ? (unsigned)mode : DIRECTORY_MODE;
}

uint64_t file_bytes_max(const struct file_rotation_config *rotation)
{
    int64_t megabytes = rotation->max_megabytes > 0 ? rotation->max_megabytes : STANDARD_MEGABYTES;
    return (uint64_t)megabytes * MIB;
}
