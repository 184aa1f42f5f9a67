/* SPDX-License-Identifier: Apache-2.0 */
/* The table of file operations that configuration, secrets, the journal and components with files
 * go through, so that tests can substitute a failing or simulated disk. Returns what the system
 * calls return, errors as negative errno. Any thread. */
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
    ssize_t (*writev)(int fd, const struct iovec *parts, int count);
    int (*truncate)(int fd, off_t size);
    int (*fdatasync)(int fd);
    int (*fsync)(int fd);
    int (*fallocate)(int fd, off_t offset, off_t size);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*stat)(const char *path, struct stat *ret_stat);
    int (*mkdir)(const char *path, mode_t mode);
    int (*lock)(int fd); /* flock(2), exclusive: -EWOULDBLOCK when another has it */
    /* Calls each(name, arg) for every entry but "." and "..", in any order. */
    int (*list)(const char *path, void (*each)(const char *name, void *arg), void *arg);
};

const struct fileops *fileops(void);
/* Tests only; NULL restores the real ones. Before lanes run. */
void fileops_replace(const struct fileops *ops);

/* Makes the directory and those above it, with that mode less the umask. Returns 0, also if it is
 * there, or a negative errno. */
int file_make_directories(const char *path, mode_t mode);
/* Replaces the file at path atomically by one with these parts, which is written beside it as
 * "path.part" first. Returns 0, or a negative errno, -ENAMETOOLONG for a path of PATH_MAX bytes. */
int file_replace(const char *path, mode_t mode, const struct iovec *parts, size_t count);
/* Reads a whole regular file and terminates it; *ret_size does not count the terminator. Errors:
 * -EFBIG above max_size, -EISDIR, -EINVAL for other non-regular files, else the system's. Free with
 * mem_free. */
int file_read_whole(const char *path, size_t max_size, char **ret_text, size_t *ret_size);
