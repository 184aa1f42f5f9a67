/* SPDX-License-Identifier: Apache-2.0 */
/* The file: a CRC-32C of what follows, then each name with a zero behind it. */
#include "src/journal/journal_names.h"

#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/base/slice.h"
#include "src/journal/journal_files.h"

enum {
    CRC_BYTES = 4,
    FILE_BYTES_MAX = CRC_BYTES + JOURNAL_EXPORTERS_MAX * (JOURNAL_EXPORTER_BYTES_MAX + 1),
};

static size_t print_names(const struct journal_store *store, uint8_t *to)
{
    size_t size = CRC_BYTES;
    for (size_t i = 0; i < store->progress.count; i++) {
        size_t name_bytes = strlen(store->progress.exporters[i].name) + 1;
        memcpy(to + size, store->progress.exporters[i].name, name_bytes);
        size += name_bytes;
    }
    journal_put_u32(to, journal_crc(0, slice_of(to + CRC_BYTES, size - CRC_BYTES)));
    return size;
}

/* Returns its size; 0: it is not there, or damaged. */
static size_t read_file(const struct journal_store *store, uint8_t *to)
{
    char path[PATH_MAX];
    int failed;
    journal_path(store, path, "exporters");
    int fd = fileops()->open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return 0;
    size_t size = journal_read_all(fd, to, FILE_BYTES_MAX, 0, &failed);
    fileops()->close(fd);
    bool is_sound =
        size > CRC_BYTES && to[size - 1] == '\0' &&
        journal_get_u32(to) == journal_crc(0, slice_of(to + CRC_BYTES, size - CRC_BYTES));
    return is_sound ? size : 0;
}

void journal_names_read(struct journal_store *store)
{
    if (store->oldest_id == 0)
        return;
    uint8_t *bytes = mem_alloc(FILE_BYTES_MAX);
    size_t size = read_file(store, bytes);
    for (size_t at = CRC_BYTES; at < size; at += strlen((const char *)bytes + at) + 1) {
        const char *name = (const char *)bytes + at;
        size_t known = store->progress.count;
        if (strlen(name) > JOURNAL_EXPORTER_BYTES_MAX)
            break;
        int index = journal_progress_add(&store->progress, name, store->oldest_id);
        if (index < 0)
            break;
        store->progress.exporters[index].is_configured = false;
        if ((size_t)index == known)
            store->progress.exporters[index].owed = store->unclaimed;
    }
    mem_free(bytes);
}

/* Under a name that no start looks at, then under its own. */
static void replace_file(const struct journal_store *store, struct slice content)
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    struct iovec part = {.iov_base = (void *)(uintptr_t)content.data, .iov_len = content.size};
    journal_path(store, path, "exporters.new");
    journal_path(store, target, "exporters");
    int fd = fileops()->open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    int failed = journal_write_all(fd, &part, 1, 0);
    if (failed == 0 && store->is_synced)
        failed = fileops()->fsync(fd);
    fileops()->close(fd);
    if (failed == 0)
        failed = fileops()->rename(path, target);
    if (failed != 0)
        fileops()->unlink(path);
    else if (store->is_synced)
        journal_sync_directory(store);
}

void journal_names_write(const struct journal_store *store)
{
    uint8_t *before = mem_alloc(FILE_BYTES_MAX);
    uint8_t *now = mem_alloc(FILE_BYTES_MAX);
    size_t before_bytes = read_file(store, before);
    size_t now_bytes = print_names(store, now);
    if (before_bytes != now_bytes || memcmp(before, now, now_bytes) != 0)
        replace_file(store, slice_of(now, now_bytes));
    mem_free(before);
    mem_free(now);
}
