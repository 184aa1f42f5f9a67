/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tracestates. One member that is wrong spoils the whole, as in the Go collector. */
#include "connectors/span_metrics/adjusted_count.h"

#include <stddef.h>
#include <string.h>

#include "src/base/random.h"

enum {
    MEMBERS_MAX = 31,
    TRACE_STATE_BYTES_MAX = 1024,
    KEY_BYTES_MAX = 256,
    TENANT_BYTES_MAX = 241,
    SYSTEM_BYTES_MAX = 14,
    VALUE_BYTES_MAX = 256,
    HEX_DIGITS = 14,
};

#define COUNT_MAX (UINT64_C(1) << 56)

/* Cuts what is before the separator off the text. */
static struct slice next_part(struct slice *text, char separator)
{
    const uint8_t *end = memchr(text->data, separator, text->size);
    size_t size = end != NULL ? (size_t)(end - text->data) : text->size;
    struct slice part = slice_of(text->data, size);
    size += end != NULL;
    *text = slice_of(text->data + size, text->size - size);
    return part;
}

static bool is_lower(uint8_t byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool is_lower_or_digit(uint8_t byte)
{
    return is_lower(byte) || (byte >= '0' && byte <= '9');
}

static bool is_key_rest(struct slice text)
{
    for (size_t i = 1; i < text.size; i++)
        if (!is_lower_or_digit(text.data[i]) && strchr("_-*/", text.data[i]) == NULL)
            return false;
    return true;
}

static bool is_key(struct slice key)
{
    struct slice system = key;
    if (key.size > KEY_BYTES_MAX || memchr(key.data, '\0', key.size) != NULL)
        return false;
    struct slice tenant = next_part(&system, '@');
    if (tenant.size == key.size)
        return is_lower(key.data[0]) && is_key_rest(key);
    return tenant.size > 0 && system.size > 0 && tenant.size <= TENANT_BYTES_MAX &&
           system.size <= SYSTEM_BYTES_MAX && is_lower_or_digit(tenant.data[0]) &&
           is_lower(system.data[0]) && is_key_rest(tenant) && is_key_rest(system);
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

static bool read_hex(struct slice text, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i] | 0x20;
        if (byte >= '0' && byte <= '9')
            number = number << 4 | (uint64_t)(byte - '0');
        else if (byte >= 'a' && byte <= 'f')
            number = number << 4 | (uint64_t)(byte - 'a' + 10);
        else
            return false;
    }
    *ret_number = number;
    return text.size > 0;
}

static bool is_otel_key(struct slice key)
{
    for (size_t i = 0; i < key.size; i++)
        if (!is_lower_or_digit(key.data[i]))
            return false;
    return key.size > 0 && is_lower(key.data[0]);
}

static bool is_otel_value(struct slice value)
{
    for (size_t i = 0; i < value.size; i++)
        if (!is_lower_or_digit(value.data[i]) && !(value.data[i] >= 'A' && value.data[i] <= 'Z') &&
            (value.data[i] == '\0' || strchr("._-", value.data[i]) == NULL))
            return false;
    return true;
}

/* The value of `ot`: "rv:…;th:…". */
static bool read_otel(struct slice text, bool *ret_has_threshold, uint64_t *ret_threshold)
{
    *ret_has_threshold = false;
    if (text.data[text.size - 1] == ';')
        return false;
    while (text.size > 0) {
        struct slice value = next_part(&text, ';');
        size_t member_size = value.size;
        struct slice key = next_part(&value, ':');
        uint64_t number;
        if (key.size == member_size || !is_otel_key(key) || !is_otel_value(value))
            return false;
        if (slice_equal_text(key, "rv")) {
            if (value.size != HEX_DIGITS || !read_hex(value, &number))
                return false;
        } else if (slice_equal_text(key, "th")) {
            if (value.size > HEX_DIGITS || !read_hex(value, &number))
                return false;
            *ret_has_threshold = true;
            *ret_threshold = number << 4 * (HEX_DIGITS - value.size);
        }
    }
    return true;
}

struct adjusted_count adjusted_count_read(struct slice trace_state)
{
    const struct adjusted_count plain = {.whole = 1, .divisor = 1};
    bool has_threshold = false;
    uint64_t threshold = 0;
    if (trace_state.size > TRACE_STATE_BYTES_MAX || trace_state.size == 0 ||
        memmem(trace_state.data, trace_state.size, "ot=", strlen("ot=")) == NULL)
        return plain;
    struct slice text = trace_state;
    for (unsigned members = 1; text.size > 0; members++) {
        struct slice value = next_part(&text, ',');
        while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t'))
            value = slice_of(value.data + 1, value.size - 1);
        while (value.size > 0 &&
               (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t'))
            value.size--;
        if (members > MEMBERS_MAX)
            return plain;
        if (value.size == 0)
            continue;
        size_t member_size = value.size;
        struct slice key = next_part(&value, '=');
        if (key.size == 0 || key.size == member_size || !is_key(key) || !is_value(value))
            return plain;
        if (slice_equal_text(key, "ot") && !read_otel(value, &has_threshold, &threshold))
            return plain;
    }
    if (!has_threshold)
        return plain;
    uint64_t divisor = COUNT_MAX - threshold;
    return (struct adjusted_count){true, COUNT_MAX / divisor, COUNT_MAX % divisor, divisor};
}

uint64_t adjusted_count_draw(const struct adjusted_count *adjusted)
{
    bool is_up =
        adjusted->rest > 0 && random_uniform() * (double)adjusted->divisor < (double)adjusted->rest;
    return adjusted->whole + is_up;
}
