/* SPDX-License-Identifier: Apache-2.0 */
/* Keys get numbers once per profile, so that samples compare numbers, by a small hash table of
 * their own. Runs on the thread of the owner. */
#include "src/profiles/pprof/label_keys.h"

#include <assert.h>
#include <string.h>

/* Twice as many as there are labels, so that probing ends soon. */
enum { SLOTS_BITS = 8, SLOTS = 1 << SLOTS_BITS };

void label_keys_init(struct label_keys *keys, struct budget *budget)
{
    assert(keys != NULL);
    *keys = (struct label_keys){.budget = budget};
    entry_table_init(&keys->texts, 1, budget);
}

void label_keys_fini(struct label_keys *keys)
{
    assert(keys != NULL);
    entry_table_fini(&keys->texts);
    scratch_fini(&keys->known, keys->budget);
}

/* Equal for equal texts. */
static uint32_t number_of(struct label_keys *keys, uint32_t *known, struct slice text)
{
    if (*known == 0)
        *known = entry_table_add(&keys->texts, text) + 1;
    assert(*known > 0);
    return *known;
}

/* Where the first label with that number is, or where it could be. */
static uint8_t *find_slot(uint8_t slots[SLOTS], const uint32_t numbers[], uint32_t number)
{
    uint32_t at = number * 2654435769u >> (32 - SLOTS_BITS);
    assert(number > 0);
    while (slots[at] != LABEL_GROUP_END && numbers[slots[at]] != number)
        at = (at + 1) % SLOTS;
    return &slots[at];
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
        numbers[i] = number_of(keys, &known[key], pprof->strings[key]);
        uint8_t *slot = find_slot(slots, numbers, numbers[i]);
        bool is_first = *slot == LABEL_GROUP_END;
        if (is_first)
            *slot = i;
        else
            ret_groups->next[last[*slot]] = i;
        last[*slot] = i;
        ret_groups->is_first[i] = is_first;
        ret_groups->next[i] = LABEL_GROUP_END;
    }
    return !keys->texts.has_failed;
}
