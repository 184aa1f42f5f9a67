/* SPDX-License-Identifier: Apache-2.0 */
/* What is to go is named as broken, which merging leaves out. Pure functions; any thread. */
#include "src/otlp/profile_strip.h"

#include <assert.h>
#include <stdbool.h>

#include "src/buffer.h"
#include "src/mem.h"
#include "src/otlp/profile_merge.h"
#include "src/otlp/profile_upload.h"

struct uploads {
    uint8_t *bits; /* one per Profile message; NULL: they are only counted */
    uint64_t profiles;
    uint64_t count;
};

static void note_scope(struct uploads *uploads, struct slice scope)
{
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile profile;
    while (profile_next_profile(&profiles, &profile)) {
        bool is_upload = profile_is_upload(&profile);
        if (uploads->bits != NULL && is_upload)
            uploads->bits[uploads->profiles / 8] |= (uint8_t)(1 << uploads->profiles % 8);
        uploads->profiles++;
        uploads->count += is_upload;
    }
    assert(uploads->count <= uploads->profiles);
}

static struct uploads note_all(struct slice request, uint8_t *bits)
{
    struct uploads uploads = {.bits = bits};
    struct wire_reader resources = wire_reader_of(request);
    struct profile_resource resource;
    struct profile_scope scope;
    while (profile_next_resource(&resources, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        while (profile_next_scope(&scopes, &scope))
            note_scope(&uploads, scope.bytes);
    }
    assert(resources.failure == NULL);
    return uploads;
}

uint64_t profile_uploads_count(struct slice request)
{
    assert(request.data != NULL || request.size == 0);
    return note_all(request, NULL).count;
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

struct buffer *profile_strip_uploads(struct slice request, struct budget *budget)
{
    struct uploads uploads = note_all(request, NULL);
    assert(uploads.count > 0);
    uint8_t *bits = mem_zalloc(uploads.profiles / 8 + 1);
    note_all(request, bits);
    struct buffer *rest = merge_rest(request, bits, budget);
    mem_free(bits);
    return rest;
}
