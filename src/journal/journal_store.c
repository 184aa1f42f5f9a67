/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a journal: commits groups, prepares the next segment, frees the oldest. Threads: see the
 * header; mutex guards what several of them use and is never held across a file operation. */
#include "src/journal/journal_store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/journal/journal_files.h"
#include "src/journal/journal_recovery.h"

enum {
    ZEROS_BYTES = 1 << 20,
    IOV_PARTS_MAX = 1024,
    /* Files kept to be used again, besides the next segment. A journal that deletes files and then
     * makes new ones keeps more of them. */
    FREE_FILES_MIN = 1,
    FREE_FILES_MAX = JOURNAL_FREE_FILES_ROOM - 1,
};
/* What is deleted is needed again within so long, or not at all. */
#define FREE_FILES_NS ((uint64_t)1 * NS_PER_S)
/* After a failure records are refused for so long before the disk is tried again. */
#define FAILURE_REST_NS ((uint64_t)1 * NS_PER_S)

static uint8_t zeros[ZEROS_BYTES];

const uint64_t journal_flush_bounds[JOURNAL_FLUSH_BOUNDS] = {
    100000,   250000,    500000,    1000000,   2500000,    5000000,    10000000,   25000000,
    50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000};

/* Makes the directory if need be, and locks it. */
static bool enter_directory(struct journal_store *store, mode_t mode, struct error *error)
{
    char path[PATH_MAX];
    int failed = store->is_read_only ? -EEXIST : fileops()->mkdir(store->directory, mode);
    bool is_new = failed == 0;
    if (failed != 0 && failed != -EEXIST && failed != -EROFS)
        return journal_file_error(error, "make the directory", store->directory, failed);
    store->directory_fd = fileops()->open(store->directory, O_RDONLY | O_DIRECTORY, 0);
    if (store->directory_fd < 0)
        return journal_file_error(error, "open the directory", store->directory,
                                  store->directory_fd);
    /* Also of one that was there: its maker may have ended before flushing it. */
    if (store->is_synced && !store->is_read_only) {
        journal_path(store, path, "..");
        int parent = fileops()->open(path, O_RDONLY | O_DIRECTORY, 0);
        failed = parent < 0 ? parent : fileops()->fsync(parent);
        if (parent >= 0)
            fileops()->close(parent);
        if (failed != 0 && is_new)
            return journal_file_error(error, "flush", path, failed);
    }
    failed = store->is_read_only ? 0 : fileops()->lock(store->directory_fd);
    if (failed == -EWOULDBLOCK)
        return error_set(error, "%s is in use by another process", store->directory);
    return failed == 0 || journal_file_error(error, "lock", store->directory, failed);
}

struct journal_store *journal_store_open(const struct journal_store_settings *settings,
                                         struct error *error)
{
    assert(settings->segment_bytes >= JOURNAL_SEGMENT_BYTES_MIN &&
           settings->segment_bytes % JOURNAL_BLOCK_BYTES == 0);
    struct journal_store *store = mem_zalloc(sizeof(*store));
    store->directory = mem_copy_text(settings->directory);
    store->segment_bytes = settings->segment_bytes;
    store->disk = settings->disk;
    store->is_synced = settings->is_synced;
    store->is_read_only = settings->is_read_only;
    store->directory_fd = store->active_fd = -1;
    store->next_id = store->next_number = 1;
    store->kept_files = FREE_FILES_MIN;
    journal_progress_init(&store->progress);
    journal_ages_init(&store->ages);
    pthread_mutex_init(&store->preparing, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    if (!enter_directory(store, settings->directory_mode, error) ||
        !journal_recover(store, error)) {
        journal_store_close(store);
        return NULL;
    }
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
        group->error = journal_write_all(group->store->active_fd, group->parts, group->parts_count,
                                         group->written);
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
    journal_path(store, path, "next.new");
    journal_segment_path(store, target, number);
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
            failed = journal_write_all(fd, &part, 1, offset);
            /* Piece by piece: a commit waits for what is on its way to the disk. */
            if (failed == 0 && store->is_synced)
                failed = fileops()->fdatasync(fd);
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
    journal_segment_path(store, path, file->number);
    fileops()->unlink(path);
    budget_return(store->disk, file->bytes);
}

/* One more free file is kept for a while if one was just deleted. Caller holds mutex. */
static void note_new_file(struct journal_store *store)
{
    uint64_t now_ns = clock_now_ns();
    if (store->deleted_ns == 0 || now_ns - store->deleted_ns >= FREE_FILES_NS)
        return;
    store->kept_since_ns = now_ns;
    store->kept_files = FREE_FILES_MAX;
}

/* How many free files are kept. Caller holds mutex. */
static size_t free_files_kept(struct journal_store *store, bool is_full)
{
    uint64_t now_ns = clock_now_ns();
    if (store->kept_files > FREE_FILES_MIN && now_ns - store->kept_since_ns >= FREE_FILES_NS) {
        store->kept_files--;
        store->kept_since_ns = now_ns;
    }
    /* Other journals need the room as well. */
    if (is_full || !budget_has_room(store->disk, store->kept_files * store->segment_bytes))
        store->kept_files = FREE_FILES_MIN;
    return store->kept_files;
}

/* The oldest segment that is ours; the count: there is none. Those of later versions stay where
 * they are. Caller holds mutex. */
static size_t oldest_own(const struct journal_store *store)
{
    size_t i = 0;
    while (i < store->segments_count && store->segments[i].is_foreign)
        i++;
    return i;
}

/* Whether the oldest segment is finished by this low mark. Caller holds mutex. */
static bool is_oldest_finished(const struct journal_store *store, uint64_t low)
{
    size_t oldest = oldest_own(store);
    return oldest < store->segments_count && store->segments[oldest].end_id <= low;
}

/* Moves segments that no exporter needs to the free files. Without room for a note that they are
 * not needed, they are freed nevertheless: they may be missed after a power cut, but not the
 * records. False: there are none, or too many free files. */
static bool free_segments(struct journal_store *store, bool is_full)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t low = is_full ? journal_progress_low(&store->progress) : store->stable_low;
    size_t kept = 0;
    bool is_freeing = true;
    for (size_t i = 0; i < store->segments_count; i++) {
        const struct journal_segment *segment = &store->segments[i];
        is_freeing &= segment->is_foreign ||
                      (segment->end_id <= low && store->free_count < JOURNAL_FREE_FILES_ROOM);
        if (is_freeing && !segment->is_foreign)
            store->free_files[store->free_count++] = *segment;
        else
            store->segments[kept++] = *segment;
    }
    bool has_freed = kept < store->segments_count;
    store->segments_count = kept;
    pthread_mutex_unlock(&store->mutex);
    return has_freed;
}

/* One of a size between these. Caller holds mutex. */
static bool take_free_file(struct journal_store *store, uint64_t bytes_min, uint64_t bytes_max,
                           struct journal_segment *ret_file)
{
    for (size_t i = 0; i < store->free_count; i++)
        if (store->free_files[i].bytes >= bytes_min && store->free_files[i].bytes <= bytes_max) {
            *ret_file = store->free_files[i];
            store->free_files[i] = store->free_files[--store->free_count];
            return true;
        }
    return false;
}

/* Files that are larger than a segment is, since one held a large record or the settings were
 * others, are not to take what the journals have together. Caller holds mutex. */
static uint64_t free_bytes_max(const struct journal_store *store)
{
    return budget_has_room(store->disk, store->segment_bytes) ? UINT64_MAX : store->segment_bytes;
}

/* Deletes free files of a size between these. */
static void delete_free_files(struct journal_store *store, uint64_t bytes_min, uint64_t bytes_max)
{
    struct journal_segment file;
    for (;;) {
        pthread_mutex_lock(&store->mutex);
        bool is_there = take_free_file(store, bytes_min, bytes_max, &file);
        pthread_mutex_unlock(&store->mutex);
        if (!is_there)
            return;
        unlink_file(store, &file);
    }
}

/* Moves the prepared file to the free ones if it is larger than it may be. Caller holds preparing.
 */
static void drop_large_next(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    if (store->has_next && store->next.bytes > free_bytes_max(store) &&
        store->free_count < JOURNAL_FREE_FILES_ROOM) {
        store->free_files[store->free_count++] = store->next;
        store->has_next = false;
    }
    pthread_mutex_unlock(&store->mutex);
}

static int make_file(struct journal_store *store, uint64_t number, uint64_t bytes)
{
    if (!budget_try_take(store->disk, bytes))
        return -EDQUOT;
    int failed = create_file(store, number, bytes);
    if (failed != 0)
        budget_return(store->disk, bytes);
    return failed;
}

/* Gives a free file the number. */
static int renumber_file(struct journal_store *store, const struct journal_segment *file,
                         uint64_t number)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    journal_segment_path(store, from, file->number);
    journal_segment_path(store, to, number);
    int failed = fileops()->rename(from, to);
    if (failed != 0)
        budget_return(store->disk, file->bytes);
    return failed;
}

/* Makes the next segment, of at least that size, from a freed file or a new one; without room for
 * one, when records wait for it (is_urgent), from what no exporter needs. Caller holds preparing.
 */
static int prepare(struct journal_store *store, uint64_t bytes_min, bool is_urgent)
{
    struct journal_segment file = {.bytes = 0};
    struct journal_segment surplus = {.bytes = 0};
    int failed = 0;
    pthread_mutex_lock(&store->mutex);
    bool is_ready = store->has_next && store->next.bytes >= bytes_min;
    if (!is_ready && store->has_next) {
        if (store->free_count < JOURNAL_FREE_FILES_ROOM)
            store->free_files[store->free_count++] = store->next;
        else
            surplus = store->next;
        store->has_next = false;
    }
    uint64_t number = store->next_number;
    uint64_t bytes_max = free_bytes_max(store);
    bytes_max = bytes_max > bytes_min ? bytes_max : bytes_min;
    bool is_free = !is_ready && take_free_file(store, bytes_min, bytes_max, &file);
    if (!is_ready && !is_free)
        note_new_file(store);
    pthread_mutex_unlock(&store->mutex);
    if (is_ready)
        return 0;
    if (surplus.bytes > 0)
        unlink_file(store, &surplus);
    uint64_t bytes = bytes_min > store->segment_bytes ? bytes_min : store->segment_bytes;
    bytes = (bytes + JOURNAL_BLOCK_BYTES - 1) / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
    if (!is_free)
        failed = make_file(store, number, bytes);
    if ((failed == -EDQUOT || failed == -ENOSPC) && is_urgent) {
        /* First what is noted as finished, then the rest; what is too small goes. */
        bool is_noted = true;
        for (;;) {
            bool has_freed = free_segments(store, !is_noted);
            pthread_mutex_lock(&store->mutex);
            is_free = take_free_file(store, bytes_min, UINT64_MAX, &file);
            pthread_mutex_unlock(&store->mutex);
            if (is_free)
                break;
            delete_free_files(store, 0, bytes_min);
            failed = make_file(store, number, bytes);
            if (failed == 0 || (!has_freed && !is_noted))
                break;
            is_noted &= has_freed;
        }
    }
    if (is_free) {
        failed = renumber_file(store, &file, number);
        bytes = file.bytes;
    }
    const struct journal_segment next = {.number = number, .bytes = bytes};
    if (failed == 0) {
        failed = journal_sync_directory(store);
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
    if (store->active.end == 0) {
        /* Its first group failed: it holds nothing. */
        pthread_mutex_lock(&store->mutex);
        const struct journal_segment useless = store->active;
        store->has_active = false;
        pthread_mutex_unlock(&store->mutex);
        unlink_file(store, &useless);
        return;
    }
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

/* Caller holds preparing: the keeper may want a larger one in its place. */
static int begin_next(struct journal_store *store, uint64_t bytes_min)
{
    int failed = prepare(store, bytes_min, true);
    if (failed != 0)
        return failed;
    char path[PATH_MAX];
    journal_segment_path(store, path, store->next.number);
    int fd = fileops()->open(path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0 && !journal_error_passes(fd)) {
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

/* Begins the next segment; its header and checkpoint lead the group. Without room for one the
 * active segment stays, unless it has to make that room. */
static int begin_segment(struct journal_store *store, uint64_t bytes_min)
{
    pthread_mutex_lock(&store->mutex);
    bool is_finished = journal_progress_low(&store->progress) >= store->durable_id;
    pthread_mutex_unlock(&store->mutex);
    if (is_finished)
        end_active(store);
    pthread_mutex_lock(&store->preparing);
    int failed = prepare(store, bytes_min, true);
    if (failed == 0) {
        end_active(store);
        failed = begin_next(store, bytes_min);
    }
    pthread_mutex_unlock(&store->preparing);
    return failed;
}

static uint64_t checkpoint_bytes_max(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    size_t bytes = JOURNAL_CHECKPOINT_HEAD_BYTES + journal_progress_bytes_max(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    return journal_record_bytes(bytes);
}

/* What exporters have finished, all of it. Returns the payload, to free when the group is written.
 */
static uint8_t *put_checkpoint(struct group *group)
{
    struct journal_store *store = group->store;
    pthread_mutex_lock(&store->mutex);
    size_t bytes = JOURNAL_CHECKPOINT_HEAD_BYTES + journal_progress_bytes(&store->progress);
    uint8_t *payload = mem_alloc(bytes);
    journal_put_u64(payload, store->durable_id);
    journal_put_u64(payload + 8, store->next_id);
    /* As it is once the group is on the disk. */
    struct journal_progress progress = store->progress;
    journal_progress_owe(&progress, store->next_id, group->amount);
    journal_progress_write(&progress, payload + JOURNAL_CHECKPOINT_HEAD_BYTES);
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
    if (!has_lost && store->dones_count > 0 &&
        bytes_max >= journal_record_bytes(JOURNAL_DONE_BYTES)) {
        count = (bytes_max - JOURNAL_HEAD_BYTES) / JOURNAL_DONE_BYTES;
        count = count < store->dones_count ? count : store->dones_count;
        payload = mem_alloc(count * JOURNAL_DONE_BYTES);
        for (size_t i = 0; i < count; i++) {
            const struct journal_done *done = &store->dones[i];
            journal_put_u64(payload + i * JOURNAL_DONE_BYTES, done->exporter);
            journal_put_u64(payload + i * JOURNAL_DONE_BYTES + 8, done->first);
            journal_put_u64(payload + i * JOURNAL_DONE_BYTES + 16, done->end);
            journal_put_u64(payload + i * JOURNAL_DONE_BYTES + 24, done->amount.items);
            journal_put_u64(payload + i * JOURNAL_DONE_BYTES + 32, done->amount.bytes);
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
        group_put_whole(group, JOURNAL_DONE, slice_of(payload, count * JOURNAL_DONE_BYTES));
    return payload;
}

/* Whether the oldest segment can be freed once this low mark is on the disk. */
static bool frees_segment(struct journal_store *store, uint64_t low)
{
    pthread_mutex_lock(&store->mutex);
    bool frees = is_oldest_finished(store, low) && !is_oldest_finished(store, store->stable_low);
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
    if (count > 0) {
        store->last_error = 0;
        store->closed_until_ns = 0;
    }
    if (is_flushed && group->low > store->stable_low)
        store->stable_low = group->low;
    pthread_mutex_unlock(&store->mutex);
    *ret_left = record;
    return 0;
}

/* The active segment is full and no other is ready: maybe one that is finished has to take its
 * place. What is left of it says so first, lest its records be missed after a power cut. */
static void tell_what_is_finished(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t low = journal_progress_low(&store->progress);
    bool is_wanted = store->has_active && !store->has_next &&
                     store->active.end + JOURNAL_BLOCK_BYTES <= store->active.bytes;
    pthread_mutex_unlock(&store->mutex);
    struct journal_record *left;
    if (!is_wanted || !frees_segment(store, low) ||
        write_group(store, store->group, false, NULL, &left) == 0)
        return;
    end_active(store);
    pthread_mutex_lock(&store->mutex);
    store->has_lost_dones = true;
    pthread_mutex_unlock(&store->mutex);
}

/* A record that finds no room because it is larger than a segment is refused alone. */
static bool is_refused_alone(const struct journal_store *store, const struct journal_record *record,
                             int failed)
{
    return record != NULL && (failed == -EDQUOT || failed == -ENOSPC) &&
           record_bytes(record) > store->segment_bytes / 2;
}

struct journal_record *journal_store_commit(struct journal_store *store,
                                            struct journal_record *records)
{
    pthread_mutex_lock(&store->mutex);
    /* What is finished makes room at once; without any it can still be noted what is. */
    bool lacks_room = store->last_error == -EDQUOT || store->last_error == -ENOSPC;
    bool makes_room = is_oldest_finished(store, journal_progress_low(&store->progress)) ||
                      (records == NULL && store->has_active);
    bool is_closed = store->last_error != 0 && clock_now_ns() < store->closed_until_ns &&
                     !(lacks_room && makes_room);
    bool is_written = false;
    int failed = is_closed ? store->last_error : 0;
    bool has_lost = store->has_lost_dones;
    pthread_mutex_unlock(&store->mutex);
    if (store->group == NULL)
        store->group = mem_alloc(sizeof(*store->group));
    for (unsigned attempts = 0; !is_closed && attempts < 2; attempts++) {
        uint64_t bytes = records != NULL ? record_bytes(records)
                         : has_lost      ? checkpoint_bytes_max(store)
                                         : journal_record_bytes(JOURNAL_DONE_BYTES);
        bool is_first = !store->has_active || store->active.end + bytes > store->active.bytes;
        if (is_first)
            tell_what_is_finished(store);
        if (is_first)
            failed =
                begin_segment(store, JOURNAL_BLOCK_BYTES + checkpoint_bytes_max(store) + bytes);
        if (is_first && is_refused_alone(store, records, failed)) {
            records->error = failed;
            pthread_mutex_lock(&store->mutex);
            store->last_error = failed;
            pthread_mutex_unlock(&store->mutex);
            return records->next;
        }
        if (is_first && failed != 0)
            break;
        struct journal_record *left = NULL;
        is_written = true;
        failed = write_group(store, store->group, is_first, records, &left);
        if (failed == 0) {
            for (struct journal_record *record = records; record != left; record = record->next)
                record->error = 0;
            return left;
        }
        /* What the kernel says of these pages from now on is worth nothing. */
        end_active(store);
    }
    uint64_t count = 0;
    for (struct journal_record *record = records; record != NULL; record = record->next, count++)
        record->error = failed;
    pthread_mutex_lock(&store->mutex);
    /* A group that failed had taken the news along. */
    store->has_lost_dones |= is_written;
    if (is_written) {
        /* The ids may be on the disk and are not used again: the next segment says where it goes
         * on. */
        uint64_t first = store->next_id;
        store->next_id += count;
        /* An exporter that is further behind passes over them when it reads on. */
        for (size_t i = 0; i < store->progress.count; i++)
            if (journal_progress_has_room(&store->progress, i, store->next_id))
                journal_progress_done(&store->progress, i, first, store->next_id);
    }
    if (!is_closed) {
        store->last_error = failed;
        store->closed_until_ns = clock_now_ns() + FAILURE_REST_NS;
    }
    pthread_mutex_unlock(&store->mutex);
    return NULL;
}

void journal_store_open_again(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->closed_until_ns = 0;
    pthread_mutex_unlock(&store->mutex);
}

uint64_t journal_store_pass_unused(struct journal_store *store, size_t exporter, uint64_t position)
{
    pthread_mutex_lock(&store->mutex);
    uint64_t end = store->next_id;
    if (position >= store->durable_id && position < end &&
        journal_progress_has_room(&store->progress, exporter, end)) {
        journal_progress_done(&store->progress, exporter, position, end);
        position = end;
    }
    pthread_mutex_unlock(&store->mutex);
    return position;
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
    } else if (store->dones_count < JOURNAL_DONES_MAX) {
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

/* Caller holds mutex. */
static bool needs_segment(const struct journal_store *store)
{
    return !store->has_next && (!store->has_active || store->active.end > store->active.bytes / 2);
}

bool journal_store_needs_keeping(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool frees = is_oldest_finished(store, store->stable_low);
    bool is_needed = frees || needs_segment(store);
    pthread_mutex_unlock(&store->mutex);
    return is_needed;
}

int journal_store_keep(struct journal_store *store)
{
    pthread_mutex_lock(&store->mutex);
    bool is_full = store->last_error == -ENOSPC || store->last_error == -EDQUOT;
    pthread_mutex_unlock(&store->mutex);
    free_segments(store, false);
    pthread_mutex_lock(&store->preparing);
    drop_large_next(store);
    pthread_mutex_unlock(&store->preparing);
    pthread_mutex_lock(&store->mutex);
    uint64_t bytes_max = free_bytes_max(store);
    bool is_due = needs_segment(store);
    pthread_mutex_unlock(&store->mutex);
    if (bytes_max < UINT64_MAX)
        delete_free_files(store, bytes_max + 1, UINT64_MAX);
    int failed = 0;
    if (is_due) {
        pthread_mutex_lock(&store->preparing);
        failed = prepare(store, store->segment_bytes, false);
        pthread_mutex_unlock(&store->preparing);
        pthread_mutex_lock(&store->mutex);
        uint64_t low = journal_progress_low(&store->progress);
        bool has_room_soon =
            (failed == -EDQUOT || failed == -ENOSPC) && is_oldest_finished(store, low);
        pthread_mutex_unlock(&store->mutex);
        failed = has_room_soon ? 0 : failed;
    }
    for (;;) {
        struct journal_segment file = {.bytes = 0};
        pthread_mutex_lock(&store->mutex);
        if (store->free_count > free_files_kept(store, is_full)) {
            file = store->free_files[--store->free_count];
            store->deleted_ns = clock_now_ns();
        }
        pthread_mutex_unlock(&store->mutex);
        if (file.bytes == 0)
            break;
        unlink_file(store, &file);
        free_segments(store, false);
    }
    return failed;
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
                                      .is_foreign = segment->is_foreign,
                                      .is_stranger = segment->is_stranger};
    return true;
}

struct journal_damage journal_store_tail(const struct journal_store *store)
{
    return store->tail;
}
