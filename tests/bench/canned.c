/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies made before the run: see the header. */
#include "tests/bench/canned.h"

#include "tests/bench/payload.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GZIP_BODIES = 16, READ_STEP_BYTES = 64 * 1024, PATH_BYTES_MAX = 4096 };

struct canned_set canned_gzip(uint32_t spans, uint32_t span_bytes)
{
    struct canned_set set = {.bodies = allocate(GZIP_BODIES * sizeof(struct canned))};

    assert(spans > 0);
    for (; set.count < GZIP_BODIES; set.count++) {
        uint64_t first = (uint64_t)set.count * spans + 1;
        struct payload payload = payload_make(spans, span_bytes, first);
        set.bodies[set.count] =
            (struct canned){payload_gzip(&payload), payload_weight(spans, first)};
        payload_free(&payload);
    }
    return set;
}

static struct byte_buffer read_file(const char *path)
{
    struct byte_buffer content = {0};
    FILE *file = fopen(path, "rb");
    size_t count;

    if (file == NULL)
        die("cannot read %s: %s", path, strerror(errno));
    do {
        byte_buffer_reserve(&content, READ_STEP_BYTES);
        count = fread(content.data + content.size, 1, READ_STEP_BYTES, file);
        content.size += count;
    } while (count > 0);
    fclose(file);
    return content;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

struct canned_set canned_read(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    char path[PATH_BYTES_MAX];

    if (count <= 0)
        die("no bodies in %s", folder);
    struct canned_set set = {.bodies = allocate((size_t)count * sizeof(struct canned))};
    for (; set.count < (unsigned)count; set.count++) {
        const char *name = entries[set.count]->d_name;
        int size = snprintf(path, sizeof path, "%s/%s", folder, name);
        assert(size > 0 && (size_t)size < sizeof path);
        set.bodies[set.count] = (struct canned){read_file(path), strtoull(name, NULL, 16)};
        free(entries[set.count]);
    }
    free(entries);
    return set;
}

void canned_free(struct canned_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        byte_buffer_free(&set->bodies[i].body);
    free(set->bodies);
    *set = (struct canned_set){0};
}
