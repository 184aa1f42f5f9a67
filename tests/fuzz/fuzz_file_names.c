/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the group of a file, or as the name of a rotated one: a group never leaves the
 * directory, and what is read as a rotated file's name is written the same. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/file/file_paths.h"
#include "src/base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_group(struct slice group)
{
    static const char *const patterns[] = {"/data/*.json", "/data/sub/*/x", "data/*.json"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct file_group_path pattern;
        char path[FILE_PATH_BYTES_MAX];
        char again[FILE_PATH_BYTES_MAX];
        file_group_path_init(&pattern, patterns[i]);
        if (file_group_path_of(&pattern, group, path) != 0)
            continue;
        assert(strncmp(path, pattern.prefix, strlen(pattern.prefix)) == 0);
        assert(strstr(path, "/../") == NULL);
        snprintf(again, sizeof(again), "%s", path);
        file_path_clean(again);
        assert(strcmp(path, again) == 0);
    }
}

static void check_name(const char *name)
{
    struct file_backup_name backup = file_backup_name_of("/d/t.json");
    int64_t wall_ns;
    char path[FILE_PATH_BYTES_MAX];
    if (!file_backup_wall_ns(&backup, name, false, &wall_ns) || wall_ns < 0 ||
        wall_ns / NS_PER_S >= INT64_MAX / NS_PER_S - 1) /* after 2261 */
        return;
    assert(file_backup_path("t.json", (uint64_t)wall_ns, false, path));
    /* But for the point, the reason and a suffix. */
    assert(strncmp(path, name, strlen("t-2024-05-06T07-08-09")) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1);
    check_group(slice_of(data, size));
    if (size > 0)
        memcpy(name, data, size);
    name[size] = '\0';
    check_name(name);
    free(name);
    return 0;
}
