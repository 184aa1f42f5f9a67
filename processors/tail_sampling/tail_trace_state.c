/* SPDX-License-Identifier: Apache-2.0 */
/* Reading trace states (W3C Trace Context, 3.3.1). Pure functions; any thread. */
#include "processors/tail_sampling/tail_trace_state.h"

#include <assert.h>

enum {
    SIMPLE_KEY_BYTES_MAX = 256,
    TENANT_BYTES_MAX = 241,
    SYSTEM_BYTES_MAX = 14,
    VALUE_BYTES_MAX = 256,
};

static bool is_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter_or_digit(uint8_t c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

/* Everything behind the first character of a key. */
static bool is_key_rest(struct slice key)
{
    for (size_t i = 1; i < key.size; i++)
        if (!is_letter_or_digit(key.data[i]) &&
            (key.data[i] == '\0' || strchr("_-*/", key.data[i]) == NULL))
            return false;
    return true;
}

static bool is_key_part(struct slice key, size_t size_max)
{
    return key.size > 0 && key.size <= size_max && is_letter(key.data[0]) && is_key_rest(key);
}

/* Returns the place of the first such character, or the size. */
static size_t find(struct slice text, uint8_t wanted)
{
    const uint8_t *at = text.size > 0 ? memchr(text.data, wanted, text.size) : NULL;
    return at != NULL ? (size_t)(at - text.data) : text.size;
}

static bool is_key(struct slice key)
{
    size_t at = find(key, '@');
    if (at == key.size)
        return is_key_part(key, SIMPLE_KEY_BYTES_MAX);
    struct slice tenant = slice_of(key.data, at);
    struct slice system = slice_of(key.data + at + 1, key.size - at - 1);
    return tenant.size > 0 && tenant.size <= TENANT_BYTES_MAX &&
           is_letter_or_digit(tenant.data[0]) && is_key_rest(tenant) &&
           is_key_part(system, SYSTEM_BYTES_MAX);
}

static bool is_value(struct slice value)
{
    if (value.size == 0 || value.size > VALUE_BYTES_MAX || value.data[value.size - 1] == ' ')
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == '=')
            return false;
    return true;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool read_member(struct slice text, struct w3c_trace_state *state)
{
    size_t equals = find(text, '=');
    if (equals == text.size)
        return false;
    struct slice key = slice_of(text.data, equals);
    struct slice value = slice_of(text.data + equals + 1, text.size - equals - 1);
    while (key.size > 0 && is_blank(key.data[0]))
        key = slice_of(key.data + 1, key.size - 1);
    while (value.size > 0 && is_blank(value.data[value.size - 1]))
        value.size--;
    if (!is_key(key) || !is_value(value))
        return false;
    for (unsigned i = 0; i < state->count; i++)
        if (slice_equal(state->members[i].key, key))
            return false;
    if (state->count == W3C_TRACE_STATE_MEMBERS_MAX)
        return false;
    state->members[state->count++] = (struct w3c_trace_state_member){.key = key, .value = value};
    return true;
}

bool w3c_trace_state_read(struct slice text, struct w3c_trace_state *ret_state)
{
    ret_state->count = 0;
    while (text.size > 0) {
        size_t comma = find(text, ',');
        if (comma > 0 && !read_member(slice_of(text.data, comma), ret_state))
            return false;
        size_t used = comma < text.size ? comma + 1 : comma;
        text = slice_of(text.data + used, text.size - used);
    }
    assert(ret_state->count <= W3C_TRACE_STATE_MEMBERS_MAX);
    return true;
}

struct slice w3c_trace_state_value(const struct w3c_trace_state *state, struct slice key)
{
    assert(state->count <= W3C_TRACE_STATE_MEMBERS_MAX);
    for (unsigned i = 0; i < state->count; i++)
        if (slice_equal(state->members[i].key, key))
            return state->members[i].value;
    return (struct slice){0};
}
