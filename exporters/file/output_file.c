/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file/output_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/file/file_paths.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"

enum {
    WRITTEN_RECORDS_MAX = 256, /* at once */
    FILE_MODE = 0644,
    ROTATED_FILE_MODE = 0640,
    DIRECTORY_MODE = 0755,
    BACKUPS_LISTED_MAX = 100000,
};
#define NS_PER_DAY ((int64_t)24 * 3600 * NS_PER_S)

struct output_file {
    struct output_file_settings settings;
    char *path;
    int fd;          /* -1: not open */
    bool is_regular; /* not a pipe, terminal or device */
    bool is_torn;    /* it ends with a part of a record that could not be removed */
    uint64_t size;
};

static int failed_to(struct error *error, const char *what, const char *path, int failed)
{
    assert(failed < 0);
    error_set(error, "cannot %s %s: %s", what, path, strerror(-failed));
    return failed;
}

/* ---- opening ---- */

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

static int note_opened(struct output_file *file, int fd, struct error *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        int failed = -errno;
        fileops()->close(fd);
        return failed_to(error, "stat", file->path, failed);
    }
    file->fd = fd;
    file->is_regular = S_ISREG(info.st_mode);
    file->size = file->is_regular && info.st_size > 0 ? (uint64_t)info.st_size : 0;
    file->is_torn = false;
    return 0;
}

/* Standard output may be a socket, or a pipe of another user: such a descriptor cannot be opened
 * again by its name. */
static int duplicate_of(const char *path)
{
    int fd = strcmp(path, "/dev/stdout") == 0   ? STDOUT_FILENO
             : strcmp(path, "/dev/stderr") == 0 ? STDERR_FILENO
                                                : -1;
    if (fd < 0)
        return -1;
    return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static int open_plain(struct output_file *file, struct error *error)
{
    const struct output_file_settings *settings = &file->settings;
    struct stat info;
    bool appends = settings->appends;
    if (settings->is_kept_since && fileops()->stat(file->path, &info) == 0)
        appends |= ns_of(info.st_mtim) >= settings->since_ns;
    /* Appending puts each write behind what others have written meanwhile. */
    int fd = fileops()->open(file->path, O_RDWR | O_CREAT | O_APPEND | (appends ? 0 : O_TRUNC),
                             FILE_MODE);
    int other = fd == -ENXIO || fd == -EACCES ? duplicate_of(file->path) : -1;
    if (other >= 0)
        fd = other;
    if (fd < 0)
        return failed_to(error, "open", file->path, fd);
    return note_opened(file, fd, error);
}

/* ---- rotation ---- */

struct backup {
    int64_t wall_ns;
    char *name;
};

struct backups {
    struct file_backup_name name;
    bool has_local_time;
    struct backup *list;
    size_t count;
    size_t capacity;
};

static void list_backup(const char *name, void *arg)
{
    struct backups *backups = arg;
    int64_t wall_ns;
    if (!file_backup_wall_ns(&backups->name, name, backups->has_local_time, &wall_ns) ||
        backups->count == BACKUPS_LISTED_MAX)
        return;
    if (backups->count == backups->capacity) {
        size_t capacity = backups->capacity > 0 ? backups->capacity * 2 : 16;
        backups->list = mem_resize(backups->list, capacity * sizeof(*backups->list));
        backups->capacity = capacity;
    }
    backups->list[backups->count++] =
        (struct backup){.wall_ns = wall_ns, .name = mem_copy_text(name)};
}

static int newest_first(const void *left, const void *right)
{
    int64_t a = ((const struct backup *)left)->wall_ns;
    int64_t b = ((const struct backup *)right)->wall_ns;
    return (a < b) - (a > b);
}

/* Deletes rotated files that are too many or too old. */
static void delete_old(const struct output_file *file)
{
    const struct output_file_settings *settings = &file->settings;
    char directory[FILE_PATH_BYTES_MAX];
    char path[FILE_PATH_BYTES_MAX];
    if (settings->backups_max <= 0 && settings->days_max <= 0)
        return;
    struct backups backups = {.name = file_backup_name_of(file->path),
                              .has_local_time = settings->has_local_time};
    file_path_directory(file->path, directory);
    int failed = fileops()->list(directory, list_backup, &backups);
    if (failed != 0)
        log_warn(settings->logger, "cannot look for old files to delete",
                 log_text("directory", directory), log_text("error", strerror(-failed)));
    if (backups.count > 1)
        qsort(backups.list, backups.count, sizeof(*backups.list), newest_first);
    int64_t now_ns = (int64_t)clock_wall_ns();
    bool has_days = settings->days_max > 0 && settings->days_max < now_ns / NS_PER_DAY;
    int64_t oldest_ns = has_days ? now_ns - settings->days_max * NS_PER_DAY : INT64_MIN;
    int64_t times = 0;
    for (size_t i = 0; i < backups.count; i++) {
        const struct backup *backup = &backups.list[i];
        struct stat info;
        times += i == 0 || backup->wall_ns != backup[-1].wall_ns;
        bool is_old = (settings->backups_max > 0 && times > settings->backups_max) ||
                      backup->wall_ns < oldest_ns;
        int size = snprintf(path, sizeof(path), "%s/%s", directory, backup->name);
        if (is_old && size < (int)sizeof(path) && fileops()->stat(path, &info) == 0 &&
            !S_ISDIR(info.st_mode)) {
            failed = fileops()->unlink(path);
            if (failed != 0 && failed != -ENOENT)
                log_warn(settings->logger, "cannot delete an old file", log_text("path", path),
                         log_text("error", strerror(-failed)));
        }
        mem_free(backup->name);
    }
    mem_free(backups.list);
}

/* Gives the file that is there its new name. Two of one millisecond get different ones. */
static int rename_away(const struct output_file *file, char backup[static FILE_PATH_BYTES_MAX],
                       struct error *error)
{
    struct stat info;
    uint64_t wall_ns = clock_wall_ns();
    do {
        if (!file_backup_path(file->path, wall_ns, file->settings.has_local_time, backup))
            return failed_to(error, "rotate", file->path, -ENAMETOOLONG);
        wall_ns += NS_PER_MS;
    } while (fileops()->stat(backup, &info) == 0);
    int failed = fileops()->rename(file->path, backup);
    return failed == 0 ? 0 : failed_to(error, "rename", file->path, failed);
}

/* Begins a new file under the path, as far as there is one already after renaming that. */
static int begin_new(struct output_file *file, struct error *error)
{
    char directory[FILE_PATH_BYTES_MAX];
    char backup[FILE_PATH_BYTES_MAX] = "";
    struct stat old;
    file_path_directory(file->path, directory);
    int failed = file_make_directories(directory, DIRECTORY_MODE);
    if (failed != 0)
        return failed_to(error, "make the directory", directory, failed);
    failed = fileops()->stat(file->path, &old);
    if (failed != 0 && failed != -ENOENT)
        return failed_to(error, "stat", file->path, failed);
    bool has_old = failed == 0;
    mode_t mode = has_old ? old.st_mode & (mode_t)07777 : (mode_t)ROTATED_FILE_MODE;
    failed = has_old ? rename_away(file, backup, error) : 0;
    if (failed != 0)
        return failed;
    int fd = fileops()->open(file->path, O_CREAT | O_WRONLY | O_TRUNC | O_APPEND, mode);
    failed = fd < 0 ? failed_to(error, "open", file->path, fd) : note_opened(file, fd, error);
    if (failed == 0 && fchmod(fd, mode) != 0) { /* whatever the umask */
        failed = failed_to(error, "set the mode of", file->path, -errno);
        fileops()->close(fd);
        file->fd = -1;
        fileops()->unlink(file->path);
    }
    if (failed != 0 && has_old)
        fileops()->rename(backup, file->path);
    if (failed == 0 && has_old && fchown(fd, old.st_uid, old.st_gid) != 0)
        log_warn(file->settings.logger, "a new file does not have the owner of the one before it",
                 log_text("path", file->path), log_text("error", strerror(errno)));
    return failed;
}

static int rotate(struct output_file *file, struct error *error)
{
    if (file->fd >= 0) {
        int failed = fileops()->close(file->fd);
        file->fd = -1;
        if (failed != 0)
            return failed_to(error, "close", file->path, failed);
    }
    int failed = begin_new(file, error);
    if (failed == 0)
        delete_old(file);
    return failed;
}

/* Before the first record: continues the file that is there, if it has room. */
static int open_rotated(struct output_file *file, size_t bytes, struct error *error)
{
    struct stat info;
    delete_old(file);
    int failed = fileops()->stat(file->path, &info);
    if (failed == -ENOENT)
        return begin_new(file, error);
    if (failed != 0)
        return failed_to(error, "stat", file->path, failed);
    if (S_ISREG(info.st_mode) && (uint64_t)info.st_size + bytes >= file->settings.bytes_max)
        return rotate(file, error);
    int fd = fileops()->open(file->path, O_WRONLY | O_APPEND, 0);
    return fd < 0 ? begin_new(file, error) : note_opened(file, fd, error);
}

/* ---- records ---- */

struct output_file *output_file_open(const char *path, const struct output_file_settings *settings,
                                     struct error *error, int *ret_failed)
{
    struct output_file *file = mem_zalloc(sizeof(*file));
    *file = (struct output_file){.settings = *settings, .path = mem_copy_text(path), .fd = -1};
    *ret_failed = 0;
    if (!settings->is_rotated)
        *ret_failed = open_plain(file, error);
    if (*ret_failed == 0)
        return file;
    output_file_close(file);
    return NULL;
}

void output_file_close(struct output_file *file)
{
    if (file == NULL)
        return;
    int failed = file->fd >= 0 ? fileops()->close(file->fd) : 0;
    if (failed != 0)
        log_warn(file->settings.logger, "Failed to close file", log_text("path", file->path),
                 log_text("error", strerror(-failed)));
    mem_free(file->path);
    mem_free(file);
}

const char *output_file_path(const struct output_file *file)
{
    return file->path;
}

/* Removes those bytes from the end, unless somebody else has written there, too. */
static void remove_end(struct output_file *file, size_t bytes)
{
    struct stat info;
    if (bytes == 0)
        return;
    file->is_torn = !file->is_regular || fstat(file->fd, &info) != 0 ||
                    (uint64_t)info.st_size != file->size + bytes ||
                    fileops()->truncate(file->fd, (off_t)file->size) != 0;
    if (file->is_torn)
        file->size += bytes;
}

/* Writes them all, or says how much was written. */
static int write_parts(int fd, struct iovec *parts, int count, size_t *ret_written)
{
    *ret_written = 0;
    while (count > 0) {
        ssize_t put = fileops()->writev(fd, parts, count);
        if (put == -EINTR)
            continue;
        if (put == -EAGAIN) { /* a pipe that its owner made non-blocking */
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
            continue;
        }
        if (put < 0)
            return (int)put;
        *ret_written += (size_t)put;
        size_t left = (size_t)put;
        for (; count > 0 && left >= parts->iov_len; parts++, count--)
            left -= parts->iov_len;
        if (count > 0) {
            parts->iov_base = (uint8_t *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return 0;
}

/* Writes a few records, for which the file has room. */
static size_t write_records(struct output_file *file, const struct output_record *records,
                            size_t count, struct error *error, int *ret_failed)
{
    struct iovec parts[WRITTEN_RECORDS_MAX * OUTPUT_RECORD_PARTS + 1];
    int parts_count = 0;
    size_t gap = file->is_torn && file->settings.has_lines;
    assert(count > 0 && count <= WRITTEN_RECORDS_MAX);
    if (gap > 0) /* what is left of a record is a line of its own */
        parts[parts_count++] = (struct iovec){.iov_base = "\n", .iov_len = 1};
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < records[i].parts_count; j++)
            if (records[i].parts[j].iov_len > 0)
                parts[parts_count++] = records[i].parts[j];
    size_t written;
    *ret_failed = write_parts(file->fd, parts, parts_count, &written);
    if (written >= gap) {
        written -= gap;
        file->size += gap;
        file->is_torn = false;
    }
    size_t whole = 0;
    while (whole < count && written >= records[whole].bytes) {
        written -= records[whole].bytes;
        file->size += records[whole].bytes;
        whole++;
    }
    assert((whole == count) == (*ret_failed == 0));
    if (whole < count) {
        failed_to(error, "write to", file->path, *ret_failed);
        remove_end(file, written);
    }
    return whole;
}

size_t output_file_write(struct output_file *file, const struct output_record *records,
                         size_t count, struct error *error, int *ret_failed)
{
    const struct output_file_settings *settings = &file->settings;
    size_t done = 0;
    *ret_failed = 0;
    while (done < count && *ret_failed == 0) {
        size_t bytes = records[done].bytes;
        if (settings->is_rotated && bytes > settings->bytes_max) {
            error_set(error,
                      "write length %zu exceeds maximum file size %" PRIu64
                      ": raise rotation::max_megabytes, or make requests smaller",
                      bytes, settings->bytes_max);
            *ret_failed = -EFBIG;
            break;
        }
        if (file->fd < 0)
            *ret_failed = open_rotated(file, bytes, error);
        else if (settings->is_rotated && file->size + bytes > settings->bytes_max)
            *ret_failed = rotate(file, error);
        if (*ret_failed != 0)
            break;
        size_t end = done + 1;
        while (end < count && end - done < WRITTEN_RECORDS_MAX &&
               (!settings->is_rotated ||
                file->size + bytes + records[end].bytes <= settings->bytes_max))
            bytes += records[end++].bytes;
        done += write_records(file, records + done, end - done, error, ret_failed);
    }
    return done;
}
