/* SPDX-License-Identifier: Apache-2.0 */
/* The first three lines are the environment variables A, B and C, the rest is a scalar whose
 * references are replaced. Files are in memory: the input itself. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/config/config_limits.h"
#include "src/config/expand.h"
#include "src/config/loader.h"
#include "tests/unit/config/support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sets the variable to the input's first line and returns what follows. */
static char *take_variable(const char *name, char *text)
{
    size_t length = strcspn(text, "\n");
    char *rest = text[length] != '\0' ? text + length + 1 : text + length;
    text[length] = '\0';
    assert(setenv(name, text, 1) == 0);
    return rest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct loader loader = {.nodes_count = 0};
    struct config_problems problems;
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    memory_files_set_bytes(data, size);
    char *rest = take_variable("A", text);
    rest = take_variable("B", rest);
    rest = take_variable("C", rest);
    arena_init(&loader.arena, CONFIG_ARENA_BYTES_MAX);
    struct position position = {.source = loader_add_source(&loader, "fuzz")};
    struct node *node = loader_try_node(&loader, NODE_TEXT, position);
    node->text = rest;
    assert(expand_tree(&loader, node) != NULL);
    assert(loader.expanded_bytes <= CONFIG_EXPANDED_BYTES_MAX);
    loader_take_problems(&loader, &problems);
    config_problems_clear(&problems);
    arena_clear(&loader.arena);
    memory_files_set(NULL);
    free(text);
    return 0;
}
