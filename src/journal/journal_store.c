/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a journal: commit, prepare, free, recover, read back. Threads: see the header; mutex
 * guards what several of them use and is never held across a file operation. */
#include "src/journal/journal_store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/journal/journal_ages.h"

enum {
    KEY_BYTES = 12, /* the key and its checksum, in the file "key" */
    ZEROS_BYTES = 1 << 20,
    IOV_PARTS_MAX = 1024,
    DONE_BYTES = 40, /* exporter, first, end, items, bytes */
    DONES_MAX = 4096,
    /* Files kept to be used again, besides the next segment; for a moment there may be more. */
    FREE_FILES_MAX = 1,
    FREE_FILES_ROOM = 8,
    READ_BYTES = 64 * 1024,
    CHECKPOINT_HEAD_BYTES = 16, /* previous_end and first_id, before the progress */
};
/* After a failure records are refused for so long before the disk is tried again. */
#define FAILURE_REST_NS ((uint64_t)1 * NS_PER_S)
/* What the disk cannot read is tried again for so long, in each segment, before it counts as
 * damaged. */
#define READ_PATIENCE_NS ((uint64_t)30 * NS_PER_S)

static uint8_t zeros[ZEROS_BYTES];

struct journal_segment {
    uint64_t number;
    uint64_t bytes;    /* of the file */
    uint64_t end;      /* nothing was committed from this offset on */
    uint64_t end_id;   /* its records have ids below; UINT64_MAX while it is active */
    bool is_end_known; /* end_id is exact: otherwise the next segment's records show what is lost */
    bool is_newest;    /* when the store was opened: no other one tells what it should end with */
    bool is_foreign;   /* of a version that we cannot read: left alone */
    uint32_t version;  /* in its header; 0: it has none of its own number */
};

struct journal_done {
    uint64_t exporter;
    uint64_t first;
    uint64_t end;
    struct journal_amount amount;
};

struct group;

struct journal_store {
    char *directory;
    uint64_t segment_bytes;
    struct budget *disk;
    bool is_synced;
    bool is_read_only;
    uint64_t oldest_id; /* no checkpoint says what was finished: the first record; constant */
    bool has_key_file;  /* sound, when the store was opened */
    bool has_changed;   /* read only: by another process, while the store was opened */
    int directory_fd;   /* locked while the store is open, unless it is read only */
    uint64_t key;
    pthread_mutex_t preparing;        /* held while a segment is prepared; before mutex */
    pthread_mutex_t mutex;            /* guards everything from here to the next comment */
    struct journal_segment *segments; /* written, oldest first */
    size_t segments_count;
    size_t segments_capacity;
    /* Being written; newer than all others. Only the committing thread changes it and the next, so
     * it reads them without the mutex. */
    struct journal_segment active;
    bool has_active;
    bool has_next;
    struct journal_segment next; /* prepared */
    uint64_t next_number;        /* of the segment after that */
    struct journal_segment free_files[FREE_FILES_ROOM];
    size_t free_count;
    struct journal_progress progress;
    struct journal_ages ages;
    struct journal_amount unclaimed; /* found by a start before any checkpoint said who owes it */
    uint64_t written_records;
    struct journal_amount written;
    uint64_t written_disk_bytes;
    struct journal_done dones[DONES_MAX]; /* not written yet */
    size_t dones_count;
    bool has_lost_dones; /* only a checkpoint can still tell */
    uint64_t next_id;
    uint64_t durable_id; /* records below are committed */
    /* Every exporter's progress beyond this is on the disk; segments below may be freed. Otherwise
     * a start after a power cut would miss them. */
    uint64_t stable_low;
    int last_error; /* of the last commit */
    uint64_t closed_until_ns;
    uint64_t damaged_id;        /* losses of records below are reported */
    struct journal_damage tail; /* constant */
    /* Committing thread. */
    int active_fd;
    struct group *group;
    struct histogram flushes; /* nanoseconds */
};

const uint64_t journal_flush_bounds[JOURNAL_FLUSH_BOUNDS] = {
    100000,   250000,    500000,    1000000,   2500000,    5000000,    10000000,   25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000};

static void path_of(const struct journal_store *store, char path[static PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", store->directory, name);
}

static void segment_path(const struct journal_store *store, char path[static PATH_MAX],
                         uint64_t number)
{
    char name[JOURNAL_NAME_BYTES];
    journal_segment_name(name, number);
    path_of(store, path, name);
}

static int sync_directory(const struct journal_store *store)
{
    return store->is_synced ? fileops()->fsync(store->directory_fd) : 0;
}

/* Whether this says nothing about the file: it can be opened once the process may, or there is room
 * again. */
static bool is_passing(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EACCES ||
           error == -EPERM || error == -EROFS;
}

/* Writes it all, however many calls that takes. */
static int write_all(int fd, struct iovec *parts, int count, uint64_t offset)
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

/* A group on its way to the active segment. */
struct group {
    struct journal_store *store;
    uint64_t written; /* the offset up to which it was written */
    uint64_t offset;  /* of the next byte */
    int parts_count;
    int error;
    uint64_t low; /* of the progress that is known once the group is on the disk; 0: of none */
    struct journal_amount amount; /* of its records so far */
    size_t heads_count;
    struct iovec parts[IOV_PARTS_MAX];
    uint8_t heads[JOURNAL_GROUP_RECORDS_MAX + 2][JOURNAL_HEAD_BYTES];
};

static void group_flush(struct group *group)
{
    if (group->error == 0 && group->parts_count > 0)
        group->error =
            write_all(group->store->active_fd, group->parts, group->parts_count, group->written);
    group->parts_count = 0;
    group->written = group->offset;
}

/* data stays as it is until the group is written. */
static void group_put(struct group *group, const void *data, size_t size)
{
    if (size == 0)
        return;
    if (group->parts_count == IOV_PARTS_MAX)
        group_flush(group);
    group->parts[group->parts_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    group->offset += size;
}

static void group_pad(struct group *group, size_t multiple)
{
    size_t over = group->offset % multiple;
    if (over > 0)
        group_put(group, zeros, multiple - over);
}

/* The head goes in front of what the caller puts next. */
static void group_put_head(struct group *group, const struct journal_head *head)
{
    const struct journal_place place = {
        .key = group->store->key, .segment = group->store->active.number, .offset = group->offset};
    uint8_t *bytes = group->heads[group->heads_count++];
    journal_head_write(bytes, &place, head);
    group_put(group, bytes, JOURNAL_HEAD_BYTES);
}

static void group_put_whole(struct group *group, enum journal_record_type type,
                            struct slice payload)
{
    group_put_head(group, &(struct journal_head){.type = type,
                                                 .bytes = (uint32_t)payload.size,
                                                 .crc = journal_crc(0, payload),
                                                 .wall_ns = clock_wall_ns()});
    group_put(group, payload.data, payload.size);
    group_pad(group, JOURNAL_ALIGN_BYTES);
}

static void group_put_record(struct group *group, const struct journal_record *record)
{
    const struct batch *batch = record->batch;
    uint32_t crc = journal_crc(0, record->meta);
    for (size_t i = 0; i < batch->parts_count; i++)
        crc = journal_crc(crc, batch->parts[i].bytes);
    group_put_head(group, &(struct journal_head){
                              .type = JOURNAL_DATA,
                              .signal = (uint8_t)batch->signal,
                              .meta_bytes = (uint16_t)record->meta.size,
                              .bytes = (uint32_t)(record->meta.size + batch->bytes),
                              .crc = crc,
                              .id = record->id,
                              .wall_ns = record->wall_ns,
                              .items = batch->items,
                          });
    group_put(group, record->meta.data, record->meta.size);
    for (size_t i = 0; i < batch->parts_count; i++)
        group_put(group, batch->parts[i].bytes.data, batch->parts[i].bytes.size);
    group_pad(group, JOURNAL_ALIGN_BYTES);
}

static uint64_t record_bytes(const struct journal_record *record)
{
    return journal_record_bytes(record->meta.size + record->batch->bytes);
}

/* Makes a file of zeros under a name that no start looks at and that the next call uses again, then
 * gives it its own. */
static int create_file(struct journal_store *store, uint64_t number, uint64_t bytes)
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    path_of(store, path, "next.new");
    segment_path(store, target, number);
    int fd = fileops()->open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fd;
    int failed = store->is_synced ? -EOPNOTSUPP : fileops()->fallocate(fd, 0, (off_t)bytes);
    if (failed == -EOPNOTSUPP) {
        failed = 0;
        for (uint64_t offset = 0; failed == 0 && offset < bytes; offset += ZEROS_BYTES) {
            uint64_t left = bytes - offset;
            struct iovec part = {.iov_base = zeros,
                                 .iov_len = left < ZEROS_BYTES ? left : ZEROS_BYTES};
            failed = write_all(fd, &part, 1, offset);
        }
        if (failed == 0 && store->is_synced)
            failed = fileops()->fsync(fd);
    }
    fileops()->close(fd);
    if (failed == 0)
        failed = fileops()->rename(path, target);
    if (failed != 0)
        fileops()->unlink(path);
    return failed;
}

static void unlink_file(struct journal_store *store, const struct journal_segment *file)
{
    char path[PATH_MAX];
    segment_path(store, path, file->number);
    fileops()->unlink(path);
    budget_return(store->disk, file->bytes);
}

/* Makes the next segment, of at least that size, from a freed file or a new one. Caller holds
 * preparing. */
static int prepare(struct journal_store *store, uint64_t bytes_min)
{
    struct journal_segment file = {.bytes = 0};
    struct journal_segment surplus = {.bytes = 0};
    int failed = 0;
    pthread_mutex_lock(&store->mutex);
    bool is_ready = store->has_next && store->next.bytes >= bytes_min;
    if (!is_ready && store->has_next) {
        if (store->free_count < FREE_FILES_ROOM)
            store->free_files[store->free_count++] = store->next;
        else
            surplus = store->next;
        store->has_next = false;
    }
    uint64_t number = store->next_number;
    for (size_t i = 0; !is_ready && i < store->free_count && file.bytes == 0; i++)
        if (store->free_files[i].bytes >= bytes_min) {
            file = store->free_files[i];
            store->free_files[i] = store->free_files[--store->free_count];
        }
    pthread_mutex_unlock(&store->mutex);
    if (is_ready)
        return 0;
    if (surplus.bytes > 0)
        unlink_file(store, &surplus);
    uint64_t bytes = bytes_min > store->segment_bytes ? bytes_min : store->segment_bytes;
    bytes = (bytes + JOURNAL_BLOCK_BYTES - 1) / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
    if (file.bytes > 0) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        segment_path(store, from, file.number);
        segment_path(store, to, number);
        failed = fileops()->rename(from, to);
        if (failed != 0)
            budget_return(store->disk, file.bytes);
        bytes = file.bytes;
    } else if (!budget_try_take(store->disk, bytes)) {
        failed = -EDQUOT;
    } else {
        failed = create_file(store, number, bytes);
        if (failed != 0)
            budget_return(store->disk, bytes);
    }
    const struct journal_segment next = {.number = number, .bytes = bytes};
    if (failed == 0) {
        failed = sync_directory(store);
        if (failed != 0)
            unlink_file(store, &next);
    }
    pthread_mutex_lock(&store->mutex);
    if (failed == 0) {
        store->next = next;
        store->has_next = true;
        store->next_number = number + 1;
        store->closed_until_ns = 0;
    }
    pthread_mutex_unlock(&store->mutex);
    return failed;
}

/* Ends the active segment. */
static void end_active(struct journal_store *store)
{
    if (!store->has_active)
        return;
    fileops()->close(store->active_fd);
    pthread_mutex_lock(&store->mutex);
    store->active.end_id = store->durable_id;
    if (store->segments_count == store->segments_capacity) {
        store->segments_capacity = 2 * store->segments_capacity + 8;
        store->segments =
            mem_resize(store->segments, store->segments_capacity * sizeof(store->segments[0]));
    }
    store->segments[store->segments_count++] = store->active;
    store->has_active = false;
    pthread_mutex_unlock(&store->mutex);
}

/* Begins the next segment; its header and checkpoint lead the group. */
static int begin_segment(struct journal_store *store, uint64_t bytes_min)
{
    end_active(store);
    pthread_mutex_lock(&store->preparing);
    int failed = prepare(store, bytes_min);
    pthread_mutex_unlock(&store->preparing);
    if (failed != 0)
        return failed;
    char path[PATH_MAX];
    segment_path(store, path, store->next.number);
    int fd = fileops()->open(path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0 && !is_passing(fd)) {
        /* It is of no use any more: the next try makes another. */
        pthread_mutex_lock(&store->mutex);
        const struct journal_segment useless = store->next;
        store->has_next = false;
        pthread_mutex_unlock(&store->mutex);
        unlink_file(store, &useless);
    }
    if (fd < 0)
        return fd;
    store->active_fd = fd;
    pthread_mutex_lock(&store->mutex);
    store->next.end = 0;
    store->next.end_id = UINT64_MAX;
    store->next.is_end_known = true;
    store->active = store->next;
    store->has_active = true;
    store->has_next = false;
    pthread_mutex_unlock(&store->mutex);
    return 0;
}

static uint64_t checkpoint_bytes_max(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    size_t bytes = CHECKPOINT_HEAD_BYTES + journal_progress_bytes_max(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    return journal_record_bytes(bytes);
}

/* What exporters have finished, all of it. Returns the payload, to free when the group is written.
 */
static uint8_t *put_checkpoint(struct group *group)
{
    struct journal_store *store = group->store;
    pthread_mutex_lock(&store->mutex);
    size_t bytes = CHECKPOINT_HEAD_BYTES + journal_progress_bytes(&store->progress);
    uint8_t *payload = mem_alloc(bytes);
    journal_put_u64(payload, store->durable_id);
    journal_put_u64(payload + 8, store->next_id);
    /* As it is once the group is on the disk. */
    struct journal_progress progress = store->progress;
    journal_progress_owe(&progress, store->next_id, group->amount);
    journal_progress_write(&progress, payload + CHECKPOINT_HEAD_BYTES);
    store->dones_count = 0;
    store->has_lost_dones = false;
    group->low = journal_progress_low(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    group_put_whole(group, JOURNAL_CHECKPOINT, slice_of(payload, bytes));
    return payload;
}

/* What exporters have finished since the last group, as far as there is room. NULL: nothing. Free
 * it when the group is written. */
static uint8_t *put_dones(struct group *group, uint64_t bytes_max)
{
    struct journal_store *store = group->store;
    uint8_t *payload = NULL;
    size_t count = 0;
    pthread_mutex_lock(&store->mutex);
    bool has_lost = store->has_lost_dones;
    if (!has_lost && store->dones_count > 0 && bytes_max >= journal_record_bytes(DONE_BYTES)) {
        count = (bytes_max - JOURNAL_HEAD_BYTES) / DONE_BYTES;
        count = count < store->dones_count ? count : store->dones_count;
        payload = mem_alloc(count * DONE_BYTES);
        for (size_t i = 0; i < count; i++) {
            const struct journal_done *done = &store->dones[i];
            journal_put_u64(payload + i * DONE_BYTES, done->exporter);
            journal_put_u64(payload + i * DONE_BYTES + 8, done->first);
            journal_put_u64(payload + i * DONE_BYTES + 16, done->end);
            journal_put_u64(payload + i * DONE_BYTES + 24, done->amount.items);
            journal_put_u64(payload + i * DONE_BYTES + 32, done->amount.bytes);
        }
        store->dones_count -= count;
        memmove(store->dones, store->dones + count, store->dones_count * sizeof(store->dones[0]));
    }
    if (!has_lost && store->dones_count == 0)
        group->low = journal_progress_low(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    if (has_lost && bytes_max >= checkpoint_bytes_max(store))
        return put_checkpoint(group);
    if (payload != NULL)
        group_put_whole(group, JOURNAL_DONE, slice_of(payload, count * DONE_BYTES));
    return payload;
}

/* Whether the oldest segment can be freed once this low mark is on the disk. */
static bool frees_segment(struct journal_store *store, uint64_t low)
{
    pthread_mutex_lock(&store->mutex);
    bool frees = store->segments_count > 0 && store->segments[0].end_id <= low &&
                 store->segments[0].end_id > store->stable_low;
    pthread_mutex_unlock(&store->mutex);
    return frees;
}

/* Writes as many records as fit into the active segment, from the first one on, which does. Returns
 * the first that is left. */
static int write_group(struct journal_store *store, struct group *group, bool is_first,
                       struct journal_record *records, struct journal_record **ret_left)
{
    uint8_t block[JOURNAL_BLOCK_BYTES];
    uint64_t end = store->active.bytes;
    uint64_t id = store->next_id;
    size_t count = 0;
    /* Not its arrays, which are large. */
    group->store = store;
    group->offset = group->written = is_first ? 0 : store->active.end;
    group->parts_count = 0;
    group->heads_count = 0;
    group->error = 0;
    group->low = 0;
    group->amount = (struct journal_amount){0};
    uint64_t start = group->offset;
    uint8_t *checkpoint = NULL;
    if (is_first) {
        journal_segment_header_write(block, &(struct journal_segment_header){
                                                .version = JOURNAL_VERSION,
                                                .key = store->key,
                                                .number = store->active.number,
                                                .bytes = end,
                                            });
        group_put(group, block, JOURNAL_BLOCK_BYTES);
        checkpoint = put_checkpoint(group);
    }
    struct journal_record *record = records;
    for (; record != NULL && count < JOURNAL_GROUP_RECORDS_MAX; record = record->next, count++) {
        uint64_t bytes = record_bytes(record);
        if (group->offset + bytes > end ||
            (count > 0 && group->offset - start + bytes > JOURNAL_GROUP_BYTES_MAX))
            break;
        record->id = id++;
        group_put_record(group, record);
        group->amount.items += record->batch->items;
        group->amount.bytes += record->batch->bytes;
    }
    uint8_t *dones = put_dones(group, end - group->offset);
    group_pad(group, JOURNAL_BLOCK_BYTES);
    group_flush(group);
    int failed = group->error;
    /* What exporters have finished may get lost, which makes them get it twice. */
    bool is_flushed = count > 0 || is_first || frees_segment(store, group->low);
    if (failed == 0 && store->is_synced && is_flushed) {
        uint64_t start_ns = clock_now_ns();
        failed = fileops()->fdatasync(store->active_fd);
        histogram_record(&store->flushes, journal_flush_bounds, JOURNAL_FLUSH_BOUNDS,
                         clock_now_ns() - start_ns);
    }
    mem_free(checkpoint);
    mem_free(dones);
    if (failed != 0)
        return failed;
    pthread_mutex_lock(&store->mutex);
    store->active.end = group->offset;
    if (count > 0) {
        journal_progress_owe(&store->progress, store->next_id, group->amount);
        journal_ages_forget(&store->ages, journal_progress_low(&store->progress));
        journal_ages_note(&store->ages, store->next_id, records->wall_ns);
    }
    store->written_records += count;
    store->written.items += group->amount.items;
    store->written.bytes += group->amount.bytes;
    store->written_disk_bytes += group->offset - start;
    store->next_id = store->durable_id = id;
    store->last_error = 0;
    if (is_flushed && group->low > store->stable_low)
        store->stable_low = group->low;
    pthread_mutex_unlock(&store->mutex);
    *ret_left = record;
    return 0;
}

struct journal_record *journal_store_commit(struct journal_store *store,
                                            struct journal_record *records)
{
    pthread_mutex_lock(&store->mutex);
    bool is_closed = clock_now_ns() < store->closed_until_ns;
    int failed = is_closed ? store->last_error : 0;
    pthread_mutex_unlock(&store->mutex);
    for (unsigned attempts = 0; !is_closed && attempts < 2; attempts++) {
        uint64_t bytes = records != NULL ? record_bytes(records) : journal_record_bytes(DONE_BYTES);
        bool is_first = !store->has_active || store->active.end + bytes > store->active.bytes;
        if (is_first)
            failed =
                begin_segment(store, JOURNAL_BLOCK_BYTES + checkpoint_bytes_max(store) + bytes);
        if (is_first && failed != 0)
            break;
        struct journal_record *left = NULL;
        failed = write_group(store, store->group, is_first, records, &left);
        if (failed == 0) {
            for (struct journal_record *record = records; record != left; record = record->next)
                record->error = 0;
            return left;
        }
        /* What the kernel says of these pages from now on is worth nothing. */
        end_active(store);
    }
    /* The ids may be on the disk and are not used again: the next segment says where it goes on. */
    uint64_t count = 0;
    for (struct journal_record *record = records; record != NULL; record = record->next, count++)
        record->error = failed;
    pthread_mutex_lock(&store->mutex);
    store->has_lost_dones |= records == NULL;
    if (!is_closed) {
        uint64_t first = store->next_id;
        store->next_id += count;
        /* An exporter that is further behind passes over them when it reads on. */
        for (size_t i = 0; i < store->progress.count; i++)
            if (journal_progress_has_room(&store->progress, i, store->next_id))
                journal_progress_done(&store->progress, i, first, store->next_id);
        store->last_error = failed;
        store->closed_until_ns = clock_now_ns() + FAILURE_REST_NS;
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

bool journal_store_has_news(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool has_news = store->dones_count > 0 || store->has_lost_dones;
    pthread_mutex_unlock(&store->mutex);
    return has_news;
}

/* Caller holds mutex. */
static void apply(struct journal_store *store, const struct journal_done *done)
{
    const struct journal_exporter *exporter = &store->progress.exporters[done->exporter];
    struct journal_amount amount = done->amount;
    journal_progress_done(&store->progress, done->exporter, done->first, done->end);
    /* Nothing is left, whatever was lost to damage. */
    if (exporter->low >= store->durable_id)
        amount = exporter->owed;
    journal_progress_pay(&store->progress, done->exporter, amount);
}

static void note_done(struct journal_store *store, const struct journal_done *done)
{
    pthread_mutex_lock(&store->mutex);
    apply(store, done);
    struct journal_done *last =
        store->dones_count > 0 ? &store->dones[store->dones_count - 1] : NULL;
    if (last != NULL && last->exporter == done->exporter && last->end == done->first) {
        last->end = done->end;
        last->amount.items += done->amount.items;
        last->amount.bytes += done->amount.bytes;
    } else if (store->dones_count < DONES_MAX) {
        store->dones[store->dones_count++] = *done;
    } else {
        store->has_lost_dones = true;
    }
    pthread_mutex_unlock(&store->mutex);
}

void journal_store_done(struct journal_store *store, size_t exporter, uint64_t first, uint64_t end)
{
    note_done(store, &(struct journal_done){.exporter = exporter, .first = first, .end = end});
}

void journal_store_pay(struct journal_store *store, size_t exporter, uint64_t id,
                       struct journal_amount amount)
{
    note_done(store, &(struct journal_done){
                         .exporter = exporter, .first = id, .end = id + 1, .amount = amount});
}

bool journal_store_is_done(struct journal_store *store, size_t exporter, uint64_t id)
{
    pthread_mutex_lock(&store->mutex);
    bool is_done = journal_progress_is_done(&store->progress, exporter, id);
    pthread_mutex_unlock(&store->mutex);
    return is_done;
}

bool journal_store_has_window(struct journal_store *store, size_t exporter, uint64_t id)
{
    pthread_mutex_lock(&store->mutex);
    bool has_room = journal_progress_has_room(&store->progress, exporter, id + 1);
    pthread_mutex_unlock(&store->mutex);
    return has_room;
}

uint64_t journal_store_low(struct journal_store *store, size_t exporter)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t low = store->progress.exporters[exporter].low;
    pthread_mutex_unlock(&store->mutex);
    return low;
}

struct journal_figures journal_store_figures(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t low = journal_progress_low(&store->progress);
    struct journal_figures figures = {.next_id = store->durable_id,
                                      .low_id = low < store->durable_id ? low : store->durable_id,
                                      .written_records = store->written_records,
                                      .written = store->written,
                                      .written_disk_bytes = store->written_disk_bytes};
    if (figures.low_id < figures.next_id)
        figures.oldest_wall_ns = journal_ages_find(&store->ages, low);
    for (size_t i = 0; i < store->segments_count; i++)
        figures.bytes += store->segments[i].bytes;
    for (size_t i = 0; i < store->free_count; i++)
        figures.bytes += store->free_files[i].bytes;
    figures.bytes += store->has_next ? store->next.bytes : 0;
    figures.bytes += store->has_active ? store->active.bytes : 0;
    pthread_mutex_unlock(&store->mutex);
    return figures;
}

bool journal_store_backlog(struct journal_store *store, size_t exporter,
                           struct journal_backlog *ret_backlog)
{
    pthread_mutex_lock(&store->mutex);
    bool is_there = exporter < store->progress.count;
    if (is_there) {
        const struct journal_exporter *known = &store->progress.exporters[exporter];
        *ret_backlog = (struct journal_backlog){
            .name = known->name,
            .is_configured = known->is_configured,
            .records = journal_progress_backlog(&store->progress, exporter, store->next_id),
            .amount = known->owed,
        };
        if (ret_backlog->records > 0)
            ret_backlog->oldest_wall_ns = journal_ages_find(&store->ages, known->low);
    }
    pthread_mutex_unlock(&store->mutex);
    return is_there;
}

const struct histogram *journal_store_flushes(const struct journal_store *store)
{
    return &store->flushes;
}

const char *journal_store_directory(const struct journal_store *store)
{
    return store->directory;
}

/* Moves segments that no exporter needs to the free files. Without room for a note that they are
 * not needed, they are freed nevertheless: they may be missed after a power cut, but not the
 * records. */
static void free_segments(struct journal_store *store, bool is_full)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t low = is_full ? journal_progress_low(&store->progress) : store->stable_low;
    size_t count = 0;
    while (count < store->segments_count && store->free_count < FREE_FILES_ROOM &&
           !store->segments[count].is_foreign && store->segments[count].end_id <= low)
        store->free_files[store->free_count++] = store->segments[count++];
    store->segments_count -= count;
    memmove(store->segments, store->segments + count,
            store->segments_count * sizeof(store->segments[0]));
    pthread_mutex_unlock(&store->mutex);
}

/* Caller holds mutex. */
static bool needs_segment(const struct journal_store *store)
{
    return !store->has_next && (!store->has_active || store->active.end > store->active.bytes / 2);
}

bool journal_store_needs_keeping(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool frees = store->segments_count > 0 && store->segments[0].end_id <= store->stable_low;
    bool is_needed = frees || needs_segment(store);
    pthread_mutex_unlock(&store->mutex);
    return is_needed;
}

int journal_store_keep(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool is_full = store->last_error == -ENOSPC || store->last_error == -EDQUOT;
    pthread_mutex_unlock(&store->mutex);
    free_segments(store, is_full);
    pthread_mutex_lock(&store->mutex);
    bool is_due = needs_segment(store);
    pthread_mutex_unlock(&store->mutex);
    int failed = 0;
    if (is_due) {
        pthread_mutex_lock(&store->preparing);
        failed = prepare(store, store->segment_bytes);
        pthread_mutex_unlock(&store->preparing);
    }
    for (;;) {
        struct journal_segment file = {.bytes = 0};
        pthread_mutex_lock(&store->mutex);
        if (store->free_count > FREE_FILES_MAX)
            file = store->free_files[--store->free_count];
        pthread_mutex_unlock(&store->mutex);
        if (file.bytes == 0)
            break;
        unlink_file(store, &file);
        free_segments(store, false);
    }
    return failed;
}

/* Reading. A window of the file at hand; payloads of requests go straight into their buffers. */
struct journal_reader {
    struct journal_store *store;
    journal_damage_fn on_damage;
    void *arg;
    journal_skips_fn skips; /* NULL: none */
    void *skips_arg;
    uint64_t position; /* the id to read next */
    bool is_scan;      /* recovery: requests are not read, nothing is reported */
    enum journal_depth depth;
    bool has_segment;
    struct journal_segment segment;
    int fd;
    uint64_t offset;
    bool is_after_record;   /* a record, or the start of a group, ended at offset */
    bool is_header_checked; /* of this segment */
    uint64_t damage_offset; /* where what can be read ended; 0: nowhere */
    uint64_t torn_offset; /* scan: of the last head that did not verify; 0: none since a request */
    int failed;           /* why the last read failed; 0: it did not, or the file is short */
    bool is_waiting;      /* for that to pass */
    uint64_t failing_segment;  /* the last of which something could not be read */
    uint64_t failing_until_ns; /* then that counts as damaged */
    uint64_t window_offset;
    size_t window_bytes;
    uint8_t window[READ_BYTES];
};

/* Returns how many bytes it got; *ret_failed says why they are not more, 0: the file ends there. */
static size_t read_all(int fd, uint8_t *to, size_t size, uint64_t offset, int *ret_failed)
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

/* What cannot be read may be there nevertheless. Whether to try again later, instead of taking it
 * for damaged and going on without it. */
static bool waits_for(struct journal_reader *reader, int failed)
{
    /* A scan keeps the first. */
    reader->failed = reader->is_scan && reader->failed != 0 ? reader->failed : failed;
    reader->is_waiting = false;
    if (failed == 0 || failed == -ENOENT || reader->is_scan || reader->store->is_read_only)
        return false;
    uint64_t now_ns = clock_now_ns();
    if (reader->failing_segment != reader->segment.number) {
        reader->failing_segment = reader->segment.number;
        reader->failing_until_ns = now_ns + READ_PATIENCE_NS;
    }
    reader->is_waiting = is_passing(failed) || now_ns < reader->failing_until_ns;
    return reader->is_waiting;
}

/* So many bytes at an offset of the file at hand; NULL: they cannot be read. */
static const uint8_t *look(struct journal_reader *reader, uint64_t offset, size_t size)
{
    assert(size <= READ_BYTES);
    if (offset < reader->window_offset ||
        offset + size > reader->window_offset + reader->window_bytes) {
        uint64_t left = reader->segment.end > offset ? reader->segment.end - offset : 0;
        /* Far from what was read last, only a head is wanted. */
        uint64_t window_end = reader->window_offset + reader->window_bytes;
        bool is_near = offset >= reader->window_offset && offset <= window_end + READ_BYTES;
        size_t most = is_near || size > JOURNAL_BLOCK_BYTES ? READ_BYTES : JOURNAL_BLOCK_BYTES;
        size_t wanted = left < most ? (size_t)left : most;
        int failed = 0;
        reader->window_offset = offset;
        reader->window_bytes =
            reader->fd >= 0 ? read_all(reader->fd, reader->window, wanted, offset, &failed) : 0;
        if (reader->window_bytes < size) {
            waits_for(reader, failed);
            return NULL;
        }
    }
    return reader->window + (offset - reader->window_offset);
}

/* The next segment, or the one at hand as far as it is committed by now. False: there is none. */
static bool next_segment(struct journal_reader *reader)
{
    struct journal_store *store = reader->store;
    bool is_found = false;
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < store->segments_count + store->has_active && !is_found; i++) {
        const struct journal_segment *segment =
            i < store->segments_count ? &store->segments[i] : &store->active;
        if (segment->is_foreign || (!reader->is_scan && segment->end_id <= reader->position))
            continue;
        if (reader->has_segment &&
            (segment->number < reader->segment.number ||
             (segment->number == reader->segment.number && segment->end <= reader->offset)))
            continue;
        bool is_same = reader->has_segment && segment->number == reader->segment.number;
        if (!is_same) {
            if (reader->fd >= 0)
                fileops()->close(reader->fd);
            reader->fd = -1;
            reader->offset = 0;
        }
        reader->segment = *segment;
        if (segment->end_id == UINT64_MAX)
            reader->segment.end_id = store->durable_id;
        is_found = true;
    }
    pthread_mutex_unlock(&store->mutex);
    if (!is_found)
        return false;
    reader->has_segment = true;
    /* The window may hold what was not committed yet. */
    reader->window_bytes = 0;
    if (reader->fd < 0) {
        reader->offset = JOURNAL_BLOCK_BYTES;
        reader->is_after_record = true;
        reader->is_header_checked = false;
        reader->damage_offset = 0;
        reader->torn_offset = 0;
    }
    return true;
}

/* Opens the segment at hand if need be. False: it cannot be opened for now. */
static bool open_at_hand(struct journal_reader *reader)
{
    char path[PATH_MAX];
    if (reader->fd >= 0)
        return true;
    segment_path(reader->store, path, reader->segment.number);
    reader->fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    return reader->fd >= 0 || !waits_for(reader, reader->fd);
}

/* Another process has freed the segment at hand since the store was opened. */
static bool is_gone(const struct journal_reader *reader)
{
    char path[PATH_MAX];
    struct stat info;
    segment_path(reader->store, path, reader->segment.number);
    return reader->store->is_read_only && fileops()->stat(path, &info) == -ENOENT;
}

/* Damage that costs no record. */
static void report_spoilt(struct journal_reader *reader, uint64_t offset, bool is_end)
{
    const struct journal_damage damage = {.segment = reader->segment.number,
                                          .offset = offset,
                                          .first = reader->position,
                                          .is_end = is_end};
    if (reader->depth == JOURNAL_CHECKS && !is_gone(reader))
        reader->on_damage(&damage, reader->arg);
}

/* Passes over ids below end whose segment is not there because nobody needs them: it was freed, and
 * files of freed segments go away in any order. If that happened while the store was opened, what
 * says that nobody needs them may not have been seen. */
static void pass_freed(struct journal_reader *reader, uint64_t end)
{
    struct journal_store *store = reader->store;
    pthread_mutex_lock(&store->mutex);
    uint64_t low = store->has_changed ? end : journal_progress_low(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    low = low < end ? low : end;
    reader->position = low > reader->position ? low : reader->position;
}

/* The ids from the position to end are not there. */
static void report_loss(struct journal_reader *reader, uint64_t end)
{
    struct journal_store *store = reader->store;
    assert(end > reader->position);
    bool is_absent = reader->damage_offset == 0; /* in no segment that is there */
    if (is_absent)
        pass_freed(reader, end);
    if (reader->position == end)
        return;
    const struct journal_damage damage = {
        .segment = reader->segment.number,
        .offset = reader->damage_offset > 0 ? reader->damage_offset : reader->offset,
        .first = reader->position,
        .records = end - reader->position,
    };
    reader->position = end;
    pthread_mutex_lock(&store->mutex);
    bool is_known = end <= store->damaged_id;
    if (!is_known)
        store->damaged_id = end;
    pthread_mutex_unlock(&store->mutex);
    if (!is_known && !reader->is_scan && !is_gone(reader))
        reader->on_damage(&damage, reader->arg);
}

/* Finds the next head at or behind the offset. False: there is none in this segment. Behind a
 * record a head or the padding of its group follows; only where neither is found, which is damage
 * if there is a head further behind, every place is tried. */
static bool find_head(struct journal_reader *reader, struct journal_head *ret_head)
{
    struct journal_place place = {.key = reader->store->key, .segment = reader->segment.number};
    uint64_t start = reader->offset;
    uint64_t start_block =
        (start + JOURNAL_BLOCK_BYTES - 1) / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
    while (reader->offset + JOURNAL_HEAD_BYTES <= reader->segment.end) {
        const uint8_t *bytes = look(reader, reader->offset, JOURNAL_HEAD_BYTES);
        if (bytes == NULL && reader->is_waiting)
            return false;
        if (bytes == NULL) {
            /* Unreadable, or the file was cut: on with the next block. */
            reader->damage_offset =
                reader->damage_offset > 0 ? reader->damage_offset : reader->offset;
            reader->offset = (reader->offset / JOURNAL_BLOCK_BYTES + 1) * JOURNAL_BLOCK_BYTES;
            continue;
        }
        bool is_expected = reader->is_after_record || reader->offset % JOURNAL_BLOCK_BYTES == 0;
        bool is_marked = journal_head_is_marked(bytes, place.key);
        place.offset = reader->offset;
        reader->is_after_record = false;
        if ((is_expected || is_marked) && journal_head_read(bytes, &place, ret_head) &&
            journal_record_bytes(ret_head->bytes) <= reader->segment.bytes - reader->offset) {
            bool is_gap = reader->offset != start && reader->offset != start_block;
            if (is_gap && reader->damage_offset == 0)
                reader->damage_offset = start;
            return true;
        }
        if (is_marked && !journal_head_is_older(bytes, &place)) {
            reader->torn_offset = reader->offset;
            reader->damage_offset =
                reader->damage_offset > 0 ? reader->damage_offset : reader->offset;
        }
        reader->offset += JOURNAL_ALIGN_BYTES;
    }
    reader->offset = reader->segment.end;
    return false;
}

/* Whether a payload verifies, piece by piece. */
static bool payload_is_sound(struct journal_reader *reader, const struct journal_head *head)
{
    uint64_t at = reader->offset + JOURNAL_HEAD_BYTES;
    uint64_t left = head->bytes;
    uint32_t crc = 0;
    while (left > 0) {
        size_t size = left < READ_BYTES ? (size_t)left : READ_BYTES;
        const uint8_t *bytes = look(reader, at, size);
        if (bytes == NULL)
            return false;
        crc = journal_crc(crc, slice_of(bytes, size));
        at += size;
        left -= size;
    }
    return crc == head->crc;
}

/* A small payload that is not handed out; NULL: it does not verify. Free it. */
static uint8_t *read_payload(struct journal_reader *reader, const struct journal_head *head)
{
    uint8_t *payload = mem_try_alloc(head->bytes + 1);
    if (payload == NULL)
        return NULL;
    int failed;
    size_t got =
        read_all(reader->fd, payload, head->bytes, reader->offset + JOURNAL_HEAD_BYTES, &failed);
    if (failed != 0)
        reader->failed = failed;
    if (got == head->bytes && journal_crc(0, slice_of(payload, head->bytes)) == head->crc)
        return payload;
    mem_free(payload);
    return NULL;
}

static void step_over(struct journal_reader *reader, const struct journal_head *head)
{
    reader->offset += journal_record_bytes(head->bytes);
    reader->is_after_record = true;
    /* A request's id tells whether one before it is missing. */
    if (head->type == JOURNAL_DATA)
        reader->torn_offset = 0;
}

struct journal_reader *journal_reader_create(struct journal_store *store, uint64_t first,
                                             journal_damage_fn on_damage, void *arg)
{
    struct journal_reader *reader = mem_zalloc(sizeof(*reader));
    reader->store = store;
    reader->on_damage = on_damage;
    reader->arg = arg;
    reader->position = first;
    reader->fd = -1;
    return reader;
}

void journal_reader_set_skips(struct journal_reader *reader, journal_skips_fn skips, void *arg)
{
    reader->skips = skips;
    reader->skips_arg = arg;
}

void journal_reader_destroy(struct journal_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd >= 0)
        fileops()->close(reader->fd);
    mem_free(reader);
}

void journal_reader_set_depth(struct journal_reader *reader, enum journal_depth depth)
{
    reader->depth = depth;
}

uint64_t journal_reader_position(const struct journal_reader *reader)
{
    return reader->position;
}

int journal_reader_failure(const struct journal_reader *reader, uint64_t *ret_segment)
{
    *ret_segment = reader->segment.number;
    return reader->failed;
}

/* A reader without a position begins with this id, or with an older one that is waited for. */
static void begin_at(struct journal_reader *reader, uint64_t id)
{
    if (reader->position > 0)
        return;
    pthread_mutex_lock(&reader->store->mutex);
    uint64_t low = journal_progress_low(&reader->store->progress);
    pthread_mutex_unlock(&reader->store->mutex);
    reader->position = id < low ? id : low;
}

/* Ids of groups that could not be committed are not used again: the next segment says so. */
static void skip_unused_ids(struct journal_reader *reader, const struct journal_head *checkpoint)
{
    uint8_t *payload = read_payload(reader, checkpoint);
    if (payload != NULL && checkpoint->bytes >= CHECKPOINT_HEAD_BYTES) {
        uint64_t first_id = journal_get_u64(payload + 8);
        begin_at(reader, first_id);
        if (reader->position >= journal_get_u64(payload) && reader->position < first_id)
            reader->position = first_id;
    }
    mem_free(payload);
}

enum journal_read journal_reader_next(struct journal_reader *reader, struct budget *budget,
                                      struct journal_stored *ret_stored)
{
    for (;;) {
        struct journal_head head;
        reader->is_waiting = false;
        bool has_more = reader->has_segment && reader->offset < reader->segment.end;
        bool has_head = has_more && open_at_hand(reader) && find_head(reader, &head);
        if (reader->is_waiting)
            return JOURNAL_READ_FAILED;
        if (!has_head) {
            if (reader->has_segment && reader->segment.is_end_known && reader->position > 0 &&
                reader->segment.end_id > reader->position)
                report_loss(reader, reader->segment.end_id);
            else if (reader->damage_offset > 0 &&
                     reader->segment.number != reader->store->tail.segment)
                report_spoilt(reader, reader->damage_offset,
                              reader->segment.is_end_known && !reader->segment.is_newest);
            reader->damage_offset = 0;
            if (!next_segment(reader))
                return JOURNAL_READ_END;
            continue;
        }
        bool is_wanted = head.type == JOURNAL_DATA && head.id >= reader->position &&
                         head.id < reader->segment.end_id;
        uint64_t at = reader->offset;
        if (!reader->is_header_checked && reader->segment.version == 0)
            report_spoilt(reader, 0, false);
        reader->is_header_checked = true;
        if (head.type == JOURNAL_CHECKPOINT && at == JOURNAL_BLOCK_BYTES)
            skip_unused_ids(reader, &head);
        if (!is_wanted) {
            /* What was damaged before a record that is not wanted does not concern later ones. */
            if (head.type == JOURNAL_DATA && head.id < reader->position) {
                if (reader->damage_offset > 0)
                    report_spoilt(reader, reader->damage_offset, false);
                reader->damage_offset = 0;
            }
            if (reader->depth == JOURNAL_CHECKS && !payload_is_sound(reader, &head))
                report_spoilt(reader, at, false);
            step_over(reader, &head);
            continue;
        }
        bool is_sound = true;
        bool is_skipped = reader->skips != NULL && reader->skips(head.id, reader->skips_arg);
        struct buffer *payload = NULL;
        if (reader->depth == JOURNAL_PAYLOADS && !is_skipped) {
            payload = buffer_try_create(budget, head.bytes);
            if (payload == NULL) {
                reader->is_after_record = true; /* the same head is expected again */
                return JOURNAL_READ_BUSY;
            }
            int failed;
            size_t got =
                read_all(reader->fd, payload->data, head.bytes, at + JOURNAL_HEAD_BYTES, &failed);
            if (waits_for(reader, failed)) {
                buffer_unref(payload);
                reader->is_after_record = true;
                return JOURNAL_READ_FAILED;
            }
            payload->size = head.bytes;
            is_sound = got == head.bytes && journal_crc(0, buffer_slice(payload)) == head.crc;
        } else if (reader->depth == JOURNAL_CHECKS) {
            is_sound = payload_is_sound(reader, &head);
        }
        begin_at(reader, head.id);
        if (head.id > reader->position)
            report_loss(reader, head.id);
        else if (reader->damage_offset > 0)
            report_spoilt(reader, reader->damage_offset, false);
        reader->damage_offset = 0;
        step_over(reader, &head);
        if (!is_sound) {
            buffer_unref(payload);
            reader->damage_offset = at;
            report_loss(reader, head.id + 1);
            reader->damage_offset = 0;
            continue;
        }
        reader->position = head.id + 1;
        pthread_mutex_lock(&reader->store->mutex);
        journal_ages_note(&reader->store->ages, head.id, head.wall_ns);
        pthread_mutex_unlock(&reader->store->mutex);
        *ret_stored = (struct journal_stored){
            .head = head, .segment = reader->segment.number, .offset = at, .payload = payload};
        return JOURNAL_READ;
    }
}

/* Recovery. Reads only; what it finds is written anew by the next checkpoint. */
struct found {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

static void note_name(const char *name, void *arg)
{
    struct found *found = arg;
    uint64_t number;
    if (!journal_segment_number(name, &number))
        return;
    if (found->count == found->capacity) {
        found->capacity = 2 * found->capacity + 16;
        found->numbers = mem_resize(found->numbers, found->capacity * sizeof(found->numbers[0]));
    }
    found->numbers[found->count++] = number;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* A file found at the start. */
struct candidate {
    struct journal_segment segment;
    bool has_header;     /* it begins with a header of its own number */
    bool has_checkpoint; /* and a checkpoint */
    int failed;          /* why some of it cannot be read; 0: it can */
    uint64_t oldest_id;  /* of its records; 0: there is none */
    uint64_t previous_end;
    uint64_t first_id;
    uint64_t wall_ns; /* when it was begun; 0: unknown */
};

/* Reads what a file begins with; the key, too, if it is not known yet. Returns 0, or a negative
 * errno if it cannot be opened. */
static int probe(struct journal_store *store, struct candidate *candidate, bool *has_key)
{
    char path[PATH_MAX];
    uint8_t block[JOURNAL_BLOCK_BYTES];
    struct journal_segment_header header;
    struct stat info;
    segment_path(store, path, candidate->segment.number);
    if (fileops()->stat(path, &info) == 0 && info.st_size > 0)
        candidate->segment.bytes = (uint64_t)info.st_size;
    candidate->segment.end = candidate->segment.bytes;
    int fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0) {
        candidate->failed = fd != -ENOENT ? fd : 0;
        return fd;
    }
    if (read_all(fd, block, sizeof(block), 0, &candidate->failed) == sizeof(block) &&
        journal_segment_header_read(block, &header)) {
        if (header.version == 0 || header.version > JOURNAL_VERSION) {
            candidate->segment.is_foreign = true;
            candidate->segment.version = header.version;
        } else {
            if (!*has_key)
                store->key = header.key;
            *has_key = true;
            candidate->has_header = header.number == candidate->segment.number;
            candidate->segment.version = candidate->has_header ? header.version : 0;
        }
    }
    fileops()->close(fd);
    return 0;
}

static void apply_done(struct journal_store *store, struct slice payload)
{
    for (size_t at = 0; at + DONE_BYTES <= payload.size; at += DONE_BYTES) {
        uint64_t exporter = journal_get_u64(payload.data + at);
        uint64_t first = journal_get_u64(payload.data + at + 8);
        uint64_t end = journal_get_u64(payload.data + at + 16);
        const struct journal_amount amount = {.items = journal_get_u64(payload.data + at + 24),
                                              .bytes = journal_get_u64(payload.data + at + 32)};
        if (exporter >= store->progress.count || end < first)
            continue;
        uint64_t low = store->progress.exporters[exporter].low;
        if (first > low && !journal_progress_has_room(&store->progress, exporter, end))
            continue;
        journal_progress_done(&store->progress, exporter, first, end);
        journal_progress_pay(&store->progress, exporter, amount);
    }
}

/* Walks the heads of one segment. with_state: takes over what its checkpoints and the records after
 * them say of the exporters. Returns the id behind its last record, 0 without any, and whether
 * something behind it was damaged or only written in part. */
static uint64_t scan(struct journal_store *store, struct candidate *candidate, bool with_state,
                     bool *ret_is_used, uint64_t *ret_torn)
{
    struct journal_reader *reader = journal_reader_create(store, 0, NULL, NULL);
    struct journal_head head;
    uint64_t end_id = 0;
    char path[PATH_MAX];
    segment_path(store, path, candidate->segment.number);
    reader->is_scan = true;
    reader->segment = candidate->segment;
    reader->has_segment = true;
    reader->fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    reader->failed = reader->fd < 0 ? reader->fd : 0;
    reader->offset = JOURNAL_BLOCK_BYTES;
    *ret_is_used = false;
    while (find_head(reader, &head)) {
        *ret_is_used = true;
        if (head.type == JOURNAL_DATA) {
            candidate->oldest_id = candidate->oldest_id > 0 ? candidate->oldest_id : head.id;
            end_id = head.id + 1 > end_id ? head.id + 1 : end_id;
            journal_ages_note(&store->ages, head.id, head.wall_ns);
            const struct journal_amount amount = {.items = head.items,
                                                  .bytes = (uint64_t)head.bytes - head.meta_bytes};
            if (with_state)
                journal_progress_owe(&store->progress, head.id, amount);
            if (with_state && store->progress.count == 0) {
                store->unclaimed.items += amount.items;
                store->unclaimed.bytes += amount.bytes;
            }
        } else if (head.type == JOURNAL_CHECKPOINT || head.type == JOURNAL_DONE) {
            uint8_t *payload = read_payload(reader, &head);
            struct slice bytes = slice_of(payload, payload != NULL ? head.bytes : 0);
            if (head.type == JOURNAL_CHECKPOINT && bytes.size >= CHECKPOINT_HEAD_BYTES) {
                if (reader->offset == JOURNAL_BLOCK_BYTES) {
                    candidate->has_checkpoint = true;
                    candidate->previous_end = journal_get_u64(bytes.data);
                    candidate->first_id = journal_get_u64(bytes.data + 8);
                    candidate->wall_ns = head.wall_ns;
                }
                if (with_state &&
                    !journal_progress_read(&store->progress,
                                           slice_of(bytes.data + CHECKPOINT_HEAD_BYTES,
                                                    bytes.size - CHECKPOINT_HEAD_BYTES)))
                    candidate->has_checkpoint = false;
            } else if (head.type == JOURNAL_DONE && with_state) {
                apply_done(store, bytes);
            }
            mem_free(payload);
            if (with_state)
                journal_ages_forget(&store->ages, journal_progress_low(&store->progress));
        }
        step_over(reader, &head);
    }
    candidate->failed = candidate->failed != 0 ? candidate->failed : reader->failed;
    *ret_torn = reader->torn_offset;
    journal_reader_destroy(reader);
    return end_id;
}

/* Reads the first checkpoint only. */
static void read_checkpoint(struct journal_store *store, struct candidate *candidate)
{
    struct candidate copy = *candidate;
    bool is_used;
    uint64_t torn;
    /* Nothing behind the head of the first record is looked at. */
    copy.segment.end = JOURNAL_BLOCK_BYTES + JOURNAL_HEAD_BYTES;
    scan(store, &copy, false, &is_used, &torn);
    candidate->has_checkpoint = copy.has_checkpoint;
    candidate->previous_end = copy.previous_end;
    candidate->first_id = copy.first_id;
    candidate->failed = copy.failed;
    candidate->wall_ns = copy.wall_ns;
    if (copy.has_checkpoint)
        journal_ages_note(&store->ages, copy.first_id, copy.wall_ns);
}

/* Notes when the oldest record that is waited for came, and those near it. */
static void find_oldest(struct journal_store *store, const struct candidate *candidates,
                        size_t count)
{
    uint64_t low = journal_progress_low(&store->progress);
    size_t oldest = 0;
    while (oldest < count &&
           (store->segments[oldest].is_foreign || store->segments[oldest].end_id <= low))
        oldest++;
    if (oldest < count && !store->is_read_only) {
        struct candidate copy = candidates[oldest];
        bool is_used;
        uint64_t torn;
        scan(store, &copy, false, &is_used, &torn);
    }
    journal_ages_forget(&store->ages, low);
}

/* Returns 0, or a negative errno when nothing could be read that tells where to go on. */
static int recover(struct journal_store *store, struct candidate *candidates, size_t count)
{
    size_t used = 0;
    int failed = 0;
    bool is_used;
    uint64_t torn;
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        budget_take(store->disk, candidate->segment.bytes);
        if (store->next_number <= candidate->segment.number)
            store->next_number = candidate->segment.number + 1;
        if (!candidate->segment.is_foreign) {
            read_checkpoint(store, candidate);
            /* A prepared file that was never begun, or a segment whose start is damaged. */
            if (!candidate->has_header && !candidate->has_checkpoint) {
                scan(store, candidate, false, &is_used, &torn);
                if (!is_used && candidate->failed == 0 && store->free_count < FREE_FILES_ROOM) {
                    store->free_files[store->free_count++] = candidate->segment;
                    continue;
                }
            }
        }
        candidates[used++] = *candidate;
    }
    count = used;
    /* The newest checkpoint says it all, together with what follows it. */
    size_t newest = count;
    while (newest > 0 && !candidates[newest - 1].has_checkpoint)
        newest--;
    for (size_t i = newest > 0 ? newest - 1 : 0; i < count; i++) {
        if (candidates[i].segment.is_foreign)
            continue;
        uint64_t end_id = scan(store, &candidates[i], true, &is_used, &torn);
        if (candidates[i].has_checkpoint && end_id < candidates[i].first_id)
            end_id = candidates[i].first_id;
        store->next_id = end_id > store->next_id ? end_id : store->next_id;
        if (newest == 0 && store->oldest_id == 0)
            store->oldest_id = candidates[i].oldest_id;
        /* What cannot be read may be records: their ids are not used again, and still wanted. */
        if (candidates[i].failed != 0) {
            uint64_t hidden = candidates[i].segment.bytes / JOURNAL_HEAD_BYTES;
            store->next_id += hidden;
            if (store->oldest_id > 0)
                store->oldest_id = store->oldest_id > hidden ? store->oldest_id - hidden : 1;
            failed = failed != 0 ? failed : candidates[i].failed;
        }
        if (i == count - 1 && torn > 0)
            store->tail = (struct journal_damage){.segment = candidates[i].segment.number,
                                                  .offset = torn,
                                                  .first = store->next_id,
                                                  .records = 1};
    }
    /* Of requests whose heads are damaged this may be all that is known: that they are finished. */
    uint64_t finished_end = journal_progress_end(&store->progress);
    if (finished_end > store->next_id) {
        store->next_id = finished_end;
        store->tail.records = 0;
    }
    store->durable_id = store->next_id;
    store->stable_low = store->progress.count > 0 ? journal_progress_low(&store->progress) : 0;
    uint64_t end_id = store->next_id;
    bool is_end_known = true;
    store->segments_capacity = count;
    store->segments = mem_alloc((count > 0 ? count : 1) * sizeof(store->segments[0]));
    for (size_t i = count; i > 0; i--) {
        store->segments[i - 1] = candidates[i - 1].segment;
        store->segments[i - 1].end_id = end_id;
        store->segments[i - 1].is_end_known = is_end_known;
        store->segments[i - 1].is_newest = i == count;
        is_end_known = candidates[i - 1].has_checkpoint;
        if (is_end_known)
            end_id = candidates[i - 1].previous_end;
    }
    store->segments_count = count;
    for (size_t i = 0; i < store->progress.count; i++)
        if (store->progress.exporters[i].low >= store->next_id)
            store->progress.exporters[i].owed = (struct journal_amount){0};
    find_oldest(store, candidates, count);
    return newest == 0 && store->oldest_id == 0 ? failed : 0;
}

/* Whether files came or went since: another process uses the directory. */
static bool has_changed(const struct journal_store *store, const struct found *found)
{
    struct found now = {.count = 0};
    bool is_same = fileops()->list(store->directory, note_name, &now) == 0;
    if (now.count > 0)
        qsort(now.numbers, now.count, sizeof(now.numbers[0]), compare_numbers);
    is_same = is_same && now.count == found->count &&
              (now.count == 0 ||
               memcmp(now.numbers, found->numbers, now.count * sizeof(now.numbers[0])) == 0);
    mem_free(now.numbers);
    return !is_same;
}

/* The key lies in a file of its own and in every segment. */
static bool read_key(struct journal_store *store)
{
    char path[PATH_MAX];
    uint8_t bytes[KEY_BYTES];
    path_of(store, path, "key");
    int fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return false;
    int failed;
    size_t got = read_all(fd, bytes, sizeof(bytes), 0, &failed);
    fileops()->close(fd);
    if (got != sizeof(bytes) || journal_get_u32(bytes + 8) != journal_crc(0, slice_of(bytes, 8)))
        return false;
    store->key = journal_get_u64(bytes);
    return true;
}

/* Failure is harmless: every segment holds the key. */
static void write_key(struct journal_store *store)
{
    char path[PATH_MAX];
    uint8_t bytes[KEY_BYTES];
    journal_put_u64(bytes, store->key);
    journal_put_u32(bytes + 8, journal_crc(0, slice_of(bytes, 8)));
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    path_of(store, path, "key");
    int fd = fileops()->open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (write_all(fd, &part, 1, 0) == 0 && store->is_synced && fileops()->fsync(fd) == 0)
        sync_directory(store);
    fileops()->close(fd);
}

static bool is_failed(struct error *error, const char *what, const char *path, int failed)
{
    error_set(error, "cannot %s %s: %s", what, path, strerror(-failed));
    return true;
}

/* Makes the directory if need be, and locks it. */
static bool enter_directory(struct journal_store *store, mode_t mode, struct error *error)
{
    char path[PATH_MAX];
    int failed = store->is_read_only ? -EEXIST : fileops()->mkdir(store->directory, mode);
    bool is_new = failed == 0;
    if (failed != 0 && failed != -EEXIST && failed != -EROFS)
        return !is_failed(error, "make the directory", store->directory, failed);
    store->directory_fd = fileops()->open(store->directory, O_RDONLY | O_DIRECTORY, 0);
    if (store->directory_fd < 0)
        return !is_failed(error, "open the directory", store->directory, store->directory_fd);
    /* Also of one that was there: who made it may have ended before flushing it. */
    if (store->is_synced && !store->is_read_only) {
        path_of(store, path, "..");
        int parent = fileops()->open(path, O_RDONLY | O_DIRECTORY, 0);
        failed = parent < 0 ? parent : fileops()->fsync(parent);
        if (parent >= 0)
            fileops()->close(parent);
        if (failed != 0 && is_new)
            return !is_failed(error, "flush", path, failed);
    }
    failed = store->is_read_only ? 0 : fileops()->lock(store->directory_fd);
    if (failed == -EWOULDBLOCK)
        return error_set(error, "%s is in use by another process", store->directory);
    return failed == 0 || !is_failed(error, "lock", store->directory, failed);
}

struct journal_store *journal_store_open(const struct journal_store_settings *settings,
                                         struct error *error)
{
    assert(settings->segment_bytes >= JOURNAL_SEGMENT_BYTES_MIN &&
           settings->segment_bytes % JOURNAL_BLOCK_BYTES == 0);
    struct journal_store *store = mem_zalloc(sizeof(*store));
    struct found found = {.count = 0};
    store->directory = mem_copy_text(settings->directory);
    store->segment_bytes = settings->segment_bytes;
    store->disk = settings->disk;
    store->is_synced = settings->is_synced;
    store->is_read_only = settings->is_read_only;
    store->directory_fd = store->active_fd = -1;
    store->next_id = store->next_number = 1;
    store->group = mem_alloc(sizeof(*store->group));
    journal_progress_init(&store->progress);
    journal_ages_init(&store->ages);
    pthread_mutex_init(&store->preparing, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    if (!enter_directory(store, settings->directory_mode, error)) {
        journal_store_close(store);
        return NULL;
    }
    int failed = fileops()->list(store->directory, note_name, &found);
    if (failed != 0) {
        is_failed(error, "list", store->directory, failed);
        mem_free(found.numbers);
        journal_store_close(store);
        return NULL;
    }
    if (found.count > 0)
        qsort(found.numbers, found.count, sizeof(found.numbers[0]), compare_numbers);
    struct candidate *candidates = mem_zalloc((found.count + 1) * sizeof(*candidates));
    store->has_key_file = read_key(store);
    bool has_key = store->has_key_file;
    failed = 0;
    for (size_t i = 0; i < found.count && failed == 0; i++) {
        candidates[i].segment.number = found.numbers[i];
        int unopened = probe(store, &candidates[i], &has_key);
        if (store->is_read_only ? unopened != 0 && unopened != -ENOENT : is_passing(unopened)) {
            char path[PATH_MAX];
            segment_path(store, path, found.numbers[i]);
            failed = unopened;
            is_failed(error, "open", path, failed);
        }
    }
    if (failed == 0 && !has_key && store->is_read_only && found.count > 0) {
        failed = -ENOENT;
        error_set(error,
                  "%s: found neither the file \"key\" nor a sound start of a segment: without one "
                  "of them no record can be told from other bytes",
                  store->directory);
    }
    if (!has_key && getrandom(&store->key, sizeof(store->key), 0) != sizeof(store->key))
        store->key = clock_wall_ns();
    if (failed == 0) {
        int unread = recover(store, candidates, found.count);
        store->has_changed = store->is_read_only && has_changed(store, &found);
        failed = store->is_read_only ? 0 : unread;
        if (failed != 0)
            is_failed(error, "read any segment of the journal", store->directory, failed);
    }
    mem_free(candidates);
    mem_free(found.numbers);
    if (failed != 0) {
        journal_store_close(store);
        return NULL;
    }
    if (!store->has_key_file && !store->is_read_only)
        write_key(store);
    return store;
}

void journal_store_close(struct journal_store *store)
{
    if (store == NULL)
        return;
    if (store->has_active)
        fileops()->close(store->active_fd);
    if (store->directory_fd >= 0)
        fileops()->close(store->directory_fd);
    struct journal_figures figures = journal_store_figures(store);
    budget_return(store->disk, figures.bytes);
    pthread_mutex_destroy(&store->mutex);
    pthread_mutex_destroy(&store->preparing);
    journal_progress_fini(&store->progress);
    mem_free(store->group);
    mem_free(store->segments);
    mem_free(store->directory);
    mem_free(store);
}

int journal_store_exporter(struct journal_store *store, const char *name)
{
    pthread_mutex_lock(&store->mutex);
    size_t known = store->progress.count;
    uint64_t first = store->oldest_id > 0 ? store->oldest_id : store->next_id;
    int index = journal_progress_add(&store->progress, name, first);
    if (index >= (int)known && store->progress.exporters[index].low < store->next_id)
        store->progress.exporters[index].owed = store->unclaimed;
    pthread_mutex_unlock(&store->mutex);
    return index;
}

void journal_store_forget_finished(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    for (size_t i = store->progress.count; i > 0; i--)
        if (store->progress.exporters[i - 1].low >= store->next_id)
            journal_progress_remove(&store->progress, i - 1);
    pthread_mutex_unlock(&store->mutex);
}

const char *journal_store_exporter_name(const struct journal_store *store, size_t exporter)
{
    return exporter < store->progress.count ? store->progress.exporters[exporter].name : NULL;
}

bool journal_store_has_key_file(const struct journal_store *store)
{
    return store->has_key_file;
}

bool journal_store_file(const struct journal_store *store, size_t index,
                        struct journal_file *ret_file)
{
    bool is_free = index >= store->segments_count;
    if (is_free && index - store->segments_count >= store->free_count)
        return false;
    const struct journal_segment *segment =
        is_free ? &store->free_files[index - store->segments_count] : &store->segments[index];
    *ret_file = (struct journal_file){.segment = segment->number,
                                      .bytes = segment->bytes,
                                      .version = segment->version,
                                      .is_free = is_free,
                                      .is_foreign = segment->is_foreign};
    return true;
}

struct journal_damage journal_store_tail(const struct journal_store *store)
{
    return store->tail;
}
