/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles on their way to exporters: reads and removes the opaque profiles of a normalized
 * request, converts the rest to layout 1.9 and back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/otlp/profile_transcode.h"

enum { BYTES_MAX = 1 << 16, INDEX_BYTES_MAX = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_scope(const struct profile_dictionary *dictionary, struct slice scope)
{
    static const char *const parameters[] = {"from", "until", "spyName", OPAQUE_PROFILE_LABELS};
    enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };
    struct wire_reader profiles = wire_reader_of(scope);
    struct profile profile;
    while (profile_next_profile(&profiles, &profile)) {
        struct slice values[PARAMETERS];
        struct slice names = profile_label_names(dictionary, &profile);
        assert(profile_items(&profile) >= profile.samples_count);
        opaque_profile_parameters(dictionary, &profile, parameters, PARAMETERS, values);
        (void)profile_label_names_has(names, slice_of_text("region"));
    }
}

static void read_request(struct slice request)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct profile_resource resource;
    struct profile_scope scope;
    struct wire_reader resources = wire_reader_of(request);
    arena_init(&arena, INDEX_BYTES_MAX);
    if (profile_dictionary_open(&dictionary, &arena, request))
        while (profile_next_resource(&resources, &resource)) {
            struct wire_reader scopes = wire_reader_of(resource.bytes);
            while (profile_next_scope(&scopes, &scope))
                read_scope(&dictionary, scope.bytes);
        }
    arena_clear(&arena);
}

static void check_remove(const struct profile_normalized *normalized)
{
    uint64_t opaque = opaque_profiles_count(normalized->request);
    struct profile_normalized after;
    assert(opaque <= normalized->profiles);
    if (opaque == 0)
        return;
    struct buffer *rest = opaque_profiles_remove(normalized->request, NULL);
    assert(rest != NULL);
    assert(opaque_profiles_count(buffer_slice(rest)) == 0);
    assert((rest->size == 0) == (opaque == normalized->profiles));
    enum profile_verdict verdict =
        profile_normalize(rest, buffer_slice(rest), LAYOUT_1_10, NULL, &after);
    assert(verdict == PROFILES_TAKEN);
    assert(after.samples == normalized->samples - opaque);
    assert(after.profiles == normalized->profiles - opaque);
    buffer_unref(after.owner);
    buffer_unref(rest);
}

static void check_layout(struct slice request)
{
    struct buffer *old = profile_transcode_back(request, NULL);
    assert(old != NULL);
    struct buffer *back = profile_transcode(LAYOUT_1_9, buffer_slice(old), NULL);
    assert(back != NULL);
    assert(slice_equal(buffer_slice(back), request));
    buffer_unref(back);
    buffer_unref(old);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_normalized normalized;
    if (size > BYTES_MAX)
        return 0;
    struct buffer *request = buffer_create(NULL, size);
    if (size > 0)
        memcpy(request->data, data, size);
    request->size = size;
    if (profile_normalize(request, buffer_slice(request), LAYOUT_1_10, NULL, &normalized) ==
        PROFILES_TAKEN) {
        /* Requests with broken profiles only are not passed on. */
        if (normalized.profiles > 0) {
            read_request(normalized.request);
            check_remove(&normalized);
            check_layout(normalized.request);
        }
        buffer_unref(normalized.owner);
    }
    buffer_unref(request);
    return 0;
}
