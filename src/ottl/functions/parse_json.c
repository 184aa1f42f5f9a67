/* SPDX-License-Identifier: Apache-2.0 */
/* ParseJSON: an object or array as a map or list (RFC 8259, with what Go's goccy/go-json
 * tolerates). Numbers are doubles; of equal names the last one counts, at the place of the first.
 * Runs on the processor's thread. */
#include "src/base/hex.h"
#include "src/otlp/json/json_scan.h"
#include "src/otlp/json/value_string.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_limits.h"

/* Lists nested so deep can still be put into an attribute; putting in maps may fail. */
enum { DEPTH_MAX = OTTL_VALUE_LEVELS_MAX / OTTL_LIST_LEVELS };

struct json_parser {
    struct ottl_call *call;
    struct json_scan scan;
};

static bool fail(struct json_parser *parser, const char *expected)
{
    char found[JSON_FOUND_BYTES_MAX];
    json_scan_found(&parser->scan, parser->scan.at, found);
    return ottl_fail(parser->call, "byte %zu of the JSON: found %s, expected %s",
                     (size_t)(parser->scan.at - parser->scan.begin), found, expected);
}

/* Behind the opening quotation mark; moves past the closing one. As in Go, control characters need
 * no escape. */
static bool scan_text(struct json_scan *scan, struct json_string *ret)
{
    enum { HEX_DIGITS = 4 };
    const uint8_t *begin = scan->at;
    *ret = (struct json_string){.has_escapes = false};
    for (; scan->at < scan->end && *scan->at != '"'; scan->at++) {
        if (*scan->at != '\\')
            continue;
        ret->has_escapes = true;
        uint8_t escape = ++scan->at < scan->end ? *scan->at : 0;
        if (escape == 0 || strchr("\"\\/bfnrtu", escape) == NULL)
            return false;
        for (size_t i = 0; escape == 'u' && i < HEX_DIGITS; i++)
            if (++scan->at >= scan->end || hex_digit(*scan->at) > 15)
                return false;
    }
    if (scan->at >= scan->end)
        return false;
    ret->raw = slice_of(begin, (size_t)(scan->at++ - begin));
    return true;
}

/* At a quotation mark. */
static bool parse_text(struct json_parser *parser, struct slice *ret)
{
    struct json_string string;
    parser->scan.at++;
    if (!scan_text(&parser->scan, &string))
        return fail(parser, "the rest of a string");
    *ret = string.raw;
    if (!string.has_escapes)
        return true;
    uint8_t *room = ottl_alloc(parser->call, string.raw.size);
    if (room == NULL)
        return false;
    size_t used = 0;
    struct slice rest = string.raw;
    while (rest.size > 0) { /* what is between control characters, and one of them */
        struct json_string piece = {.raw = rest, .has_escapes = true};
        size_t size = 0;
        while (size < rest.size && rest.data[size] >= ' ')
            size++;
        piece.raw.size = size;
        used += json_unescape(&piece, room + used);
        if (size < rest.size)
            room[used++] = rest.data[size++];
        rest = slice_of(rest.data + size, rest.size - size);
    }
    *ret = slice_of(room, used);
    return true;
}

static bool parse_value(struct json_parser *parser, unsigned depth, struct ottl_value *ret);

/* Behind the opening bracket. Recursion is bounded by DEPTH_MAX. */
static bool parse_array(struct json_parser *parser, unsigned depth, struct ottl_value *ret)
{
    struct json_scan *scan = &parser->scan;
    struct ottl_list *list = ottl_list_create(parser->call->memory);
    if (list == NULL)
        return ottl_no_memory(parser->call);
    *ret = ottl_list_value(list, OTTL_FORM_PDATA);
    json_scan_space(scan);
    if (json_scan_peek(scan) == ']') {
        scan->at++;
        return true;
    }
    for (;;) {
        struct ottl_value item;
        if (!parse_value(parser, depth, &item))
            return false;
        if (!ottl_list_adopt(list, &item))
            return ottl_no_memory(parser->call);
        json_scan_space(scan);
        uint8_t byte = json_scan_peek(scan);
        if (byte != ',' && byte != ']')
            return fail(parser, "',' or ']'");
        scan->at++;
        if (byte == ']')
            return true;
    }
}

/* Behind the opening brace. Recursion is bounded by DEPTH_MAX. */
static bool parse_object(struct json_parser *parser, unsigned depth, struct ottl_value *ret)
{
    struct json_scan *scan = &parser->scan;
    struct key_index index;
    struct ottl_map *map = ottl_map_create(parser->call->memory);
    if (map == NULL)
        return ottl_no_memory(parser->call);
    *ret = ottl_map_value(map);
    key_index_init(&index, parser->call, map);
    json_scan_space(scan);
    if (json_scan_peek(scan) == '}') {
        scan->at++;
        return true;
    }
    for (;;) {
        struct slice key;
        struct ottl_value value;
        json_scan_space(scan);
        if (json_scan_peek(scan) != '"')
            return fail(parser, "a name in quotation marks");
        if (!parse_text(parser, &key))
            return false;
        json_scan_space(scan);
        if (json_scan_peek(scan) != ':')
            return fail(parser, "':'");
        scan->at++;
        if (!parse_value(parser, depth, &value))
            return false;
        struct ottl_entry *entry = key_index_put(&index, key);
        if (entry == NULL)
            return false;
        ottl_map_adopt(map, entry, &value);
        json_scan_space(scan);
        uint8_t byte = json_scan_peek(scan);
        if (byte != ',' && byte != '}')
            return fail(parser, "',' or '}'");
        scan->at++;
        if (byte == '}')
            return true;
    }
}

/* As in Go, whatever strconv.ParseFloat takes of the characters that numbers have. */
static bool parse_number(struct json_parser *parser, struct ottl_value *ret)
{
    struct json_scan *scan = &parser->scan;
    double real;
    const uint8_t *begin = scan->at;
    while (scan->at < scan->end && ((*scan->at >= '0' && *scan->at <= '9') ||
                                    (*scan->at != 0 && strchr("+-.eE", *scan->at) != NULL)))
        scan->at++;
    if (!string_to_double(slice_of(begin, (size_t)(scan->at - begin)), &real)) {
        scan->at = begin;
        return fail(parser, "a number in the range of doubles");
    }
    *ret = ottl_double(real);
    return true;
}

/* Recursion is bounded by DEPTH_MAX. */
static bool parse_value(struct json_parser *parser, unsigned depth, struct ottl_value *ret)
{
    struct json_scan *scan = &parser->scan;
    struct slice text;
    json_scan_space(scan);
    uint8_t byte = json_scan_peek(scan);
    if (byte == '{' || byte == '[') {
        if (depth == 0)
            return ottl_fail(parser->call, "byte %zu of the JSON: nested more than %d deep",
                             (size_t)(scan->at - scan->begin), DEPTH_MAX);
        scan->at++;
        return byte == '{' ? parse_object(parser, depth - 1, ret)
                           : parse_array(parser, depth - 1, ret);
    }
    if (byte == '"') {
        if (!parse_text(parser, &text))
            return false;
        *ret = ottl_string(text);
        return true;
    }
    *ret = ottl_nil();
    if (json_scan_word(scan, "null"))
        return true;
    *ret = ottl_bool(true);
    if (json_scan_word(scan, "true"))
        return true;
    *ret = ottl_bool(false);
    if (json_scan_word(scan, "false"))
        return true;
    if (byte != '-' && (byte < '0' || byte > '9'))
        return fail(parser, "a value");
    return parse_number(parser, ret);
}

static bool parse_json(struct ottl_call *call, struct ottl_value *ret)
{
    static const char *const names[] = {"<nil>", "bool", "int64", "float64", "string"};
    struct slice text;
    if (!ottl_get_string(call, 0, &text))
        return false;
    struct json_parser parser = {.call = call, .scan = json_scan_of(text)};
    if (!parse_value(&parser, DEPTH_MAX, ret))
        return false;
    json_scan_space(&parser.scan);
    if (parser.scan.at < parser.scan.end)
        return fail(&parser, "the end");
    if (ret->type == OTTL_MAP || ret->type == OTTL_LIST)
        return true;
    return ottl_fail(call, "could not convert parsed value of type %s to JSON object",
                     names[ret->type]);
}

static const struct ottl_parameter one_string[] = {{"Target", OTTL_STRINGS_ONLY, false, false},
                                                   {.name = NULL}};

const struct ottl_function ottl_json_functions[] = {
    {.name = "ParseJSON", .parameters = one_string, .evaluate = parse_json},
    {.name = NULL},
};
