/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers by the Go collector's rules: blanks round either part do not count; a name has no
 * separators, control characters or symbols (Unicode categories Z, C and S). Pure functions. */
#include "src/config/identifier.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/slice.h"
#include "src/base/utf8.h"

struct range {
    uint32_t first;
    uint32_t last;
};

/* Z, C and S, whole blocks where a block is nothing else. Ascending. */
static const struct range forbidden[] = {
    {0x00, 0x20},     {0x24, 0x24},     {0x2b, 0x2b},       {0x3c, 0x3e},        {0x5e, 0x5e},
    {0x60, 0x60},     {0x7c, 0x7c},     {0x7e, 0xa0},       {0xa2, 0xa6},        {0xa8, 0xa9},
    {0xac, 0xb1},     {0xb4, 0xb4},     {0xb8, 0xb8},       {0xd7, 0xd7},        {0xf7, 0xf7},
    {0x2c2, 0x2c5},   {0x2d2, 0x2df},   {0x2e5, 0x2eb},     {0x2ed, 0x2ed},      {0x2ef, 0x2ff},
    {0x3f6, 0x3f6},   {0x600, 0x608},   {0x61c, 0x61c},     {0xe3f, 0xe3f},      {0x1680, 0x1680},
    {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},   {0x2044, 0x2044},    {0x2052, 0x2052},
    {0x205f, 0x206f}, {0x207a, 0x207c}, {0x208a, 0x208c},   {0x20a0, 0x20cf},    {0x2100, 0x2101},
    {0x2103, 0x2106}, {0x2108, 0x2109}, {0x2114, 0x2114},   {0x2116, 0x2118},    {0x211e, 0x2123},
    {0x2190, 0x2307}, {0x230c, 0x2328}, {0x232b, 0x245f},   {0x249c, 0x24e9},    {0x2500, 0x2767},
    {0x2794, 0x27c4}, {0x27c7, 0x27e5}, {0x27f0, 0x2982},   {0x2999, 0x29d7},    {0x29dc, 0x29fb},
    {0x29fe, 0x2bff}, {0x2e80, 0x2fff}, {0x3000, 0x3000},   {0x3004, 0x3004},    {0x3012, 0x3013},
    {0x3200, 0x321e}, {0x322a, 0x3247}, {0x3260, 0x327f},   {0x328a, 0x32b0},    {0x32c0, 0x33ff},
    {0x4dc0, 0x4dff}, {0xd800, 0xf8ff}, {0xfeff, 0xfeff},   {0xff04, 0xff04},    {0xff0b, 0xff0b},
    {0xff1c, 0xff1e}, {0xffe0, 0xffff}, {0x1f000, 0x1faff}, {0xe0000, 0x10ffff},
};

bool text_to_identifier(const char *text, struct identifier *ret_identifier, struct error *error)
{
    /* Messages cut the identifier, whose size is not checked yet. */
    const char *slash = strchr(text, '/');
    struct slice type =
        slice_trim(slice_of(text, slash != NULL ? (size_t)(slash - text) : strlen(text)));
    struct slice name = slice_trim(slice_of_text(slash != NULL ? slash + 1 : ""));
    if (type.size == 0 && slash == NULL)
        return error_set(error, "id must not be empty");
    if (type.size == 0)
        return error_set(error, "in \"%.80s\" id: the part before / should not be empty", text);
    if (slash != NULL && name.size == 0)
        return error_set(error, "in \"%.80s\" id: the part after / should not be empty", text);
    if (name.size > IDENTIFIER_NAME_BYTES_MAX)
        return error_set(error, "in \"%.80s\" id: the name is longer than %d bytes", text,
                         IDENTIFIER_NAME_BYTES_MAX);
    bool is_name = true;
    for (size_t at = 0; is_name && at < name.size;) {
        const uint8_t *bytes = name.data + at;
        size_t size = utf8_size(slice_of(bytes, name.size - at));
        uint32_t character = size > 1 ? bytes[0] & (0x7fu >> size) : bytes[0];
        for (size_t i = 1; i < size; i++)
            character = character << 6 | (bytes[i] & 0x3fu);
        is_name = size > 0; /* 0: not UTF-8 */
        for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
            is_name &= character < forbidden[i].first || character > forbidden[i].last;
        at += size;
    }
    if (!is_name)
        return error_set(error,
                         "in \"%.80s\" id: invalid character(s) in name \"%.*s\"; expected no "
                         "blanks, control characters or symbols",
                         text, name.size < 80 ? (int)name.size : 80, (const char *)name.data);
    bool is_type = type.size <= IDENTIFIER_TYPE_BYTES_MAX && isalpha(type.data[0]);
    for (size_t i = 0; i < type.size; i++)
        is_type &= isalnum(type.data[i]) || type.data[i] == '_';
    if (!is_type)
        return error_set(error,
                         "in \"%.80s\" id: invalid character(s) in type \"%.*s\"; expected a "
                         "letter, then at most 62 letters, digits and \"_\"",
                         text, type.size < 80 ? (int)type.size : 80, (const char *)type.data);
    snprintf(ret_identifier->type, sizeof(ret_identifier->type), "%.*s", (int)type.size,
             (const char *)type.data);
    snprintf(ret_identifier->id, sizeof(ret_identifier->id), "%s%s%.*s", ret_identifier->type,
             slash != NULL ? "/" : "", (int)name.size, (const char *)name.data);
    return true;
}
