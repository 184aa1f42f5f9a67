/* SPDX-License-Identifier: Apache-2.0 */
/* Names are "0000000000000012.traces" and "0000000000000013.profiles.open"; both kinds share the
 * numbers. On the explore worker. */
#include "src/explore/explore_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/explore/explore_record.h"
#include "src/otlp/check.h"
#include "src/profiles/otlp/profile_normalize.h"

enum {
    NUMBER_DIGITS = 16,
    NAME_BYTES_MAX = 64,
    FILES_MAX = 65536, /* others in the directory are left alone */
    FILE_BYTES_MAX = 128 * 1024 * 1024,
    COMPRESSION_LEVEL = 1,
};

static const char *const kind_names[EXPLORE_KEPT_KINDS] = {
    [EXPLORE_KEPT_TRACES] = "traces", [EXPLORE_KEPT_PROFILES] = "profiles"};
#define OPEN_SUFFIX ".open"
#define PART_SUFFIX ".part"

struct kept_file {
    uint64_t number;
    uint64_t bytes;
    enum explore_kept kind;
    bool is_open;
};

struct explore_disk {
    char *directory;
    uint64_t max_bytes;
    const struct logger *logger;
    int lock_fd;
    struct kept_file *files; /* by number, an open one before the closed one of its number */
    size_t files_count;
    size_t files_capacity;
    uint64_t bytes;                    /* of all files */
    uint64_t next;                     /* number */
    uint64_t open[EXPLORE_KEPT_KINDS]; /* number of the open file; 0: none */
    struct codec_box *box;
    enum codec codec;
    bool has_failed; /* the last write, so that the log says it once */
};

static bool path_of(const struct explore_disk *disk, const struct kept_file *file,
                    char path[PATH_MAX])
{
    int size = snprintf(path, PATH_MAX, "%s/%0*" PRIu64 ".%s%s", disk->directory, NUMBER_DIGITS,
                        file->number, kind_names[file->kind], file->is_open ? OPEN_SUFFIX : "");
    return size > 0 && size < PATH_MAX;
}

/* False: the name is none of ours. */
static bool read_name(const char *name, struct kept_file *ret_file)
{
    char *end = NULL;
    if (strspn(name, "0123456789") != NUMBER_DIGITS)
        return false;
    *ret_file = (struct kept_file){.number = strtoull(name, &end, 10)};
    if (*end != '.' || ret_file->number == 0)
        return false;
    for (unsigned kind = 0; kind < EXPLORE_KEPT_KINDS; kind++) {
        size_t size = strlen(kind_names[kind]);
        if (strncmp(end + 1, kind_names[kind], size) != 0)
            continue;
        ret_file->kind = (enum explore_kept)kind;
        ret_file->is_open = strcmp(end + 1 + size, OPEN_SUFFIX) == 0;
        return end[1 + size] == '\0' || ret_file->is_open;
    }
    return false;
}

static void remove_file(struct explore_disk *disk, size_t at)
{
    char path[PATH_MAX];
    if (path_of(disk, &disk->files[at], path))
        fileops()->unlink(path);
    disk->bytes -= disk->files[at].bytes;
    memmove(&disk->files[at], &disk->files[at + 1],
            (--disk->files_count - at) * sizeof(disk->files[0]));
}

static int compare_files(const void *a, const void *b)
{
    const struct kept_file *x = a;
    const struct kept_file *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : y->is_open - x->is_open;
}

static void add_file(struct explore_disk *disk, struct kept_file file)
{
    if (disk->files_count == disk->files_capacity) {
        disk->files_capacity = disk->files_capacity > 0 ? 2 * disk->files_capacity : 64;
        disk->files = mem_resize(disk->files, disk->files_capacity * sizeof(disk->files[0]));
    }
    disk->files[disk->files_count++] = file;
    disk->bytes += file.bytes;
}

static void on_name(const char *name, void *arg)
{
    struct explore_disk *disk = arg;
    struct kept_file file;
    struct stat info;
    char path[PATH_MAX];
    size_t size = strlen(name);
    bool is_part =
        size > strlen(PART_SUFFIX) && strcmp(name + size - strlen(PART_SUFFIX), PART_SUFFIX) == 0;
    char plain[NAME_BYTES_MAX];
    if (size >= sizeof(plain))
        return;
    memcpy(plain, name, size + 1);
    if (is_part)
        plain[size - strlen(PART_SUFFIX)] = '\0';
    if (!read_name(plain, &file))
        return;
    int written = snprintf(path, sizeof(path), "%s/%s", disk->directory, name);
    if (written <= 0 || written >= PATH_MAX)
        return;
    if (is_part) {
        fileops()->unlink(path); /* a crash has left it */
        return;
    }
    /* Never overwrite it, whatever it is. */
    if (file.number >= disk->next)
        disk->next = file.number + 1;
    if (disk->files_count == FILES_MAX || fileops()->stat(path, &info) != 0 ||
        !S_ISREG(info.st_mode))
        return;
    file.bytes = (uint64_t)info.st_size;
    add_file(disk, file);
}

/* Removes the oldest until the rest fits. */
static void keep_limit(struct explore_disk *disk)
{
    while (disk->files_count > 0 && disk->bytes > disk->max_bytes)
        remove_file(disk, 0);
}

struct explore_disk *explore_disk_open(const struct explore_disk_settings *settings,
                                       struct error *error)
{
    enum { DIRECTORY_MODE = 0700 };
    int failed = file_make_directories(settings->directory, DIRECTORY_MODE);
    int fd = failed == 0 ? fileops()->open(settings->directory, O_RDONLY | O_DIRECTORY, 0) : failed;
    if (fd < 0) {
        error_set(error, "directory: \"%s\" cannot be used: %s; make it, writable for this user",
                  settings->directory, strerror(-fd));
        return NULL;
    }
    failed = fileops()->lock(fd);
    if (failed != 0) {
        fileops()->close(fd);
        error_set(error, "directory: \"%s\" cannot be locked: %s; give each daemon its own",
                  settings->directory,
                  failed == -EWOULDBLOCK ? "another process uses it" : strerror(-failed));
        return NULL;
    }
    struct explore_disk *disk = mem_zalloc(sizeof(*disk));
    *disk = (struct explore_disk){
        .directory = mem_copy_text(settings->directory),
        .max_bytes = settings->max_bytes,
        .logger = settings->logger,
        .lock_fd = fd,
        .next = 1,
        .box = codec_box_create(NULL),
        .codec = codec_prepare(CODEC_ZSTD, error) ? CODEC_ZSTD : CODEC_GZIP,
    };
    failed = fileops()->list(disk->directory, on_name, disk);
    if (failed != 0) {
        /* New files would take the numbers of those that are there. */
        error_set(error, "directory: \"%s\" cannot be listed: %s", settings->directory,
                  strerror(-failed));
        explore_disk_close(disk);
        return NULL;
    }
    if (disk->files_count > 0)
        qsort(disk->files, disk->files_count, sizeof(disk->files[0]), compare_files);
    keep_limit(disk);
    return disk;
}

void explore_disk_close(struct explore_disk *disk)
{
    if (disk == NULL)
        return;
    fileops()->close(disk->lock_fd);
    codec_box_destroy(disk->box);
    mem_free(disk->files);
    mem_free(disk->directory);
    mem_free(disk);
}

/* The disk may hold anything: what is read is checked like what is received. */
static bool give(enum explore_kept kind, struct buffer *raw, uint64_t time_ns, explore_disk_fn fn,
                 void *arg, bool *ret_goes_on)
{
    struct otlp_figures figures;
    struct profile_normalized normalized;
    const char *reason = NULL;
    struct slice bytes = buffer_slice(raw);
    if (!otlp_check(kind == EXPLORE_KEPT_TRACES ? TRACES : PROFILES, bytes, &figures, &reason))
        return false;
    if (kind == EXPLORE_KEPT_TRACES) {
        *ret_goes_on = fn(arg, kind, raw, bytes, time_ns);
        return true;
    }
    if (profile_normalize(raw, bytes, PROFILE_LAYOUTS, NULL, &normalized) != PROFILES_TAKEN)
        return false;
    /* A request without a usable profile is left unchanged. */
    if (normalized.profiles > 0)
        *ret_goes_on = fn(arg, kind, normalized.owner, normalized.request, time_ns);
    buffer_unref(normalized.owner);
    return normalized.rejected_profiles == 0;
}

/* False: part of it is broken. */
static bool load_file(struct explore_disk *disk, const struct kept_file *file, explore_disk_fn fn,
                      void *arg, bool *ret_goes_on)
{
    char path[PATH_MAX];
    char *text = NULL;
    size_t size = 0;
    struct explore_record record;
    struct error error;
    if (!path_of(disk, file, path) || file_read_whole(path, FILE_BYTES_MAX, &text, &size) != 0)
        return false;
    struct explore_file_reader reader = explore_file_reader_of(slice_of(text, size));
    bool is_whole = true;
    while (*ret_goes_on && explore_file_next(&reader, &record)) {
        struct buffer *raw = NULL;
        if (!codec_prepare(record.codec, &error) ||
            codec_inflate(disk->box, record.codec, record.bytes, record.raw, &raw) != CODEC_OK) {
            is_whole = false;
            continue;
        }
        is_whole &= give(file->kind, raw, record.time_ns, fn, arg, ret_goes_on);
        buffer_unref(raw);
    }
    mem_free(text);
    return is_whole && !reader.is_broken;
}

void explore_disk_load(struct explore_disk *disk, explore_disk_fn fn, void *arg)
{
    uint64_t broken = 0;
    uint64_t first_broken = 0;
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < disk->files_count; i++) {
        const struct kept_file *file = &disk->files[i];
        /* A crash between writing a block and removing what it was before. */
        if (file->is_open && i + 1 < disk->files_count && file[1].number == file->number) {
            remove_file(disk, i--);
            continue;
        }
        if (load_file(disk, file, fn, arg, &goes_on))
            continue;
        first_broken = broken++ == 0 ? file->number : first_broken;
    }
    if (broken > 0)
        log_warn(disk->logger,
                 "Files of the explore directory are broken; what could be read of them is shown",
                 log_int("files", (int64_t)broken), log_int("first", (int64_t)first_broken));
}

static bool compress_all(struct explore_disk *disk, const struct explore_disk_request *requests,
                         size_t count, struct buffer **outputs, uint8_t *heads, struct iovec *parts)
{
    explore_file_write_head(heads);
    parts[0] = (struct iovec){.iov_base = heads, .iov_len = EXPLORE_FILE_HEAD_BYTES};
    for (size_t i = 0; i < count; i++) {
        const struct batch_part part = {.bytes = requests[i].bytes};
        const struct codec_input input = {
            .parts = &part, .parts_count = 1, .level = COMPRESSION_LEVEL};
        if (codec_deflate(disk->box, disk->codec, &input, &outputs[i]) != CODEC_OK)
            return false;
        uint8_t *head = heads + EXPLORE_FILE_HEAD_BYTES + i * EXPLORE_RECORD_HEAD_BYTES;
        const struct explore_record record = {.time_ns = requests[i].time_ns,
                                              .raw = (uint32_t)requests[i].bytes.size,
                                              .codec = disk->codec,
                                              .bytes = buffer_slice(outputs[i])};
        explore_record_write_head(&record, head);
        parts[1 + 2 * i] = (struct iovec){.iov_base = head, .iov_len = EXPLORE_RECORD_HEAD_BYTES};
        parts[2 + 2 * i] =
            (struct iovec){.iov_base = outputs[i]->data, .iov_len = outputs[i]->size};
    }
    return true;
}

/* The file is there now: it replaces the open one of its number. */
static void note_file(struct explore_disk *disk, struct kept_file file)
{
    for (size_t i = disk->files_count; i > 0 && disk->files[i - 1].number >= file.number; i--) {
        if (disk->files[i - 1].number != file.number)
            continue;
        if (file.is_open) {
            disk->bytes -= disk->files[i - 1].bytes;
            memmove(&disk->files[i - 1], &disk->files[i],
                    (--disk->files_count - (i - 1)) * sizeof(disk->files[0]));
        } else {
            remove_file(disk, i - 1);
        }
        break;
    }
    add_file(disk, file);
    qsort(disk->files, disk->files_count, sizeof(disk->files[0]), compare_files);
    keep_limit(disk);
}

bool explore_disk_write(struct explore_disk *disk, enum explore_kept kind,
                        const struct explore_disk_request *requests, size_t count, bool is_open)
{
    enum { FILE_MODE = 0600 };
    char path[PATH_MAX];
    if (count == 0)
        return false;
    struct kept_file file = {.kind = kind, .is_open = is_open, .number = disk->open[kind]};
    if (file.number == 0)
        file.number = disk->next++;
    disk->open[kind] = is_open ? file.number : 0;
    struct buffer **outputs = (struct buffer **)mem_zalloc(count * sizeof(struct buffer *));
    uint8_t *heads = mem_alloc(EXPLORE_FILE_HEAD_BYTES + count * EXPLORE_RECORD_HEAD_BYTES);
    struct iovec *parts = mem_alloc((1 + 2 * count) * sizeof(parts[0]));
    int failed = -ENOMEM;
    if (path_of(disk, &file, path) && compress_all(disk, requests, count, outputs, heads, parts))
        failed = file_replace(path, FILE_MODE, parts, 1 + 2 * count);
    for (size_t i = 0; failed == 0 && i < 1 + 2 * count; i++)
        file.bytes += parts[i].iov_len;
    for (size_t i = 0; i < count; i++)
        buffer_unref(outputs[i]);
    mem_free((void *)outputs);
    mem_free(heads);
    mem_free(parts);
    if (failed == 0)
        note_file(disk, file);
    else if (!disk->has_failed)
        log_warn(disk->logger, "The explore directory cannot be written; a restart will miss this",
                 log_text("directory", disk->directory), log_text("error", strerror(-failed)));
    disk->has_failed = failed != 0;
    return failed == 0;
}
