/* SPDX-License-Identifier: Apache-2.0 */
/* Messages read field by field, and numbers, ids, times and attributes as Go's fmt and pdata write
 * them. Any thread. */
#include "src/otlp/text/text_parts.h"

#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/otlp/json/value_string.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct message message_of(struct slice bytes)
{
    struct message message = {.bytes = bytes};
    struct wire_reader reader = wire_reader_of(bytes);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        if (field.number < MESSAGE_FIELDS)
            message.fields[field.number] = field;
    return message;
}

bool message_has(const struct message *message, uint32_t number)
{
    assert(number < MESSAGE_FIELDS);
    return message->fields[number].number != 0;
}

struct slice message_bytes(const struct message *message, uint32_t number)
{
    assert(number < MESSAGE_FIELDS);
    return message->fields[number].bytes;
}

uint64_t message_number(const struct message *message, uint32_t number)
{
    assert(number < MESSAGE_FIELDS);
    return message->fields[number].number_value;
}

double message_double(const struct message *message, uint32_t number)
{
    uint64_t bits = message_number(message, number);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

uint32_t message_last_of(const struct message *message, const uint32_t *numbers, size_t count)
{
    assert(numbers != NULL && count > 0);
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++)
        if (message_has(message, numbers[i]) &&
            (last == 0 ||
             message->fields[numbers[i]].whole.data > message->fields[last].whole.data))
            last = numbers[i];
    return last;
}

struct message message_in(const struct message *message, uint32_t number)
{
    return message_of(message_bytes(message, number));
}

struct wire_reader message_reader(const struct message *message)
{
    return wire_reader_of(message->bytes);
}

bool message_next(struct wire_reader *reader, uint32_t number, struct slice *ret_bytes)
{
    struct wire_field field;
    while (wire_read_field(reader, &field))
        if (field.number == number && field.type == WIRE_BYTES) {
            *ret_bytes = field.bytes;
            return true;
        }
    return false;
}

size_t message_count(const struct message *message, uint32_t number)
{
    assert(number > 0);
    struct wire_reader reader = message_reader(message);
    struct slice bytes;
    size_t count = 0;
    while (message_next(&reader, number, &bytes))
        count++;
    return count;
}

/* "NaN", "+Inf" or "-Inf", as fmt has it; false for other numbers. */
static bool add_special(struct text *text, double number)
{
    if (isnan(number))
        text_add(text, "NaN");
    else if (isinf(number))
        text_add(text, number > 0 ? "+Inf" : "-Inf");
    else
        return false;
    return true;
}

/* How many digits read back the same, at the fewest. Each try costs about half a microsecond, and a
 * record may have thousands of numbers. */
static int fewest_digits(double number)
{
    enum { SURE = 15, MOST = 17 };
    char digits[40];
    int least = 1;
    int most = MOST;
    if (fabs(number) >= DBL_MIN) {
        /* Decimals of up to 15 digits survive: shorter ones end in zeros here. */
        snprintf(digits, sizeof(digits), "%.*e", SURE - 1, number);
        if (strtod(digits, NULL) == number) {
            int count = SURE;
            while (count > 1 && strchr(digits, '.')[count - 1] == '0')
                count--;
            return count;
        }
        least = SURE + 1;
    }
    /* Those around subnormal numbers are equally far apart: more digits are never worse. */
    while (least < most) {
        int count = (least + most) / 2;
        snprintf(digits, sizeof(digits), "%.*e", count - 1, number);
        if (strtod(digits, NULL) == number)
            most = count;
        else
            least = count + 1;
    }
    return least;
}

/* Positional from 10^-4 to below 10^6, else with an exponent. */
void text_add_shortest(struct text *text, double number)
{
    char digits[40];
    if (add_special(text, number))
        return;
    int count = fewest_digits(number);
    snprintf(digits, sizeof(digits), "%.*e", count - 1, number); /* "d.ddde±XX" */
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (number == 0 || (exponent >= -4 && exponent < 6))
        text_add(text, "%.*f", count - 1 > exponent ? count - 1 - exponent : 0, number);
    else
        text_add(text, "%s", digits);
}

void text_add_fixed(struct text *text, double number)
{
    if (!add_special(text, number))
        text_add(text, "%f", number);
}

void text_add_id(struct text *text, struct slice id)
{
    assert(id.data != NULL || id.size == 0);
    bool is_empty = true;
    for (size_t i = 0; i < id.size; i++)
        is_empty &= id.data[i] == 0;
    for (size_t i = 0; !is_empty && i < id.size; i++)
        text_add(text, "%02x", id.data[i]);
}

void text_add_time(struct text *text, uint64_t unix_ns)
{
    int64_t ns = (int64_t)unix_ns;
    int64_t rest = ns % NS_PER_S;
    time_t seconds = (time_t)(ns / NS_PER_S - (rest < 0));
    struct tm tm;
    char date[64];
    char fraction[16];
    if (rest < 0)
        rest += NS_PER_S;
    gmtime_r(&seconds, &tm);
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(fraction, sizeof(fraction), ".%09" PRId64, rest);
    size_t size = strlen(fraction);
    while (size > 1 && fraction[size - 1] == '0')
        size--;
    text_add(text, "%s%.*s +0000 UTC", date, size > 1 ? (int)size : 0, fraction);
}

void text_add_line(struct text *text, const char *head, struct slice value)
{
    text_add(text, "%s", head);
    text_add_slice(text, value);
    text_add(text, "\n");
}

void text_add_id_line(struct text *text, const char *head, struct slice id)
{
    text_add(text, "%s", head);
    text_add_id(text, id);
    text_add(text, "\n");
}

void text_add_time_line(struct text *text, const char *head, uint64_t unix_ns)
{
    text_add(text, "%s", head);
    text_add_time(text, unix_ns);
    text_add(text, "\n");
}

/* AnyValue: 1 string, 2 bool, 3 int, 4 double, 5 array, 6 kvlist, 7 bytes. */
enum { ANY_STRING = 1, ANY_KINDS = 8 };

static uint32_t kind_of(const struct message *value)
{
    static const uint32_t kinds[] = {1, 2, 3, 4, 5, 6, 7};
    return message_last_of(value, kinds, sizeof(kinds) / sizeof(kinds[0]));
}

static void add_value(struct text *text, const struct message *value, uint32_t kind)
{
    assert(kind != 0);
    struct arena arena;
    struct slice words;
    if (kind == ANY_STRING) {
        text_add_slice(text, message_bytes(value, ANY_STRING));
        return;
    }
    arena_init_charged(&arena, TEXT_BYTES_MAX, text->budget);
    if (value_to_string(&arena, value->bytes, &words))
        text_add_slice(text, words);
    else
        text_add(text, "…");
    arena_clear(&arena);
}

void text_add_value(struct text *text, struct slice bytes)
{
    struct message value = message_of(bytes);
    uint32_t kind = kind_of(&value);
    if (kind != 0)
        add_value(text, &value, kind);
}

void text_add_typed_value(struct text *text, struct slice bytes)
{
    static const char *const names[ANY_KINDS] = {"Empty",  "Str",   "Bool", "Int",
                                                 "Double", "Slice", "Map",  "Bytes"};
    struct message value = message_of(bytes);
    uint32_t kind = kind_of(&value);
    text_add(text, "%s(", names[kind]);
    if (kind != 0)
        add_value(text, &value, kind);
    text_add(text, ")");
}

size_t text_add_pairs(struct text *text, const struct message *message, uint32_t number,
                      const char *separator)
{
    struct wire_reader attributes = message_reader(message);
    struct slice bytes;
    size_t count = 0;
    for (; !text->is_cut && message_next(&attributes, number, &bytes); count++) {
        struct message attribute = message_of(bytes);
        text_add(text, "%s", count > 0 ? separator : "");
        text_add_slice(text, message_bytes(&attribute, 1));
        text_add(text, "=");
        text_add_value(text, message_bytes(&attribute, 2));
    }
    return count;
}

void text_add_attributes(struct text *text, const char *header, const char *prefix,
                         const struct message *message, uint32_t number)
{
    struct wire_reader attributes = message_reader(message);
    struct slice bytes;
    for (size_t i = 0; !text->is_cut && message_next(&attributes, number, &bytes); i++) {
        struct message attribute = message_of(bytes);
        if (i == 0)
            text_add(text, "%s:\n", header);
        text_add(text, "%s ", prefix);
        text_add_slice(text, message_bytes(&attribute, 1));
        text_add(text, ": ");
        text_add_typed_value(text, message_bytes(&attribute, 2));
        text_add(text, "\n");
    }
}
