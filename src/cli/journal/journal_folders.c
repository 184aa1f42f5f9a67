/* SPDX-License-Identifier: Apache-2.0 */
/* A directory is a journal when it holds segments or the file "key". Main thread of a command. */
#include "src/cli/journal/journal_folders.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/hex.h"
#include "src/base/mem.h"
#include "src/journal/journal_store.h"

enum { DIGITS = 4 };

/* Undoes what the daemon does to a pipeline's name: "~" and four hexadecimal digits for a byte. */
static char *name_of(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char *name = mem_zalloc(size - start + 1);
    size_t used = 0;
    for (size_t i = start; i < size; i++) {
        unsigned byte = 0;
        unsigned digit = 0;
        for (size_t k = i + 1; path[i] == '~' && k < i + 1 + DIGITS && digit < 16; k++) {
            digit = k < size ? hex_digit((uint8_t)path[k]) : 16;
            byte = byte << 4 | digit;
        }
        bool is_code = byte > 0 && byte <= UINT8_MAX && digit < 16;
        name[used++] = is_code ? (char)byte : path[i];
        i += is_code ? DIGITS : 0;
    }
    return name;
}

/* Whether the daemon would name a directory so; else it is something like lost+found. */
static bool is_name(const char *name)
{
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && strchr("_-.~", *name) == NULL)
            return false;
    return true;
}

struct entries {
    char **names;
    size_t count;
    size_t capacity;
    bool is_journal;
};

static void note_entry(const char *name, void *arg)
{
    struct entries *entries = arg;
    uint64_t number;
    entries->is_journal |= strcmp(name, "key") == 0 || journal_segment_number(name, &number);
    /* Of a journal there may be many segments, which are not needed here. */
    if (entries->is_journal || entries->count > JOURNAL_FOLDERS_MAX)
        return;
    if (entries->count == entries->capacity) {
        entries->capacity = 2 * entries->capacity + 16;
        entries->names = mem_resize(entries->names, entries->capacity * sizeof(entries->names[0]));
    }
    entries->names[entries->count++] = mem_copy_text(name);
}

static void free_entries(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        mem_free(entries->names[i]);
    mem_free(entries->names);
}

static void add(struct journal_folders *folders, const char *path)
{
    if (folders->folders == NULL)
        folders->folders =
            mem_zalloc(((size_t)JOURNAL_FOLDERS_MAX + 1) * sizeof(folders->folders[0]));
    folders->folders[folders->count++] =
        (struct journal_folder){.path = mem_copy_text(path), .name = name_of(path)};
}

static int compare_folders(const void *left, const void *right)
{
    const struct journal_folder *a = left;
    const struct journal_folder *b = right;
    return strcmp(a->name, b->name);
}

/* False. */
static bool is_unreadable(struct error *error, const char *directory, int failed)
{
    return error_set(error, "cannot read the directory %s: %s%s", directory, strerror(-failed),
                     failed == -EACCES ? "; run this as the user of the daemon, or as root" : "");
}

bool journal_folders_find(struct journal_folders *folders, const char *directory,
                          struct error *error)
{
    struct entries entries = {.count = 0};
    *folders = (struct journal_folders){.count = 0};
    int failed = fileops()->list(directory, note_entry, &entries);
    bool is_read = failed == 0 || is_unreadable(error, directory, failed);
    if (is_read && entries.is_journal)
        add(folders, directory);
    if (is_read && !entries.is_journal && entries.count > JOURNAL_FOLDERS_MAX)
        is_read = error_set(error, "%s has more than %d entries: name one journal in it", directory,
                            JOURNAL_FOLDERS_MAX);
    for (size_t i = 0; is_read && !entries.is_journal && i < entries.count; i++) {
        struct entries inside = {.count = 0};
        if (!is_name(entries.names[i]))
            continue;
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s%s%s", directory,
                 directory[strlen(directory) - 1] == '/' ? "" : "/", entries.names[i]);
        failed = fileops()->list(path, note_entry, &inside);
        if (failed == 0 && inside.is_journal)
            add(folders, path);
        else if (failed != 0 && failed != -ENOTDIR && failed != -ENOENT)
            is_read = is_unreadable(error, path, failed);
        free_entries(&inside);
    }
    free_entries(&entries);
    if (is_read && folders->count == 0)
        return error_set(error,
                         "%s: found no journal, expected segments (*.journal), or a directory with "
                         "segments for each pipeline as file_storage makes it",
                         directory);
    if (folders->count > 1)
        qsort(folders->folders, folders->count, sizeof(folders->folders[0]), compare_folders);
    return is_read;
}

void journal_folders_free(struct journal_folders *folders)
{
    for (size_t i = 0; i < folders->count; i++) {
        mem_free(folders->folders[i].path);
        mem_free(folders->folders[i].name);
    }
    mem_free(folders->folders);
    *folders = (struct journal_folders){.count = 0};
}

bool journal_view_open(struct journal_view *view, const struct journal_folder *folder,
                       struct error *error)
{
    view->folder = folder;
    budget_init(&view->disk, UINT64_MAX);
    view->store =
        journal_store_open(&(struct journal_store_settings){.directory = folder->path,
                                                            .segment_bytes = JOURNAL_SEGMENT_BYTES,
                                                            .disk = &view->disk,
                                                            .is_read_only = true},
                           error);
    if (view->store == NULL)
        budget_fini(&view->disk);
    return view->store != NULL;
}

void journal_view_close(struct journal_view *view)
{
    journal_store_close(view->store);
    budget_fini(&view->disk);
}

bool journal_view_waits(const struct journal_view *view, uint64_t id)
{
    for (size_t i = 0; journal_store_exporter_name(view->store, i) != NULL; i++)
        if (!journal_store_is_done(view->store, i, id))
            return true;
    return false;
}

uint64_t journal_view_low(const struct journal_view *view)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; journal_store_exporter_name(view->store, i) != NULL; i++) {
        uint64_t low = journal_store_low(view->store, i);
        lowest = low < lowest ? low : lowest;
    }
    return lowest;
}

uint64_t journal_view_newest(const struct journal_view *view)
{
    struct journal_file file;
    uint64_t newest = 0;
    for (size_t i = 0; journal_store_file(view->store, i, &file); i++)
        newest = !file.is_free && file.segment > newest ? file.segment : newest;
    return newest;
}

void journal_why_foreign(const struct journal_file *file, char why[static JOURNAL_WHY_BYTES])
{
    if (file->is_stranger)
        snprintf(why, JOURNAL_WHY_BYTES, "it is a segment of another journal");
    else
        snprintf(why, JOURNAL_WHY_BYTES,
                 "its format has version %" PRIu32 ", this program reads up to %d", file->version,
                 JOURNAL_VERSION);
}
