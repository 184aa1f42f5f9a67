/* SPDX-License-Identifier: Apache-2.0 */
/* The byte classes of HTTP/1.1 as one table. Constant; any thread. */
#include "src/net/http1_chars.h"

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

bool http1_is_token(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!http1_is(text.data[i], HTTP1_TOKEN))
            return false;
    return text.size > 0;
}
