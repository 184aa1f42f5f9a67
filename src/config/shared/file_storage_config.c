/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of file_storage. Constants; any thread. */
#include "src/config/shared/file_storage_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/config/config_types.h"
#include "src/core/component.h"

enum { MODE_MAX = 0777 };

#define NO_COMPACTION "No effect: the journal gives disk space back by itself."

#define OWNER struct file_storage_compaction_config
static const struct config_field compaction_fields[] = {
    CONFIG_UNUSED_BOOL(OWNER, on_start, "on_start", "false", NO_COMPACTION),
    CONFIG_UNUSED_BOOL(OWNER, on_rebound, "on_rebound", "false", NO_COMPACTION),
    CONFIG_UNUSED_TEXT(OWNER, directory, "directory", "/var/lib/otelcol/file_storage",
                       NO_COMPACTION),
    CONFIG_UNUSED_INT(OWNER, max_transaction_size, "max_transaction_size", "65536", 0, INT64_MAX,
                      NO_COMPACTION),
    CONFIG_UNUSED_DURATION(OWNER, check_interval_ns, "check_interval", "5s", INT64_MIN, INT64_MAX,
                           NO_COMPACTION),
    CONFIG_IGNORED_INT("rebound_needed_threshold_mib", NO_COMPACTION),
    CONFIG_IGNORED_INT("rebound_trigger_threshold_mib", NO_COMPACTION),
    CONFIG_IGNORED_BOOL("cleanup_on_start", NO_COMPACTION),
    CONFIG_END,
};
#undef OWNER

#define OWNER struct file_storage_config
const struct config_field file_storage_fields[] = {
    CONFIG_TEXT(OWNER, directory, "directory", "/var/lib/otelcol/file_storage",
                "Where journals are kept, each pipeline's in a directory of its own."),
    CONFIG_BOOL(OWNER, fsync, "fsync", "false",
                "Flush to the disk before clients get their OK, which then survives a power cut. "
                "Otherwise it survives the end of the process only."),
    CONFIG_BYTES(OWNER, max_size, "max_size", NULL, (int64_t)1 << 24, INT64_MAX,
                 "Bytes on disk of all its journals. When they are used up, requests are refused "
                 "and may be sent again later; nothing is dropped that an exporter of the pipeline "
                 "waits for. Unset: no limit."),
    CONFIG_BOOL(OWNER, create_directory, "create_directory", "false",
                "Make the directory if it is missing."),
    CONFIG_TEXT(OWNER, directory_permissions, "directory_permissions", "0750",
                "Permissions of directories that are made, octal, in quotes."),
    CONFIG_IGNORED_DURATION("timeout", "No effect: a directory that another process uses is an "
                                       "error at once."),
    CONFIG_IGNORED_BOOL("recreate", "No effect: what cannot be read is skipped and counted."),
    CONFIG_SECTION(OWNER, compaction, struct file_storage_compaction_config, "compaction",
                   compaction_fields, NULL, NO_COMPACTION),
    CONFIG_END,
};
#undef OWNER

/* As the Go collector reads it, with a sign. False: it is no such number of 32 bits. */
static bool read_octal(const char *text, long *ret_mode)
{
    const char *digits = text + (text[0] == '+' || text[0] == '-');
    size_t length = strspn(digits, "01234567");
    errno = 0;
    *ret_mode = strtol(text, NULL, 8);
    return length > 0 && digits[length] == '\0' && errno == 0 && *ret_mode >= INT32_MIN &&
           *ret_mode <= INT32_MAX;
}

unsigned file_storage_mode(const struct file_storage_config *config)
{
    long mode;
    bool is_mode =
        read_octal(config->directory_permissions, &mode) && mode >= 0 && mode <= MODE_MAX;
    return is_mode ? (unsigned)mode : 0;
}

static bool check_directory(const struct file_storage_config *config, const char *directory,
                            struct error *error)
{
    struct stat info;
    int failed = fileops()->stat(directory, &info);
    if (failed == -ENOENT && !config->create_directory)
        return error_set(error,
                         "directory must exist: stat %s: no such file or directory. You can enable "
                         "the create_directory option to automatically create it",
                         directory) ||
               error_at(error, "directory");
    if (failed != 0 && failed != -ENOENT)
        return error_set(error, "problem accessing configured directory: %s, err: %s", directory,
                         strerror(-failed)) ||
               error_at(error, "directory");
    if (failed == 0 && !S_ISDIR(info.st_mode))
        return error_set(error, "%s is not a directory", directory) || error_at(error, "directory");
    return true;
}

bool file_storage_check(const void *section, struct error *error)
{
    const struct file_storage_config *config = section;
    const struct file_storage_compaction_config *compaction = &config->compaction;
    long mode;
    if (!check_directory(config, config->directory, error))
        return false;
    if ((compaction->on_start || compaction->on_rebound) &&
        !check_directory(config, compaction->directory, error))
        return error_at(error, "compaction");
    if (compaction->on_rebound && compaction->check_interval_ns == 0)
        return error_set(error, "compaction check interval must be positive when rebound "
                                "compaction is set") ||
               error_at(error, "check_interval") || error_at(error, "compaction");
    bool is_octal = read_octal(config->directory_permissions, &mode);
    if (config->create_directory && !(is_octal && mode >= 0 && mode <= MODE_MAX))
        return error_set(error,
                         "directory_permissions %s: found \"%s\", expected \"0000\" to \"0777\"",
                         is_octal ? "contain invalid bits for file access"
                                  : "value must be a valid octal representation",
                         config->directory_permissions) ||
               error_at(error, "directory_permissions");
    return true;
}

bool file_storage_accepts(const struct config_component *extension, struct error *error)
{
    return strcmp(extension->factory->type, "file_storage") == 0 ||
           error_set(error, "requested extension is not a storage extension: \"%s\"",
                     extension->id);
}
