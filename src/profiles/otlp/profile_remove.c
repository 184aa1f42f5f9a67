/* SPDX-License-Identifier: Apache-2.0 */
/* Chosen profiles are marked as broken, which merging skips. Pure functions; any thread. */
#include "src/profiles/otlp/profile_remove.h"

#include <assert.h>

#include "src/base/mem.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"

struct chosen {
    uint64_t profiles; /* all of them */
    uint64_t count;    /* that are chosen */
    uint64_t items;    /* of these */
};

/* Counts the chosen profiles; sets their bits (one per Profile message) if bits is not NULL. */
static struct chosen note_all(struct slice request, profile_choice choice, uint8_t *bits)
{
    struct chosen chosen = {.profiles = 0};
    struct profile_iterator at = profile_iterator_of(request);
    while (profile_iterator_next(&at)) {
        uint64_t i = chosen.profiles++;
        if (!choice(&at.profile))
            continue;
        chosen.count++;
        chosen.items += profile_items(&at.profile);
        if (bits != NULL)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
    }
    return chosen;
}

bool profile_choice_has(struct slice request, profile_choice choice)
{
    return note_all(request, choice, NULL).count > 0;
}

uint64_t profile_choice_items(struct slice request, profile_choice choice)
{
    return note_all(request, choice, NULL).items;
}

uint64_t opaque_profiles_count(struct slice request)
{
    return note_all(request, profile_is_opaque, NULL).count;
}

struct buffer *profile_remove(struct slice request, profile_choice choice, struct budget *budget)
{
    struct chosen chosen = note_all(request, choice, NULL);
    assert(chosen.count > 0);
    if (!profile_measure_fits(request, budget))
        return NULL;
    uint8_t *bits = mem_zalloc(chosen.profiles / 8 + 1);
    note_all(request, choice, bits);
    struct buffer *rest = profile_rewrite(request, bits, budget, NULL);
    mem_free(bits);
    return rest;
}

struct buffer *opaque_profiles_remove(struct slice request, struct budget *budget)
{
    return profile_remove(request, profile_is_opaque, budget);
}
