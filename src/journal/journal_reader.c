/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the segments from head to head. Runs on the thread that reads, beside the one that commits:
 * what both use is guarded by the store's mutex, which is never held across a file operation. */
#include "src/journal/journal_reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/journal/journal_files.h"

/* What the disk cannot read is tried again for so long, in each segment, before it counts as
 * damaged. */
#define READ_PATIENCE_NS ((uint64_t)30 * NS_PER_S)

/* A window of the file at hand; payloads of requests go straight into their buffers. */
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
    struct journal_patience patience;
    uint64_t window_offset;
    size_t window_bytes;
    uint8_t window[JOURNAL_READ_BYTES];
};

/* Whether the segment at hand is still one of the store's. */
static bool is_listed(struct journal_reader *reader)
{
    struct journal_store *store = reader->store;
    pthread_mutex_lock(&store->mutex);
    bool is_there = store->has_active && store->active.number == reader->segment.number;
    for (size_t i = 0; i < store->segments_count && !is_there; i++)
        is_there = store->segments[i].number == reader->segment.number;
    pthread_mutex_unlock(&store->mutex);
    return is_there;
}

/* What cannot be read may be there nevertheless. Whether to try again later, instead of taking it
 * for damaged and going on without it. */
static bool waits_for(struct journal_reader *reader, int failed)
{
    /* A scan keeps the first. */
    reader->failed = reader->is_scan && reader->failed != 0 ? reader->failed : failed;
    reader->is_waiting = false;
    if (failed == 0 || reader->is_scan || reader->store->is_read_only)
        return false;
    /* A file may be gone since it was freed meanwhile. */
    if (failed == -ENOENT && !is_listed(reader))
        return false;
    uint64_t now_ns = clock_now_ns();
    if (reader->patience.segment != reader->segment.number)
        reader->patience = (struct journal_patience){.segment = reader->segment.number,
                                                     .until_ns = now_ns + READ_PATIENCE_NS};
    reader->is_waiting = journal_error_passes(failed) || now_ns < reader->patience.until_ns;
    return reader->is_waiting;
}

/* So many bytes at an offset of the file at hand; NULL: they cannot be read. */
static const uint8_t *look(struct journal_reader *reader, uint64_t offset, size_t size)
{
    assert(size <= JOURNAL_READ_BYTES);
    if (offset < reader->window_offset ||
        offset + size > reader->window_offset + reader->window_bytes) {
        uint64_t left = reader->segment.end > offset ? reader->segment.end - offset : 0;
        /* Far from what was read last, only a head is wanted. */
        uint64_t window_end = reader->window_offset + reader->window_bytes;
        bool is_near = offset >= reader->window_offset && offset <= window_end + JOURNAL_READ_BYTES;
        size_t most =
            is_near || size > JOURNAL_BLOCK_BYTES ? JOURNAL_READ_BYTES : JOURNAL_BLOCK_BYTES;
        size_t wanted = left < most ? (size_t)left : most;
        int failed = 0;
        reader->window_offset = offset;
        reader->window_bytes =
            reader->fd >= 0 ? journal_read_all(reader->fd, reader->window, wanted, offset, &failed)
                            : 0;
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
    journal_segment_path(reader->store, path, reader->segment.number);
    reader->fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    return reader->fd >= 0 || !waits_for(reader, reader->fd);
}

/* Another process has freed the segment at hand since the store was opened. */
static bool is_gone(const struct journal_reader *reader)
{
    char path[PATH_MAX];
    struct stat info;
    journal_segment_path(reader->store, path, reader->segment.number);
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

/* Passes over ids below end whose segment is not there because no exporter needs them: it was
 * freed, and files of freed segments go away in any order. If that happened while the store was
 * opened, what says that none needs them may not have been seen. */
static void pass_freed(struct journal_reader *reader, uint64_t end)
{
    struct journal_store *store = reader->store;
    pthread_mutex_lock(&store->mutex);
    uint64_t low = store->has_changed ? end : journal_progress_low(&store->progress);
    pthread_mutex_unlock(&store->mutex);
    low = low < end ? low : end;
    reader->position = low > reader->position ? low : reader->position;
}

/* The first range of ids from first to end that was not reported yet. False: there is none. */
static bool find_unreported(struct journal_store *store, uint64_t first, uint64_t end,
                            struct journal_range *ret_range)
{
    bool is_reported = true;
    uint64_t stop = end;
    pthread_mutex_lock(&store->mutex);
    while (is_reported && first < end) {
        is_reported = false;
        stop = end;
        for (size_t i = 0; i < store->damaged_count && !is_reported; i++) {
            const struct journal_range *known = &store->damaged[i];
            is_reported = known->first <= first && first < known->end;
            if (is_reported)
                first = known->end;
            else if (known->first > first && known->first < stop)
                stop = known->first;
        }
    }
    pthread_mutex_unlock(&store->mutex);
    *ret_range = (struct journal_range){first, stop};
    return first < end;
}

/* Where there are too many ranges, the lowest is forgotten: the oldest records go first. */
static void note_reported(struct journal_store *store, uint64_t first, uint64_t end)
{
    size_t kept = 0;
    size_t lowest = 0;
    struct journal_range joined = {first, end};
    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; i < store->damaged_count; i++) {
        struct journal_range known = store->damaged[i];
        if (known.end < first || known.first > end) {
            store->damaged[kept++] = known;
            continue;
        }
        joined.first = known.first < joined.first ? known.first : joined.first;
        joined.end = known.end > joined.end ? known.end : joined.end;
    }
    for (size_t i = 0; i < kept; i++)
        if (store->damaged[i].first < store->damaged[lowest].first)
            lowest = i;
    store->damaged[kept < JOURNAL_DAMAGED_MAX ? kept++ : lowest] = joined;
    store->damaged_count = kept;
    pthread_mutex_unlock(&store->mutex);
}

/* The ids from the position to end are not there. What another reader has reported already is not
 * reported again. */
static void report_loss(struct journal_reader *reader, uint64_t end)
{
    struct journal_store *store = reader->store;
    assert(end > reader->position);
    bool is_absent = reader->damage_offset == 0; /* in no segment that is there */
    /* While it was read, it may have been freed and used again. */
    if (is_absent || !store->is_read_only)
        pass_freed(reader, end);
    if (reader->position == end)
        return;
    uint64_t first = reader->position;
    reader->position = end;
    struct journal_range range = {first, first};
    while (find_unreported(store, range.end, end, &range)) {
        const struct journal_damage damage = {
            .segment = reader->segment.number,
            .offset = reader->damage_offset > 0 ? reader->damage_offset : reader->offset,
            .first = range.first,
            .records = range.end - range.first,
        };
        if (!reader->is_scan && !is_gone(reader))
            reader->on_damage(&damage, reader->arg);
    }
    note_reported(store, first, end);
}

/* Whether a block begins at these bytes of the window that holds zeros only, as the unused end of a
 * segment. */
static bool is_zero_block(const struct journal_reader *reader, const uint8_t *bytes)
{
    size_t left = reader->window_bytes - (size_t)(bytes - reader->window);
    return reader->offset % JOURNAL_BLOCK_BYTES == 0 && left >= JOURNAL_BLOCK_BYTES &&
           bytes[0] == 0 && memcmp(bytes, bytes + 1, JOURNAL_BLOCK_BYTES - 1) == 0;
}

/* Finds the next head at or behind the offset. False: there is none in this segment. Behind a
 * record a head or the padding of its group follows; only where neither is found, which is damage
 * if there is a head further behind, every place is tried. */
bool journal_reader_find_head(struct journal_reader *reader, struct journal_head *ret_head)
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
        if (is_zero_block(reader, bytes)) {
            reader->is_after_record = false;
            reader->offset += JOURNAL_BLOCK_BYTES;
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
        size_t size = left < JOURNAL_READ_BYTES ? (size_t)left : JOURNAL_READ_BYTES;
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
uint8_t *journal_reader_payload(struct journal_reader *reader, const struct journal_head *head)
{
    uint8_t *payload = mem_try_alloc(head->bytes + 1);
    if (payload == NULL)
        return NULL;
    int failed;
    size_t got = journal_read_all(reader->fd, payload, head->bytes,
                                  reader->offset + JOURNAL_HEAD_BYTES, &failed);
    if (failed != 0)
        reader->failed = failed;
    if (got == head->bytes && journal_crc(0, slice_of(payload, head->bytes)) == head->crc)
        return payload;
    mem_free(payload);
    return NULL;
}

void journal_reader_step_over(struct journal_reader *reader, const struct journal_head *head)
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

struct journal_reader *journal_reader_create_scan(struct journal_store *store,
                                                  const struct journal_segment *segment)
{
    struct journal_reader *reader = journal_reader_create(store, 0, NULL, NULL);
    char path[PATH_MAX];
    journal_segment_path(store, path, segment->number);
    reader->is_scan = true;
    reader->segment = *segment;
    reader->has_segment = true;
    reader->fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    reader->failed = reader->fd < 0 ? reader->fd : 0;
    reader->offset = JOURNAL_BLOCK_BYTES;
    return reader;
}

uint64_t journal_reader_offset(const struct journal_reader *reader)
{
    return reader->offset;
}

uint64_t journal_reader_torn(const struct journal_reader *reader)
{
    return reader->torn_offset;
}

int journal_reader_error(const struct journal_reader *reader)
{
    return reader->failed;
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

struct journal_patience journal_reader_patience(const struct journal_reader *reader)
{
    return reader->patience;
}

void journal_reader_set_patience(struct journal_reader *reader, struct journal_patience patience)
{
    reader->patience = patience;
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
    uint8_t *payload = journal_reader_payload(reader, checkpoint);
    if (payload != NULL && checkpoint->bytes >= JOURNAL_CHECKPOINT_HEAD_BYTES) {
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
        bool has_head = has_more && open_at_hand(reader) && journal_reader_find_head(reader, &head);
        if (reader->is_waiting)
            return JOURNAL_READ_FAILED;
        if (!has_head) {
            if (reader->has_segment && reader->segment.is_end_known && reader->position > 0 &&
                reader->segment.end_id > reader->position) {
                /* All of it was read by now: there are no more. */
                if (reader->segment.has_spare_ids && reader->damage_offset == 0)
                    reader->position = reader->segment.end_id;
                else
                    report_loss(reader, reader->segment.end_id);
            } else if (reader->damage_offset > 0 &&
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
            journal_reader_step_over(reader, &head);
            continue;
        }
        bool is_sound = true;
        bool is_skipped = reader->skips != NULL && reader->skips(head.id, reader->skips_arg);
        struct buffer *payload = NULL;
        if (reader->depth == JOURNAL_PAYLOADS && !is_skipped) {
            payload = buffer_try_create(budget, head.bytes);
            if (payload == NULL) {
                reader->is_after_record = true; /* the same head is expected again */
                *ret_stored = (struct journal_stored){
                    .head = head, .segment = reader->segment.number, .offset = at};
                return JOURNAL_READ_BUSY;
            }
            int failed;
            size_t got = journal_read_all(reader->fd, payload->data, head.bytes,
                                          at + JOURNAL_HEAD_BYTES, &failed);
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
        journal_reader_step_over(reader, &head);
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
