/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as jemalloc's heap profile: refused, or converted to valid pprof. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/profiles/pprof/heap_profile.h"
#include "src/profiles/pprof/pprof_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct arena arena;
    struct pprof pprof;
    struct buffer *profile = heap_profile_to_pprof(slice_of(data, size), 1, &error);
    if (profile == NULL)
        return 0;
    arena_init(&arena, 64 * MIB);
    bool is_read = pprof_read(&arena, buffer_slice(profile), &pprof, &error);
    assert(is_read);
    arena_clear(&arena);
    buffer_unref(profile);
    return 0;
}
