/* SPDX-License-Identifier: Apache-2.0 */
/* Any thread. */
#include "src/explore/explore_query.h"

#include "src/base/hex.h"

/* Decodes text into the query's room. False: a broken escape. */
static bool decode(struct explore_query *query, struct slice text, struct slice *ret_decoded)
{
    uint8_t *begin = query->text + query->size;
    uint8_t *to = begin;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '%') {
            if (text.size - i < 3)
                return false;
            unsigned high = hex_digit(text.data[i + 1]);
            unsigned low = hex_digit(text.data[i + 2]);
            if (high > 15 || low > 15)
                return false;
            byte = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (byte == '+') {
            byte = ' ';
        }
        *to++ = byte;
    }
    *ret_decoded = slice_of(begin, (size_t)(to - begin));
    query->size += ret_decoded->size;
    return true;
}

bool explore_query_parse(struct explore_query *query, struct slice text, const char **ret_reason)
{
    query->count = 0;
    query->size = 0;
    if (text.size > EXPLORE_QUERY_BYTES_MAX) {
        *ret_reason = "the query is too long, expected at most 8192 bytes";
        return false;
    }
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '&', text.size);
        size_t size = end != NULL ? (size_t)(end - text.data) : text.size;
        struct slice part = slice_of(text.data, size);
        size_t used = end != NULL ? size + 1 : size;
        text = slice_of(text.data + used, text.size - used);
        if (part.size == 0)
            continue;
        if (query->count == EXPLORE_PAIRS_MAX) {
            *ret_reason = "the query has too many parts, expected at most 64";
            return false;
        }
        const uint8_t *sign = memchr(part.data, '=', part.size);
        size_t key = sign != NULL ? (size_t)(sign - part.data) : part.size;
        struct slice value = sign != NULL ? slice_of(sign + 1, part.size - key - 1)
                                          : slice_of(part.data + part.size, 0);
        struct explore_pair *pair = &query->pairs[query->count++];
        if (!decode(query, slice_of(part.data, key), &pair->key) ||
            !decode(query, value, &pair->value)) {
            *ret_reason = "the query has a % that two hexadecimal digits do not follow";
            return false;
        }
    }
    return true;
}

struct slice explore_query_get(const struct explore_query *query, const char *key)
{
    for (size_t i = 0; i < query->count; i++)
        if (slice_equal_text(query->pairs[i].key, key))
            return query->pairs[i].value;
    return (struct slice){.data = NULL};
}

bool explore_read_number(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return text.size > 0;
}

bool explore_read_duration(struct slice text, uint64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1},     {"ns", 1},  {"us", 1e3}, {"\xc2\xb5s", 1e3},
                 {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    double value = 0;
    double place = 0; /* of the next digit behind the point */
    size_t at = 0;
    bool has_digits = false;
    for (; at < text.size; at++) {
        unsigned digit = (unsigned)text.data[at] - '0';
        if (digit <= 9 && place == 0) {
            value = value * 10 + digit;
            has_digits = true;
        } else if (digit <= 9) {
            value += digit * place;
            place /= 10;
            has_digits = true;
        } else if (text.data[at] == '.' && place == 0) {
            place = 0.1;
        } else {
            break;
        }
    }
    struct slice unit = slice_of(text.data + at, text.size - at);
    for (size_t i = 0; has_digits && i < sizeof(units) / sizeof(units[0]); i++) {
        if (!slice_equal_text(unit, units[i].unit))
            continue;
        value *= units[i].ns;
        if (value >= 0x1p64)
            return false;
        *ret_ns = (uint64_t)value;
        return true;
    }
    return false;
}

bool explore_read_hex(struct slice text, uint8_t *room, size_t size)
{
    if (text.size != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned high = hex_digit(text.data[2 * i]);
        unsigned low = hex_digit(text.data[2 * i + 1]);
        if (high > 15 || low > 15)
            return false;
        room[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
