/* SPDX-License-Identifier: Apache-2.0 */
/* Any thread. */
#include "src/journal/journal_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "src/base/error.h"
#include "src/base/fileops.h"

void journal_path(const struct journal_store *store, char path[static PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", store->directory, name);
}

void journal_segment_path(const struct journal_store *store, char path[static PATH_MAX],
                          uint64_t number)
{
    char name[JOURNAL_NAME_BYTES];
    journal_segment_name(name, number);
    journal_path(store, path, name);
}

int journal_sync_directory(const struct journal_store *store)
{
    return store->is_synced ? fileops()->fsync(store->directory_fd) : 0;
}

/* Whether this says nothing about the file: it can be opened once the process may, or there is room
 * again. */
bool journal_error_passes(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EACCES ||
           error == -EPERM || error == -EROFS;
}

/* Writes it all, however many calls that takes. */
int journal_write_all(int fd, struct iovec *parts, int count, uint64_t offset)
{
    while (count > 0) {
        ssize_t put = fileops()->pwritev(fd, parts, count, (off_t)offset);
        if (put == -EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? (int)put : -EIO;
        offset += (uint64_t)put;
        while (count > 0 && (size_t)put >= parts->iov_len) {
            put -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (uint8_t *)parts->iov_base + put;
            parts->iov_len -= (size_t)put;
        }
    }
    return 0;
}

/* Returns how many bytes it got; *ret_failed says why they are not more, 0: the file ends there. */
size_t journal_read_all(int fd, uint8_t *to, size_t size, uint64_t offset, int *ret_failed)
{
    *ret_failed = 0;
    size_t filled = 0;
    while (filled < size) {
        ssize_t got = fileops()->pread(fd, to + filled, size - filled, (off_t)(offset + filled));
        if (got == -EINTR)
            continue;
        if (got <= 0) {
            *ret_failed = (int)got;
            break;
        }
        filled += (size_t)got;
    }
    return filled;
}

bool journal_file_error(struct error *error, const char *what, const char *path, int failed)
{
    return error_set(error, "cannot %s %s: %s", what, path, strerror(-failed));
}
