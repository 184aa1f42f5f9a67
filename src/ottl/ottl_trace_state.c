/* SPDX-License-Identifier: Apache-2.0 */
/* https://www.w3.org/TR/trace-context-1/#tracestate-header. Any thread. */
#include "src/ottl/ottl_trace_state.h"

#include <string.h>

enum { MEMBERS_MAX = 32, TEXT_MAX = 256, TENANT_MAX = 241, SYSTEM_MAX = 14 };

struct member {
    struct slice key;
    struct slice value;
};

struct members {
    struct member items[MEMBERS_MAX];
    unsigned count;
};

static bool is_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter_or_digit(uint8_t c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static bool is_key_part(struct slice part, size_t max, bool begins_with_digit)
{
    if (part.size == 0 || part.size > max ||
        !(begins_with_digit ? is_letter_or_digit(part.data[0]) : is_letter(part.data[0])))
        return false;
    for (size_t i = 1; i < part.size; i++)
        if (!is_letter_or_digit(part.data[i]) && strchr("_-*/", part.data[i]) == NULL)
            return false;
    return memchr(part.data, '\0', part.size) == NULL;
}

static bool is_key(struct slice key)
{
    const uint8_t *at = key.size > 0 ? memchr(key.data, '@', key.size) : NULL;
    if (at == NULL)
        return is_key_part(key, TEXT_MAX, false);
    size_t tenant = (size_t)(at - key.data);
    return is_key_part(slice_of(key.data, tenant), TENANT_MAX, true) &&
           is_key_part(slice_of(at + 1, key.size - tenant - 1), SYSTEM_MAX, false);
}

static bool is_value(struct slice value)
{
    if (value.size == 0 || value.size > TEXT_MAX || value.data[value.size - 1] == ' ')
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == ',' ||
            value.data[i] == '=')
            return false;
    return true;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool read_member(struct slice text, struct member *ret)
{
    const uint8_t *equals = memchr(text.data, '=', text.size);
    if (equals == NULL)
        return false;
    struct slice key = slice_of(text.data, (size_t)(equals - text.data));
    struct slice value = slice_of(equals + 1, text.size - key.size - 1);
    while (key.size > 0 && is_blank(key.data[0]))
        key = slice_of(key.data + 1, key.size - 1);
    while (value.size > 0 && is_blank(value.data[value.size - 1]))
        value.size--;
    *ret = (struct member){.key = key, .value = value};
    return is_key(key) && is_value(value);
}

static struct member *find(struct members *members, struct slice key)
{
    for (unsigned i = 0; i < members->count; i++)
        if (slice_equal(members->items[i].key, key))
            return &members->items[i];
    return NULL;
}

static bool read(struct slice text, struct members *ret)
{
    ret->count = 0;
    while (text.size > 0) {
        const uint8_t *comma = memchr(text.data, ',', text.size);
        size_t size = comma != NULL ? (size_t)(comma - text.data) : text.size;
        struct slice part = slice_of(text.data, size);
        size_t step = size + (comma != NULL);
        text = slice_of(text.data + step, text.size - step);
        if (part.size == 0)
            continue;
        struct member member;
        if (!read_member(part, &member) || find(ret, member.key) != NULL ||
            ret->count == MEMBERS_MAX)
            return false;
        ret->items[ret->count++] = member;
    }
    return true;
}

bool ottl_trace_state_get(struct slice text, struct slice key, struct slice *ret)
{
    struct members members;
    if (!read(text, &members))
        return false;
    const struct member *found = find(&members, key);
    *ret = found != NULL ? found->value : slice_of(NULL, 0);
    return true;
}

static uint8_t *put(uint8_t *at, struct slice bytes)
{
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

static uint8_t *put_member(uint8_t *at, struct slice key, struct slice value)
{
    at = put(at, key);
    *at++ = '=';
    return put(at, value);
}

bool ottl_trace_state_put(struct slice text, struct slice key, struct slice value, uint8_t *room,
                          struct slice *ret)
{
    struct members members;
    if (!read(text, &members) || !is_key(key) || !is_value(value))
        return false;
    const struct member *old = find(&members, key);
    if (old == NULL && members.count == MEMBERS_MAX)
        members.count--; /* the last makes room */
    uint8_t *at = put_member(room, key, value);
    for (unsigned i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        if (member == old)
            continue;
        *at++ = ',';
        at = put_member(at, member->key, member->value);
    }
    *ret = slice_of(room, (size_t)(at - room));
    return true;
}
