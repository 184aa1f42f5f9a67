/* SPDX-License-Identifier: Apache-2.0 */
/* Threads. Any thread. */
#include "src/join/index/thread_facts.h"

#include "src/join/index/resource_facts.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Linux truncates a thread's name to that, so profilers see no more of it. */
enum { KERNEL_NAME_BYTES = 15 };

void thread_facts_take(struct thread_facts *facts, struct slice key, struct slice value)
{
    char room[VALUE_TEXT_BYTES];
    struct slice text;
    bool is_name = slice_equal_text(key, THREAD_NAME_KEY);
    if ((!is_name && !slice_equal_text(key, THREAD_ID_KEY)) || value.data == NULL ||
        !value_text_of(value, room, &text) || text.size == 0)
        return;
    if (is_name && text.size > KERNEL_NAME_BYTES)
        text.size = KERNEL_NAME_BYTES;
    uint16_t hash = (uint16_t)XXH3_64bits(text.data, text.size);
    *(is_name ? &facts->name : &facts->id) = hash != 0 ? hash : 1;
}

void thread_facts_add(struct thread_facts *facts, const struct thread_facts *more)
{
    if (more->name != 0)
        facts->name = more->name;
    if (more->id != 0)
        facts->id = more->id;
}

bool thread_facts_differ(const struct thread_facts *a, const struct thread_facts *b,
                         bool is_same_producer)
{
    bool has_other_name = a->name != 0 && b->name != 0 && a->name != b->name;
    bool has_other_id = a->id != 0 && b->id != 0 && a->id != b->id;
    return has_other_name || (has_other_id && is_same_producer);
}
