/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of eight entries. Any thread, under the lock. */
#include "src/join/index/pending_services.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/join/join_limits.h"

enum { LINE = 8, LINES = JOIN_PATIENCE_MAX / LINE };

bool pending_services_init(struct pending_services *pending_services)
{
    assert(pending_services->entries == NULL);
    pthread_mutex_init(&pending_services->lock, NULL);
    pending_services->entries =
        mem_try_zalloc((size_t)LINES * LINE * sizeof(pending_services->entries[0]));
    return pending_services->entries != NULL;
}

void pending_services_fini(struct pending_services *pending_services)
{
    assert(pending_services != NULL);
    if (pending_services->entries != NULL)
        pthread_mutex_destroy(&pending_services->lock);
    mem_free(pending_services->entries);
    pending_services->entries = NULL;
}

/* The one of that name, or else the one to go. */
static struct pending_service *choose(const struct pending_services *pending_services, uint64_t key)
{
    struct pending_service *line = &pending_services->entries[key % LINES * LINE];
    struct pending_service *chosen = line;
    assert(pending_services->entries != NULL);
    for (unsigned i = 0; i < LINE; i++) {
        if (line[i].key == key)
            return &line[i];
        if (line[i].last_ns < chosen->last_ns)
            chosen = &line[i];
    }
    return chosen;
}

bool pending_services_has(struct pending_services *pending_services, uint64_t key, uint64_t now_ns)
{
    assert(key != 0);
    assert(now_ns > 0);
    pthread_mutex_lock(&pending_services->lock);
    struct pending_service *entry = choose(pending_services, key);
    if (entry->key != key || now_ns > entry->last_ns + JOIN_WARM_UP_NS)
        *entry = (struct pending_service){.key = key, .first_ns = now_ns};
    entry->last_ns = now_ns;
    bool lasts = now_ns - entry->first_ns <= JOIN_WARM_UP_NS;
    pthread_mutex_unlock(&pending_services->lock);
    return lasts;
}
