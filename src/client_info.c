/* SPDX-License-Identifier: Apache-2.0 */
/* Who sent a request. One allocation: struct, rows, strings. Any thread. */
#include "src/client_info.h"

#include <assert.h>
#include <string.h>

#include "src/mem.h"

static size_t text_bytes(const char *address, const struct client_metadata *rows, size_t count)
{
    assert(address != NULL);
    size_t total = strlen(address) + 1;
    for (size_t i = 0; i < count; i++)
        total += strlen(rows[i].key) + strlen(rows[i].value) + 2;
    return total;
}

static char *put_text(char **cursor, const char *text)
{
    assert(cursor != NULL && *cursor != NULL);
    assert(text != NULL);
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*cursor, text, size);
    *cursor += size;
    return copy;
}

struct client_info *client_info_create(const char *address, const struct client_metadata *rows,
                                       size_t count)
{
    assert(address != NULL);
    assert(rows != NULL || count == 0);
    size_t head = sizeof(struct client_info) + count * sizeof(struct client_metadata);
    struct client_info *info = mem_alloc(head + text_bytes(address, rows, count));
    char *cursor = (char *)info + head;
    atomic_init(&info->refs, 1);
    info->address = put_text(&cursor, address);
    info->metadata_count = count;
    info->metadata = (struct client_metadata *)(info + 1);
    for (size_t i = 0; i < count; i++)
        info->metadata[i] = (struct client_metadata){.key = put_text(&cursor, rows[i].key),
                                                     .value = put_text(&cursor, rows[i].value)};
    return info;
}

struct client_info *client_info_ref(struct client_info *info)
{
    assert(info != NULL);
    atomic_fetch_add_explicit(&info->refs, 1, memory_order_relaxed);
    return info;
}

void client_info_unref(struct client_info *info)
{
    if (info == NULL)
        return;
    unsigned old = atomic_fetch_sub_explicit(&info->refs, 1, memory_order_acq_rel);
    assert(old > 0);
    if (old == 1)
        mem_free(info);
}
