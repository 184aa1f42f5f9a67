/* SPDX-License-Identifier: Apache-2.0 */
/* URL: the parts of a URL (RFC 3986, as Go's net/url reads it) under the names of the semantic
 * conventions, or the parameters of a query that begins with a question mark. Runs on the
 * processor's thread. */
#include <arpa/inet.h>

#include "src/base/hex.h"
#include "src/ottl/functions/key_index.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/functions/text_builder.h"

enum { PARAMETERS_MAX = 10000 };

/* Where a character stands. */
enum place { HOST, ZONE, PATH, USER, QUERY, FRAGMENT };

struct url {
    struct slice scheme, opaque, host, path, raw_path, query, fragment, raw_fragment;
    struct slice user, password;
    bool has_user, has_password, omits_host, forces_query;
};

static bool is_letter(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_in(uint8_t byte, const char *set)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static bool needs_escape(uint8_t byte, enum place place)
{
    if (is_letter(byte) || is_digit(byte) || is_in(byte, "-_.~"))
        return false;
    if ((place == HOST || place == ZONE) && is_in(byte, "!$&'()*+,;=:[]<>\""))
        return false;
    if (is_in(byte, "$&+,/:;=?@")) {
        if (place == PATH)
            return byte == '?';
        if (place == USER)
            return is_in(byte, "@/?:");
        return place != FRAGMENT;
    }
    return place != FRAGMENT || !is_in(byte, "!()*");
}

static struct slice behind(struct slice text, size_t size)
{
    return slice_of(text.data + size, text.size - size);
}

/* What is before the first such byte, which *rest skips. *ret_has: there is one. */
static struct slice cut(struct slice *rest, uint8_t byte, bool *ret_has)
{
    const uint8_t *at = rest->size > 0 ? memchr(rest->data, byte, rest->size) : NULL;
    struct slice part = *rest;
    *ret_has = at != NULL;
    if (at != NULL)
        part.size = (size_t)(at - rest->data);
    *rest = behind(*rest, part.size + (at != NULL));
    return part;
}

static bool unescape(struct ottl_call *call, struct slice text, enum place place, struct slice *ret)
{
    uint8_t *room = ottl_alloc(call, text.size);
    size_t used = 0;
    if (room == NULL)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '%') {
            unsigned high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : 16;
            unsigned low = i + 2 < text.size ? hex_digit(text.data[i + 2]) : 16;
            bool is_percent = high == 2 && low == 5;
            byte = (uint8_t)(high << 4 | low);
            if (high > 15 || low > 15 || (place == HOST && high < 8 && !is_percent) ||
                (place == ZONE && !is_percent && byte != ' ' && needs_escape(byte, HOST)))
                return ottl_fail(call, "invalid URL escape \"%.*s\"",
                                 text.size - i < 3 ? (int)(text.size - i) : 3,
                                 (const char *)text.data + i);
            i += 2;
        } else if (byte == '+' && place == QUERY) {
            byte = ' ';
        } else if ((place == HOST || place == ZONE) && byte < 0x80 && needs_escape(byte, place)) {
            return ottl_fail(call, "invalid character \"%c\" in host name", byte);
        }
        room[used++] = byte;
    }
    *ret = slice_of(room, used);
    return true;
}

static bool add_escaped(struct text_builder *builder, struct slice text, enum place place)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        uint8_t escape[] = {'%', (uint8_t)digits[byte >> 4], (uint8_t)digits[byte & 15]};
        if (!(needs_escape(byte, place) ? text_builder_add(builder, escape, sizeof(escape))
                                        : text_builder_add_byte(builder, byte)))
            return false;
    }
    return true;
}

/* Whether an encoded text may stand as it was written. */
static bool is_valid_encoded(struct slice text, enum place place)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_in(text.data[i], "!$&'()*+,;=:@[]%") && needs_escape(text.data[i], place))
            return false;
    return true;
}

static bool is_port(struct slice text)
{
    if (text.size == 0)
        return true;
    for (size_t i = 1; i < text.size; i++)
        if (!is_digit(text.data[i]))
            return false;
    return text.data[0] == ':';
}

static const uint8_t *last(struct slice text, uint8_t byte)
{
    return text.size > 0 ? memrchr(text.data, byte, text.size) : NULL;
}

static bool fail_port(struct ottl_call *call, struct slice port)
{
    return ottl_fail(call, "invalid port \"%.*s\" after host", (int)port.size,
                     (const char *)port.data);
}

/* [address], perhaps with %25 and a zone, and a port. */
static bool parse_literal_host(struct ottl_call *call, struct slice text, struct slice *ret)
{
    struct slice port, name, zone = slice_of(NULL, 0);
    uint8_t binary[16];
    char copy[INET6_ADDRSTRLEN + 1];
    struct text_builder builder;
    const uint8_t *end = last(text, ']');
    if (end == NULL)
        return ottl_fail(call, "missing ']' in host");
    struct slice written = behind(text, (size_t)(end - text.data) + 1);
    if (!is_port(written))
        return fail_port(call, written);
    struct slice inner = slice_of(text.data + 1, (size_t)(end - text.data) - 1);
    const uint8_t *zone_at = inner.size < 3 ? NULL : memmem(inner.data, inner.size, "%25", 3);
    size_t name_size = zone_at != NULL ? (size_t)(zone_at - inner.data) : inner.size;
    if (!unescape(call, written, HOST, &port) ||
        !unescape(call, slice_of(inner.data, name_size), HOST, &name) ||
        (zone_at != NULL && !unescape(call, behind(inner, name_size), ZONE, &zone)))
        return false;
    struct slice address = name;
    const uint8_t *percent = name.size > 0 ? memchr(name.data, '%', name.size) : NULL;
    if (percent != NULL)
        address.size = (size_t)(percent - name.data);
    bool has_empty_zone =
        percent != NULL ? address.size + 1 == name.size && zone.size == 0 : zone.size == 1;
    bool is_valid = address.size < sizeof(copy) && !has_empty_zone &&
                    (address.size == 0 || memchr(address.data, '\0', address.size) == NULL);
    if (is_valid) {
        if (address.size > 0)
            memcpy(copy, address.data, address.size);
        copy[address.size] = '\0';
        is_valid = inet_pton(AF_INET6, copy, binary) == 1;
    }
    if (!is_valid)
        return ottl_fail(call, "invalid host: it is no IPv6 address");
    if (!text_builder_init(&builder, call, text.size) || !text_builder_add_byte(&builder, '[') ||
        !text_builder_add(&builder, name.data, name.size) ||
        !text_builder_add(&builder, zone.data, zone.size) ||
        !text_builder_add_byte(&builder, ']') || !text_builder_add(&builder, port.data, port.size))
        return false;
    *ret = text_builder_text(&builder);
    return true;
}

static bool parse_host(struct ottl_call *call, struct slice scheme, struct slice text,
                       struct slice *ret)
{
    const uint8_t *open = last(text, '[');
    if (open != NULL && open > text.data)
        return ottl_fail(call, "invalid IP-literal");
    if (open != NULL)
        return parse_literal_host(call, text, ret);
    const uint8_t *colon = text.size > 0 ? memchr(text.data, ':', text.size) : NULL;
    if (colon != NULL && !slice_equal_text(scheme, "http") && !slice_equal_text(scheme, "https"))
        colon = last(text, ':'); /* Go is strict for these two alone */
    struct slice port =
        colon != NULL ? behind(text, (size_t)(colon - text.data)) : (struct slice){0};
    if (!is_port(port))
        return fail_port(call, port);
    return unescape(call, text, HOST, ret);
}

static bool parse_authority(struct ottl_call *call, struct slice text, struct url *url)
{
    bool has_password;
    const uint8_t *at = last(text, '@');
    struct slice host = at != NULL ? behind(text, (size_t)(at - text.data) + 1) : text;
    if (!parse_host(call, url->scheme, host, &url->host))
        return false;
    if (at == NULL)
        return true;
    struct slice user = slice_of(text.data, (size_t)(at - text.data));
    for (size_t i = 0; i < user.size; i++)
        if (!is_letter(user.data[i]) && !is_digit(user.data[i]) &&
            !is_in(user.data[i], "-._:~!$&'()*+,;=%@"))
            return ottl_fail(call, "net/url: invalid userinfo");
    struct slice name = cut(&user, ':', &has_password);
    url->has_user = true;
    url->has_password = has_password;
    return unescape(call, name, USER, &url->user) &&
           (!has_password || unescape(call, user, USER, &url->password));
}

/* Moves *rest behind the scheme and its colon, if there is one. */
static bool parse_scheme(struct ottl_call *call, struct slice *rest, struct slice *ret)
{
    *ret = slice_of(NULL, 0);
    for (size_t i = 0; i < rest->size; i++) {
        uint8_t byte = rest->data[i];
        if (byte == ':' && i == 0)
            return ottl_fail(call, "missing protocol scheme");
        if (byte == ':') {
            uint8_t *room = ottl_alloc(call, i);
            if (room == NULL)
                return false;
            for (size_t k = 0; k < i; k++)
                room[k] =
                    (uint8_t)(is_letter(rest->data[k]) ? rest->data[k] | 0x20 : rest->data[k]);
            *ret = slice_of(room, i);
            *rest = behind(*rest, i + 1);
            return true;
        }
        if (!is_letter(byte) && (i == 0 || (!is_digit(byte) && !is_in(byte, "+-."))))
            return true;
    }
    return true;
}

static bool begins_with(struct slice text, const char *prefix)
{
    return slice_begins_with(text, prefix);
}

static bool parse_url(struct ottl_call *call, struct slice text, struct url *url)
{
    bool has_fragment, has_query, has_slash;
    struct slice fragment = text;
    struct slice rest = cut(&fragment, '#', &has_fragment);
    for (size_t i = 0; i < rest.size; i++)
        if (rest.data[i] < ' ' || rest.data[i] == 0x7f)
            return ottl_fail(call, "net/url: invalid control character in URL");
    if (slice_equal_text(rest, "*")) {
        url->path = rest;
    } else {
        if (!parse_scheme(call, &rest, &url->scheme))
            return false;
        struct slice query = rest;
        rest = cut(&query, '?', &has_query);
        url->forces_query = has_query && query.size == 0;
        url->query = query;
        bool is_rooted = begins_with(rest, "/");
        if (!is_rooted && url->scheme.size > 0) {
            url->opaque = rest;
        } else {
            struct slice after = rest;
            struct slice segment = cut(&after, '/', &has_slash);
            if (!is_rooted && segment.size > 0 && memchr(segment.data, ':', segment.size) != NULL)
                return ottl_fail(call, "first path segment in URL cannot contain colon");
            if (begins_with(rest, "//") && (url->scheme.size > 0 || !begins_with(rest, "///"))) {
                struct slice authority = behind(rest, 2);
                struct slice path = authority;
                authority = cut(&path, '/', &has_slash);
                rest = has_slash ? behind(rest, 2 + authority.size) : slice_of(NULL, 0);
                if (!parse_authority(call, authority, url))
                    return false;
            } else if (url->scheme.size > 0 && is_rooted) {
                url->omits_host = true;
            }
            url->raw_path = rest;
            if (!unescape(call, rest, PATH, &url->path))
                return false;
        }
    }
    url->raw_fragment = fragment;
    return !has_fragment || fragment.size == 0 ||
           unescape(call, fragment, FRAGMENT, &url->fragment);
}

static bool add_user(struct text_builder *builder, const struct url *url)
{
    return add_escaped(builder, url->user, USER) &&
           (!url->has_password ||
            (text_builder_add_byte(builder, ':') && add_escaped(builder, url->password, USER)));
}

static bool add_path(struct text_builder *builder, const struct url *url)
{
    struct text_builder path;
    if (!text_builder_init(&path, builder->call, url->path.size))
        return false;
    bool is_fine =
        slice_equal_text(url->path, "*") ||
                (url->raw_path.size > 0 && is_valid_encoded(url->raw_path, PATH))
            ? text_builder_add(&path, url->raw_path.size > 0 ? url->raw_path.data : url->path.data,
                               url->raw_path.size > 0 ? url->raw_path.size : url->path.size)
            : add_escaped(&path, url->path, PATH);
    if (!is_fine)
        return false;
    if (path.size > 0 && path.bytes[0] != '/' && url->host.size > 0 &&
        !text_builder_add_byte(builder, '/'))
        return false;
    const uint8_t *slash = memchr(path.bytes, '/', path.size);
    size_t segment = slash != NULL ? (size_t)(slash - path.bytes) : path.size;
    if (builder->size == 0 && segment > 0 && memchr(path.bytes, ':', segment) != NULL &&
        !text_builder_add(builder, "./", 2))
        return false;
    return text_builder_add(builder, path.bytes, path.size);
}

/* As Go writes the URL. */
static bool add_url(struct text_builder *builder, const struct url *url)
{
    if (url->scheme.size > 0 && (!text_builder_add(builder, url->scheme.data, url->scheme.size) ||
                                 !text_builder_add_byte(builder, ':')))
        return false;
    if (url->opaque.size > 0) {
        if (!text_builder_add(builder, url->opaque.data, url->opaque.size))
            return false;
    } else {
        bool has_authority = (url->scheme.size > 0 || url->host.size > 0 || url->has_user) &&
                             !(url->omits_host && url->host.size == 0 && !url->has_user);
        if (has_authority && (url->host.size > 0 || url->path.size > 0 || url->has_user) &&
            !text_builder_add(builder, "//", 2))
            return false;
        if (has_authority && url->has_user &&
            (!add_user(builder, url) || !text_builder_add_byte(builder, '@')))
            return false;
        if ((has_authority && !add_escaped(builder, url->host, HOST)) || !add_path(builder, url))
            return false;
    }
    if ((url->forces_query || url->query.size > 0) &&
        (!text_builder_add_byte(builder, '?') ||
         !text_builder_add(builder, url->query.data, url->query.size)))
        return false;
    if (url->fragment.size == 0)
        return true;
    return text_builder_add_byte(builder, '#') &&
           (is_valid_encoded(url->raw_fragment, FRAGMENT)
                ? text_builder_add(builder, url->raw_fragment.data, url->raw_fragment.size)
                : add_escaped(builder, url->fragment, FRAGMENT));
}

static bool put(struct ottl_call *call, struct ottl_map *map, const char *key,
                struct ottl_value value)
{
    struct ottl_entry *entry = ottl_map_append(map, slice_of_text(key));
    if (entry == NULL)
        return ottl_no_memory(call);
    ottl_map_adopt(map, entry, &value);
    return true;
}

static bool put_host(struct ottl_call *call, struct ottl_map *map, struct slice host)
{
    struct slice name = host;
    struct slice port = slice_of(NULL, 0);
    const uint8_t *colon = last(host, ':');
    if (colon != NULL && is_port(behind(host, (size_t)(colon - host.data)))) {
        name.size = (size_t)(colon - host.data);
        port = behind(host, name.size + 1);
    }
    if (name.size > 1 && name.data[0] == '[' && name.data[name.size - 1] == ']')
        name = slice_of(name.data + 1, name.size - 2);
    if (!put(call, map, "url.domain", ottl_string(name)))
        return false;
    int64_t number = 0;
    for (size_t i = 0; i < port.size; i++) {
        if (number > (INT64_MAX - 9) / 10)
            return ottl_fail(call, "strconv.Atoi: parsing \"%.*s\": value out of range",
                             (int)port.size, (const char *)port.data);
        number = number * 10 + (port.data[i] - '0');
    }
    return port.size == 0 || put(call, map, "url.port", ottl_int(number));
}

static bool put_url(struct ottl_call *call, struct ottl_map *map, const struct url *url)
{
    struct text_builder original, user;
    if (!text_builder_init(&original, call, 0) || !add_url(&original, url) ||
        !put(call, map, "url.original", ottl_string(text_builder_text(&original))) ||
        !put_host(call, map, url->host) ||
        !put(call, map, "url.scheme", ottl_string(url->scheme)) ||
        !put(call, map, "url.path", ottl_string(url->path)) ||
        (url->fragment.size > 0 && !put(call, map, "url.fragment", ottl_string(url->fragment))))
        return false;
    if (url->has_user &&
        (!text_builder_init(&user, call, 0) || !add_user(&user, url) ||
         !put(call, map, "url.user_info", ottl_string(text_builder_text(&user))) ||
         (url->user.size > 0 && !put(call, map, "url.username", ottl_string(url->user))) ||
         (url->has_password && !put(call, map, "url.password", ottl_string(url->password)))))
        return false;
    if (url->query.size > 0 && !put(call, map, "url.query", ottl_string(url->query)))
        return false;
    const uint8_t *point = last(url->path, '.');
    struct slice extension =
        point != NULL ? behind(url->path, (size_t)(point - url->path.data) + 1) : (struct slice){0};
    return extension.size == 0 || put(call, map, "url.extension", ottl_string(extension));
}

static bool put_query(struct ottl_call *call, struct ottl_map *map, struct slice text)
{
    struct ottl_map *parameters = ottl_map_create(call->memory);
    struct key_index index;
    size_t count = 1;
    if (parameters == NULL)
        return ottl_no_memory(call);
    key_index_init(&index, call, parameters);
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '&';
    if (count > PARAMETERS_MAX)
        return ottl_fail(call, "number of URL query parameters exceeded limit");
    while (text.size > 0) {
        bool has;
        struct slice value = cut(&text, '&', &has);
        if (value.size > 0 && memchr(value.data, ';', value.size) != NULL)
            return ottl_fail(call, "invalid semicolon separator in query");
        if (value.size == 0)
            continue;
        struct slice key = cut(&value, '=', &has);
        if (!unescape(call, key, QUERY, &key) || !unescape(call, value, QUERY, &value))
            return false;
        struct ottl_entry *entry = key_index_put(&index, key);
        if (entry == NULL)
            return false;
        if (entry->value.type == OTTL_NIL) {
            struct ottl_list *list = ottl_list_create(call->memory);
            if (list == NULL)
                return ottl_no_memory(call);
            const struct ottl_value empty = ottl_list_value(list, OTTL_FORM_PDATA);
            ottl_map_adopt(parameters, entry, &empty);
        }
        const struct ottl_value item = ottl_string(value);
        if (!ottl_list_adopt(entry->value.list, &item))
            return ottl_no_memory(call);
    }
    return parameters->count == 0 || put(call, map, "query", ottl_map_value(parameters));
}

static bool url_call(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice text;
    struct url url = {.has_user = false};
    if (!ottl_get_string(call, 0, &text))
        return false;
    if (text.size == 0)
        return ottl_fail(call, "url cannot be empty");
    struct ottl_map *map = ottl_map_create(call->memory);
    if (map == NULL)
        return ottl_no_memory(call);
    *ret = ottl_map_value(map);
    if (text.data[0] == '?')
        return put_query(call, map, behind(text, 1));
    return parse_url(call, text, &url) && put_url(call, map, &url);
}

static const struct ottl_parameter url_parameters[] = {{"URI", OTTL_STRINGS_ONLY, false, false},
                                                       {.name = NULL}};

const struct ottl_function ottl_url_functions[] = {
    {.name = "URL", .parameters = url_parameters, .evaluate = url_call},
    {.name = NULL},
};
