/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers each key once per profile; samples compare numbers, in a small hash table. Runs on the
 * thread of the owner. */
#include "src/profiles/pprof/label_keys.h"

#include <assert.h>
#include <string.h>

/* Twice as many as labels, to keep probing short. */
enum { SLOTS_BITS = 8, SLOTS = 1 << SLOTS_BITS };

void label_keys_init(struct label_keys *keys, struct budget *budget)
{
    *keys = (struct label_keys){.budget = budget};
    entry_table_init(&keys->texts, 1, budget);
}

void label_keys_fini(struct label_keys *keys)
{
    entry_table_fini(&keys->texts);
    scratch_fini(&keys->known, keys->budget);
}

bool label_keys_group(struct label_keys *keys, const struct pprof *pprof,
                      const struct pprof_sample *sample, struct label_groups *ret_groups)
{
    uint8_t slots[SLOTS];
    uint8_t last[PPROF_LABELS_MAX]; /* of the group, by its first */
    uint32_t numbers[PPROF_LABELS_MAX];
    uint32_t *known =
        scratch_room(&keys->known, keys->budget, pprof->strings_count * sizeof(known[0]));
    assert(sample->labels_count <= PPROF_LABELS_MAX);
    if (known == NULL)
        return false;
    memset(slots, LABEL_GROUP_END, sizeof(slots));
    for (uint8_t i = 0; i < sample->labels_count; i++) {
        uint32_t key = sample->labels[i].key;
        if (known[key] == 0)
            known[key] = entry_table_add(&keys->texts, pprof->strings[key]) + 1;
        numbers[i] = known[key];
        uint32_t at = numbers[i] * 2654435769u >> (32 - SLOTS_BITS);
        while (slots[at] != LABEL_GROUP_END && numbers[slots[at]] != numbers[i])
            at = (at + 1) % SLOTS;
        bool is_first = slots[at] == LABEL_GROUP_END;
        if (is_first)
            slots[at] = i;
        else
            ret_groups->next[last[slots[at]]] = i;
        last[slots[at]] = i;
        ret_groups->is_first[i] = is_first;
        ret_groups->next[i] = LABEL_GROUP_END;
    }
    return !keys->texts.has_failed;
}
