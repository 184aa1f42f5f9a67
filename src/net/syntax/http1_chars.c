/* SPDX-License-Identifier: Apache-2.0 */
/* The byte classes of HTTP/1.1 as one table, and functions that use it. Pure functions, any thread.
 */
#include "src/net/syntax/http1_chars.h"

#include <assert.h>

enum {
    ALL = HTTP1_TOKEN | HTTP1_VALUE | HTTP1_TARGET | HTTP1_HOST,
    NAME = HTTP1_TOKEN | HTTP1_VALUE | HTTP1_TARGET,
    HOST = HTTP1_VALUE | HTTP1_TARGET | HTTP1_HOST,
    TEXT = HTTP1_VALUE | HTTP1_TARGET,
};

/* clang-format off */
const uint8_t http1_chars[256] = {
    ['\t'] = HTTP1_VALUE, [' '] = HTTP1_VALUE,
    ['!'] = ALL, ['"'] = TEXT, ['#'] = HTTP1_TOKEN | HTTP1_VALUE,
    ['$'] = ALL, ['%'] = ALL, ['&'] = ALL, ['\''] = ALL,
    ['('] = HOST, [')'] = HOST, ['*'] = ALL, ['+'] = ALL, [','] = HOST, ['-'] = ALL, ['.'] = ALL,
    ['/'] = TEXT, ['0' ... '9'] = ALL, [':'] = HOST, [';'] = HOST,
    ['<'] = TEXT, ['='] = HOST, ['>'] = TEXT, ['?'] = TEXT, ['@'] = TEXT,
    ['A' ... 'Z'] = ALL, ['['] = HOST, ['\\'] = TEXT, [']'] = HOST,
    ['^'] = NAME, ['_'] = ALL, ['`'] = NAME,
    ['a' ... 'z'] = ALL, ['{'] = TEXT, ['|'] = NAME, ['}'] = TEXT, ['~'] = ALL,
    [0x80 ... 0xff] = HTTP1_VALUE,
};
/* clang-format on */

bool http1_is_all(struct slice text, enum http1_char kind)
{
    assert(text.data != NULL || text.size == 0);
    for (size_t i = 0; i < text.size; i++)
        if (!http1_is(text.data[i], kind))
            return false;
    return true;
}

bool http1_is_token(struct slice text)
{
    return text.size > 0 && http1_is_all(text, HTTP1_TOKEN);
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

struct slice http1_trim(struct slice text)
{
    assert(text.data != NULL || text.size == 0);
    while (text.size > 0 && is_blank(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

int http1_hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}
