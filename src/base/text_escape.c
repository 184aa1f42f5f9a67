/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping, character by character. Any thread. */
#include "src/base/text_escape.h"

#include <assert.h>
#include <stdbool.h>

#include "src/base/utf8.h"

typedef const char *(*escape_fn)(struct slice character);

/* Writes all characters but those for which escape has another text. */
static void escape_all(FILE *out, struct slice text, escape_fn escape)
{
    assert(out != NULL);
    assert(escape != NULL);
    while (text.size > 0) {
        size_t size = utf8_size(text);
        struct slice character = slice_of(text.data, size > 0 ? size : 1);
        const char *other = size > 0 ? escape(character) : "?";
        if (other != NULL)
            fputs(other, out);
        else
            fwrite(character.data, 1, character.size, out);
        text = slice_of(text.data + character.size, text.size - character.size);
    }
}

/* U+0080 to U+009F, which some terminals obey as they do escape sequences. */
static bool is_control(struct slice character)
{
    assert(character.size > 0);
    uint8_t first = character.data[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && character.data[1] < 0xa0);
}

static const char *json_escape(struct slice character)
{
    static const char *const controls[] = {
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
        "\\b",     "\\t",     "\\n",     "\\u000b", "\\f",     "\\r",     "\\u000e", "\\u000f",
        "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017",
        "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f"};
    assert(character.size > 0);
    uint8_t first = character.data[0];
    if (first < sizeof(controls) / sizeof(controls[0]))
        return controls[first];
    if (first == '"')
        return "\\\"";
    return first == '\\' ? "\\\\" : NULL;
}

/* XML 1.0 §2.2: control characters and U+FFFE, U+FFFF cannot be there in any form. */
static const char *xml_escape(struct slice character)
{
    assert(character.size > 0);
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

static const char *terminal_escape(struct slice character)
{
    assert(character.size > 0);
    return is_control(character) ? "?" : NULL;
}

void text_escape_json(FILE *out, struct slice text)
{
    assert(out != NULL);
    fputc('"', out);
    escape_all(out, text, json_escape);
    fputc('"', out);
}

void text_escape_xml(FILE *out, struct slice text)
{
    assert(out != NULL);
    escape_all(out, text, xml_escape);
}

void text_escape_terminal(FILE *out, struct slice text)
{
    assert(out != NULL);
    escape_all(out, text, terminal_escape);
}
