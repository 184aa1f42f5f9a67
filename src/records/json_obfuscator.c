/* SPDX-License-Identifier: Apache-2.0 */
/* Read twice: to see that it is JSON, and how long it becomes, and then to write it. */
#include "src/records/json_obfuscator.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/arena.h"
#include "src/otlp/json/json_scan.h"

enum { WORDS_OF_DEPTH = (JSON_QUERY_DEPTH_MAX + 63) / 64 };

struct walk {
    struct json_scan scan;
    uint8_t *room; /* NULL: it is measured */
    size_t size;
    size_t depth;
    uint64_t objects[WORDS_OF_DEPTH]; /* a bit for each depth: an object, or else a list */
};

static void put(struct walk *walk, const uint8_t *begin, size_t size)
{
    if (walk->room != NULL && size > 0)
        memcpy(walk->room + walk->size, begin, size);
    walk->size += size;
}

/* White space around it goes. */
static bool take_byte(struct walk *walk, uint8_t byte)
{
    json_scan_space(&walk->scan);
    if (json_scan_peek(&walk->scan) != byte)
        return false;
    put(walk, walk->scan.at++, 1);
    json_scan_space(&walk->scan);
    return true;
}

static bool is_in_object(const struct walk *walk)
{
    size_t level = walk->depth - 1;
    return walk->objects[level / 64] >> level % 64 & 1;
}

static bool begin_nested(struct walk *walk, bool is_object)
{
    if (walk->depth == JSON_QUERY_DEPTH_MAX)
        return false;
    size_t level = walk->depth++;
    uint64_t bit = UINT64_C(1) << level % 64;
    walk->objects[level / 64] =
        is_object ? walk->objects[level / 64] | bit : walk->objects[level / 64] & ~bit;
    return true;
}

static bool take_key(struct walk *walk)
{
    const uint8_t *begin = walk->scan.at;
    struct json_string string;
    if (json_scan_peek(&walk->scan) != '"' || !json_scan_string(&walk->scan, &string))
        return false;
    put(walk, begin, (size_t)(walk->scan.at - begin));
    return take_byte(walk, ':');
}

static bool take_scalar(struct walk *walk)
{
    static const uint8_t hidden[] = {'"', '?', '"'};
    struct json_string string;
    struct json_number number;
    bool is_scalar = false;
    if (json_scan_peek(&walk->scan) == '"')
        is_scalar = json_scan_string(&walk->scan, &string);
    else if (walk->scan.at < walk->scan.end)
        is_scalar = json_scan_word(&walk->scan, "true") || json_scan_word(&walk->scan, "false") ||
                    json_scan_word(&walk->scan, "null") || json_scan_number(&walk->scan, &number);
    if (is_scalar)
        put(walk, hidden, sizeof(hidden));
    return is_scalar;
}

/* Up to the first scalar, or the end of an empty list or object. */
static bool take_value(struct walk *walk)
{
    for (;;) {
        bool is_object = json_scan_peek(&walk->scan) == '{';
        if (!is_object && json_scan_peek(&walk->scan) != '[')
            return take_scalar(walk);
        if (!take_byte(walk, is_object ? '{' : '[') || !begin_nested(walk, is_object))
            return false;
        if (json_scan_peek(&walk->scan) == (is_object ? '}' : ']'))
            return true;
        if (is_object && !take_key(walk))
            return false;
    }
}

/* False: it is no JSON. */
static bool walk_text(struct walk *walk)
{
    json_scan_space(&walk->scan);
    if (!take_value(walk))
        return false;
    while (walk->depth > 0) {
        if (take_byte(walk, ',')) {
            if ((is_in_object(walk) && !take_key(walk)) || !take_value(walk))
                return false;
            continue;
        }
        json_scan_space(&walk->scan);
        if (json_scan_peek(&walk->scan) != (is_in_object(walk) ? '}' : ']'))
            return false;
        put(walk, walk->scan.at++, 1);
        walk->depth--;
    }
    const uint8_t *begin = walk->scan.at;
    json_scan_space(&walk->scan);
    put(walk, begin, (size_t)(walk->scan.at - begin));
    return walk->scan.at == walk->scan.end;
}

struct slice json_obfuscate(struct arena *arena, struct slice text)
{
    struct walk walk;
    walk.scan = json_scan_of(text);
    walk.room = NULL;
    walk.size = 0;
    walk.depth = 0;
    if (!walk_text(&walk))
        return text;
    size_t size = walk.size;
    assert(size <= text.size * JSON_QUERY_GROWTH_MAX);
    walk.room = arena_try_alloc(arena, size);
    if (walk.room == NULL)
        return slice_of_text("****");
    walk.scan = json_scan_of(text);
    walk.size = 0;
    walk_text(&walk);
    assert(walk.size == size);
    return slice_of(walk.room, size);
}
