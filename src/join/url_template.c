/* SPDX-License-Identifier: Apache-2.0 */
/* Reading templates and filling them in. Any thread. */
#include "src/join/url_template.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/error.h"

enum { NAME_SHOWN_MAX = 40, NAMES_BYTES = 160 };

static const char *const names[URL_VALUES] = {
    [URL_SERVICE_NAME] = "service_name", [URL_SERVICE_NAMESPACE] = "service_namespace",
    [URL_TRACE_ID] = "trace_id",         [URL_SPAN_ID] = "span_id",
    [URL_FROM_MS] = "from_ms",           [URL_UNTIL_MS] = "until_ms",
    [URL_PROFILE_TYPE] = "profile_type",
};

static bool add(struct url_template *template, struct url_piece piece, struct error *error)
{
    assert(template->count <= URL_PIECES_MAX);
    if (template->count == URL_PIECES_MAX)
        return error_set(error, "found more than %d pieces, expected a shorter URL",
                         URL_PIECES_MAX);
    template->pieces[template->count++] = piece;
    return true;
}

/* Reads the place that begins with the brace at text + at. Returns where it ends; 0: it is wrong.
 */
static size_t read_place(const char *text, size_t at, unsigned allowed,
                         struct url_template *template, struct error *error)
{
    const char *begin = text + at + 1;
    const char *end = strchr(begin, '}');
    if (end == NULL) {
        error_set(error, "byte %zu: found { without }, expected a name in braces, or {{", at);
        return 0;
    }
    struct slice name = slice_of(begin, (size_t)(end - begin));
    char list[NAMES_BYTES] = "";
    size_t used = 0;
    for (unsigned i = 0; i < URL_VALUES; i++) {
        if ((allowed >> i & 1) == 0)
            continue;
        if (slice_equal_text(name, names[i]))
            return add(template, (struct url_piece){.value = (enum url_value)i}, error)
                       ? at + name.size + 2
                       : 0;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s{%s}", used > 0 ? ", " : "",
                                 names[i]);
        assert(used < sizeof(list));
    }
    int shown = name.size < NAME_SHOWN_MAX ? (int)name.size : NAME_SHOWN_MAX;
    error_set(error, "byte %zu: found {%.*s}, expected one of %s; {{ is a brace", at, shown,
              (const char *)name.data, list);
    return 0;
}

bool url_template_read(const char *text, unsigned allowed, struct url_template *ret_template,
                       struct error *error)
{
    struct url_template template = {.count = 0};
    *ret_template = template;
    if (text[0] == '\0')
        return true;
    size_t fine = 0;
    while (text[fine] > ' ' && text[fine] < 0x7f)
        fine++;
    if (text[fine] != '\0')
        return error_set(
            error,
            "byte %zu: found a space or a byte that is not ASCII, expected it percent-encoded",
            fine);
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0)
        return error_set(error, "byte 0: expected a URL that begins with https:// or http://");
    for (size_t at = 0; text[at] != '\0';) {
        bool is_brace = text[at] == '{' || text[at] == '}';
        if (is_brace && text[at + 1] != text[at] && text[at] == '}')
            return error_set(error, "byte %zu: found } without {, expected }}", at);
        if (is_brace && text[at + 1] != text[at]) {
            at = read_place(text, at, allowed, &template, error);
            if (at == 0)
                return false;
            continue;
        }
        size_t size = is_brace ? 1 : strcspn(text + at, "{}");
        if (!add(&template, (struct url_piece){.text = slice_of(text + at, size)}, error))
            return false;
        at += is_brace ? 2 : size;
    }
    *ret_template = template;
    return true;
}

/* Percent-encodes all but unreserved characters (RFC 3986 §2.3). Returns the bytes written;
 * SIZE_MAX: there is no room. */
static size_t write_encoded(struct slice text, uint8_t *room, size_t most)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_unreserved = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                             (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' ||
                             byte == '_' || byte == '~';
        size_t size = is_unreserved ? 1 : 3;
        if (most - used < size)
            return SIZE_MAX;
        room[used] = is_unreserved ? byte : '%';
        if (!is_unreserved) {
            room[used + 1] = (uint8_t)digits[byte >> 4];
            room[used + 2] = (uint8_t)digits[byte & 15];
        }
        used += size;
    }
    return used;
}

struct slice url_template_write(const struct url_template *template,
                                const struct url_values *values, uint8_t room[URL_BYTES_MAX])
{
    size_t used = 0;
    assert(template->count > 0);
    for (size_t i = 0; i < template->count; i++) {
        const struct url_piece *piece = &template->pieces[i];
        size_t left = URL_BYTES_MAX - used;
        size_t size = piece->text.size;
        if (piece->text.data == NULL) {
            const struct slice *value = &values->texts[piece->value];
            if (value->data == NULL || value->size > left)
                return (struct slice){0};
            size = write_encoded(*value, room + used, left);
        } else if (size <= left) {
            memcpy(room + used, piece->text.data, size);
        }
        if (size > left)
            return (struct slice){0};
        used += size;
    }
    return slice_of(room, used);
}

struct slice url_ms(uint64_t time_ns, char room[URL_MS_BYTES])
{
    int bytes = snprintf(room, URL_MS_BYTES, "%" PRIu64, time_ns / NS_PER_MS);
    assert(bytes > 0 && bytes < URL_MS_BYTES);
    return slice_of(room, (size_t)bytes);
}
