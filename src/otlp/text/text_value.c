/* SPDX-License-Identifier: Apache-2.0 */
/* AnyValue behind its type, as the debug exporter prints it. AnyValue: 1 string, 2 bool, 3 int,
 * 4 double, 5 array, 6 kvlist, 7 bytes. Any thread. */
#include "src/base/arena.h"
#include "src/otlp/json/value_text.h"
#include "src/otlp/text/text_parts.h"

#include <assert.h>

enum { ANY_STRING = 1, ANY_KINDS = 8 };

static uint32_t kind_of(const struct message *value)
{
    static const uint32_t kinds[] = {1, 2, 3, 4, 5, 6, 7};
    return message_last_of(value, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

static void add_value(struct text *text, const struct message *value, uint32_t kind)
{
    assert(kind != 0);
    struct arena arena;
    struct slice words;
    if (kind == ANY_STRING) {
        text_add_slice(text, message_bytes(value, ANY_STRING));
        return;
    }
    arena_init_charged(&arena, TEXT_BYTES_MAX, text->budget);
    if (value_to_text(&arena, value->bytes, &words))
        text_add_slice(text, words);
    else
        text_add(text, "…");
    arena_clear(&arena);
}

void text_add_value(struct text *text, struct slice bytes)
{
    struct message value = message_of(bytes);
    uint32_t kind = kind_of(&value);
    if (kind != 0)
        add_value(text, &value, kind);
}

void text_add_typed_value(struct text *text, struct slice bytes)
{
    static const char *const names[ANY_KINDS] = {"Empty",  "Str",   "Bool", "Int",
                                                 "Double", "Slice", "Map",  "Bytes"};
    struct message value = message_of(bytes);
    uint32_t kind = kind_of(&value);
    text_add(text, "%s(", names[kind]);
    if (kind != 0)
        add_value(text, &value, kind);
    text_add(text, ")");
}
