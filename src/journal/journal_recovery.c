/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the segments of earlier processes, reads the newest checkpoint and what follows it. */
#include "src/journal/journal_recovery.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/journal/journal_files.h"
#include "src/journal/journal_names.h"
#include "src/journal/journal_reader.h"

enum { KEY_BYTES = 12 }; /* the key and its checksum, in the file "key" */

/* Numbers of segments. */
struct found {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
};

static void note_name(const char *name, void *arg)
{
    struct found *found = arg;
    uint64_t number;
    if (!journal_segment_number(name, &number) || number > JOURNAL_SEGMENTS_MAX)
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
    bool is_short;       /* and is smaller than that says: its end was cut off */
    bool has_checkpoint; /* and a checkpoint */
    bool is_unknown;     /* nothing can be said of it, not even its size */
    int failed;          /* why some of it cannot be read; 0: it can */
    uint64_t oldest_id;  /* of its records; 0: there is none */
    uint64_t previous_end;
    uint64_t first_id;
    uint64_t wall_ns; /* when it was begun; 0: unknown */
};

/* Reads what a file begins with; the key, too, if it is not known yet. Returns 0, or a negative
 * errno if it cannot be opened, or if the size of the file cannot be found out. */
static int probe(struct journal_store *store, struct candidate *candidate, bool *has_key)
{
    char path[PATH_MAX];
    uint8_t block[JOURNAL_BLOCK_BYTES];
    struct journal_segment_header header;
    struct stat info;
    journal_segment_path(store, path, candidate->segment.number);
    int unknown = fileops()->stat(path, &info);
    candidate->is_unknown = unknown != 0 && unknown != -ENOENT;
    if (unknown != 0)
        return unknown;
    if (info.st_size > 0)
        candidate->segment.bytes = (uint64_t)info.st_size;
    candidate->segment.end = candidate->segment.bytes;
    int fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0) {
        candidate->failed = fd != -ENOENT ? fd : 0;
        return fd;
    }
    if (journal_read_all(fd, block, sizeof(block), 0, &candidate->failed) == sizeof(block) &&
        journal_segment_header_read(block, &header)) {
        bool is_later = header.version == 0 || header.version > JOURNAL_VERSION;
        candidate->segment.is_stranger = !is_later && *has_key && header.key != store->key;
        if (is_later || candidate->segment.is_stranger) {
            candidate->segment.is_foreign = true;
            candidate->segment.version = header.version;
        } else {
            if (!*has_key)
                store->key = header.key;
            *has_key = true;
            candidate->has_header = header.number == candidate->segment.number;
            candidate->segment.version = candidate->has_header ? header.version : 0;
            candidate->is_short = candidate->has_header && candidate->segment.bytes < header.bytes;
        }
    }
    fileops()->close(fd);
    return 0;
}

static void apply_done(struct journal_store *store, struct slice payload)
{
    for (size_t at = 0; at + JOURNAL_DONE_BYTES <= payload.size; at += JOURNAL_DONE_BYTES) {
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

/* Its end, also when it cannot be applied: ids below are not used again. */
static uint64_t done_end(struct slice payload)
{
    uint64_t end_max = 0;
    for (size_t at = 0; at + JOURNAL_DONE_BYTES <= payload.size; at += JOURNAL_DONE_BYTES) {
        uint64_t end = journal_get_u64(payload.data + at + 16);
        if (end != UINT64_MAX && end > end_max)
            end_max = end;
    }
    return end_max;
}

/* What a walk over the heads of one segment has found. */
struct walk {
    uint64_t end_id;   /* behind its last record; 0: there is none */
    uint64_t done_end; /* behind the last that some exporter has finished, as far as it says so */
    uint64_t torn;     /* the offset of what was damaged or only written in part behind that */
    bool is_used;      /* it holds a record of any kind */
    bool is_certain;   /* one of its checkpoints was taken over: it says all of the exporters */
};

static void note_checkpoint(struct journal_store *store, struct candidate *candidate,
                            const struct journal_head *head, struct slice payload, bool is_first,
                            bool with_state, struct walk *walk)
{
    if (payload.size < JOURNAL_CHECKPOINT_HEAD_BYTES)
        return;
    if (is_first) {
        candidate->has_checkpoint = true;
        candidate->previous_end = journal_get_u64(payload.data);
        candidate->first_id = journal_get_u64(payload.data + 8);
        candidate->wall_ns = head->wall_ns;
    }
    const struct slice progress = slice_of(payload.data + JOURNAL_CHECKPOINT_HEAD_BYTES,
                                           payload.size - JOURNAL_CHECKPOINT_HEAD_BYTES);
    if (!with_state || !journal_progress_read(&store->progress, progress))
        return;
    walk->is_certain = true;
    store->unclaimed = (struct journal_amount){0};
}

/* with_state: takes over what its checkpoints and the records after them say of the exporters. A
 * note of what is done counts exporters as the checkpoint of its segment does. */
static struct walk walk_heads(struct journal_store *store, struct candidate *candidate,
                              bool with_state)
{
    struct journal_reader *reader = journal_reader_create_scan(store, &candidate->segment);
    struct journal_head head;
    struct walk walk = {.end_id = 0};
    while (journal_reader_find_head(reader, &head)) {
        walk.is_used = true;
        if (head.type == JOURNAL_DATA) {
            candidate->oldest_id = candidate->oldest_id > 0 ? candidate->oldest_id : head.id;
            walk.end_id = head.id + 1 > walk.end_id ? head.id + 1 : walk.end_id;
            journal_ages_note(&store->ages, head.id, head.wall_ns);
            const struct journal_amount amount = {.items = head.items,
                                                  .bytes = (uint64_t)head.bytes - head.meta_bytes};
            if (with_state)
                journal_progress_owe(&store->progress, head.id, amount);
            if (with_state && !walk.is_certain) {
                store->unclaimed.items += amount.items;
                store->unclaimed.bytes += amount.bytes;
            }
        } else if (head.type == JOURNAL_CHECKPOINT || head.type == JOURNAL_DONE) {
            uint8_t *payload = journal_reader_payload(reader, &head);
            struct slice bytes = slice_of(payload, payload != NULL ? head.bytes : 0);
            if (head.type == JOURNAL_CHECKPOINT) {
                bool is_first = journal_reader_offset(reader) == JOURNAL_BLOCK_BYTES;
                note_checkpoint(store, candidate, &head, bytes, is_first, with_state, &walk);
            } else {
                uint64_t end = done_end(bytes);
                walk.done_end = end > walk.done_end ? end : walk.done_end;
                if (walk.is_certain)
                    apply_done(store, bytes);
            }
            mem_free(payload);
            if (with_state)
                journal_ages_forget(&store->ages, journal_progress_low(&store->progress));
        }
        journal_reader_step_over(reader, &head);
    }
    candidate->failed = candidate->failed != 0 ? candidate->failed : journal_reader_error(reader);
    walk.torn = journal_reader_torn(reader);
    journal_reader_destroy(reader);
    return walk;
}

/* Reads the first checkpoint only. */
static void read_checkpoint(struct journal_store *store, struct candidate *candidate)
{
    struct candidate copy = *candidate;
    /* Nothing behind the head of the first record is looked at. */
    copy.segment.end = JOURNAL_BLOCK_BYTES + JOURNAL_HEAD_BYTES;
    walk_heads(store, &copy, false);
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
        walk_heads(store, &copy, false);
    }
    journal_ages_forget(&store->ages, low);
}

/* Begins with no state, but for the ages, which are true wherever they were found. */
static void forget_state(struct journal_store *store)
{
    journal_progress_fini(&store->progress);
    journal_progress_init(&store->progress);
    store->unclaimed = (struct journal_amount){0};
    store->next_id = 1;
    store->oldest_id = 0;
    store->tail = (struct journal_damage){.records = 0};
}

/* Takes over what the segments from `first` on say. With has_base that one begins with a
 * checkpoint. False: which cannot be taken over. */
static bool take_state(struct journal_store *store, struct candidate *candidates, size_t first,
                       size_t count, bool has_base)
{
    uint64_t done_end_max = 0;
    uint64_t sound_id = 1;    /* next_id without what may be hidden */
    bool hides_first = false; /* what was before the first record found cannot be read */
    forget_state(store);
    for (size_t i = first; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        uint64_t start_id = sound_id;
        if (candidate->segment.is_foreign)
            continue;
        struct walk walk = walk_heads(store, candidate, true);
        if (has_base && i == first && !walk.is_certain)
            return false;
        if (candidate->has_checkpoint && walk.end_id < candidate->first_id)
            walk.end_id = candidate->first_id;
        store->next_id = walk.end_id > store->next_id ? walk.end_id : store->next_id;
        sound_id = walk.end_id > sound_id ? walk.end_id : sound_id;
        done_end_max = walk.done_end > done_end_max ? walk.done_end : done_end_max;
        /* An exporter that no checkpoint knows may have been new here, and waits for all since. */
        if (walk.is_certain)
            store->oldest_id = 0;
        else if (store->oldest_id == 0 && (walk.is_used || candidate->failed != 0))
            store->oldest_id = has_base ? start_id : candidate->oldest_id;
        /* What cannot be read may be records: their ids are not used again, and still wanted. */
        if (candidate->failed != 0) {
            hides_first |= !has_base && store->oldest_id == 0;
            uint64_t hidden = candidate->segment.bytes / JOURNAL_HEAD_BYTES;
            store->next_id += hidden;
            if (!has_base && store->oldest_id > 0)
                store->oldest_id = store->oldest_id > hidden ? store->oldest_id - hidden : 1;
        }
        if (walk.torn == 0 && candidate->is_short)
            walk.torn = candidate->segment.bytes;
        if (walk.is_used)
            store->tail = (struct journal_damage){.records = 0};
        if (walk.torn > 0)
            store->tail = (struct journal_damage){.segment = candidate->segment.number,
                                                  .offset = walk.torn,
                                                  .first = store->next_id,
                                                  .records = 1};
    }
    if (hides_first && store->oldest_id > 0)
        store->oldest_id = 1;
    /* Of requests whose heads are damaged this may be all that is known: that they are finished. */
    uint64_t finished_end = journal_progress_end(&store->progress);
    finished_end = done_end_max > finished_end ? done_end_max : finished_end;
    if (finished_end > store->next_id) {
        store->next_id = finished_end;
        store->tail.records = 0;
    }
    return true;
}

/* Returns 0, or a negative errno when nothing could be read that tells where to go on. */
static int recover(struct journal_store *store, struct candidate *candidates, size_t count)
{
    size_t used = 0;
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = &candidates[i];
        budget_take(store->disk, candidate->segment.bytes);
        if (store->next_number <= candidate->segment.number)
            store->next_number = candidate->segment.number + 1;
        if (!candidate->segment.is_foreign) {
            read_checkpoint(store, candidate);
            /* A prepared file that was never begun, or a segment whose start is damaged. */
            if (!candidate->has_header && !candidate->has_checkpoint) {
                struct walk walk = walk_heads(store, candidate, false);
                if (!walk.is_used && candidate->failed == 0 &&
                    store->free_count < JOURNAL_FREE_FILES_ROOM) {
                    store->free_files[store->free_count++] = candidate->segment;
                    continue;
                }
            }
        }
        candidates[used++] = *candidate;
    }
    count = used;
    /* The newest checkpoint says it all, together with what follows it; without any, all that is
     * there is wanted. */
    size_t newest = count;
    size_t first;
    for (;; newest--) {
        while (newest > 0 && !candidates[newest - 1].has_checkpoint)
            newest--;
        first = newest > 0 ? newest - 1 : 0;
        if (take_state(store, candidates, first, count, newest > 0))
            break;
    }
    for (size_t i = first; i < count; i++)
        failed = failed != 0 ? failed : candidates[i].failed;
    store->durable_id = store->next_id;
    uint64_t end_id = store->next_id;
    bool is_end_known = true;
    store->segments_capacity = count;
    store->segments = mem_alloc((count > 0 ? count : 1) * sizeof(store->segments[0]));
    for (size_t i = count; i > 0; i--) {
        store->segments[i - 1] = candidates[i - 1].segment;
        store->segments[i - 1].end_id = end_id;
        store->segments[i - 1].is_end_known = is_end_known;
        store->segments[i - 1].has_spare_ids = i > first && candidates[i - 1].failed != 0;
        store->segments[i - 1].is_newest = i == count;
        is_end_known = candidates[i - 1].has_checkpoint;
        if (is_end_known)
            end_id = candidates[i - 1].previous_end;
    }
    store->segments_count = count;
    journal_names_read(store);
    for (size_t i = 0; i < store->progress.count; i++)
        if (store->progress.exporters[i].low >= store->next_id)
            store->progress.exporters[i].owed = (struct journal_amount){0};
    find_oldest(store, candidates, count);
    /* What the killed process wrote of its progress may not be on the disk yet: segments are freed
     * once a checkpoint of ours is. */
    uint64_t low = store->progress.count > 0 ? journal_progress_low(&store->progress) : 0;
    if (store->oldest_id > 0 && store->oldest_id < low)
        low = store->oldest_id;
    if (!store->is_synced)
        store->stable_low = low;
    else
        for (size_t i = 0; i < count && !store->has_lost_dones; i++)
            store->has_lost_dones =
                !store->segments[i].is_foreign && store->segments[i].end_id <= low;
    return store->progress.count == 0 && store->oldest_id == 0 ? failed : 0;
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

/* The key lies in a file of its own and in every segment. Returns 0, -ENOENT when the file is not
 * there or damaged, or another negative errno when it cannot be read. */
static int read_key(struct journal_store *store)
{
    char path[PATH_MAX];
    uint8_t bytes[KEY_BYTES];
    journal_path(store, path, "key");
    int fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    int failed;
    size_t got = journal_read_all(fd, bytes, sizeof(bytes), 0, &failed);
    fileops()->close(fd);
    if (failed != 0)
        return failed;
    if (got != sizeof(bytes) || journal_get_u32(bytes + 8) != journal_crc(0, slice_of(bytes, 8)))
        return -ENOENT;
    store->key = journal_get_u64(bytes);
    return 0;
}

/* Failure is harmless: every segment holds the key. */
static void write_key(struct journal_store *store)
{
    char path[PATH_MAX];
    uint8_t bytes[KEY_BYTES];
    journal_put_u64(bytes, store->key);
    journal_put_u32(bytes + 8, journal_crc(0, slice_of(bytes, 8)));
    struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    journal_path(store, path, "key");
    int fd = fileops()->open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (journal_write_all(fd, &part, 1, 0) == 0 && store->is_synced && fileops()->fsync(fd) == 0)
        journal_sync_directory(store);
    fileops()->close(fd);
}

bool journal_recover(struct journal_store *store, struct error *error)
{
    struct found found = {.count = 0};
    int failed = fileops()->list(store->directory, note_name, &found);
    if (failed != 0) {
        mem_free(found.numbers);
        return journal_file_error(error, "list", store->directory, failed);
    }
    if (found.count > 0)
        qsort(found.numbers, found.count, sizeof(found.numbers[0]), compare_numbers);
    struct candidate *candidates = mem_zalloc((found.count + 1) * sizeof(*candidates));
    int unread_key = read_key(store);
    store->has_key_file = unread_key == 0;
    bool has_key = store->has_key_file;
    failed = 0;
    for (size_t i = 0; i < found.count && failed == 0; i++) {
        candidates[i].segment.number = found.numbers[i];
        int unopened = probe(store, &candidates[i], &has_key);
        if (candidates[i].is_unknown || (store->is_read_only ? unopened != 0 && unopened != -ENOENT
                                                             : journal_error_passes(unopened))) {
            char path[PATH_MAX];
            journal_segment_path(store, path, found.numbers[i]);
            failed = unopened;
            journal_file_error(error, "open", path, failed);
        } else if (candidates[i].segment.is_stranger && !store->is_read_only) {
            char name[JOURNAL_NAME_BYTES];
            journal_segment_name(name, found.numbers[i]);
            failed = -EINVAL;
            error_set(
                error,
                "%s/%s is a segment of another journal: it does not belong to the other files "
                "there. Move it, with those that came with it, to a directory of their own; "
                "\"spanflame journal export\" prints what they hold",
                store->directory, name);
        }
    }
    if (failed == 0 && !has_key && store->is_read_only && found.count > 0) {
        failed = -ENOENT;
        error_set(error,
                  "%s: found neither the file \"key\" nor a sound start of a segment: without one "
                  "of them no record can be told from other bytes",
                  store->directory);
    }
    if (failed == 0 && !has_key && unread_key != -ENOENT) {
        /* With another key nothing that is there could be told from other bytes. */
        failed = unread_key;
        journal_file_error(error, "read the file \"key\" of", store->directory, failed);
    }
    if (!has_key && getrandom(&store->key, sizeof(store->key), 0) != sizeof(store->key))
        store->key = clock_wall_ns();
    if (failed == 0) {
        int unread = recover(store, candidates, found.count);
        store->has_changed = store->is_read_only && has_changed(store, &found);
        failed = store->is_read_only ? 0 : unread;
        if (failed != 0)
            journal_file_error(error, "read any segment of the journal", store->directory, failed);
    }
    mem_free(candidates);
    mem_free(found.numbers);
    if (failed != 0)
        return false;
    if (!store->has_key_file && !store->is_read_only)
        write_key(store);
    return true;
}
