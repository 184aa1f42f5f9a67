/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of links and events, which the exporter writes as a JSON object inside of a tag or an
 * annotation. On the thread of the request. */
#include "src/zipkin/zipkin_parts.h"

#include <assert.h>
#include <math.h>

#include "src/otlp/json/json_walk.h"
#include "src/otlp/json/value_string.h"
#include "src/otlp/nested_output.h"

/* KeyValue, AnyValue, ArrayValue and KeyValueList. */
enum {
    KEY = 1,
    VALUE = 2,
    VALUE_STRING_FIELD = 1,
    VALUE_BOOL_FIELD = 2,
    VALUE_INT_FIELD = 3,
    VALUE_DOUBLE_FIELD = 4,
    VALUE_LIST_FIELD = 5,
    VALUE_MAP_FIELD = 6,
    ELEMENTS = 1,
};

/* Each level is up to three messages, of which WIRE_DEPTH_MAX may be nested. */
enum { LEVELS_MAX = 16 };

static bool read_string(struct zipkin_request *request, const struct json_string *string,
                        struct slice *ret_text)
{
    *ret_text = string->raw;
    if (string->has_escapes) {
        uint8_t *room = arena_try_alloc(&request->texts, string->raw.size);
        if (room == NULL)
            return zipkin_no_memory(request, string->raw.size);
        *ret_text = slice_of(room, json_unescape(string, room));
    }
    return true;
}

/* JSON does not tell integers from doubles: those without a fraction are integers. */
static void put_json_number(struct nested_output *output, const struct json_number *number)
{
    const double limit = 0x1p63;
    int64_t integer;
    double real = 0;
    uint64_t bits;
    if (number->is_integer && string_to_int(number->text, &integer)) {
        nested_put_number(output, VALUE_INT_FIELD, (uint64_t)integer);
        return;
    }
    if (!string_to_double(number->text, &real))
        real = number->text.data[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    if (real == trunc(real) && real >= -limit && real < limit) {
        nested_put_number(output, VALUE_INT_FIELD, (uint64_t)(int64_t)real);
        return;
    }
    memcpy(&bits, &real, sizeof(bits));
    nested_put_fixed64(output, VALUE_DOUBLE_FIELD, bits);
}

static void put_members(struct zipkin_request *request, struct json_walk *walk, uint32_t number);

/* Writes the next value as an AnyValue. As deep as the walk allows. */
static void put_value(struct zipkin_request *request, struct json_walk *walk, uint32_t number)
{
    struct nested_output *output = &request->output;
    struct json_string string;
    struct json_number real;
    struct slice text;
    bool boolean;
    struct nested_message inner;
    struct nested_message value = nested_put_begin(output, number, 1);
    uint8_t first = json_walk_peek(walk);
    request->messages++;
    if (walk->depth > LEVELS_MAX)
        json_walk_fail(walk, walk->scan.at, "fewer levels");
    switch (first) {
    case '"':
        if (json_walk_string(walk, &string) && read_string(request, &string, &text))
            nested_put_bytes(output, VALUE_STRING_FIELD, text);
        break;
    case 't':
    case 'f':
        if (json_walk_bool(walk, &boolean))
            nested_put_number(output, VALUE_BOOL_FIELD, boolean);
        break;
    case '[':
        inner = nested_put_begin(output, VALUE_LIST_FIELD, 1);
        if (json_walk_list(walk))
            while (json_walk_item(walk))
                put_value(request, walk, ELEMENTS);
        nested_put_end(output, inner);
        request->messages++;
        break;
    case '{':
        inner = nested_put_begin(output, VALUE_MAP_FIELD, 1);
        put_members(request, walk, ELEMENTS);
        nested_put_end(output, inner);
        request->messages++;
        break;
    case 'n':
        json_walk_skip(walk);
        break;
    default:
        if (json_walk_number(walk, &real))
            put_json_number(output, &real);
        break;
    }
    nested_put_end(output, value);
}

/* Writes the members of the object that comes next as KeyValues. */
static void put_members(struct zipkin_request *request, struct json_walk *walk, uint32_t number)
{
    struct nested_output *output = &request->output;
    struct json_string string;
    struct slice key;
    if (!json_walk_object(walk))
        return;
    while (json_walk_key(walk, &string) && read_string(request, &string, &key)) {
        struct nested_message pair = nested_put_begin(output, number, 1);
        nested_put_bytes(output, KEY, key);
        put_value(request, walk, VALUE);
        nested_put_end(output, pair);
        request->messages++;
    }
}

bool zipkin_put_json(struct zipkin_request *request, uint32_t number, struct slice json)
{
    size_t before = nested_output_size(&request->output);
    uint64_t messages = request->messages;
    struct json_walk walk = json_walk_of(json);
    uint8_t first = json_walk_peek(&walk);
    if (first == '{')
        put_members(request, &walk, number);
    else if (first != 'n' || !json_scan_word(&walk.scan, "null"))
        return false;
    bool is_whole = json_walk_end(&walk);
    if (!is_whole && request->output.refused_bytes == 0) {
        nested_output_cut(&request->output, before);
        request->messages = messages;
    }
    return is_whole;
}
