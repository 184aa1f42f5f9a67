/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping, character by character. Any thread. */
#include "src/base/text_escape.h"

#include <stdbool.h>
#include <string.h>

#include "src/base/hex.h"
#include "src/base/utf8.h"

/* Returns the replacement, in room if need be; NULL: the character stays as it is. */
typedef const char *(*escape_fn)(struct slice character, char room[JSON_ESCAPE_BYTES_MAX + 1]);

static void escape_all(FILE *out, struct slice text, escape_fn escape)
{
    char room[JSON_ESCAPE_BYTES_MAX + 1];
    while (text.size > 0) {
        size_t size = utf8_size(text);
        struct slice character = slice_of(text.data, size > 0 ? size : 1);
        const char *other = size > 0 ? escape(character, room) : "?";
        if (other != NULL)
            fputs(other, out);
        else
            fwrite(character.data, 1, character.size, out);
        text = slice_of(text.data + character.size, text.size - character.size);
    }
}

/* Includes U+0080 to U+009F, which some terminals treat as escape sequences. */
static bool is_control(struct slice character)
{
    uint8_t first = character.data[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && character.data[1] < 0xa0);
}

size_t json_escape_byte(uint8_t byte, void *room)
{
    static const char from[] = "\"\\\n\r\t";
    static const char to[] = "\"\\nrt";
    char *at = room;
    const char *found = byte != 0 ? strchr(from, byte) : NULL;
    at[0] = '\\';
    if (found != NULL) {
        at[1] = to[found - from];
        return 2;
    }
    memcpy(at + 1, "u00", 3);
    hex_write(&byte, 1, at + 4);
    return JSON_ESCAPE_BYTES_MAX;
}

/* XML 1.0 §2.2: control characters, U+FFFE and U+FFFF are not allowed in any form. */
static const char *xml_escape(struct slice character, char *room)
{
    (void)room;
    const uint8_t *at = character.data;
    switch (at[0]) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        break;
    }
    if (is_control(character))
        return "?";
    return character.size == 3 && at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe ? "?" : NULL;
}

static const char *terminal_escape(struct slice character, char *room)
{
    (void)room;
    return is_control(character) ? "?" : NULL;
}

static const char *json_escape(struct slice character, char *room)
{
    uint8_t first = character.data[0];
    if (first >= 0x20 && first != '"' && first != '\\')
        return NULL;
    room[json_escape_byte(first, room)] = '\0';
    return room;
}

void text_escape_json(FILE *out, struct slice text)
{
    fputc('"', out);
    escape_all(out, text, json_escape);
    fputc('"', out);
}

void text_escape_xml(FILE *out, struct slice text)
{
    escape_all(out, text, xml_escape);
}

void text_escape_terminal(FILE *out, struct slice text)
{
    escape_all(out, text, terminal_escape);
}
