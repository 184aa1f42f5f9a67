/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/follower.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/follow/fingerprints.h"
#include "src/follow/follow_offsets.h"
#include "src/follow/follow_source.h"
#include "src/follow/followed_file.h"
#include "src/follow/glob.h"
#include "src/follow/line_splitter.h"

/* Files that are not there any more are remembered for so many polls. */
enum { GENERATIONS = 3, READ_BYTES_FIRST = 64 * 1024 };
/* Positions are saved no more often. */
#define SAVE_NS ((uint64_t)1 * NS_PER_S)

struct follower {
    struct follow_settings settings;
    struct glob **include;
    struct glob **exclude;
    bool reads_from_start;                  /* of files that are new */
    struct fingerprints current;            /* of this batch */
    struct fingerprints previous;           /* of the batch before; open */
    struct fingerprints known[GENERATIONS]; /* closed; the newest first */
    struct follow_source *source;
    struct follow_source *first_source; /* of first bytes */
    uint8_t *first;                     /* room for first bytes */
    uint8_t *data;                      /* read but not used; READ_BYTES_FIRST or more, charged */
    size_t data_capacity;
    struct followed_file *reading;
    char **unreadable; /* paths whose error was logged */
    size_t unreadable_count;
    bool was_cut;      /* and logged */
    bool has_to_save;  /* something changed */
    uint64_t saved_ns; /* clock_now_ns of the last time */
    bool has_logged_save;
    bool has_logged_cut;
    bool has_logged_memory;
};

static const struct logger *logger_of(const struct follower *follower)
{
    return follower->settings.logger;
}

static bool is_stopping(const struct follower *follower)
{
    return follower->settings.is_stopping(follower->settings.arg);
}

/* ---- life cycle ---- */

bool follow_pattern_check(const char *pattern, const char **ret_reason)
{
    struct glob *glob = glob_create(pattern, true, ret_reason);
    glob_destroy(glob);
    return glob != NULL;
}

static struct glob **compile(const char *const *patterns, size_t count, bool is_searched,
                             struct error *error)
{
    struct glob **globs = (struct glob **)mem_zalloc((count + 1) * sizeof(struct glob *));
    for (size_t i = 0; i < count; i++) {
        const char *reason;
        globs[i] = glob_create(patterns[i], is_searched, &reason);
        if (globs[i] == NULL)
            error_set(error, "\"%s\": %s", patterns[i], reason);
    }
    return globs;
}

struct follower *follower_create(const struct follow_settings *settings, struct error *error)
{
    struct follower *follower = mem_zalloc(sizeof(*follower));
    assert(settings->fingerprint_size >= FOLLOW_FINGERPRINT_BYTES_MIN);
    assert(settings->fingerprint_size <= FOLLOW_FINGERPRINT_BYTES_MAX);
    assert(settings->files_max > 0);
    follower->settings = *settings;
    follower->reads_from_start = !settings->starts_at_end;
    fingerprints_init(&follower->current, settings->fingerprint_size);
    fingerprints_init(&follower->previous, settings->fingerprint_size);
    for (size_t i = 0; i < GENERATIONS; i++)
        fingerprints_init(&follower->known[i], settings->fingerprint_size);
    follower->first = mem_alloc(settings->fingerprint_size);
    follower->source = follow_source_create();
    follower->first_source = follow_source_create();
    error->text[0] = '\0';
    follower->include = compile(settings->include, settings->include_count, true, error);
    follower->exclude = compile(settings->exclude, settings->exclude_count, false, error);
    if (error->text[0] == '\0')
        return follower;
    follower->settings.offsets_path = NULL;
    follower_destroy(follower);
    return NULL;
}

static void destroy_all(struct follower *follower, struct fingerprints *set)
{
    while (set->count > 0) {
        struct followed_file *file = set->files[set->count - 1];
        fingerprints_remove(set, file);
        followed_file_destroy(follower->settings.budget, file);
    }
}

static void remember(struct follower *follower, struct fingerprints *set,
                     struct followed_file *file)
{
    if (file->first_size > 0 && fingerprints_add(set, file))
        return;
    followed_file_destroy(follower->settings.budget, file);
}

static void on_loaded(struct followed_file *file, void *arg)
{
    struct follower *follower = arg;
    remember(follower, &follower->known[0], file);
}

bool follower_load(struct follower *follower, struct error *error)
{
    const struct follow_settings *settings = &follower->settings;
    if (settings->offsets_path == NULL || settings->replays)
        return true;
    if (!follow_offsets_load(settings->offsets_path, settings->fingerprint_size, settings->budget,
                             on_loaded, follower, error))
        return false;
    if (follower->known[0].count > 0) {
        log_info(settings->logger,
                 "Resuming from previously known offset(s). 'start_at' setting is "
                 "not applicable.");
        follower->reads_from_start = true;
    }
    return true;
}

static void save(struct follower *follower)
{
    const struct follow_settings *settings = &follower->settings;
    struct error error;
    if (settings->offsets_path == NULL || settings->replays || !follower->has_to_save)
        return;
    size_t count = 0;
    size_t kept;
    struct followed_file **files = (struct followed_file **)mem_alloc(
        (follower_known(follower) + 1) * sizeof(struct followed_file *));
    struct fingerprints *const sets[] = {&follower->current, &follower->previous,
                                         &follower->known[0], &follower->known[1],
                                         &follower->known[2]};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        for (size_t j = 0; j < sets[i]->count; j++)
            files[count++] = sets[i]->files[j];
    bool is_saved = follow_offsets_save(settings->offsets_path, files, count, settings->is_synced,
                                        &kept, &error);
    mem_free((void *)files);
    if (is_saved && kept < count && !follower->has_logged_cut)
        log_warn(settings->logger,
                 "too many files to save all of their offsets: after a restart the others are read "
                 "again; lower fingerprint_size, or follow fewer files",
                 log_int("files", (int64_t)count), log_int("saved", (int64_t)kept));
    follower->has_logged_cut |= is_saved && kept < count;
    if (!is_saved && !follower->has_logged_save)
        log_error(settings->logger, "save offsets", log_text("error", error.text));
    follower->has_logged_save = !is_saved;
    follower->has_to_save = !is_saved;
    follower->saved_ns = clock_now_ns();
}

void follower_destroy(struct follower *follower)
{
    if (follower == NULL)
        return;
    save(follower);
    destroy_all(follower, &follower->current);
    destroy_all(follower, &follower->previous);
    fingerprints_fini(&follower->current);
    fingerprints_fini(&follower->previous);
    for (size_t i = 0; i < GENERATIONS; i++) {
        destroy_all(follower, &follower->known[i]);
        fingerprints_fini(&follower->known[i]);
    }
    for (size_t i = 0; follower->include != NULL && i < follower->settings.include_count; i++)
        glob_destroy(follower->include[i]);
    for (size_t i = 0; follower->exclude != NULL && i < follower->settings.exclude_count; i++)
        glob_destroy(follower->exclude[i]);
    for (size_t i = 0; i < follower->unreadable_count; i++)
        mem_free(follower->unreadable[i]);
    mem_free((void *)follower->unreadable);
    mem_free((void *)follower->include);
    mem_free((void *)follower->exclude);
    follow_source_destroy(follower->source);
    follow_source_destroy(follower->first_source);
    if (follower->settings.budget != NULL)
        budget_return(follower->settings.budget, follower->data_capacity);
    mem_free(follower->data);
    mem_free(follower->first);
    mem_free(follower);
}

size_t follower_line_bytes(const struct follower *follower)
{
    return follower->data_capacity;
}

size_t follower_known(const struct follower *follower)
{
    size_t count = follower->current.count + follower->previous.count;
    for (size_t i = 0; i < GENERATIONS; i++)
        count += follower->known[i].count;
    return count;
}

size_t follower_open_files(const struct follower *follower)
{
    size_t count = 0;
    for (size_t i = 0; i < follower->current.count; i++)
        count += follower->current.files[i]->fd >= 0;
    for (size_t i = 0; i < follower->previous.count; i++)
        count += follower->previous.files[i]->fd >= 0;
    return count;
}

/* ---- reading ---- */

static void log_file(const struct follower *follower, const char *message, const char *path,
                     int64_t failed)
{
    const char *reason = failed == -EBADMSG   ? "malformed gzip"
                         : failed == -ENODATA ? "it ends too early"
                                              : strerror((int)-failed);
    log_error(logger_of(follower), message, log_text("path", path), log_text("error", reason));
}

static uint64_t size_of(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

/* Makes room for more data. False: there is no memory now. */
static bool grow(struct follower *follower, size_t capacity)
{
    struct budget *budget = follower->settings.budget;
    size_t more = capacity - follower->data_capacity;
    if (budget != NULL && !budget_try_take(budget, more))
        return false;
    uint8_t *data = mem_try_resize(follower->data, capacity);
    if (data == NULL) {
        if (budget != NULL)
            budget_return(budget, more);
        return false;
    }
    follower->data = data;
    follower->data_capacity = capacity;
    return true;
}

/* Gives back what only a long line has needed. */
static void shrink(struct follower *follower)
{
    if (follower->data_capacity <= READ_BYTES_FIRST)
        return;
    mem_free(follower->data);
    if (follower->settings.budget != NULL)
        budget_return(follower->settings.budget, follower->data_capacity);
    follower->data = NULL;
    follower->data_capacity = 0;
}

void follower_done(struct follower *follower, uint64_t end)
{
    struct followed_file *file = follower->reading;
    assert(file != NULL);
    follower->has_to_save = true;
    *(file->is_gzip ? &file->inflated : &file->offset) = end;
}

/* The file's bytes while it is read. */
struct reading {
    struct followed_file *file;
    struct line_splitter splitter;
    uint64_t place; /* of the first byte of data: in the file, or inflated */
    size_t size;    /* of data */
    bool has_stopped;
    uint64_t lines;
};

/* Takes the lines that data has. */
static void take_lines(struct follower *follower, struct reading *reading, bool is_end)
{
    const struct follow_settings *settings = &follower->settings;
    size_t used = 0;
    while (!reading->has_stopped) {
        struct slice line;
        size_t step_used;
        enum split_step step = line_splitter_next(
            &reading->splitter, slice_of(follower->data + used, reading->size - used), is_end,
            &step_used, &line);
        if (step == SPLIT_MORE)
            break;
        if (step == SPLIT_LINE && is_stopping(follower)) {
            reading->has_stopped = true;
            break;
        }
        const struct follow_line taken = {
            .bytes = step == SPLIT_LINE ? line : slice_of(NULL, 0),
            .path = reading->file->path,
            .number = reading->lines + (step == SPLIT_LINE),
            .fd = reading->file->fd,
            .end = reading->place + step_used,
        };
        if (!settings->take(&taken, settings->arg)) {
            reading->has_stopped = true;
            break;
        }
        used += step_used;
        reading->place += step_used;
        reading->lines = taken.number;
    }
    if (used > 0 && used < reading->size)
        memmove(follower->data, follower->data + used, reading->size - used);
    reading->size -= used;
}

/* Reads once. Returns what the source does; -ENOMEM: no memory now. */
static int64_t read_more(struct follower *follower, struct reading *reading)
{
    if (follower->data_capacity == 0 && !grow(follower, READ_BYTES_FIRST))
        return -ENOMEM;
    if (reading->size == follower->data_capacity && !grow(follower, follower->data_capacity * 2))
        return -ENOMEM;
    int64_t got = follow_source_read(follower->source, follower->data + reading->size,
                                     follower->data_capacity - reading->size);
    if (got > 0)
        reading->size += (size_t)got;
    return got;
}

/* Passes over what was inflated and used before. */
static int64_t skip_inflated(struct follower *follower, struct reading *reading)
{
    uint64_t left = reading->file->inflated;
    int64_t got = 1;
    while (left > 0 && got > 0 && !is_stopping(follower)) {
        if (follower->data_capacity == 0 && !grow(follower, READ_BYTES_FIRST))
            return -ENOMEM;
        size_t size = left < follower->data_capacity ? (size_t)left : follower->data_capacity;
        got = follow_source_read(follower->source, follower->data, size);
        left -= got > 0 ? (uint64_t)got : 0;
    }
    reading->place = reading->file->inflated - left;
    return got < 0 ? got : 0;
}

/* Whether the last line, which has no end, counts as one: it has not grown for long enough. */
static bool is_tail_due(const struct follower *follower, struct followed_file *file, size_t size)
{
    const struct follow_settings *settings = &follower->settings;
    uint64_t now_ns = clock_now_ns();
    if (settings->takes_all || settings->deletes || settings->replays || file->is_gzip)
        return true;
    if (size > file->tail_bytes) {
        file->changed_ns = now_ns;
        file->tail_bytes = size;
        return false;
    }
    return settings->flush_ns > 0 && now_ns - file->changed_ns > settings->flush_ns;
}

static void note_failure(struct follower *follower, struct followed_file *file, int64_t failed,
                         uint64_t size)
{
    if (failed == -ENOMEM) {
        if (!follower->has_logged_memory)
            log_warn(logger_of(follower),
                     "no memory left in the budget to read a file: it is read "
                     "later",
                     log_text("path", file->path));
        follower->has_logged_memory = true;
        return;
    }
    /* A file that is still being written, or will never be right: until it grows. */
    file->tried_size = file->is_gzip ? size : 0;
    if (failed != -ENODATA)
        log_file(follower, "failed during scan", file->path, failed);
}

/* Its first bytes may have become more. */
static void refresh_first(struct follower *follower, struct followed_file *file);

static void finish(struct follower *follower, const struct reading *reading, int64_t result,
                   uint64_t size)
{
    struct followed_file *file = reading->file;
    const struct follow_settings *settings = &follower->settings;
    settings->settle(settings->arg);
    bool is_through = (file->is_gzip ? file->inflated : file->offset) == reading->place;
    file->is_skipping = is_through && reading->splitter.is_skipping;
    if (is_through)
        file->lines = reading->lines;
    if (file->is_gzip && result == 0 && is_through && reading->size == 0) {
        file->offset = size;
        file->inflated = 0;
        follower->has_to_save = true;
    }
    if (!settings->deletes || result != 0 || !is_through || reading->size > 0)
        return;
    followed_file_close(file);
    int failed = fileops()->unlink(file->path);
    if (failed != 0)
        log_file(follower, "could not delete", file->path, failed);
}

/* Reads to the end that the file has now. */
static void read_file(struct follower *follower, struct followed_file *file)
{
    const struct follow_settings *settings = &follower->settings;
    if (file->fd < 0 || is_stopping(follower))
        return;
    if (settings->locks && flock(file->fd, LOCK_SH | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            log_file(follower, "Failed to lock", file->path, -errno);
        return;
    }
    uint64_t size = size_of(file->fd);
    struct reading reading = {
        .file = file,
        .splitter = {.bytes_max = settings->line_bytes_max,
                     .truncates = settings->truncates_lines,
                     .takes_all = settings->takes_all,
                     .keeps_leading = settings->keeps_leading,
                     .keeps_trailing = settings->keeps_trailing,
                     .is_skipping = file->is_skipping},
        .place = file->is_gzip ? 0 : file->offset,
        .lines = file->lines,
    };
    if (settings->drops_cache && !file->is_gzip)
        posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    /* A compressed file is read again once it has grown. */
    bool has_more = size > file->offset && (!file->is_gzip || size != file->tried_size);
    if (has_more) {
        follower->reading = file;
        follow_source_begin(follower->source, file->fd, file->is_gzip, file->offset, size);
        int64_t result = file->is_gzip ? skip_inflated(follower, &reading) : 0;
        bool is_begun = result == 0;
        while (is_begun && !reading.has_stopped && !is_stopping(follower) &&
               (result = read_more(follower, &reading)) > 0)
            take_lines(follower, &reading, false);
        if (result == 0 && reading.size > 0 && !reading.has_stopped && !is_stopping(follower) &&
            is_tail_due(follower, file, reading.size))
            take_lines(follower, &reading, true);
        if (reading.size == 0)
            file->tail_bytes = 0;
        if (result < 0)
            note_failure(follower, file, result, size);
        finish(follower, &reading, result, size);
        follower->reading = NULL;
        shrink(follower);
    }
    if (settings->locks && file->fd >= 0)
        flock(file->fd, LOCK_UN);
    if (has_more && !is_stopping(follower))
        refresh_first(follower, file); /* which may end it */
}

/* ---- knowing files again ---- */

/* Reads the first bytes, inflated if the file is gzip. Negative errno. */
static int64_t read_first(struct follower *follower, int fd, bool *ret_is_gzip)
{
    const struct follow_settings *settings = &follower->settings;
    int is_gzip = settings->compression != FOLLOW_PLAIN ? follow_source_is_gzip(fd) : 0;
    if (is_gzip < 0)
        return is_gzip;
    *ret_is_gzip = is_gzip > 0;
    follow_source_begin(follower->first_source, fd, is_gzip > 0, 0, size_of(fd));
    size_t size = 0;
    int64_t got = 1;
    while (size < settings->fingerprint_size && got > 0) {
        got = follow_source_read(follower->first_source, follower->first + size,
                                 settings->fingerprint_size - size);
        size += got > 0 ? (size_t)got : 0;
    }
    return got < 0 && size == 0 ? got : (int64_t)size;
}

static struct slice first_of(const struct followed_file *file)
{
    return slice_of(file->first, file->first_size);
}

static bool begins_with(struct slice text, struct slice beginning)
{
    return text.size >= beginning.size && memcmp(text.data, beginning.data, beginning.size) == 0;
}

static void set_first(struct followed_file *file, struct slice first)
{
    memcpy(file->first, first.data, first.size);
    file->first_size = first.size;
}

static void refresh_first(struct follower *follower, struct followed_file *file)
{
    bool is_gzip;
    if (file->fd < 0 || file->first_size == follower->settings.fingerprint_size)
        return;
    int64_t size = read_first(follower, file->fd, &is_gzip);
    struct slice first = slice_of(follower->first, size > 0 ? (size_t)size : 0);
    /* Other bytes: it was truncated meanwhile. */
    if (size <= 0 || is_gzip != file->is_gzip || !begins_with(first, first_of(file)))
        return;
    /* The set that it is in finds it by its first bytes. */
    struct fingerprints *sets[] = {&follower->current, &follower->previous};
    for (size_t i = 0; i < 2; i++) {
        if (file->set_place >= sets[i]->count || sets[i]->files[file->set_place] != file)
            continue;
        fingerprints_remove(sets[i], file);
        set_first(file, first);
        if (!fingerprints_add(sets[i], file))
            followed_file_destroy(follower->settings.budget, file);
        return;
    }
}

/* Whether the open file still begins as it did. */
static bool is_the_same(struct follower *follower, const struct followed_file *file)
{
    bool is_gzip;
    if (file->fd < 0)
        return false;
    int64_t size = read_first(follower, file->fd, &is_gzip);
    return size > 0 && begins_with(slice_of(follower->first, (size_t)size), first_of(file));
}

static int find_unreadable(const struct follower *follower, const char *path, size_t *ret_place)
{
    for (size_t i = 0; i < follower->unreadable_count; i++)
        if (strcmp(follower->unreadable[i], path) == 0) {
            *ret_place = i;
            return 1;
        }
    return 0;
}

/* As in the Go collector, a file without permission is logged once. */
static void note_unreadable(struct follower *follower, const char *path, int failed)
{
    size_t place;
    if (failed != -EACCES && failed != -EPERM) {
        if (failed != -ENOENT)
            log_file(follower, "Failed to open file", path, failed);
        return;
    }
    if (find_unreadable(follower, path, &place))
        return;
    if (follower->unreadable_count < FOLLOW_UNREADABLE_MAX) {
        follower->unreadable = (char **)mem_resize(
            (void *)follower->unreadable, (follower->unreadable_count + 1) * sizeof(char *));
        follower->unreadable[follower->unreadable_count++] = mem_copy_text(path);
    }
    log_file(follower, "Failed to open file - unreadable", path, failed);
}

static void note_readable(struct follower *follower, const char *path)
{
    size_t place;
    if (follower->unreadable_count == 0 || !find_unreadable(follower, path, &place))
        return;
    log_info(logger_of(follower), "Previously unreadable file is now readable",
             log_text("path", path));
    mem_free(follower->unreadable[place]);
    follower->unreadable[place] = follower->unreadable[--follower->unreadable_count];
}

/* The file with these first bytes, out of the sets. */
static struct followed_file *take_known(struct follower *follower, struct slice first)
{
    struct fingerprints *sets[] = {&follower->previous, &follower->known[0], &follower->known[1],
                                   &follower->known[2]};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct followed_file *file = fingerprints_find_beginning(sets[i], first);
        if (file != NULL) {
            fingerprints_remove(sets[i], file);
            return file;
        }
    }
    return NULL;
}

/* What was read of a file whose bytes were compressed meanwhile, or shortened. */
static void adjust(struct follower *follower, struct followed_file *file, bool is_gzip,
                   uint64_t size)
{
    const struct follow_settings *settings = &follower->settings;
    if (!is_gzip && !file->is_gzip && file->offset > size) {
        log_debug(logger_of(follower), "Stored offset exceeds current file size.",
                  log_text("path", file->path), log_int("stored_offset", (int64_t)file->offset),
                  log_int("current_file_size", (int64_t)size));
        if (settings->truncation == FOLLOW_READ_WHOLE)
            file->offset = 0;
        else if (settings->truncation == FOLLOW_READ_NEW)
            file->offset = size;
    }
    if (is_gzip == file->is_gzip)
        return;
    file->inflated = is_gzip ? file->offset : 0;
    file->offset = 0;
    file->is_gzip = is_gzip;
}

/* Puts the file at the path into the current batch. */
static void open_path(struct follower *follower, const char *path)
{
    const struct follow_settings *settings = &follower->settings;
    bool is_gzip = false;
    int fd = fileops()->open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) {
        note_unreadable(follower, path, fd);
        return;
    }
    note_readable(follower, path);
    struct stat info;
    bool is_regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    int64_t size = is_regular ? read_first(follower, fd, &is_gzip) : 0;
    struct slice first = slice_of(follower->first, size > 0 ? (size_t)size : 0);
    /* Empty files wait until they can be told apart; a copy of one that is known is no other. */
    if (size <= 0 || fingerprints_find_equal(&follower->current, first) != NULL) {
        fileops()->close(fd);
        return;
    }
    struct followed_file *file = settings->replays ? NULL : take_known(follower, first);
    bool is_new = file == NULL;
    if (is_new) {
        file = followed_file_create(settings->budget, settings->fingerprint_size);
        if (file == NULL) {
            fileops()->close(fd);
            return;
        }
        file->is_gzip = is_gzip;
        if (!follower->reads_from_start)
            file->offset = size_of(fd);
        if (!settings->replays)
            log_info(logger_of(follower), "Started watching file", log_text("path", path));
    }
    followed_file_close(file);
    file->fd = fd;
    followed_file_set_path(file, path);
    adjust(follower, file, is_gzip, size_of(fd));
    set_first(file, first);
    follower->has_to_save |= is_new;
    if (!fingerprints_add(&follower->current, file))
        followed_file_destroy(settings->budget, file);
}

/* ---- polls ---- */

/* A copy of the list: reading moves files within their set. */
static struct followed_file **files_of(const struct fingerprints *set, size_t *ret_count)
{
    *ret_count = set->count;
    return (struct followed_file **)mem_copy((void *)set->files,
                                             set->count * sizeof(set->files[0]));
}

/* Files of the last batch that are not in this one: what was renamed out of the patterns, or
 * deleted, is read to its end. Before the others, since its lines are older. */
static void read_lost(struct follower *follower)
{
    if (follower->settings.deletes)
        return;
    size_t count;
    struct followed_file **files = files_of(&follower->previous, &count);
    for (size_t i = 0; i < count && !is_stopping(follower); i++) {
        bool is_other = false;
        for (size_t j = 0; j < follower->current.count && !is_other; j++) {
            const struct followed_file *now = follower->current.files[j];
            is_other = begins_with(first_of(now), first_of(files[i]));
            /* Truncated: both are the same file, with new content. */
            if (!is_other && strcmp(now->path, files[i]->path) == 0)
                is_other = !is_the_same(follower, files[i]);
        }
        if (!is_other)
            read_file(follower, files[i]);
    }
    mem_free((void *)files);
}

static void move_all(struct follower *follower, struct fingerprints *from, struct fingerprints *to,
                     bool closes)
{
    while (from->count > 0) {
        struct followed_file *file = from->files[from->count - 1];
        fingerprints_remove(from, file);
        if (closes)
            followed_file_close(file);
        remember(follower, to, file);
    }
}

static void consume(struct follower *follower, char *const *paths, size_t count)
{
    for (size_t i = 0; i < count && !is_stopping(follower); i++)
        open_path(follower, paths[i]);
    read_lost(follower);
    size_t files_count;
    struct followed_file **files = files_of(&follower->current, &files_count);
    for (size_t i = 0; i < files_count && !is_stopping(follower); i++)
        read_file(follower, files[i]);
    mem_free((void *)files);
    if (follower->settings.replays) {
        destroy_all(follower, &follower->current);
        return;
    }
    move_all(follower, &follower->previous, &follower->known[0], true);
    move_all(follower, &follower->current, &follower->previous, false);
}

static void exclude(const struct follower *follower, struct glob_paths *paths)
{
    const struct follow_settings *settings = &follower->settings;
    size_t kept = 0;
    for (size_t i = 0; i < paths->count; i++) {
        struct stat info;
        bool is_out = false;
        for (size_t j = 0; j < settings->exclude_count && !is_out; j++)
            is_out = glob_match(follower->exclude[j], paths->paths[i]);
        if (!is_out && settings->exclude_older_ns > 0) {
            is_out = fileops()->stat(paths->paths[i], &info) != 0;
            int64_t age_ns =
                is_out ? 0
                       : (int64_t)clock_wall_ns() -
                             (info.st_mtim.tv_sec * (int64_t)NS_PER_S + info.st_mtim.tv_nsec);
            is_out = is_out || age_ns > (int64_t)settings->exclude_older_ns;
        }
        if (is_out)
            mem_free(paths->paths[i]);
        else
            paths->paths[kept++] = paths->paths[i];
    }
    paths->count = kept;
}

void follower_poll(struct follower *follower)
{
    const struct follow_settings *settings = &follower->settings;
    struct glob_paths paths = {.paths = NULL};
    for (size_t i = 0; i < settings->include_count; i++)
        glob_find(follower->include[i], &paths);
    glob_paths_sort(&paths);
    exclude(follower, &paths);
    if (paths.is_cut && !follower->was_cut)
        log_warn(logger_of(follower),
                 "include matches too many files or directories: some are left "
                 "out; name them more exactly",
                 log_int("files", (int64_t)paths.count));
    follower->was_cut = paths.is_cut;
    size_t batch = settings->files_max / 2 > 0 ? settings->files_max / 2 : 1;
    size_t batches = 0;
    size_t done = 0;
    do {
        size_t count = paths.count - done < batch ? paths.count - done : batch;
        consume(follower, paths.paths + done, count);
        done += count;
        batches++;
    } while (done < paths.count && !is_stopping(follower) &&
             (settings->batches_max == 0 || batches < settings->batches_max));
    bool is_whole = done == paths.count;
    glob_paths_clear(&paths);
    if (is_stopping(follower))
        return;
    /* As in the Go collector, a poll that had to end early does not count. */
    if (is_whole) {
        follower->reads_from_start = true;
        struct fingerprints oldest = follower->known[GENERATIONS - 1];
        destroy_all(follower, &oldest);
        memmove(follower->known + 1, follower->known,
                (GENERATIONS - 1) * sizeof(follower->known[0]));
        follower->known[0] = oldest;
    }
    if (clock_now_ns() - follower->saved_ns >= SAVE_NS)
        save(follower);
}
