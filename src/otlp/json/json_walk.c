/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through JSON. Pure functions; any thread. */
#include "src/otlp/json/json_walk.h"

#include <assert.h>

/* A skipped level is a bit of a number. */
_Static_assert(JSON_WALK_DEPTH_MAX < 64, "json_walk_skip counts levels in 64 bits");

struct json_walk json_walk_of(struct slice text)
{
    return (struct json_walk){.scan = json_scan_of(text)};
}

bool json_walk_fail(struct json_walk *walk, const uint8_t *at, const char *expected)
{
    if (walk->failure == NULL) {
        walk->failure = expected;
        walk->failed_at = at;
    }
    return false;
}

static bool fail(struct json_walk *walk, const char *expected)
{
    return json_walk_fail(walk, walk->scan.at, expected);
}

uint8_t json_walk_peek(struct json_walk *walk)
{
    if (walk->failure != NULL)
        return 0;
    json_scan_space(&walk->scan);
    return json_scan_peek(&walk->scan);
}

/* At the start of a value. False: a failure, or it is null. */
static bool begin_value(struct json_walk *walk)
{
    json_walk_peek(walk);
    return walk->failure == NULL && !json_scan_word(&walk->scan, "null");
}

static bool open(struct json_walk *walk, uint8_t byte, const char *expected)
{
    if (!begin_value(walk))
        return false;
    if (json_scan_peek(&walk->scan) != byte)
        return fail(walk, expected);
    if (walk->depth == JSON_WALK_DEPTH_MAX)
        return fail(walk, "at most 32 levels of nesting");
    walk->scan.at++;
    walk->depth++;
    walk->is_first = true;
    return true;
}

bool json_walk_object(struct json_walk *walk)
{
    return open(walk, '{', "an object");
}

bool json_walk_list(struct json_walk *walk)
{
    return open(walk, '[', "a list");
}

/* Passes the comma. False: passed the closing bracket, or failure. */
static bool step(struct json_walk *walk, uint8_t close)
{
    if (walk->failure != NULL)
        return false;
    assert(walk->depth > 0);
    json_scan_space(&walk->scan);
    if (json_scan_peek(&walk->scan) == close) {
        walk->scan.at++;
        walk->depth--;
        walk->is_first = false;
        return false;
    }
    if (!walk->is_first) {
        if (json_scan_peek(&walk->scan) != ',')
            return fail(walk, "a comma, or the end of an object or a list");
        walk->scan.at++;
        json_scan_space(&walk->scan);
    }
    walk->is_first = false;
    return true;
}

bool json_walk_key(struct json_walk *walk, struct json_string *ret_key)
{
    if (!step(walk, '}'))
        return false;
    if (json_scan_peek(&walk->scan) != '"' || !json_scan_string(&walk->scan, ret_key))
        return fail(walk, "a key in quotes");
    json_scan_space(&walk->scan);
    if (json_scan_peek(&walk->scan) != ':')
        return fail(walk, "a colon after a key");
    walk->scan.at++;
    return true;
}

bool json_walk_item(struct json_walk *walk)
{
    return step(walk, ']');
}

bool json_walk_string(struct json_walk *walk, struct json_string *ret_string)
{
    if (!begin_value(walk))
        return false;
    if (json_scan_peek(&walk->scan) != '"')
        return fail(walk, "a string in quotes");
    return json_scan_string(&walk->scan, ret_string) || fail(walk, "the rest of a string");
}

bool json_walk_number(struct json_walk *walk, struct json_number *ret_number)
{
    if (!begin_value(walk))
        return false;
    const uint8_t *begin = walk->scan.at;
    uint8_t first = json_scan_peek(&walk->scan);
    bool is_number = first == '-' || (first >= '0' && first <= '9');
    return (is_number && json_scan_number(&walk->scan, ret_number)) ||
           json_walk_fail(walk, begin, "a number");
}

bool json_walk_bool(struct json_walk *walk, bool *ret_bool)
{
    if (!begin_value(walk))
        return false;
    *ret_bool = json_scan_word(&walk->scan, "true");
    return *ret_bool || json_scan_word(&walk->scan, "false") || fail(walk, "true or false");
}

/* Enters and leaves containers in a loop; a bit says whether a level is an object. */
bool json_walk_skip(struct json_walk *walk)
{
    size_t depth = walk->depth;
    uint64_t objects = 0;
    struct json_string string;
    struct json_number number;
    struct json_scan *scan = &walk->scan;
    do {
        uint8_t byte = json_walk_peek(walk);
        bool is_open = false;
        if (byte == '{')
            is_open = json_walk_object(walk);
        else if (byte == '[')
            is_open = json_walk_list(walk);
        else if (byte == '"')
            json_walk_string(walk, &string);
        else if (byte == 0 || (!json_scan_word(scan, "true") && !json_scan_word(scan, "false") &&
                               !json_scan_word(scan, "null") && !json_scan_number(scan, &number)))
            fail(walk, "a value");
        if (is_open)
            objects = (objects & ~((uint64_t)1 << walk->depth)) | (uint64_t)(byte == '{')
                                                                      << walk->depth;
        while (
            walk->failure == NULL && walk->depth > depth &&
            !((objects >> walk->depth & 1) != 0 ? json_walk_key(walk, &string) : step(walk, ']')))
            continue;
    } while (walk->failure == NULL && walk->depth > depth);
    return walk->failure == NULL;
}

bool json_walk_end(struct json_walk *walk)
{
    json_walk_peek(walk);
    return walk->failure == NULL &&
           (walk->scan.at == walk->scan.end || fail(walk, "nothing after the document"));
}

bool json_walk_is(const struct json_string *string, const char *text)
{
    return !string->has_escapes && slice_equal_text(string->raw, text);
}
