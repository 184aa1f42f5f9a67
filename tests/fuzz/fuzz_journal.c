/* SPDX-License-Identifier: Apache-2.0 */
/* A journal that opens and reads a segment of arbitrary content. The input's checksums are mended
 * where it marks a head, so that what lies behind them is reached as well. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"
#include "tests/support/simulated_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_BYTES_MAX = 1 << 20, CRC_AT = 4 };

static void on_any_damage(const struct journal_damage *damage, void *arg)
{
    (void)arg;
    assert(damage->segment == 3 || damage->segment == 4);
    assert(damage->offset <= JOURNAL_BLOCK_BYTES + FUZZ_BYTES_MAX);
}

/* As a tool looks at it: every depth finds the same records, but for those whose payload is
 * damaged. */
static void look(struct budget *disk, struct budget *memory)
{
    struct error error;
    struct journal_stored stored;
    struct journal_file file;
    uint64_t counts[JOURNAL_CHECKS + 1] = {0};
    struct journal_store *store =
        journal_store_open(&(struct journal_store_settings){.directory = "/disk",
                                                            .segment_bytes = JOURNAL_SEGMENT_BYTES,
                                                            .disk = disk,
                                                            .is_read_only = true},
                           &error);
    assert(store != NULL);
    for (size_t i = 0; journal_store_file(store, i, &file); i++)
        assert(file.bytes >= JOURNAL_BLOCK_BYTES);
    for (unsigned depth = JOURNAL_PAYLOADS; depth <= JOURNAL_CHECKS; depth++) {
        struct journal_reader *reader = journal_reader_create(store, 0, on_any_damage, NULL);
        journal_reader_set_depth(reader, depth);
        while (journal_reader_next(reader, memory, &stored) == JOURNAL_READ) {
            assert((stored.payload != NULL) == (depth == JOURNAL_PAYLOADS));
            buffer_unref(stored.payload);
            counts[depth]++;
        }
        journal_reader_destroy(reader);
    }
    assert(counts[JOURNAL_CHECKS] == counts[JOURNAL_PAYLOADS]);
    assert(counts[JOURNAL_CHECKS] <= counts[JOURNAL_HEADS]);
    journal_store_close(store);
}

static void on_damage(const struct journal_damage *damage, void *arg)
{
    (void)arg;
    assert(damage->records > 0);
}

/* The first byte says which heads are mended; a head's own bytes say how long its payload is. */
static void put_segment(const uint8_t *data, size_t size, uint64_t number)
{
    char name[JOURNAL_NAME_BYTES];
    journal_segment_name(name, number);
    uint8_t *file = disk_create(name, JOURNAL_BLOCK_BYTES + size);
    journal_segment_header_write(
        file, &(struct journal_segment_header){
                  .version = JOURNAL_VERSION, .key = 1, .number = number, .bytes = size});
    memcpy(file + JOURNAL_BLOCK_BYTES, data, size);
    for (size_t at = JOURNAL_BLOCK_BYTES; at + JOURNAL_HEAD_BYTES <= JOURNAL_BLOCK_BYTES + size;) {
        struct journal_head head = {
            .type = file[at + 16] % 5,
            .signal = file[at + 17],
            .meta_bytes = file[at + 18],
            .bytes = file[at + 12] | (uint32_t)file[at + 13] << 8,
            .id = file[at + 24] | (uint64_t)file[at + 31] << 56,
            .items = file[at + 40],
        };
        uint64_t left = JOURNAL_BLOCK_BYTES + size - at - JOURNAL_HEAD_BYTES;
        head.meta_bytes = head.meta_bytes > head.bytes ? 0 : head.meta_bytes;
        if (head.bytes <= left)
            head.crc = journal_crc(0, slice_of(file + at + JOURNAL_HEAD_BYTES, head.bytes));
        if (file[at + 20] != 0xff)
            journal_head_write(file + at,
                               &(struct journal_place){.key = 1, .segment = number, .offset = at},
                               &head);
        at += journal_record_bytes(head.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct budget disk;
    struct budget memory;
    struct journal_stored stored;
    if (size > FUZZ_BYTES_MAX)
        return 0;
    disk_start(1);
    budget_init(&disk, UINT64_MAX);
    budget_init(&memory, UINT64_MAX);
    put_segment(data, size / 2, 3);
    put_segment(data + size / 2, size - size / 2, 4);
    look(&disk, &memory);
    struct journal_store *store = journal_store_open(
        &(struct journal_store_settings){.directory = "/disk",
                                         .segment_bytes = JOURNAL_SEGMENT_BYTES_MIN,
                                         .disk = &disk,
                                         .is_synced = true},
        &error);
    assert(store != NULL);
    int exporter = journal_store_exporter(store, "traces/otlp_http");
    uint64_t low = exporter >= 0 ? journal_store_low(store, (size_t)exporter) : 0;
    for (unsigned i = 0; i < 2; i++) {
        struct journal_reader *reader =
            journal_reader_create(store, i == 0 ? low : 0, on_damage, NULL);
        uint64_t position = 0;
        while (journal_reader_next(reader, &memory, &stored) == JOURNAL_READ) {
            assert(stored.head.id + 1 > position && stored.head.meta_bytes <= stored.payload->size);
            position = journal_reader_position(reader);
            buffer_unref(stored.payload);
        }
        journal_reader_destroy(reader);
    }
    journal_store_commit(store, NULL);
    journal_store_keep(store);
    journal_store_close(store);
    budget_fini(&disk);
    budget_fini(&memory);
    disk_stop();
    return 0;
}
