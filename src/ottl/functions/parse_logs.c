/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of transform that read log formats (contrib 0.155, processor/transformprocessor/
 * internal/logparsingfuncs): ParseCLF, of web servers' access logs (httpd.apache.org,
 * mod_log_config; NCSA's combined format), and ParseLEEF, IBM's Log Event Extended Format 1.0
 * and 2.0. Run on the processor's thread. */
#include "src/base/error.h"
#include "src/base/hex.h"
#include "src/base/utf8_classes.h"
#include "src/otlp/json/value_string.h"
#include "src/ottl/functions/go_text.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"
#include "src/ottl/ottl_context.h"

/* Texts in errors are cut. */
enum { SHOWN_BYTES_MAX = 100 };
#define SHOWN(text)                                                                                \
    (text).size < SHOWN_BYTES_MAX ? (int)(text).size : SHOWN_BYTES_MAX, (const char *)(text).data

static bool put_text(struct ottl_call *call, struct ottl_map *map, const char *key,
                     struct slice text)
{
    const struct ottl_value value = ottl_string(text);
    struct ottl_entry *entry = ottl_map_append(map, slice_of_text(key));
    if (entry == NULL)
        return ottl_no_memory(call);
    ottl_map_adopt(map, entry, &value);
    return true;
}

/* ---- ParseCLF ---- */

/* The fields of a line, in their order. */
enum {
    CLF_HOST,
    CLF_RFC931,
    CLF_USER,
    CLF_TIMESTAMP,
    CLF_REQUEST,
    CLF_STATUS,
    CLF_BYTES,
    CLF_FIELDS,
    CLF_REFERER = CLF_FIELDS,
    CLF_AGENT,
    COMBINED_FIELDS,
};

static bool is_combined(struct slice format)
{
    return slice_equal_text(format, "combined");
}

/* What \S of RE2 does not match. */
static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

static bool take_byte(struct slice *rest, uint8_t byte)
{
    if (rest->size == 0 || rest->data[0] != byte)
        return false;
    *rest = slice_of(rest->data + 1, rest->size - 1);
    return true;
}

/* Two digits. */
static bool read_hex(const uint8_t *digits, uint8_t *ret)
{
    const unsigned high = hex_digit(digits[0]);
    const unsigned low = hex_digit(digits[1]);
    *ret = (uint8_t)(high << 4 | low);
    return high < 16 && low < 16;
}

static struct slice take(struct slice *rest, size_t size)
{
    const struct slice taken = slice_of(rest->data, size);
    *rest = slice_of(rest->data + size, rest->size - size);
    return taken;
}

static bool take_word(struct slice *rest, struct slice *ret)
{
    size_t size = 0;
    while (size < rest->size && !is_space(rest->data[size]))
        size++;
    *ret = take(rest, size);
    return size > 0;
}

static bool take_date(struct slice *rest, struct slice *ret)
{
    if (!take_byte(rest, '['))
        return false;
    const uint8_t *end = rest->size > 0 ? memchr(rest->data, ']', rest->size) : NULL;
    if (end == NULL || end == rest->data)
        return false;
    *ret = take(rest, (size_t)(end - rest->data));
    return take_byte(rest, ']');
}

/* A backslash keeps what follows it, other than the end of a line. */
static bool take_quoted(struct slice *rest, struct slice *ret)
{
    size_t size = 0;
    if (!take_byte(rest, '"'))
        return false;
    for (; size < rest->size && rest->data[size] != '"'; size++)
        if (rest->data[size] == '\\' && (++size == rest->size || rest->data[size] == '\n'))
            return false;
    *ret = take(rest, size);
    return take_byte(rest, '"');
}

static bool split_line(struct slice rest, unsigned count, struct slice fields[COMBINED_FIELDS])
{
    for (unsigned i = 0; i < count; i++) {
        const bool is_quoted = i == CLF_REQUEST || i >= CLF_REFERER;
        if ((i > 0 && !take_byte(&rest, ' ')) || !(i == CLF_TIMESTAMP ? take_date(&rest, &fields[i])
                                                   : is_quoted ? take_quoted(&rest, &fields[i])
                                                               : take_word(&rest, &fields[i])))
            return false;
    }
    return rest.size == 0;
}

/* What the server has written as \x22 and the like; what is no such escape stays as it is. */
static bool unescape(struct ottl_call *call, struct slice text, struct slice *ret)
{
    static const char letters[] = "ntrbfv\\\"";
    static const char bytes[] = "\n\t\r\b\f\v\\\"";
    *ret = text;
    if (text.size == 0 || memchr(text.data, '\\', text.size) == NULL)
        return true;
    uint8_t *room = ottl_alloc(call, text.size);
    if (room == NULL)
        return false;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t *at = text.data + i;
        const size_t left = text.size - i;
        const char *letter = *at == '\\' && left > 1 && at[1] != 0 ? strchr(letters, at[1]) : NULL;
        if (letter != NULL) {
            room[used++] = (uint8_t)bytes[letter - letters];
            i++;
        } else if (*at == '\\' && left > 3 && at[1] == 'x' && read_hex(at + 2, &room[used])) {
            used++;
            i += 3;
        } else if (*at == '\\' && left > 1) {
            room[used++] = *at;
            room[used++] = at[1];
            i++;
        } else {
            room[used++] = *at;
        }
    }
    *ret = slice_of(room, used);
    return true;
}

/* "GET / HTTP/1.1" */
static bool put_request(struct ottl_call *call, struct ottl_map *map, struct slice request)
{
    const uint8_t *first = request.size > 0 ? memchr(request.data, ' ', request.size) : NULL;
    if (first == NULL)
        return true;
    struct slice rest = request;
    const struct slice method = take(&rest, (size_t)(first - request.data));
    take(&rest, 1);
    const uint8_t *second = rest.size > 0 ? memchr(rest.data, ' ', rest.size) : NULL;
    if (second == NULL)
        return true;
    const struct slice uri = take(&rest, (size_t)(second - rest.data));
    take(&rest, 1);
    return put_text(call, map, "clf.method", method) &&
           put_text(call, map, "clf.request_uri", uri) && put_text(call, map, "clf.protocol", rest);
}

static bool put_number(struct ottl_call *call, struct ottl_map *map, const char *key,
                       const char *what, struct slice text)
{
    int64_t number;
    if (!string_to_int(text, &number))
        return ottl_fail(call, "invalid %s \"%.*s\": expected a whole number", what, SHOWN(text));
    const struct ottl_value value = ottl_int(number);
    struct ottl_entry *entry = ottl_map_append(map, slice_of_text(key));
    if (entry == NULL)
        return ottl_no_memory(call);
    ottl_map_adopt(map, entry, &value);
    return true;
}

static bool parse_clf(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    struct slice format = slice_of_text("clf");
    struct slice fields[COMBINED_FIELDS];
    struct slice request, referer, agent;
    if (!ottl_get_string(call, 0, &text) ||
        (ottl_has(call, 1) && !ottl_get_string(call, 1, &format)))
        return false;
    if (text.size == 0)
        return ottl_fail(call, "cannot parse empty CLF message");
    const bool has_more = is_combined(format);
    if (!split_line(utf8_trim_space(text), has_more ? COMBINED_FIELDS : CLF_FIELDS, fields))
        return ottl_fail(call, "invalid CLF message: does not match expected \"%.*s\" format",
                         SHOWN(format));
    struct ottl_map *map = ottl_map_create(call->memory);
    if (map == NULL)
        return ottl_no_memory(call);
    *ret = ottl_map_value(map);
    if (!put_text(call, map, "clf.remote_host", fields[CLF_HOST]) ||
        !put_text(call, map, "clf.rfc931", fields[CLF_RFC931]) ||
        !put_text(call, map, "clf.auth_user", fields[CLF_USER]) ||
        !put_text(call, map, "clf.timestamp", fields[CLF_TIMESTAMP]) ||
        !unescape(call, fields[CLF_REQUEST], &request) ||
        !put_text(call, map, "clf.request", request) || !put_request(call, map, request) ||
        !put_number(call, map, "clf.status", "status code", fields[CLF_STATUS]) ||
        (!slice_equal_text(fields[CLF_BYTES], "-") &&
         !put_number(call, map, "clf.bytes", "bytes value", fields[CLF_BYTES])))
        return false;
    return !has_more || (unescape(call, fields[CLF_REFERER], &referer) &&
                         put_text(call, map, "clf.referer", referer) &&
                         unescape(call, fields[CLF_AGENT], &agent) &&
                         put_text(call, map, "clf.user_agent", agent));
}

static bool check_format(const struct ottl_preparation *preparation, void **ret_state,
                         struct error *error)
{
    const struct slice format = ottl_literal_text(preparation, 1);
    *ret_state = NULL;
    return !ottl_is_given(preparation, 1) || is_combined(format) ||
           slice_equal_text(format, "clf") ||
           error_set(error, "invalid format \"%.*s\": must be \"clf\" or \"combined\"",
                     SHOWN(format));
}

static const struct ottl_parameter clf_parameters[] = {{"Target", OTTL_STRINGS_ONLY, false, false},
                                                       {"Format", OTTL_TEXT_LITERAL, true, false},
                                                       {.name = NULL}};

/* ---- ParseLEEF ---- */

/* Of the header, behind "LEEF:" and the version. */
enum { LEEF_VENDOR, LEEF_PRODUCT, LEEF_RELEASE, LEEF_EVENT, LEEF_FIELDS };

struct leef {
    struct slice version;
    struct slice fields[LEEF_FIELDS];
    uint8_t delimiter;
    struct slice attributes;
};

/* Cuts what is before the byte off. False: it does not occur; *ret is all the rest. */
static bool cut(struct slice *rest, uint8_t byte, struct slice *ret)
{
    const uint8_t *end = rest->size > 0 ? memchr(rest->data, byte, rest->size) : NULL;
    *ret = take(rest, end != NULL ? (size_t)(end - rest->data) : rest->size);
    return end != NULL && take_byte(rest, byte);
}

static bool read_delimiter(struct ottl_call *call, struct slice text, uint8_t *ret)
{
    *ret = '\t';
    if (text.size == 0)
        return true;
    if (text.size >= 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x') {
        if (text.size == 4 && read_hex(text.data + 2, ret))
            return true;
        return ottl_fail(call,
                         "invalid LEEF 2.0 delimiter: \"%.*s\" is not one byte in hexadecimal",
                         SHOWN(text));
    }
    *ret = text.data[0];
    return text.size == 1 ||
           ottl_fail(call,
                     "invalid LEEF 2.0 delimiter: delimiter must be a single character or "
                     "0x-prefixed hex value, got \"%.*s\"",
                     SHOWN(text));
}

/* The header behind the version. */
static bool read_header(struct ottl_call *call, struct slice rest, struct leef *ret)
{
    bool has_more = true;
    ret->delimiter = '\t';
    for (unsigned i = 0; i < LEEF_FIELDS; i++) {
        if (!has_more)
            return ottl_fail(call,
                             "invalid LEEF %.*s header: expected at least 4 fields (vendor, "
                             "product, version, eventID), got %u",
                             SHOWN(ret->version), i);
        has_more = cut(&rest, '|', &ret->fields[i]);
    }
    ret->attributes = rest;
    if (!has_more || !slice_equal_text(ret->version, "2.0"))
        return true;
    /* The delimiter may be left out: what has an equals sign is the first attribute. */
    struct slice delimiter;
    cut(&rest, '|', &delimiter);
    if (delimiter.size > 0 && memchr(delimiter.data, '=', delimiter.size) != NULL)
        return true;
    ret->attributes = rest;
    return read_delimiter(call, delimiter, &ret->delimiter);
}

/* What has no key is passed over; the last of equal keys counts. */
static bool read_attributes(struct ottl_call *call, const struct leef *leef, struct ottl_map *map)
{
    struct key_index index;
    struct slice rest = leef->attributes;
    struct slice pair, key;
    key_index_init(&index, call, map);
    for (bool has_more = true; has_more;) {
        has_more = cut(&rest, leef->delimiter, &pair);
        if (!cut(&pair, '=', &key) || key.size == 0)
            continue;
        const struct ottl_value value = ottl_string(pair);
        struct ottl_entry *entry = key_index_put(&index, key);
        if (entry == NULL)
            return false;
        ottl_map_adopt(map, entry, &value);
    }
    return true;
}

static bool parse_leef(struct ottl_call *call, struct ottl_value *ret)
{
    static const char begin[] = "LEEF:";
    struct slice text, version;
    struct leef leef;
    if (!ottl_get_string(call, 0, &text))
        return false;
    if (text.size == 0)
        return ottl_fail(call, "cannot parse empty LEEF message");
    const uint8_t *found = memmem(text.data, text.size, begin, strlen(begin));
    if (found == NULL)
        return ottl_fail(call, "invalid LEEF message: 'LEEF:' not found");
    take(&text, (size_t)(found - text.data) + strlen(begin));
    if (!cut(&text, '|', &version))
        return ottl_fail(call, "invalid LEEF message: missing pipe delimiter in header");
    if (!slice_equal_text(version, "1.0") && !slice_equal_text(version, "2.0"))
        return ottl_fail(call, "unsupported LEEF version: %.*s (supported: 1.0, 2.0)",
                         SHOWN(version));
    leef = (struct leef){.version = version};
    if (!read_header(call, text, &leef))
        return false;
    struct ottl_map *map = ottl_map_create(call->memory);
    struct ottl_map *attributes = ottl_map_create(call->memory);
    if (map == NULL || attributes == NULL)
        return ottl_no_memory(call);
    *ret = ottl_map_value(map);
    if (!read_attributes(call, &leef, attributes) ||
        !put_text(call, map, "leef.version", version) ||
        !put_text(call, map, "leef.vendor", leef.fields[LEEF_VENDOR]) ||
        !put_text(call, map, "leef.product.name", leef.fields[LEEF_PRODUCT]) ||
        !put_text(call, map, "leef.product.version", leef.fields[LEEF_RELEASE]) ||
        !put_text(call, map, "leef.event.id", leef.fields[LEEF_EVENT]))
        return false;
    const struct ottl_value value = ottl_map_value(attributes);
    struct ottl_entry *entry = ottl_map_append(map, slice_of_text("leef.attributes"));
    if (entry == NULL)
        return ottl_no_memory(call);
    ottl_map_adopt(map, entry, &value);
    return true;
}

static const struct ottl_parameter leef_parameters[] = {{"Target", OTTL_STRINGS_ONLY, false, false},
                                                        {.name = NULL}};

const struct ottl_function ottl_log_functions[] = {
    {.name = "ParseCLF",
     .parameters = clf_parameters,
     .evaluate = parse_clf,
     .prepare = check_format,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_LOG)},
    {.name = "ParseLEEF",
     .parameters = leef_parameters,
     .evaluate = parse_leef,
     .users = OTTL_FOR_TRANSFORM,
     .contexts = OTTL_CONTEXT_BIT(OTTL_LOG)},
    {.name = NULL},
};
