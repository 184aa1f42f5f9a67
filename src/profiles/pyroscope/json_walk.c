/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through JSON. Pure functions; any thread. */
#include "src/profiles/pyroscope/json_walk.h"

#include "src/profiles/pyroscope/pyroscope_limits.h"

#include <assert.h>

struct json_walk json_walk_of(struct slice text)
{
    return (struct json_walk){.scan = json_scan_of(text)};
}

static bool fail(struct json_walk *walk, const char *what)
{
    if (walk->failure == NULL)
        walk->failure = what;
    return false;
}

/* At the start of a value. False without failure: it is null. */
static bool begin_value(struct json_walk *walk, uint8_t byte, const char *what)
{
    if (walk->failure != NULL)
        return false;
    json_scan_space(&walk->scan);
    if (json_scan_word(&walk->scan, "null"))
        return false;
    return json_scan_peek(&walk->scan) == byte || fail(walk, what);
}

static bool open(struct json_walk *walk, uint8_t byte, const char *what)
{
    if (!begin_value(walk, byte, what))
        return false;
    if (walk->depth == UPLOAD_JSON_DEPTH_MAX)
        return fail(walk, "json: deeper than 32 levels");
    walk->scan.at++;
    walk->depth++;
    walk->is_first = true;
    return true;
}

bool json_walk_object(struct json_walk *walk)
{
    return open(walk, '{', "json: expected an object");
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
            return fail(walk, "json: expected a comma or the end of an object or array");
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
        return fail(walk, "json: expected a key in quotes");
    json_scan_space(&walk->scan);
    if (json_scan_peek(&walk->scan) != ':')
        return fail(walk, "json: expected a colon after a key");
    walk->scan.at++;
    return true;
}

bool json_walk_string(struct json_walk *walk, struct json_string *ret_string)
{
    if (!begin_value(walk, '"', "json: expected a string in quotes"))
        return false;
    return json_scan_string(&walk->scan, ret_string) || fail(walk, "json: a string is cut off");
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
        json_scan_space(scan);
        uint8_t byte = walk->failure == NULL ? json_scan_peek(scan) : 0;
        bool is_open = false;
        if (byte == '{')
            is_open = json_walk_object(walk);
        else if (byte == '[')
            is_open = open(walk, '[', "json: expected an array");
        else if (byte == 0)
            fail(walk, "json: unexpected end");
        else if (byte == '"'
                     ? !json_scan_string(scan, &string)
                     : !json_scan_word(scan, "true") && !json_scan_word(scan, "false") &&
                           !json_scan_word(scan, "null") && !json_scan_number(scan, &number))
            fail(walk, "json: expected a value");
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
    json_scan_space(&walk->scan);
    return walk->failure == NULL &&
           (walk->scan.at == walk->scan.end || fail(walk, "json: something follows the value"));
}

bool json_walk_is(const struct json_string *string, const char *text)
{
    return !string->has_escapes && slice_equal_text(string->raw, text);
}
