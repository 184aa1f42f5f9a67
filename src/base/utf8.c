/* SPDX-License-Identifier: Apache-2.0 */
/* The table of well-formed sequences, RFC 3629 §4. */
#include "src/base/utf8.h"

#include <assert.h>
#include <string.h>

size_t utf8_size(struct slice text)
{
    static const struct {
        uint8_t first, last, second_min, second_max, size;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    assert(text.size > 0);
    if (text.data[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (text.data[0] < rows[i].first || text.data[0] > rows[i].last)
            continue;
        if (text.size < rows[i].size || text.data[1] < rows[i].second_min ||
            text.data[1] > rows[i].second_max)
            return 0;
        for (size_t k = 2; k < rows[i].size; k++)
            if (text.data[k] >> 6 != 2)
                return 0;
        return rows[i].size;
    }
    return 0;
}

bool utf8_is_valid(struct slice text)
{
    size_t at = 0;
    while (at < text.size) {
        uint64_t word;
        if (at + sizeof(word) <= text.size) {
            memcpy(&word, text.data + at, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof(word);
                continue;
            }
        }
        size_t size = utf8_size(slice_of(text.data + at, text.size - at));
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

uint32_t utf8_decode(const uint8_t *bytes, size_t size)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t character = bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        character = character << 6 | (bytes[i] & 0x3f);
    return character;
}
