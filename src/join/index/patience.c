/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of eight entries. Any thread, under the lock. */
#include "src/join/index/patience.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/mem.h"
#include "src/join/join_limits.h"

enum { LINE = 8, LINES = JOIN_PATIENCE_MAX / LINE };

bool patience_init(struct patience *patience)
{
    assert(patience->entries == NULL);
    pthread_mutex_init(&patience->lock, NULL);
    patience->entries = mem_try_zalloc((size_t)LINES * LINE * sizeof(patience->entries[0]));
    return patience->entries != NULL;
}

void patience_fini(struct patience *patience)
{
    assert(patience != NULL);
    if (patience->entries != NULL)
        pthread_mutex_destroy(&patience->lock);
    mem_free(patience->entries);
    patience->entries = NULL;
}

/* The one of that name, or else the one to go. */
static struct patience_entry *choose(const struct patience *patience, uint64_t key)
{
    struct patience_entry *line = &patience->entries[key % LINES * LINE];
    struct patience_entry *chosen = line;
    assert(patience->entries != NULL);
    for (unsigned i = 0; i < LINE; i++) {
        if (line[i].key == key)
            return &line[i];
        if (line[i].last_ns < chosen->last_ns)
            chosen = &line[i];
    }
    return chosen;
}

bool patience_lasts(struct patience *patience, uint64_t key, uint64_t now_ns)
{
    assert(key != 0);
    assert(now_ns > 0);
    pthread_mutex_lock(&patience->lock);
    struct patience_entry *entry = choose(patience, key);
    if (entry->key != key || now_ns > entry->last_ns + JOIN_WARM_UP_NS)
        *entry = (struct patience_entry){.key = key, .first_ns = now_ns};
    entry->last_ns = now_ns;
    bool lasts = now_ns - entry->first_ns <= JOIN_WARM_UP_NS;
    pthread_mutex_unlock(&patience->lock);
    return lasts;
}
