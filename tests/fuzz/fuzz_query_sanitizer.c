/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a query: the first byte says of which languages, one bit for each, and the text goes
 * through all of them as a body does, through the first one as a span's name, and through a full
 * arena. Nothing becomes much longer, and nothing that is changed is shown when there is no memory.
 */
#include <assert.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/records/json_obfuscator.h"
#include "src/records/query_sanitizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES_MAX = 16 << 20 };

static void check(const struct query_sanitizer *sanitizer, struct slice text, struct slice system)
{
    struct arena arena;
    struct arena full;
    arena_init(&arena, ARENA_BYTES_MAX);
    arena_init(&full, 0);
    struct slice result = system.size > 0
                              ? query_sanitizer_span_name(sanitizer, &arena, text, system)
                              : query_sanitizer_body(sanitizer, &arena, text);
    struct slice hidden = system.size > 0
                              ? query_sanitizer_span_name(sanitizer, &full, text, system)
                              : query_sanitizer_body(sanitizer, &full, text);
    assert(result.size <= text.size * JSON_QUERY_GROWTH_MAX);
    assert(slice_equal(hidden, result) || slice_equal_text(hidden, "****"));
    arena_clear(&arena);
    arena_clear(&full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const systems[] = {"", "sqlite", "mysql", "redis", "memcached", "mongodb"};
    struct query_settings settings = {.has_span_names = true};
    if (size == 0)
        return 0;
    for (size_t i = 0; i < QUERY_LANGUAGES; i++)
        settings.is_enabled[i] = data[0] >> i & 1;
    struct query_sanitizer *sanitizer = query_sanitizer_create(&settings);
    for (size_t i = 0; sanitizer != NULL && i < sizeof(systems) / sizeof(systems[0]); i++)
        check(sanitizer, slice_of(data + 1, size - 1), slice_of_text(systems[i]));
    query_sanitizer_destroy(sanitizer);
    return 0;
}
