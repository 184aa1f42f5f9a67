/* SPDX-License-Identifier: Apache-2.0 */
/* A short list of objects by the id of their component. Main thread. */
#include "src/base/kept_objects.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "src/base/mem.h"

struct kept_object {
    struct kept_object *next;
    char *id;
    void *object;
    void (*destroy)(void *object);
};

static struct kept_object *first;
static bool is_keeping;

static void *release(struct kept_object *kept)
{
    void *object = kept->object;
    assert(object != NULL);
    mem_free(kept->id);
    mem_free(kept);
    return object;
}

void kept_objects_begin(void)
{
    assert(first == NULL);
    is_keeping = true;
}

void kept_objects_end(void)
{
    is_keeping = false;
    while (first != NULL) {
        struct kept_object *kept = first;
        void (*destroy)(void *object) = kept->destroy;
        first = kept->next;
        destroy(release(kept));
    }
}

bool kept_objects_put(const char *id, void *object, void (*destroy)(void *object))
{
    assert(object != NULL);
    assert(destroy != NULL);
    if (!is_keeping)
        return false;
    struct kept_object *kept = mem_alloc(sizeof(*kept));
    *kept = (struct kept_object){
        .next = first, .id = mem_copy_text(id), .object = object, .destroy = destroy};
    first = kept;
    return true;
}

void *kept_objects_take(const char *id)
{
    assert(id != NULL);
    for (struct kept_object **link = &first; *link != NULL; link = &(*link)->next) {
        struct kept_object *kept = *link;
        if (strcmp(kept->id, id) != 0)
            continue;
        *link = kept->next;
        return release(kept);
    }
    return NULL;
}
