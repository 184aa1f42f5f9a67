/* SPDX-License-Identifier: Apache-2.0 */
#include "src/records/key_set.h"

#include <stdlib.h>

#include "src/base/mem.h"

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

struct key_set key_set_create(const struct config_texts *texts, const char *const *more,
                              size_t more_count)
{
    struct key_set set = {.count = 0};
    set.keys = mem_alloc((texts->count + more_count) * sizeof(set.keys[0]));
    for (size_t i = 0; i < texts->count; i++)
        set.keys[set.count++] = slice_of_text(texts->texts[i]);
    for (size_t i = 0; i < more_count; i++)
        set.keys[set.count++] = slice_of_text(more[i]);
    qsort(set.keys, set.count, sizeof(set.keys[0]), compare_keys);
    return set;
}

void key_set_destroy(struct key_set *set)
{
    mem_free(set->keys);
}

bool key_set_has(const struct key_set *set, struct slice key)
{
    return set->count > 0 &&
           bsearch(&key, set->keys, set->count, sizeof(set->keys[0]), compare_keys) != NULL;
}
