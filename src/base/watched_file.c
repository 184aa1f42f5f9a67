/* SPDX-License-Identifier: Apache-2.0 */
/* Files that may change while we run. One thread. */
#include "src/base/watched_file.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"

static void drop_text(struct watched_file *file)
{
    if (file->text != NULL)
        explicit_bzero(file->text, file->size);
    assert(file->text != NULL || file->size == 0);
    mem_free(file->text);
    file->text = NULL;
    file->size = 0;
}

/* Identifies one state of the file. */
static bool note_state(struct watched_file *file, const struct stat *status)
{
    const int64_t now[4] = {(int64_t)status->st_dev, (int64_t)status->st_ino,
                            status->st_mtim.tv_sec, status->st_mtim.tv_nsec};
    assert(sizeof(now) == sizeof(file->seen));
    bool is_same = memcmp(file->seen, now, sizeof(now)) == 0 && file->seen_size == status->st_size;
    memcpy(file->seen, now, sizeof(now));
    file->seen_size = status->st_size;
    return !is_same;
}

static bool failed(const struct watched_file *file, int code, struct error *error)
{
    assert(code < 0);
    return error_set(error, "cannot read %s: %s", file->path, strerror(-code));
}

static bool read_content(struct watched_file *file, struct error *error)
{
    char *text;
    size_t size;
    int code = file_read_whole(file->path, file->max_bytes, &text, &size);
    if (code < 0)
        return failed(file, code, error);
    drop_text(file);
    file->text = text;
    file->size = size;
    return true;
}

bool watched_file_open(struct watched_file *file, const char *path, size_t max_bytes,
                       struct error *error)
{
    struct stat status;
    *file = (struct watched_file){
        .path = mem_copy_text(path), .max_bytes = max_bytes, .looked_ns = clock_now_ns()};
    int code = fileops()->stat(path, &status);
    if (code < 0)
        return failed(file, code, error);
    note_state(file, &status);
    return read_content(file, error);
}

void watched_file_close(struct watched_file *file)
{
    drop_text(file);
    mem_free(file->path);
    *file = (struct watched_file){.path = NULL};
}

enum watched_change watched_file_look(struct watched_file *file, struct error *error)
{
    struct stat status;
    uint64_t now_ns = clock_now_ns();
    if (now_ns - file->looked_ns < NS_PER_S)
        return WATCHED_SAME;
    file->looked_ns = now_ns;
    int code = fileops()->stat(file->path, &status);
    bool is_read = code == 0;
    if (is_read && !note_state(file, &status) && !file->is_failing)
        return WATCHED_SAME;
    if (is_read)
        is_read = read_content(file, error);
    else
        failed(file, code, error);
    bool was_failing = file->is_failing;
    file->is_failing = !is_read;
    if (is_read)
        return WATCHED_CHANGED;
    return was_failing ? WATCHED_SAME : WATCHED_FAILED;
}
