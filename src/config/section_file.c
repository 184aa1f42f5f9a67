/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file by an option table, with a loader of its own. Main thread. */
#include "src/config/section_file.h"

#include <string.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/config/config.h"
#include "src/config/config_limits.h"
#include "src/config/decode.h"
#include "src/config/loader.h"
#include "src/config/yaml_tree.h"

static void decode(struct loader *loader, const char *path, struct slice bytes,
                   const struct config_field *field, void *owner)
{
    struct yaml_failure failure;
    const struct position start = {
        .source = loader_add_source(loader, path), .line = 1, .column = 1};
    const struct yaml_origin origin = {.position = start};
    const struct node *node = yaml_tree_parse(loader, bytes, &origin, &failure);
    if (node == NULL) {
        loader_problem(loader, failure.position, NULL, "%s", failure.error.text);
        return;
    }
    const struct path root = {.parent = NULL};
    const struct site site = {.loader = loader, .path = &root, .position = start};
    decode_section(&site, field, node, owner);
}

bool section_file_read(struct section_file *file, const char *path,
                       const struct config_field *field, void *owner, struct error *error)
{
    struct loader loader = {.factories = NULL};
    struct config_problems problems;
    char *text;
    size_t size;
    *file = (struct section_file){.arena = {.chunks = NULL}};
    int failed = file_read_whole(path, CONFIG_FILE_BYTES_MAX, &text, &size);
    if (failed < 0)
        return error_set(error, "cannot read %s: %s", path, strerror(-failed));
    arena_init(&loader.arena, CONFIG_ARENA_BYTES_MAX);
    decode(&loader, path, slice_of(text, size), field, owner);
    mem_free(text);
    file->arena = loader.arena;
    loader_take_problems(&loader, &problems);
    bool is_read = problems.count == 0;
    if (!is_read)
        error_set(error, "%s", problems.texts[0]);
    if (problems.has_unsupported)
        error_unsupported(error);
    config_problems_clear(&problems);
    return is_read;
}

void section_file_free(struct section_file *file)
{
    arena_clear(&file->arena);
}
