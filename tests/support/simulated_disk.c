/* SPDX-License-Identifier: Apache-2.0 */
/* Files, sectors and directory entries, each with what a cut would leave. */
#include "tests/support/simulated_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "src/base/fileops.h"

enum {
    SECTOR_BYTES = 512,
    BLOCK_BYTES = 4096,
    NAMES_MAX = 512,
    INODES_MAX = 8192,
    HANDLES_MAX = 64,
    NAME_BYTES = 64,
    FIRST_FD = 1000
};

struct inode {
    uint8_t *now;
    uint8_t *stable;
    uint8_t *is_dirty; /* for each sector */
    size_t size;
    size_t stable_size;
    size_t capacity;
    unsigned names; /* and handles */
};

struct name {
    char text[NAME_BYTES];
    struct inode *inode;
};

struct names {
    struct name list[NAMES_MAX];
    size_t count;
};

enum change { ADDED, RENAMED, REMOVED };

struct change_of_name {
    enum change change;
    char from[NAME_BYTES];
    char to[NAME_BYTES];
    struct inode *inode;
};

static struct {
    uint64_t random;
    struct names now;
    struct names stable;
    struct change_of_name changes[NAMES_MAX];
    size_t changes_count;
    struct inode *handles[HANDLES_MAX]; /* NULL: free */
    bool is_directory[HANDLES_MAX];
    struct inode *inodes[INODES_MAX];
    size_t inodes_count;
    bool is_locked;
    uint64_t operations;
    uint64_t flushes;
    uint64_t writes;
    uint64_t fail_from;
    uint64_t fail_to;
    int fail_error;
    int read_error;
    const struct inode *bad_inode;
    size_t bad_offset;
    size_t bad_end;
    uint64_t limit;
} disk;

uint64_t disk_random(uint64_t below)
{
    disk.random ^= disk.random << 13;
    disk.random ^= disk.random >> 7;
    disk.random ^= disk.random << 17;
    return below > 0 ? disk.random % below : disk.random;
}

/* Whether this operation fails. */
static int next_operation(void)
{
    disk.operations++;
    return disk.operations >= disk.fail_from && disk.operations < disk.fail_to ? disk.fail_error
                                                                               : 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static struct name *find(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i].text, text) == 0)
            return &names->list[i];
    return NULL;
}

static void put_name(struct names *names, const char *text, struct inode *inode)
{
    struct name *name = find(names, text);
    if (name == NULL) {
        assert(names->count < NAMES_MAX);
        name = &names->list[names->count++];
        snprintf(name->text, NAME_BYTES, "%s", text);
    }
    name->inode = inode;
}

static void take_name(struct names *names, const char *text)
{
    struct name *name = find(names, text);
    if (name != NULL)
        *name = names->list[--names->count];
}

static void apply(struct names *names, const struct change_of_name *change)
{
    if (change->change == ADDED) {
        put_name(names, change->from, change->inode);
    } else if (change->change == REMOVED) {
        take_name(names, change->from);
    } else {
        take_name(names, change->from);
        put_name(names, change->to, change->inode);
    }
}

static void note_change(enum change change, const char *from, const char *to, struct inode *inode)
{
    assert(disk.changes_count < NAMES_MAX);
    struct change_of_name *noted = &disk.changes[disk.changes_count++];
    *noted = (struct change_of_name){.change = change, .inode = inode};
    snprintf(noted->from, NAME_BYTES, "%s", from);
    snprintf(noted->to, NAME_BYTES, "%s", to != NULL ? to : "");
    apply(&disk.now, noted);
}

static void reserve(struct inode *inode, size_t size)
{
    if (size <= inode->capacity)
        return;
    size_t capacity = (size + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    size_t sectors = capacity / SECTOR_BYTES;
    size_t old_sectors = inode->capacity / SECTOR_BYTES;
    inode->now = realloc(inode->now, capacity);
    inode->stable = realloc(inode->stable, capacity);
    inode->is_dirty = realloc(inode->is_dirty, sectors);
    memset(inode->now + inode->capacity, 0, capacity - inode->capacity);
    memset(inode->stable + inode->capacity, 0, capacity - inode->capacity);
    memset(inode->is_dirty + old_sectors, 0, sectors - old_sectors);
    inode->capacity = capacity;
}

static uint64_t used(void)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < disk.now.count; i++)
        bytes += disk.now.list[i].inode->size;
    return bytes;
}

static int disk_open(const char *path, int flags, mode_t mode)
{
    (void)mode;
    int handle = 0;
    while (handle < HANDLES_MAX && (disk.handles[handle] != NULL || disk.is_directory[handle]))
        handle++;
    assert(handle < HANDLES_MAX);
    if ((flags & O_DIRECTORY) != 0) {
        disk.is_directory[handle] = true;
        return FIRST_FD + handle;
    }
    if (disk.read_error != 0 && (flags & O_ACCMODE) == O_RDONLY)
        return disk.read_error;
    struct name *name = find(&disk.now, base_name(path));
    if (name == NULL && (flags & O_CREAT) == 0)
        return -ENOENT;
    if (name == NULL || (flags & O_TRUNC) != 0) {
        int failed = next_operation();
        if (failed != 0)
            return failed;
    }
    if (name == NULL) {
        assert(disk.inodes_count < sizeof(disk.inodes) / sizeof(disk.inodes[0]));
        struct inode *inode = calloc(1, sizeof(*inode));
        disk.inodes[disk.inodes_count++] = inode;
        note_change(ADDED, base_name(path), NULL, inode);
        name = find(&disk.now, base_name(path));
    } else if ((flags & O_TRUNC) != 0) {
        name->inode->size = 0;
    }
    disk.handles[handle] = name->inode;
    return FIRST_FD + handle;
}

static int disk_close(int fd)
{
    disk.handles[fd - FIRST_FD] = NULL;
    disk.is_directory[fd - FIRST_FD] = false;
    return 0;
}

static ssize_t disk_pread(int fd, void *data, size_t size, off_t offset)
{
    const struct inode *inode = disk.handles[fd - FIRST_FD];
    if (disk.read_error != 0)
        return disk.read_error;
    if ((size_t)offset >= inode->size)
        return 0;
    size_t left = inode->size - (size_t)offset;
    /* As the system does: up to there, and the error with the next read. */
    if (inode == disk.bad_inode && (size_t)offset < disk.bad_end) {
        if ((size_t)offset >= disk.bad_offset)
            return -EIO;
        left = disk.bad_offset - (size_t)offset;
    }
    size = size < left ? size : left;
    memcpy(data, inode->now + offset, size);
    return (ssize_t)size;
}

static ssize_t disk_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    struct inode *inode = disk.handles[fd - FIRST_FD];
    int failed = next_operation();
    size_t size = 0;
    disk.writes++;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    size_t end = (size_t)offset + size;
    if (failed == 0 && end > inode->size && used() + end - inode->size > disk.limit)
        failed = -ENOSPC;
    /* A failed write may have written some of it. */
    size_t written = failed == 0 ? size : disk_random(size + 1);
    if (failed == -ENOSPC)
        written = 0;
    reserve(inode, end);
    size_t at = (size_t)offset;
    for (int i = 0; i < count && written > 0; i++) {
        size_t piece = parts[i].iov_len < written ? parts[i].iov_len : written;
        memcpy(inode->now + at, parts[i].iov_base, piece);
        for (size_t sector = at / SECTOR_BYTES; sector * SECTOR_BYTES < at + piece; sector++)
            inode->is_dirty[sector] = 1;
        at += piece;
        written -= piece;
    }
    inode->size = at > inode->size ? at : inode->size;
    return failed != 0 ? failed : (ssize_t)size;
}

static int flush_file(int fd)
{
    disk.flushes++;
    int failed = next_operation();
    if (disk.is_directory[fd - FIRST_FD]) {
        if (failed != 0)
            return failed;
        disk.stable = disk.now;
        disk.changes_count = 0;
        return 0;
    }
    struct inode *inode = disk.handles[fd - FIRST_FD];
    for (size_t sector = 0; sector * SECTOR_BYTES < inode->capacity; sector++) {
        /* After a failed flush the system takes the pages for clean, whatever became of them. */
        if (inode->is_dirty[sector] != 0 && (failed == 0 || disk_random(2) == 0))
            memcpy(inode->stable + sector * SECTOR_BYTES, inode->now + sector * SECTOR_BYTES,
                   SECTOR_BYTES);
        else if (inode->is_dirty[sector] != 0)
            continue;
        inode->is_dirty[sector] = 0;
    }
    if (failed == 0)
        inode->stable_size = inode->size;
    return failed;
}

static int disk_fallocate(int fd, off_t offset, off_t size)
{
    (void)fd;
    (void)offset;
    (void)size;
    return -EOPNOTSUPP;
}

static int disk_rename(const char *from, const char *to)
{
    int failed = next_operation();
    if (failed != 0)
        return failed;
    struct name *name = find(&disk.now, base_name(from));
    if (name == NULL)
        return -ENOENT;
    note_change(RENAMED, base_name(from), base_name(to), name->inode);
    return 0;
}

static int disk_unlink(const char *path)
{
    struct name *name = find(&disk.now, base_name(path));
    if (name == NULL)
        return -ENOENT;
    note_change(REMOVED, base_name(path), NULL, name->inode);
    return 0;
}

static int disk_stat(const char *path, struct stat *ret_stat)
{
    const struct name *name = find(&disk.now, base_name(path));
    if (name == NULL)
        return -ENOENT;
    *ret_stat = (struct stat){.st_mode = S_IFREG | 0600, .st_size = (off_t)name->inode->size};
    return 0;
}

static int disk_mkdir(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    return -EEXIST;
}

static int disk_lock(int fd)
{
    (void)fd;
    if (disk.is_locked)
        return -EWOULDBLOCK;
    disk.is_locked = true;
    return 0;
}

static int disk_list(const char *path, void (*each)(const char *name, void *arg), void *arg)
{
    (void)path;
    disk_each(each, arg);
    return 0;
}

static const struct fileops ops = {
    .open = disk_open,
    .close = disk_close,
    .pread = disk_pread,
    .pwritev = disk_pwritev,
    .fdatasync = flush_file,
    .fsync = flush_file,
    .fallocate = disk_fallocate,
    .rename = disk_rename,
    .unlink = disk_unlink,
    .stat = disk_stat,
    .mkdir = disk_mkdir,
    .lock = disk_lock,
    .list = disk_list,
    .read = (ssize_t(*)(int, void *, size_t))abort,
};

void disk_start(uint64_t seed)
{
    memset(&disk, 0, sizeof(disk));
    disk.random = seed * 2 + 1;
    disk.limit = UINT64_MAX;
    for (int i = 0; i < 8; i++)
        disk_random(0);
    fileops_replace(&ops);
}

void disk_stop(void)
{
    for (size_t i = 0; i < disk.inodes_count; i++) {
        free(disk.inodes[i]->now);
        free(disk.inodes[i]->stable);
        free(disk.inodes[i]->is_dirty);
        free(disk.inodes[i]);
    }
    disk.inodes_count = 0;
    fileops_replace(NULL);
}

void disk_kill(void)
{
    memset(disk.handles, 0, sizeof(disk.handles));
    memset(disk.is_directory, 0, sizeof(disk.is_directory));
    disk.is_locked = false;
}

static void cut_file(struct inode *inode)
{
    for (size_t sector = 0; sector * SECTOR_BYTES < inode->capacity; sector++) {
        uint8_t *stable = inode->stable + sector * SECTOR_BYTES;
        if (inode->is_dirty[sector] != 0) {
            uint64_t choice = disk_random(8);
            if (choice < 4)
                memcpy(stable, inode->now + sector * SECTOR_BYTES, SECTOR_BYTES);
            else if (choice == 4)
                for (size_t i = 0; i < SECTOR_BYTES; i++)
                    stable[i] = (uint8_t)disk_random(256);
        }
        inode->is_dirty[sector] = 0;
    }
    if (inode->capacity > 0)
        memcpy(inode->now, inode->stable, inode->capacity);
    if (disk_random(2) == 0)
        inode->stable_size = inode->size;
    inode->size = inode->stable_size;
}

void disk_cut(void)
{
    disk_kill();
    for (size_t i = 0; i < disk.inodes_count; i++)
        cut_file(disk.inodes[i]);
    size_t happened = disk_random(disk.changes_count + 1);
    for (size_t i = 0; i < happened; i++)
        apply(&disk.stable, &disk.changes[i]);
    disk.now = disk.stable;
    disk.changes_count = 0;
    /* What has no name any more is gone. */
    size_t kept = 0;
    for (size_t i = 0; i < disk.inodes_count; i++) {
        struct inode *inode = disk.inodes[i];
        bool has_name = false;
        for (size_t n = 0; n < disk.now.count && !has_name; n++)
            has_name = disk.now.list[n].inode == inode;
        if (has_name) {
            disk.inodes[kept++] = inode;
            continue;
        }
        free(inode->now);
        free(inode->stable);
        free(inode->is_dirty);
        free(inode);
    }
    disk.inodes_count = kept;
}

void disk_fail(uint64_t nth, uint64_t count, int error)
{
    disk.fail_from = nth > 0 ? disk.operations + nth : UINT64_MAX;
    disk.fail_to = nth > 0 ? disk.fail_from + count : UINT64_MAX;
    disk.fail_error = error;
    if (nth == 0)
        disk.fail_to = 0;
}

void disk_fail_reads(int error)
{
    disk.read_error = error;
}

void disk_fail_blocks(const char *name, size_t offset, size_t size)
{
    const struct name *found = name != NULL ? find(&disk.now, name) : NULL;
    disk.bad_inode = found != NULL ? found->inode : NULL;
    disk.bad_offset = offset / BLOCK_BYTES * BLOCK_BYTES;
    disk.bad_end = (offset + size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

void disk_limit(uint64_t bytes)
{
    disk.limit = bytes;
}

uint64_t disk_operations(void)
{
    return disk.operations;
}

uint64_t disk_flushes(void)
{
    return disk.flushes;
}

uint64_t disk_writes(void)
{
    return disk.writes;
}

uint8_t *disk_file(const char *name, size_t *ret_size)
{
    const struct name *found = find(&disk.now, name);
    *ret_size = found != NULL ? found->inode->size : 0;
    return found != NULL ? found->inode->now : NULL;
}

uint8_t *disk_create(const char *name, size_t size)
{
    struct inode *inode = calloc(1, sizeof(*inode));
    disk.inodes[disk.inodes_count++] = inode;
    put_name(&disk.now, name, inode);
    put_name(&disk.stable, name, inode);
    reserve(inode, size);
    inode->size = inode->stable_size = size;
    return inode->now;
}

void disk_remove(const char *name)
{
    take_name(&disk.now, name);
    take_name(&disk.stable, name);
}

void disk_truncate(const char *name, size_t size)
{
    struct name *found = find(&disk.now, name);
    if (found != NULL && size < found->inode->size)
        found->inode->size = found->inode->stable_size = size;
}

void disk_each(void (*fn)(const char *name, void *arg), void *arg)
{
    for (size_t i = 0; i < disk.now.count; i++)
        fn(disk.now.list[i].text, arg);
}
