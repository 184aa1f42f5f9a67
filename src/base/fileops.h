/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of file operations: configuration, secrets and, later, the journal go through it,
 * so that tests can put a failing or simulated disk behind it. Return values are those of the
 * system calls, errors as negative errno. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;
struct stat;

struct fileops {
    int (*open)(const char *path, int flags, mode_t mode); /* O_CLOEXEC is always added */
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *data, size_t size);
    ssize_t (*pread)(int fd, void *data, size_t size, off_t offset);
    ssize_t (*pwritev)(int fd, const struct iovec *parts, int count, off_t offset);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*fallocate)(int fd, off_t offset, off_t size);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*stat)(const char *path, struct stat *ret_stat);
};

const struct fileops *fileops(void);
/* Tests only; NULL brings the real ones back. Before lanes run. */
void fileops_replace(const struct fileops *ops);

/* Reads a whole regular file, with a terminator after its last byte that *ret_size does not count.
 * Errors: -EFBIG above max_size, -EISDIR, -EINVAL for anything else that is not a regular file,
 * else the system's. Freed with mem_free. */
int file_read_whole(const char *path, size_t max_size, char **ret_text, size_t *ret_size);
