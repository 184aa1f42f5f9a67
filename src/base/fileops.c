/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of file operations, real by default. Any thread. */
#include "src/base/fileops.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/mem.h"

static int real_open(const char *path, int flags, mode_t mode)
{
    int fd = open(path, flags | O_CLOEXEC, mode);
    return fd >= 0 ? fd : -errno;
}

static int real_close(int fd)
{
    assert(fd >= 0);
    return close(fd) == 0 ? 0 : -errno;
}

static ssize_t real_read(int fd, void *data, size_t size)
{
    ssize_t got = read(fd, data, size);
    return got >= 0 ? got : -errno;
}

static ssize_t real_pread(int fd, void *data, size_t size, off_t offset)
{
    ssize_t got = pread(fd, data, size, offset);
    return got >= 0 ? got : -errno;
}

static ssize_t real_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t put = pwritev(fd, parts, count, offset);
    return put >= 0 ? put : -errno;
}

static ssize_t real_writev(int fd, const struct iovec *parts, int count)
{
    ssize_t put = writev(fd, parts, count);
    return put >= 0 ? put : -errno;
}

static int real_truncate(int fd, off_t size)
{
    assert(size >= 0);
    return ftruncate(fd, size) == 0 ? 0 : -errno;
}

static int real_fdatasync(int fd)
{
    assert(fd >= 0);
    return fdatasync(fd) == 0 ? 0 : -errno;
}

static int real_fsync(int fd)
{
    assert(fd >= 0);
    return fsync(fd) == 0 ? 0 : -errno;
}

static int real_fallocate(int fd, off_t offset, off_t size)
{
    assert(offset >= 0 && size > 0);
    return fallocate(fd, 0, offset, size) == 0 ? 0 : -errno;
}

static int real_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? 0 : -errno;
}

static int real_unlink(const char *path)
{
    return unlink(path) == 0 ? 0 : -errno;
}

static int real_stat(const char *path, struct stat *ret_stat)
{
    return stat(path, ret_stat) == 0 ? 0 : -errno;
}

static int real_mkdir(const char *path, mode_t mode)
{
    return mkdir(path, mode) == 0 ? 0 : -errno;
}

static int real_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
}

static int real_list(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return -errno;
    errno = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL; errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(entry->d_name, arg);
    int failed = -errno;
    closedir(directory);
    return failed;
}

static const struct fileops real_ops = {
    .open = real_open,
    .close = real_close,
    .read = real_read,
    .pread = real_pread,
    .pwritev = real_pwritev,
    .writev = real_writev,
    .truncate = real_truncate,
    .fdatasync = real_fdatasync,
    .fsync = real_fsync,
    .fallocate = real_fallocate,
    .rename = real_rename,
    .unlink = real_unlink,
    .stat = real_stat,
    .mkdir = real_mkdir,
    .lock = real_lock,
    .list = real_list,
};

static const struct fileops *current = &real_ops;

const struct fileops *fileops(void)
{
    return current;
}

void fileops_replace(const struct fileops *ops)
{
    assert(ops == NULL || (ops->open != NULL && ops->read != NULL));
    current = ops != NULL ? ops : &real_ops;
}

int file_make_directories(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    struct stat info;
    size_t size = strlen(path);
    if (size >= sizeof(part))
        return -ENAMETOOLONG;
    if (current->stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : -ENOTDIR;
    int failed = 0;
    for (size_t i = 1; i <= size && (failed == 0 || failed == -EEXIST); i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        failed = current->mkdir(part, mode);
        /* Also of a read-only file system: what is there already needs no permission. */
        if (failed != 0 && current->stat(part, &info) == 0)
            failed = S_ISDIR(info.st_mode) ? 0 : -ENOTDIR;
    }
    return failed;
}

int file_read_whole(const char *path, size_t max_size, char **ret_text, size_t *ret_size)
{
    struct stat info;
    int failed = current->stat(path, &info);
    if (failed != 0)
        return failed;
    if (S_ISDIR(info.st_mode))
        return -EISDIR;
    if (!S_ISREG(info.st_mode))
        return -EINVAL;
    if (info.st_size < 0 || (uintmax_t)info.st_size > max_size)
        return -EFBIG;
    int fd = current->open(path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    /* One byte more than the file: one that has grown meanwhile is too large. */
    size_t capacity = (size_t)info.st_size + 2;
    char *text = mem_alloc(capacity);
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 || got == -EINTR) {
        got = current->read(fd, text + size, capacity - size);
        if (got > 0)
            size += (size_t)got;
        if (size == capacity)
            got = -EFBIG;
    }
    current->close(fd);
    if (got < 0) {
        mem_free(text);
        return (int)got;
    }
    text[size] = '\0';
    *ret_text = text;
    *ret_size = size;
    return 0;
}

static int write_part(int fd, struct iovec part, off_t *offset)
{
    while (part.iov_len > 0) {
        ssize_t count = fileops()->pwritev(fd, &part, 1, *offset);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? (int)count : -EIO;
        *offset += count;
        part.iov_base = (uint8_t *)part.iov_base + count;
        part.iov_len -= (size_t)count;
    }
    return 0;
}

int file_replace(const char *path, mode_t mode, const struct iovec *parts, size_t count)
{
    char beside[PATH_MAX];
    int size = snprintf(beside, sizeof(beside), "%s.part", path);
    if (size < 0 || (size_t)size >= sizeof(beside))
        return -ENAMETOOLONG;
    int fd = fileops()->open(beside, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (fd < 0)
        return fd;
    off_t offset = 0;
    int failed = 0;
    for (size_t i = 0; failed == 0 && i < count; i++)
        failed = write_part(fd, parts[i], &offset);
    int closed = fileops()->close(fd);
    if (failed == 0)
        failed = closed;
    if (failed == 0)
        failed = fileops()->rename(beside, path);
    if (failed != 0)
        fileops()->unlink(beside);
    return failed;
}
