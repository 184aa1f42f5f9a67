/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tags. Runs on its owner's thread. */
#include "exporters/zipkin/zipkin_tags.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/mem.h"
#include "src/otlp/wire.h"

enum { TAGS_FIRST = 32, INSERTION_SORT_MAX = 24 };

static const char *const known_keys[KNOWN_KEYS] = {
    [HTTP_RESPONSE_STATUS_CODE] = "http.response.status_code",
    [HTTP_STATUS_CODE] = "http.status_code",
    [SERVICE_PEER_NAME] = "service.peer.name",
    [PEER_SERVICE] = "peer.service",
    [NETWORK_LOCAL_ADDRESS] = "network.local.address",
    [NET_HOST_PORT] = "net.host.port",
    [NETWORK_PEER_ADDRESS] = "network.peer.address",
    [NET_PEER_PORT] = "net.peer.port",
};

void tag_list_init(struct tag_list *list, size_t bytes_max, struct budget *budget)
{
    *list = (struct tag_list){.bytes_max = bytes_max, .budget = budget};
}

void tag_list_fini(struct tag_list *list)
{
    if (list->budget != NULL && list->capacity > 0)
        budget_return(list->budget, list->capacity * sizeof(list->tags[0]));
    mem_free(list->tags);
}

static bool grow(struct tag_list *list)
{
    size_t more = list->capacity > 0 ? list->capacity : TAGS_FIRST;
    size_t more_bytes = more * sizeof(list->tags[0]);
    size_t bytes = list->capacity * sizeof(list->tags[0]) + more_bytes;
    list->is_too_large = bytes > list->bytes_max;
    if (list->is_too_large || (list->budget != NULL && !budget_try_take(list->budget, more_bytes)))
        return false;
    struct tag *tags = mem_try_resize(list->tags, bytes);
    if (tags != NULL) {
        list->tags = tags;
        list->capacity += more;
    } else if (list->budget != NULL) {
        budget_return(list->budget, more_bytes);
    }
    return tags != NULL;
}

bool tag_list_add(struct tag_list *list, struct tag tag)
{
    assert(list->count <= list->capacity);
    if (list->count == list->capacity && !grow(list))
        return false;
    tag.order = (uint32_t)list->count;
    list->tags[list->count++] = tag;
    return true;
}

static int compare_tags(const void *left, const void *right)
{
    const struct tag *a = left;
    const struct tag *b = right;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

void tag_list_settle(struct tag_list *list)
{
    struct tag *tags = list->tags;
    size_t kept = 0;
    /* Most lists are short: they need neither qsort's memory nor its calls. */
    if (list->count > INSERTION_SORT_MAX)
        qsort(tags, list->count, sizeof(tags[0]), compare_tags);
    for (size_t i = 1; i < list->count && list->count <= INSERTION_SORT_MAX; i++) {
        struct tag tag = tags[i];
        size_t at = i;
        for (; at > 0 && slice_compare(tags[at - 1].key, tag.key) > 0; at--)
            tags[at] = tags[at - 1];
        tags[at] = tag;
    }
    for (size_t i = 0; i < list->count; i++)
        if (i + 1 == list->count || !slice_equal(tags[i].key, tags[i + 1].key))
            tags[kept++] = tags[i];
    list->count = kept;
}

struct tag *tag_list_find(const struct tag_list *list, size_t count, const char *key)
{
    size_t low = 0;
    size_t high = count;
    assert(count <= list->count);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(list->tags[middle].key, slice_of_text(key));
        if (order == 0)
            return &list->tags[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct tag tag_of_attribute(struct slice encoded)
{
    enum { KEY = 1, VALUE = 2 };
    struct tag tag = {.form = TAG_ENCODED};
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY)
            tag.key = field.bytes;
        else if (field.number == VALUE)
            tag.value = field.bytes;
    }
    return tag;
}

const char *known_key_name(enum known_key key)
{
    assert(key < KNOWN_KEYS);
    return known_keys[key];
}

void known_tags_note(struct known_tags *known, const struct tag *tag)
{
    enum {
        SHORTEST = sizeof("peer.service") - 1,
        LONGEST = sizeof("http.response.status_code") - 1
    };
    if (tag->key.size < SHORTEST || tag->key.size > LONGEST)
        return;
    for (unsigned key = 0; key < KNOWN_KEYS; key++) {
        if (!slice_equal_text(tag->key, known_keys[key]))
            continue;
        known->found |= 1u << key;
        known->values[key] = tag->value;
    }
}
