/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of objects by component id. Main thread. */
#include "src/base/reload_state.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "src/base/mem.h"

struct entry {
    struct entry *next;
    char *id;
    void *object;
    void (*destroy)(void *object);
};

static struct entry *first;
static bool is_keeping;

static void *release(struct entry *entry)
{
    void *object = entry->object;
    mem_free(entry->id);
    mem_free(entry);
    return object;
}

void reload_state_begin(void)
{
    assert(first == NULL);
    is_keeping = true;
}

void reload_state_end(void)
{
    is_keeping = false;
    while (first != NULL) {
        struct entry *entry = first;
        void (*destroy)(void *object) = entry->destroy;
        first = entry->next;
        destroy(release(entry));
    }
}

bool reload_state_put(const char *id, void *object, void (*destroy)(void *object))
{
    if (!is_keeping)
        return false;
    struct entry *entry = mem_alloc(sizeof(*entry));
    *entry = (struct entry){
        .next = first, .id = mem_copy_text(id), .object = object, .destroy = destroy};
    first = entry;
    return true;
}

void *reload_state_take(const char *id)
{
    for (struct entry **link = &first; *link != NULL; link = &(*link)->next) {
        struct entry *entry = *link;
        if (strcmp(entry->id, id) != 0)
            continue;
        *link = entry->next;
        return release(entry);
    }
    return NULL;
}
