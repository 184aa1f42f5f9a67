/* SPDX-License-Identifier: Apache-2.0 */
/* Low marks and windows of exporters. Plain data; its user locks. */
#include "src/journal/journal_progress.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/journal/journal_format.h"

enum { WORD_BITS = 64, WINDOW_WORDS = JOURNAL_WINDOW_IDS / WORD_BITS };

/* In a checkpoint: the number of exporters; for each its low mark, the length of its name, the
 * words of its window up to the last that is not 0, the items and bytes that it owes; then name,
 * padded, and words. */
enum { COUNT_BYTES = 8, EXPORTER_HEAD_BYTES = 32 };

static size_t padded(size_t size)
{
    return (size + JOURNAL_ALIGN_BYTES - 1) / JOURNAL_ALIGN_BYTES * JOURNAL_ALIGN_BYTES;
}

static bool get(const struct journal_exporter *exporter, uint64_t id)
{
    uint64_t bit = id % JOURNAL_WINDOW_IDS;
    return (exporter->window[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

static void set(struct journal_exporter *exporter, uint64_t id, bool value)
{
    uint64_t bit = id % JOURNAL_WINDOW_IDS;
    uint64_t mask = (uint64_t)1 << bit % WORD_BITS;
    if (get(exporter, id) == value)
        return;
    exporter->window[bit / WORD_BITS] ^= mask;
    exporter->ahead += value ? 1 : (uint64_t)-1;
}

void journal_progress_init(struct journal_progress *progress)
{
    *progress = (struct journal_progress){.count = 0};
}

void journal_progress_fini(struct journal_progress *progress)
{
    for (size_t i = 0; i < progress->count; i++) {
        mem_free(progress->exporters[i].name);
        mem_free(progress->exporters[i].window);
    }
    progress->count = 0;
}

int journal_progress_add(struct journal_progress *progress, const char *name, uint64_t next_id)
{
    assert(strlen(name) <= JOURNAL_EXPORTER_BYTES_MAX);
    for (size_t i = 0; i < progress->count; i++) {
        if (strcmp(progress->exporters[i].name, name) != 0)
            continue;
        progress->exporters[i].is_configured = true;
        return (int)i;
    }
    if (progress->count == JOURNAL_EXPORTERS_MAX)
        return -1;
    progress->exporters[progress->count] = (struct journal_exporter){
        .name = mem_copy_text(name),
        .is_configured = true,
        .low = next_id,
        .window = mem_zalloc(WINDOW_WORDS * sizeof(uint64_t)),
    };
    return (int)progress->count++;
}

void journal_progress_remove(struct journal_progress *progress, size_t index)
{
    assert(index < progress->count);
    mem_free(progress->exporters[index].name);
    mem_free(progress->exporters[index].window);
    progress->count--;
    memmove(progress->exporters + index, progress->exporters + index + 1,
            (progress->count - index) * sizeof(progress->exporters[0]));
}

bool journal_progress_is_done(const struct journal_progress *progress, size_t index, uint64_t id)
{
    assert(index < progress->count);
    const struct journal_exporter *exporter = &progress->exporters[index];
    return id < exporter->low || (id - exporter->low < JOURNAL_WINDOW_IDS && get(exporter, id));
}

bool journal_progress_has_room(const struct journal_progress *progress, size_t index, uint64_t end)
{
    assert(index < progress->count);
    uint64_t low = progress->exporters[index].low;
    return end <= low || end - low <= JOURNAL_WINDOW_IDS;
}

void journal_progress_done(struct journal_progress *progress, size_t index, uint64_t first,
                           uint64_t end)
{
    assert(index < progress->count);
    struct journal_exporter *exporter = &progress->exporters[index];
    if (first <= exporter->low && end > exporter->low && end - exporter->low > JOURNAL_WINDOW_IDS) {
        memset(exporter->window, 0, WINDOW_WORDS * sizeof(uint64_t));
        exporter->ahead = 0;
        exporter->low = end;
    } else if (first <= exporter->low) {
        for (; exporter->low < end; exporter->low++)
            set(exporter, exporter->low, false);
    } else {
        assert(end <= first || journal_progress_has_room(progress, index, end));
        for (uint64_t id = first; id < end; id++)
            set(exporter, id, true);
    }
    for (; get(exporter, exporter->low); exporter->low++)
        set(exporter, exporter->low, false);
}

void journal_progress_owe(struct journal_progress *progress, uint64_t first,
                          struct journal_amount amount)
{
    for (size_t i = 0; i < progress->count; i++) {
        struct journal_exporter *exporter = &progress->exporters[i];
        if (exporter->low > first)
            continue;
        exporter->owed.items += amount.items;
        exporter->owed.bytes += amount.bytes;
    }
}

void journal_progress_pay(struct journal_progress *progress, size_t index,
                          struct journal_amount amount)
{
    assert(index < progress->count);
    struct journal_amount *owed = &progress->exporters[index].owed;
    owed->items -= amount.items < owed->items ? amount.items : owed->items;
    owed->bytes -= amount.bytes < owed->bytes ? amount.bytes : owed->bytes;
}

uint64_t journal_progress_backlog(const struct journal_progress *progress, size_t index,
                                  uint64_t end)
{
    assert(index < progress->count);
    const struct journal_exporter *exporter = &progress->exporters[index];
    uint64_t records = end > exporter->low ? end - exporter->low : 0;
    return records > exporter->ahead ? records - exporter->ahead : 0;
}

uint64_t journal_progress_low(const struct journal_progress *progress)
{
    uint64_t low = UINT64_MAX;
    for (size_t i = 0; i < progress->count; i++)
        if (progress->exporters[i].low < low)
            low = progress->exporters[i].low;
    return low;
}

/* Words of the window, from the one with the low mark on, up to the last that is not 0. */
static size_t words_of(const struct journal_exporter *exporter)
{
    size_t words = WINDOW_WORDS;
    size_t first = exporter->low % JOURNAL_WINDOW_IDS / WORD_BITS;
    while (words > 0 && exporter->window[(first + words - 1) % WINDOW_WORDS] == 0)
        words--;
    return words;
}

uint64_t journal_progress_end(const struct journal_progress *progress)
{
    uint64_t end = 0;
    for (size_t i = 0; i < progress->count; i++) {
        const struct journal_exporter *exporter = &progress->exporters[i];
        uint64_t low = exporter->low;
        if (low == UINT64_MAX) /* given up: it gets nothing more, whatever comes */
            continue;
        /* The words begin with that of the low mark, whose lower bits are the window's last ids. */
        uint64_t last = ((uint64_t)1 << low % WORD_BITS) - 1;
        bool is_full = (exporter->window[low % JOURNAL_WINDOW_IDS / WORD_BITS] & last) != 0;
        uint64_t high = low - low % WORD_BITS + words_of(exporter) * WORD_BITS;
        high = is_full ? low + JOURNAL_WINDOW_IDS : high;
        while (high > low && !get(exporter, high - 1))
            high--;
        high = high > low ? high : low;
        end = high > end ? high : end;
    }
    return end;
}

size_t journal_progress_bytes(const struct journal_progress *progress)
{
    size_t bytes = COUNT_BYTES;
    for (size_t i = 0; i < progress->count; i++) {
        const struct journal_exporter *exporter = &progress->exporters[i];
        bytes += EXPORTER_HEAD_BYTES + padded(strlen(exporter->name)) +
                 words_of(exporter) * sizeof(uint64_t);
    }
    return bytes;
}

size_t journal_progress_bytes_max(const struct journal_progress *progress)
{
    size_t bytes = COUNT_BYTES;
    for (size_t i = 0; i < progress->count; i++)
        bytes += EXPORTER_HEAD_BYTES + padded(strlen(progress->exporters[i].name)) +
                 WINDOW_WORDS * sizeof(uint64_t);
    return bytes;
}

void journal_progress_write(const struct journal_progress *progress, uint8_t *to)
{
    journal_put_u64(to, progress->count);
    to += COUNT_BYTES;
    for (size_t i = 0; i < progress->count; i++) {
        const struct journal_exporter *exporter = &progress->exporters[i];
        size_t name_bytes = strlen(exporter->name);
        size_t words = words_of(exporter);
        size_t first = exporter->low % JOURNAL_WINDOW_IDS / WORD_BITS;
        journal_put_u64(to, exporter->low);
        journal_put_u32(to + 8, (uint32_t)name_bytes);
        journal_put_u32(to + 12, (uint32_t)words);
        journal_put_u64(to + 16, exporter->owed.items);
        journal_put_u64(to + 24, exporter->owed.bytes);
        to += EXPORTER_HEAD_BYTES;
        memset(to, 0, padded(name_bytes));
        memcpy(to, exporter->name, name_bytes);
        to += padded(name_bytes);
        for (size_t word = 0; word < words; word++, to += sizeof(uint64_t))
            journal_put_u64(to, exporter->window[(first + word) % WINDOW_WORDS]);
    }
}

/* Reads one exporter; its size, or 0. */
static size_t read_exporter(struct journal_exporter *exporter, struct slice bytes)
{
    if (bytes.size < EXPORTER_HEAD_BYTES)
        return 0;
    uint64_t low = journal_get_u64(bytes.data);
    size_t name_bytes = journal_get_u32(bytes.data + 8);
    size_t words = journal_get_u32(bytes.data + 12);
    size_t words_at = EXPORTER_HEAD_BYTES + padded(name_bytes);
    if (name_bytes > JOURNAL_EXPORTER_BYTES_MAX || words > WINDOW_WORDS ||
        bytes.size < words_at + words * sizeof(uint64_t) ||
        memchr(bytes.data + EXPORTER_HEAD_BYTES, '\0', name_bytes) != NULL)
        return 0;
    *exporter = (struct journal_exporter){
        .name = mem_zalloc(name_bytes + 1),
        .low = low,
        .owed = {.items = journal_get_u64(bytes.data + 16),
                 .bytes = journal_get_u64(bytes.data + 24)},
        .window = mem_zalloc(WINDOW_WORDS * sizeof(uint64_t)),
    };
    memcpy(exporter->name, bytes.data + EXPORTER_HEAD_BYTES, name_bytes);
    size_t first = low % JOURNAL_WINDOW_IDS / WORD_BITS;
    for (size_t word = 0; word < words; word++) {
        uint64_t bits = journal_get_u64(bytes.data + words_at + word * sizeof(uint64_t));
        exporter->window[(first + word) % WINDOW_WORDS] = bits;
        exporter->ahead += (uint64_t)__builtin_popcountll(bits);
    }
    return words_at + words * sizeof(uint64_t);
}

bool journal_progress_read(struct journal_progress *progress, struct slice bytes)
{
    if (bytes.size < COUNT_BYTES || journal_get_u64(bytes.data) > JOURNAL_EXPORTERS_MAX)
        return false;
    struct journal_progress read;
    journal_progress_init(&read);
    size_t count = journal_get_u64(bytes.data);
    bytes = slice_of(bytes.data + COUNT_BYTES, bytes.size - COUNT_BYTES);
    while (read.count < count) {
        size_t size = read_exporter(&read.exporters[read.count], bytes);
        if (size == 0) {
            journal_progress_fini(&read);
            return false;
        }
        bytes = slice_of(bytes.data + size, bytes.size - size);
        read.count++;
    }
    journal_progress_fini(progress);
    *progress = read;
    return true;
}
