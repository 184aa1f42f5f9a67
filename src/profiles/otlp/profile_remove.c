/* SPDX-License-Identifier: Apache-2.0 */
/* What is to go is named as broken, which merging leaves out. Pure functions; any thread. */
#include "src/profiles/otlp/profile_remove.h"

#include <assert.h>
#include <stdbool.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_measure.h"
#include "src/profiles/otlp/profile_merge.h"

struct chosen {
    profile_choice choice;
    uint8_t *bits; /* one per Profile message; NULL: they are only counted */
    uint64_t profiles;
    uint64_t count;
    uint64_t items;
};

static void note_scope(struct chosen *chosen, struct slice scope)
{
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile profile;
    while (profile_next_profile(&profiles, &profile)) {
        bool is_chosen = chosen->choice(&profile);
        if (chosen->bits != NULL && is_chosen)
            chosen->bits[chosen->profiles / 8] |= (uint8_t)(1 << chosen->profiles % 8);
        chosen->profiles++;
        chosen->count += is_chosen;
        chosen->items += is_chosen ? profile_items(&profile) : 0;
    }
    assert(chosen->count <= chosen->profiles);
}

static struct chosen note_all(struct slice request, profile_choice choice, uint8_t *bits)
{
    struct chosen chosen = {.choice = choice, .bits = bits};
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    assert(request.data != NULL || request.size == 0);
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (profile_next_scope(&scopes, &scope))
            note_scope(&chosen, scope.bytes);
    }
    assert(resources.failure == NULL);
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

static struct buffer *merge_rest(struct slice request, const uint8_t *bits, struct budget *budget)
{
    struct profile_merge merge;
    struct profile_source source;
    struct buffer *rest = NULL;
    /* Indices may become longer: what is left may take more bytes than all of it did. */
    const struct otlp_limit limit = {.bytes_max = UINT64_MAX};
    assert(bits != NULL);
    profile_merge_init(&merge, budget);
    if (profile_source_open(&source, request, &merge)) {
        source.broken = bits;
        bool is_done = profile_merge_take(&merge, &source, limit);
        assert(is_done);
        rest = profile_merge_finish(&merge, NULL);
        if (rest == NULL)
            rest = buffer_create(budget, 0);
        profile_source_close(&source);
    }
    profile_merge_fini(&merge);
    return rest;
}

struct buffer *profile_remove(struct slice request, profile_choice choice, struct budget *budget)
{
    struct chosen chosen = note_all(request, choice, NULL);
    assert(chosen.count > 0);
    if (!profile_measure_fits(request, budget))
        return NULL;
    uint8_t *bits = mem_zalloc(chosen.profiles / 8 + 1);
    note_all(request, choice, bits);
    struct buffer *rest = merge_rest(request, bits, budget);
    mem_free(bits);
    return rest;
}

struct buffer *opaque_profiles_remove(struct slice request, struct budget *budget)
{
    return profile_remove(request, profile_is_opaque, budget);
}
