/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's process, and its memory, which both sides share. */
#include "tests/crash/recorder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WRITE_BYTES_MAX = 1 << 20,
    REQUEST_BYTES_MAX = WRITE_BYTES_MAX + 4096,
    ENTRIES_MAX = 4 << 20,
    MARK_BYTES_MAX = 64,
    ROOT_NODE = FUSE_ROOT_ID,
    FILE_NODE = 2,
    CLOSE_SECONDS_MAX = 30,
};
/* Reserved, not used: pages are allocated when they are touched. */
#define LOG_BYTES_MAX  ((uint64_t)8 << 30)
#define UNDO_BYTES_MAX ((uint64_t)8 << 30)
static const char file_name[] = "disk";

struct entry {
    enum recorder_event event;
    uint32_t size;
    uint64_t offset;
    uint64_t at; /* in the log's bytes */
};

/* A sector as it was before. */
struct undo {
    uint64_t sector;
    uint8_t bytes[RECORDER_SECTOR_BYTES];
};

/* In memory that both processes map; mutex guards it. */
struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t closed;
    unsigned opened; /* handles of the file */
    uint64_t count;
    uint64_t log_bytes;
    uint64_t undo_count;
    uint64_t operations; /* writes and flushes */
    uint64_t fail_from;
    uint64_t fail_to;
    uint64_t failed;
};

struct recorder {
    struct shared *shared;
    struct entry *entries;
    uint8_t *log;
    struct undo *undo;
    uint8_t *image;
    uint64_t bytes; /* of the image */
    char directory[256];
    char path[300];
    pid_t server;
};

static void *share(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static void add_entry(struct recorder *recorder, enum recorder_event event, uint64_t offset,
                      const void *bytes, size_t size)
{
    struct shared *shared = recorder->shared;
    assert(shared->count < ENTRIES_MAX && shared->log_bytes + size <= LOG_BYTES_MAX);
    recorder->entries[shared->count++] = (struct entry){
        .event = event, .size = (uint32_t)size, .offset = offset, .at = shared->log_bytes};
    if (size > 0)
        memcpy(recorder->log + shared->log_bytes, bytes, size);
    shared->log_bytes += size;
}

static void put(struct recorder *recorder, uint64_t offset, const uint8_t *bytes, size_t size)
{
    struct shared *shared = recorder->shared;
    assert(offset % RECORDER_SECTOR_BYTES == 0 && size % RECORDER_SECTOR_BYTES == 0);
    assert(offset + size <= recorder->bytes);
    for (size_t done = 0; done < size; done += RECORDER_SECTOR_BYTES) {
        assert(shared->undo_count < UNDO_BYTES_MAX / sizeof(struct undo));
        struct undo *undo = &recorder->undo[shared->undo_count++];
        undo->sector = (offset + done) / RECORDER_SECTOR_BYTES;
        memcpy(undo->bytes, recorder->image + offset + done, RECORDER_SECTOR_BYTES);
    }
    memcpy(recorder->image + offset, bytes, size);
}

/* The server: replies to one request after the other. */
struct server {
    struct recorder *recorder;
    int fd;
};

static void reply(const struct server *server, const struct fuse_in_header *in, int error,
                  const void *data, size_t size)
{
    struct fuse_out_header out = {
        .len = (uint32_t)(sizeof(out) + size), .error = error, .unique = in->unique};
    struct iovec parts[] = {{.iov_base = &out, .iov_len = sizeof(out)},
                            {.iov_base = (void *)(uintptr_t)data, .iov_len = size}};
    /* ENOENT: the request was interrupted, and its caller no longer waits. */
    ssize_t put = writev(server->fd, parts, size > 0 ? 2 : 1);
    (void)put;
}

static struct fuse_attr attributes_of(const struct server *server, uint64_t node)
{
    bool is_file = node == FILE_NODE;
    return (struct fuse_attr){
        .ino = node,
        .size = is_file ? server->recorder->bytes : 0,
        .blocks = is_file ? server->recorder->bytes / 512 : 0,
        .mode = is_file ? S_IFREG | 0600 : S_IFDIR | 0700,
        .nlink = is_file ? 1 : 2,
        .blksize = 4096,
    };
}

static void reply_init(const struct server *server, const struct fuse_in_header *in,
                       const struct fuse_init_in *wanted)
{
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = wanted->max_readahead,
        .flags = wanted->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ),
        .max_background = 64,
        .congestion_threshold = 48,
        .max_write = WRITE_BYTES_MAX,
        .time_gran = 1,
        .max_pages = WRITE_BYTES_MAX / 4096,
    };
    reply(server, in, 0, &out, sizeof(out));
}

static void reply_lookup(const struct server *server, const struct fuse_in_header *in,
                         const char *name)
{
    struct fuse_entry_out out = {.nodeid = FILE_NODE,
                                 .entry_valid = 3600,
                                 .attr_valid = 3600,
                                 .attr = attributes_of(server, FILE_NODE)};
    bool is_found = in->nodeid == ROOT_NODE && strcmp(name, file_name) == 0;
    reply(server, in, is_found ? 0 : -ENOENT, &out, is_found ? sizeof(out) : 0);
}

/* Counts a write or a flush. Returns 0, or the error that it is to have. */
static int next_operation(struct shared *shared)
{
    shared->operations++;
    if (shared->operations < shared->fail_from || shared->operations >= shared->fail_to)
        return 0;
    shared->failed++;
    return -EIO;
}

static void reply_write(const struct server *server, const struct fuse_in_header *in,
                        const struct fuse_write_in *write)
{
    struct recorder *recorder = server->recorder;
    const uint8_t *bytes = (const uint8_t *)(write + 1);
    pthread_mutex_lock(&recorder->shared->mutex);
    int error = next_operation(recorder->shared);
    if (error == 0 && write->offset + write->size > recorder->bytes)
        error = -ENOSPC;
    if (error == 0) {
        put(recorder, write->offset, bytes, write->size);
        add_entry(recorder, RECORDER_WRITE, write->offset, bytes, write->size);
    }
    pthread_mutex_unlock(&recorder->shared->mutex);
    struct fuse_write_out out = {.size = write->size};
    reply(server, in, error, &out, error == 0 ? sizeof(out) : 0);
}

static void reply_read(const struct server *server, const struct fuse_in_header *in,
                       const struct fuse_read_in *read)
{
    const struct recorder *recorder = server->recorder;
    uint64_t left = read->offset < recorder->bytes ? recorder->bytes - read->offset : 0;
    reply(server, in, 0, recorder->image + read->offset,
          read->size < left ? read->size : (size_t)left);
}

static void reply_flush(const struct server *server, const struct fuse_in_header *in)
{
    struct recorder *recorder = server->recorder;
    pthread_mutex_lock(&recorder->shared->mutex);
    int error = next_operation(recorder->shared);
    if (error == 0)
        add_entry(recorder, RECORDER_FLUSH, 0, NULL, 0);
    pthread_mutex_unlock(&recorder->shared->mutex);
    reply(server, in, error, NULL, 0);
}

static void count_handle(const struct server *server, bool is_opened)
{
    struct shared *shared = server->recorder->shared;
    pthread_mutex_lock(&shared->mutex);
    if (is_opened)
        shared->opened++;
    else if (--shared->opened == 0)
        pthread_cond_broadcast(&shared->closed);
    pthread_mutex_unlock(&shared->mutex);
}

static void reply_request(const struct server *server, const struct fuse_in_header *in)
{
    const void *body = in + 1;
    switch (in->opcode) {
    case FUSE_INIT:
        reply_init(server, in, body);
        break;
    case FUSE_LOOKUP:
        reply_lookup(server, in, body);
        break;
    case FUSE_GETATTR:
    case FUSE_SETATTR: {
        struct fuse_attr_out out = {.attr_valid = 3600, .attr = attributes_of(server, in->nodeid)};
        reply(server, in, 0, &out, sizeof(out));
        break;
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
        /* Without FOPEN_KEEP_CACHE: each open sees the current image. */
        struct fuse_open_out out = {.fh = 0};
        if (in->opcode == FUSE_OPEN)
            count_handle(server, true);
        reply(server, in, 0, &out, sizeof(out));
        break;
    }
    case FUSE_RELEASE:
        reply(server, in, 0, NULL, 0);
        count_handle(server, false);
        break;
    case FUSE_RELEASEDIR:
        reply(server, in, 0, NULL, 0);
        break;
    case FUSE_READ:
        reply_read(server, in, body);
        break;
    case FUSE_WRITE:
        reply_write(server, in, body);
        break;
    case FUSE_FSYNC:
        reply_flush(server, in);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break; /* no reply */
    default:
        reply(server, in, -ENOSYS, NULL, 0);
    }
}

static _Noreturn void serve(struct recorder *recorder, int fd)
{
    static _Alignas(8) uint8_t request[REQUEST_BYTES_MAX];
    const struct server server = {.recorder = recorder, .fd = fd};
    for (;;) {
        ssize_t got = read(fd, request, sizeof(request));
        if (got < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
            continue;
        if (got < (ssize_t)sizeof(struct fuse_in_header))
            _exit(0); /* unmounted */
        reply_request(&server, (const struct fuse_in_header *)request);
    }
}

static bool init_shared(struct recorder *recorder)
{
    recorder->shared = share(sizeof(*recorder->shared));
    recorder->entries = share((uint64_t)ENTRIES_MAX * sizeof(struct entry));
    recorder->log = share(LOG_BYTES_MAX);
    recorder->undo = share(UNDO_BYTES_MAX);
    recorder->image = share(recorder->bytes);
    if (recorder->shared == NULL || recorder->entries == NULL || recorder->log == NULL ||
        recorder->undo == NULL || recorder->image == NULL)
        return false;
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&recorder->shared->mutex, &mutex);
    pthread_mutexattr_destroy(&mutex);
    pthread_condattr_t cond;
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&recorder->shared->closed, &cond);
    pthread_condattr_destroy(&cond);
    return true;
}

struct recorder *recorder_create(const char *directory, uint64_t bytes, const char **ret_why)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    recorder->bytes = bytes;
    snprintf(recorder->directory, sizeof(recorder->directory), "%s", directory);
    snprintf(recorder->path, sizeof(recorder->path), "%s/%s", directory, file_name);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[96];
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (fd < 0)
        *ret_why = "/dev/fuse cannot be opened";
    else if (!init_shared(recorder))
        *ret_why = "there is no address space for the log";
    else if (mount("recorder", directory, "fuse", MS_NODEV | MS_NOSUID, options) != 0)
        *ret_why = "FUSE file systems cannot be mounted";
    else
        recorder->server = fork();
    if (recorder->server == 0 && *ret_why == NULL) {
        /* Whatever becomes of the test, the disk ends with it, and its mounts with the disk. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(recorder, fd);
    }
    if (fd >= 0)
        close(fd);
    if (*ret_why != NULL) {
        free(recorder);
        return NULL;
    }
    return recorder;
}

void recorder_destroy(struct recorder *recorder)
{
    umount2(recorder->directory, 0);
    kill(recorder->server, SIGKILL);
    waitpid(recorder->server, NULL, 0);
    munmap(recorder->shared, sizeof(*recorder->shared));
    munmap(recorder->entries, (uint64_t)ENTRIES_MAX * sizeof(struct entry));
    munmap(recorder->log, LOG_BYTES_MAX);
    munmap(recorder->undo, UNDO_BYTES_MAX);
    munmap(recorder->image, recorder->bytes);
    free(recorder);
}

const char *recorder_path(const struct recorder *recorder)
{
    return recorder->path;
}

bool recorder_wait_closed(struct recorder *recorder)
{
    struct timespec end;
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += CLOSE_SECONDS_MAX;
    pthread_mutex_lock(&recorder->shared->mutex);
    while (recorder->shared->opened > 0 && failed == 0)
        failed = pthread_cond_timedwait(&recorder->shared->closed, &recorder->shared->mutex, &end);
    bool is_closed = recorder->shared->opened == 0;
    pthread_mutex_unlock(&recorder->shared->mutex);
    return is_closed;
}

void recorder_mark(struct recorder *recorder, const void *mark, size_t size)
{
    assert(size <= MARK_BYTES_MAX);
    pthread_mutex_lock(&recorder->shared->mutex);
    add_entry(recorder, RECORDER_MARK, 0, mark, size);
    pthread_mutex_unlock(&recorder->shared->mutex);
}

size_t recorder_count(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->shared->mutex);
    size_t count = recorder->shared->count;
    pthread_mutex_unlock(&recorder->shared->mutex);
    return count;
}

struct recorder_entry recorder_entry(struct recorder *recorder, size_t index)
{
    const struct entry *entry = &recorder->entries[index];
    return (struct recorder_entry){.event = entry->event,
                                   .size = entry->size,
                                   .offset = entry->offset,
                                   .bytes = recorder->log + entry->at};
}

void recorder_truncate(struct recorder *recorder, size_t count)
{
    assert(count <= recorder->shared->count);
    if (count < recorder->shared->count)
        recorder->shared->log_bytes = recorder->entries[count].at;
    recorder->shared->count = count;
}

void recorder_put(struct recorder *recorder, uint64_t offset, const uint8_t *bytes, size_t size)
{
    put(recorder, offset, bytes, size);
}

uint64_t recorder_save(struct recorder *recorder)
{
    return recorder->shared->undo_count;
}

void recorder_restore(struct recorder *recorder, uint64_t saved)
{
    assert(saved <= recorder->shared->undo_count);
    while (recorder->shared->undo_count > saved) {
        const struct undo *undo = &recorder->undo[--recorder->shared->undo_count];
        memcpy(recorder->image + undo->sector * RECORDER_SECTOR_BYTES, undo->bytes,
               RECORDER_SECTOR_BYTES);
    }
}

void recorder_settle(struct recorder *recorder)
{
    recorder->shared->undo_count = 0;
}

bool recorder_export(struct recorder *recorder, const char *path)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    bool is_written = fwrite(recorder->image, 1, recorder->bytes, file) == recorder->bytes;
    return fclose(file) == 0 && is_written;
}

void recorder_fail(struct recorder *recorder, uint64_t nth, uint64_t count)
{
    struct shared *shared = recorder->shared;
    pthread_mutex_lock(&shared->mutex);
    shared->fail_from = nth > 0 ? shared->operations + nth : 0;
    shared->fail_to = nth > 0 && count > UINT64_MAX - shared->fail_from ? UINT64_MAX
                      : nth > 0                                         ? shared->fail_from + count
                                                                        : 0;
    shared->failed = 0;
    pthread_mutex_unlock(&shared->mutex);
}

uint64_t recorder_failed(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->shared->mutex);
    uint64_t failed = recorder->shared->failed;
    pthread_mutex_unlock(&recorder->shared->mutex);
    return failed;
}
