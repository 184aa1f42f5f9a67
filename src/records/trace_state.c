/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds and tracestates. Pure functions; any thread. */
#include "src/records/trace_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    DIGIT_BITS = 4,
    OT_BYTES_MAX = 256,
    KEY_BYTES_MAX = 256,
    TENANT_BYTES_MAX = 241,
    SYSTEM_BYTES_MAX = 14,
    VALUE_BYTES_MAX = 256,
};

/* ---- Thresholds ---- */

bool sampling_threshold_of(double ratio, int64_t precision, uint64_t *ret_threshold)
{
    int below;
    int above;
    if (!(ratio >= SAMPLING_RATIO_MIN && ratio <= 1))
        return false;
    *ret_threshold = SAMPLING_ALWAYS;
    if (ratio == 1)
        return true;
    if (precision == 0)
        precision = SAMPLING_DIGITS;
    /* Leading digits 0 or f, which a ratio near an end of the range has, come on top. */
    frexp(ratio, &below);
    frexp(1 - ratio, &above);
    int64_t more =
        below / -DIGIT_BITS > above / -DIGIT_BITS ? below / -DIGIT_BITS : above / -DIGIT_BITS;
    int64_t digits = precision + more < SAMPLING_DIGITS ? precision + more : SAMPLING_DIGITS;
    uint64_t threshold = SAMPLING_NEVER - (uint64_t)round(ratio * 0x1p56);
    int64_t shift = DIGIT_BITS * (SAMPLING_DIGITS - digits);
    if (shift >= 64) {
        threshold = 0;
    } else if (shift > 0) {
        threshold += (uint64_t)1 << (shift - 1);
        threshold = threshold >> shift << shift;
    }
    *ret_threshold = threshold;
    return true;
}

double sampling_ratio_of(uint64_t threshold)
{
    return (double)(SAMPLING_NEVER - threshold) / 0x1p56;
}

static bool read_digits(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    assert(text.size <= SAMPLING_DIGITS);
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        uint8_t lower = c | 0x20;
        if (c >= '0' && c <= '9')
            number = number << DIGIT_BITS | (uint64_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            number = number << DIGIT_BITS | (uint64_t)(lower - 'a' + 10);
        else
            return false;
    }
    *ret_number = number;
    return true;
}

bool sampling_read_threshold(struct slice text, uint64_t *ret_threshold)
{
    if (text.size == 0 || text.size > SAMPLING_DIGITS || !read_digits(text, ret_threshold))
        return false;
    *ret_threshold <<= DIGIT_BITS * (SAMPLING_DIGITS - text.size);
    return true;
}

bool sampling_read_randomness(struct slice text, uint64_t *ret_randomness)
{
    return text.size == SAMPLING_DIGITS && read_digits(text, ret_randomness);
}

struct slice sampling_write_randomness(uint64_t randomness, char room[SAMPLING_DIGITS])
{
    assert(randomness < SAMPLING_NEVER);
    for (int i = SAMPLING_DIGITS - 1; i >= 0; i--, randomness >>= DIGIT_BITS)
        room[i] = "0123456789abcdef"[randomness & 0xf];
    return slice_of(room, SAMPLING_DIGITS);
}

struct slice sampling_write_threshold(uint64_t threshold, char room[SAMPLING_DIGITS])
{
    struct slice text = sampling_write_randomness(threshold, room);
    while (text.size > 1 && text.data[text.size - 1] == '0')
        text.size--;
    return text;
}

/* ---- Syntax ---- */

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_lower_or_digit(uint8_t c)
{
    return is_lower(c) || (c >= '0' && c <= '9');
}

static bool are_key_chars(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_lower_or_digit(text.data[i]) && memchr("_-*/", text.data[i], 4) == NULL)
            return false;
    return true;
}

static struct slice after(struct slice text, size_t bytes)
{
    return slice_of(text.data + bytes, text.size - bytes);
}

/* Cuts text at the first such byte. False: there is none, and all is the first part. */
static bool cut(struct slice text, char at, struct slice *ret_first, struct slice *ret_rest)
{
    const uint8_t *found = text.size > 0 ? memchr(text.data, at, text.size) : NULL;
    *ret_first = text;
    *ret_rest = slice_of(NULL, 0);
    if (found == NULL)
        return false;
    *ret_first = slice_of(text.data, (size_t)(found - text.data));
    *ret_rest = after(text, ret_first->size + 1);
    return true;
}

/* simple-key or multi-tenant-key; lengths are another matter. */
static bool is_key(struct slice key)
{
    struct slice tenant;
    struct slice system;
    if (!cut(key, '@', &tenant, &system))
        return key.size > 0 && is_lower(key.data[0]) && are_key_chars(after(key, 1));
    return tenant.size > 0 && system.size > 0 && is_lower_or_digit(tenant.data[0]) &&
           is_lower(system.data[0]) && are_key_chars(after(tenant, 1)) &&
           are_key_chars(after(system, 1));
}

static bool is_value(struct slice value)
{
    if (value.size == 0 || value.size > VALUE_BYTES_MAX || value.data[value.size - 1] == ' ')
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == ',' ||
            value.data[i] == '=')
            return false;
    return true;
}

static struct slice trim(struct slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = after(text, 1);
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* False: syntax. An empty member is none. */
static bool read_member(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
    struct slice member;
    cut(*rest, ',', &member, rest);
    member = trim(member);
    *ret_key = *ret_value = slice_of(NULL, 0);
    if (member.size == 0)
        return true;
    return cut(member, '=', ret_key, ret_value) && is_key(*ret_key) && is_value(*ret_value);
}

static bool read_pair(struct slice *rest, struct slice *ret_key, struct slice *ret_value)
{
    struct slice pair;
    bool has_more = cut(*rest, ';', &pair, rest);
    if (has_more && rest->size == 0)
        return false;
    if (!cut(pair, ':', ret_key, ret_value) || ret_key->size == 0 || !is_lower(ret_key->data[0]))
        return false;
    for (size_t i = 1; i < ret_key->size; i++)
        if (!is_lower_or_digit(ret_key->data[i]))
            return false;
    for (size_t i = 0; i < ret_value->size; i++) {
        uint8_t c = ret_value->data[i];
        if (!is_lower_or_digit(c) && !(c >= 'A' && c <= 'Z') && memchr("._-", c, 3) == NULL)
            return false;
    }
    return true;
}

/* The value of ot. */
static bool read_ot(struct slice text, struct trace_state *state)
{
    struct slice key;
    struct slice value;
    bool is_fine = true;
    state->has_randomness = state->has_threshold = false;
    state->pairs_count = 0;
    if (text.size > OT_BYTES_MAX)
        return false;
    for (struct slice rest = text; rest.size > 0;)
        if (!read_pair(&rest, &key, &value))
            return false;
    for (struct slice rest = text; rest.size > 0;) {
        read_pair(&rest, &key, &value);
        if (slice_equal_text(key, "rv")) {
            state->has_randomness = sampling_read_randomness(value, &state->randomness);
            state->randomness_text = value;
            is_fine &= state->has_randomness;
        } else if (slice_equal_text(key, "th")) {
            state->has_threshold = sampling_read_threshold(value, &state->threshold);
            state->threshold_text = value;
            is_fine &= state->has_threshold;
        } else {
            assert(state->pairs_count < TRACE_STATE_PAIRS_MAX);
            state->pairs[state->pairs_count++] = (struct trace_state_pair){key, value};
        }
    }
    return is_fine;
}

bool trace_state_read(struct slice text, struct trace_state *ret_state)
{
    struct slice key;
    struct slice value;
    struct slice tenant;
    struct slice system;
    bool is_fine = true;
    size_t members = 0;
    ret_state->has_randomness = ret_state->has_threshold = false;
    ret_state->pairs_count = ret_state->members_count = 0;
    if (text.size > TRACE_STATE_BYTES_MAX)
        return false;
    for (struct slice rest = text; rest.size > 0;)
        if (!read_member(&rest, &key, &value))
            return false;
    for (struct slice rest = text; rest.size > 0;) {
        /* As in Go, 31 are the most. */
        if (++members >= TRACE_STATE_MEMBERS_MAX)
            return false;
        read_member(&rest, &key, &value);
        bool has_tenant = cut(key, '@', &tenant, &system);
        if (key.size == 0)
            continue;
        if (key.size > KEY_BYTES_MAX ||
            (has_tenant && (tenant.size > TENANT_BYTES_MAX || system.size > SYSTEM_BYTES_MAX)))
            is_fine = false;
        else if (slice_equal_text(key, "ot"))
            is_fine &= read_ot(value, ret_state);
        else
            ret_state->members[ret_state->members_count++] = (struct trace_state_pair){key, value};
    }
    return is_fine;
}

/* ---- Writing ---- */

static void put(struct slice *text, char *room, const char *separator, struct slice key,
                const char *between, struct slice value)
{
    const struct slice parts[] = {text->size > 0 ? slice_of_text(separator) : slice_of(NULL, 0),
                                  key, slice_of_text(between), value};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert(parts[i].size <= TRACE_STATE_WRITTEN_MAX - text->size);
        if (parts[i].size > 0)
            memcpy(room + text->size, parts[i].data, parts[i].size);
        text->size += parts[i].size;
    }
}

struct slice trace_state_write(const struct trace_state *state, char room[TRACE_STATE_WRITTEN_MAX])
{
    char ot_room[TRACE_STATE_WRITTEN_MAX];
    struct slice ot = slice_of(ot_room, 0);
    struct slice text = slice_of(room, 0);
    if (state->has_randomness)
        put(&ot, ot_room, ";", slice_of_text("rv"), ":", state->randomness_text);
    if (state->has_threshold)
        put(&ot, ot_room, ";", slice_of_text("th"), ":", state->threshold_text);
    for (size_t i = 0; i < state->pairs_count; i++)
        put(&ot, ot_room, ";", state->pairs[i].key, ":", state->pairs[i].value);
    if (ot.size > 0)
        put(&text, room, ",", slice_of_text("ot"), "=", ot);
    for (size_t i = 0; i < state->members_count; i++)
        put(&text, room, ",", state->members[i].key, "=", state->members[i].value);
    return text;
}
