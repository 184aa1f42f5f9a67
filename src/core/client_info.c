/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a request. One allocation: struct, rows, strings. Any thread. */
#include "src/core/client_info.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "src/base/budget.h"
#include "src/base/mem.h"

static size_t strings_bytes(const struct client_metadata *rows, size_t count)
{
    size_t total = 0;
    assert(rows != NULL || count == 0);
    for (size_t i = 0; i < count; i++)
        total += strlen(rows[i].key) + strlen(rows[i].value) + 2;
    return total;
}

static char *put_string(char **cursor, const char *text)
{
    assert(cursor != NULL && *cursor != NULL);
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*cursor, text, size);
    *cursor += size;
    return copy;
}

static void put_rows(char **cursor, struct client_metadata *to, const struct client_metadata *rows,
                     size_t count)
{
    assert(rows != NULL || count == 0);
    for (size_t i = 0; i < count; i++)
        to[i] = (struct client_metadata){.key = put_string(cursor, rows[i].key),
                                         .value = put_string(cursor, rows[i].value)};
}

/* Copies what model points to. */
static struct client_info *copy(const struct client_info *model)
{
    size_t rows = model->metadata_count + model->auth_count;
    size_t head = sizeof(struct client_info) + rows * sizeof(struct client_metadata);
    size_t bytes = head + strlen(model->address) + 1 +
                   strings_bytes(model->metadata, model->metadata_count) +
                   strings_bytes(model->auth, model->auth_count);
    struct client_info *info = mem_alloc(bytes);
    char *cursor = (char *)info + head;
    atomic_init(&info->refs, 1);
    info->address = put_string(&cursor, model->address);
    info->metadata_count = model->metadata_count;
    info->metadata = (struct client_metadata *)(info + 1);
    info->bytes = bytes;
    info->budget = NULL;
    info->auth_count = model->auth_count;
    info->auth = info->metadata + model->metadata_count;
    put_rows(&cursor, info->metadata, model->metadata, model->metadata_count);
    put_rows(&cursor, info->auth, model->auth, model->auth_count);
    return info;
}

struct client_info *client_info_create(const char *address, const struct client_metadata *rows,
                                       size_t count)
{
    assert(rows != NULL || count == 0);
    const struct client_info model = {
        .address = (char *)(uintptr_t)address,
        .metadata_count = count,
        .metadata = (struct client_metadata *)(uintptr_t)rows,
    };
    return copy(&model);
}

struct client_info *client_info_with_auth(const struct client_info *info,
                                          const struct client_metadata *auth, size_t auth_count)
{
    assert(auth != NULL || auth_count == 0);
    const struct client_info model = {
        .address = info->address,
        .metadata_count = info->metadata_count,
        .metadata = info->metadata,
        .auth_count = auth_count,
        .auth = (struct client_metadata *)(uintptr_t)auth,
    };
    return copy(&model);
}

struct client_info *client_info_charge(struct client_info *info, struct budget *budget)
{
    assert(info->budget == NULL);
    if (info->metadata_count + info->auth_count == 0)
        return info;
    if (!budget_try_take_margin(budget, info->bytes)) {
        client_info_unref(info);
        return NULL;
    }
    info->budget = budget;
    return info;
}

const char *client_info_tenant(const struct client_info *info)
{
    for (size_t i = 0; info != NULL && i < info->metadata_count; i++)
        if (strcmp(info->metadata[i].key, CLIENT_TENANT_HEADER) == 0 &&
            info->metadata[i].value[0] != '\0')
            return info->metadata[i].value;
    return NULL;
}

/* By the end of its name: "x-api-key", "private-token". */
static bool is_credential(const char *key)
{
    static const char *const ends[] = {"authorization", "cookie", "token",   "api-key",
                                       "apikey",        "secret", "password"};
    size_t size = strlen(key);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t end = strlen(ends[i]);
        if (size >= end && strcasecmp(key + size - end, ends[i]) == 0)
            return true;
    }
    return false;
}

size_t client_info_bytes(const struct client_info *info)
{
    if (info == NULL)
        return 0;
    size_t bytes = strlen(info->address) + 1;
    for (size_t i = 0; i < info->metadata_count; i++)
        if (!is_credential(info->metadata[i].key))
            bytes += strlen(info->metadata[i].key) + strlen(info->metadata[i].value) + 2;
    return bytes;
}

/* Strings with their terminators: the address, then keys and values. */
void client_info_write(const struct client_info *info, uint8_t *to)
{
    char *cursor = (char *)to;
    put_string(&cursor, info->address);
    for (size_t i = 0; i < info->metadata_count; i++) {
        if (is_credential(info->metadata[i].key))
            continue;
        put_string(&cursor, info->metadata[i].key);
        put_string(&cursor, info->metadata[i].value);
    }
}

struct client_info *client_info_read(struct slice bytes)
{
    size_t strings = 0;
    for (size_t i = 0; i < bytes.size; i++)
        strings += bytes.data[i] == '\0';
    if (strings % 2 == 0 || bytes.data[bytes.size - 1] != '\0')
        return NULL;
    const char *next = (const char *)bytes.data;
    const char *address = next;
    size_t count = strings / 2;
    struct client_metadata *rows = mem_alloc((count + 1) * sizeof(*rows));
    for (size_t i = 0; i < count; i++) {
        rows[i].key = next += strlen(next) + 1;
        rows[i].value = next += strlen(next) + 1;
    }
    struct client_info *info = client_info_create(address, rows, count);
    mem_free(rows);
    return info;
}

struct client_info *client_info_ref(struct client_info *info)
{
    atomic_fetch_add_explicit(&info->refs, 1, memory_order_relaxed);
    return info;
}

void client_info_unref(struct client_info *info)
{
    if (info == NULL)
        return;
    unsigned old = atomic_fetch_sub_explicit(&info->refs, 1, memory_order_acq_rel);
    assert(old > 0);
    if (old > 1)
        return;
    if (info->budget != NULL)
        budget_return(info->budget, info->bytes);
    mem_free(info);
}
