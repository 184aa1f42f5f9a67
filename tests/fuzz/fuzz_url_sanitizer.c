/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a URL. Nothing becomes longer, what is shown is a part of the text but for stars, no
 * segment shows more than one odd byte, and no query is shown, with memory for it or without. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/records/url_sanitizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_BYTES_MAX = 16 << 20 };

/* Each byte is found in the text, in this order. */
static bool is_part_of(struct slice result, struct slice text)
{
    size_t at = 0;
    for (size_t i = 0; i < result.size; i++) {
        if (result.data[i] == '*')
            continue;
        while (at < text.size && text.data[at] != result.data[i])
            at++;
        if (at++ >= text.size)
            return false;
    }
    return true;
}

static bool is_odd(uint8_t byte)
{
    uint8_t lower = byte | 0x20;
    bool is_letter = lower >= 'a' && lower <= 'z';
    return !is_letter && (byte == '\0' || strchr("-_. /*", byte) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct arena full;
    struct slice text = slice_of(data, size);
    arena_init(&arena, ARENA_BYTES_MAX);
    arena_init(&full, 0);
    struct slice result = url_sanitize(&arena, text);
    struct slice hidden = url_sanitize(&full, text);
    assert(result.size <= text.size);
    assert(is_part_of(result, text));
    for (size_t i = 0; i < result.size; i++) {
        bool is_second = i == 1 || (i > 1 && result.data[i - 2] == '/');
        assert(!is_odd(result.data[i]) || is_second);
        assert(result.data[i] != '?' && result.data[i] != '&' && result.data[i] != '#');
    }
    assert(slice_equal(hidden, result) || slice_equal_text(hidden, "****"));
    assert(!url_is_hidden(result) || memchr(result.data, '*', result.size) != NULL);
    arena_clear(&arena);
    arena_clear(&full);
    return 0;
}
