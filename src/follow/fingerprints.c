/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/fingerprints.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/follow/followed_file.h"

/* ---- files ---- */

struct followed_file *followed_file_create(struct budget *budget, size_t fingerprint_size)
{
    size_t bytes = sizeof(struct followed_file) + fingerprint_size;
    if (budget != NULL && !budget_try_take(budget, bytes))
        return NULL;
    struct followed_file *file = mem_try_zalloc(bytes);
    if (file == NULL) {
        if (budget != NULL)
            budget_return(budget, bytes);
        return NULL;
    }
    file->fd = -1;
    file->charged = bytes;
    return file;
}

void followed_file_close(struct followed_file *file)
{
    if (file->fd >= 0)
        fileops()->close(file->fd);
    file->fd = -1;
}

void followed_file_destroy(struct budget *budget, struct followed_file *file)
{
    if (file == NULL)
        return;
    followed_file_close(file);
    if (budget != NULL)
        budget_return(budget, file->charged);
    mem_free(file->path);
    mem_free(file);
}

void followed_file_set_path(struct followed_file *file, const char *path)
{
    if (file->path != NULL && strcmp(file->path, path) == 0)
        return;
    char *old = file->path;
    file->path = mem_copy_text(path);
    mem_free(old);
}

/* ---- sets ---- */

static uint64_t hash_of(const struct fingerprints *set, struct slice first)
{
    return XXH3_64bits_withSeed(first.data, first.size, set->seed);
}

static struct slice first_of(const struct followed_file *file)
{
    return slice_of(file->first, file->first_size);
}

void fingerprints_init(struct fingerprints *set, size_t size_max)
{
    *set = (struct fingerprints){.size_max = size_max};
    set->sizes = mem_zalloc((size_max + 1) * sizeof(set->sizes[0]));
    if (getrandom(&set->seed, sizeof(set->seed), 0) != sizeof(set->seed))
        set->seed = clock_wall_ns();
}

void fingerprints_fini(struct fingerprints *set)
{
    assert(set->count == 0);
    hash_table_clear(&set->table);
    mem_free((void *)set->files);
    mem_free(set->sizes);
}

bool fingerprints_add(struct fingerprints *set, struct followed_file *file)
{
    enum { FIRST = 16 };
    assert(file->first_size > 0 && file->first_size <= set->size_max);
    if (set->count == set->capacity) {
        size_t capacity = set->capacity > 0 ? set->capacity * 2 : FIRST;
        struct followed_file **files =
            (struct followed_file **)mem_try_resize((void *)set->files, capacity * sizeof(*files));
        if (files == NULL)
            return false;
        set->files = files;
        set->capacity = capacity;
    }
    if (!hash_table_add(&set->table, hash_of(set, first_of(file)), file))
        return false;
    set->sizes[file->first_size]++;
    file->set_place = set->count;
    set->files[set->count++] = file;
    return true;
}

void fingerprints_remove(struct fingerprints *set, struct followed_file *file)
{
    assert(set->files[file->set_place] == file);
    hash_table_remove(&set->table, hash_of(set, first_of(file)), file);
    set->sizes[file->first_size]--;
    struct followed_file *last = set->files[--set->count];
    last->set_place = file->set_place;
    set->files[file->set_place] = last;
}

struct followed_file *fingerprints_find_equal(const struct fingerprints *set, struct slice first)
{
    struct followed_file *file;
    size_t at = 0;
    if (first.size > set->size_max || set->sizes[first.size] == 0)
        return NULL;
    uint64_t hash = hash_of(set, first);
    while ((file = hash_table_next(&set->table, hash, &at)) != NULL)
        if (slice_equal(first_of(file), first))
            return file;
    return NULL;
}

struct followed_file *fingerprints_find_beginning(const struct fingerprints *set,
                                                  struct slice first)
{
    for (size_t size = first.size; size > 0 && set->count > 0; size--) {
        struct followed_file *file = fingerprints_find_equal(set, slice_of(first.data, size));
        if (file != NULL)
            return file;
    }
    return NULL;
}
