/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves plain scalars by trying each form in turn; not on a hot path. Pure functions. */
#include "src/config/scalar.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES_MAX = 512 };

struct word {
    const char *text;
    struct scalar scalar;
};

static const struct word words[] = {
    {"", {.kind = NODE_NULL}},
    {"~", {.kind = NODE_NULL}},
    {"null", {.kind = NODE_NULL}},
    {"Null", {.kind = NODE_NULL}},
    {"NULL", {.kind = NODE_NULL}},
    {"true", {.kind = NODE_BOOL, .boolean = true}},
    {"True", {.kind = NODE_BOOL, .boolean = true}},
    {"TRUE", {.kind = NODE_BOOL, .boolean = true}},
    {"false", {.kind = NODE_BOOL}},
    {"False", {.kind = NODE_BOOL}},
    {"FALSE", {.kind = NODE_BOOL}},
    {".nan", {.kind = NODE_DOUBLE, .real = NAN}},
    {".NaN", {.kind = NODE_DOUBLE, .real = NAN}},
    {".NAN", {.kind = NODE_DOUBLE, .real = NAN}},
    {".inf", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {".Inf", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {".INF", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {"+.inf", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {"+.Inf", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {"+.INF", {.kind = NODE_DOUBLE, .real = INFINITY}},
    {"-.inf", {.kind = NODE_DOUBLE, .real = -INFINITY}},
    {"-.Inf", {.kind = NODE_DOUBLE, .real = -INFINITY}},
    {"-.INF", {.kind = NODE_DOUBLE, .real = -INFINITY}},
};

/* A whole number as Go reads it with base 0: the prefix decides, and a leading zero is octal. Those
 * above INT64_MAX become doubles; no option takes them. */
static bool text_to_integer(const char *text, struct scalar *ret_scalar)
{
    uint64_t magnitude = 0;
    unsigned base = 10;
    bool is_negative = text[0] == '-';
    bool has_sign = is_negative || text[0] == '+';
    if (has_sign)
        text++;
    if (text[0] == '0' && text[1] != '\0') {
        char letter = (char)(text[1] | 0x20);
        bool is_named = letter == 'x' || letter == 'b' || letter == 'o';
        base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
        text += is_named ? 2 : 1;
    }
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        char letter = (char)(*text | 0x20);
        unsigned digit = 99;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned)(*text - '0');
        else if (letter >= 'a' && letter <= 'f')
            digit = (unsigned)(letter - 'a') + 10;
        if (digit >= base || __builtin_mul_overflow(magnitude, (uint64_t)base, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)digit, &magnitude))
            return false;
    }
    if (is_negative && magnitude <= (uint64_t)INT64_MAX + 1)
        *ret_scalar = (struct scalar){.kind = NODE_INT, .integer = (int64_t)(0 - magnitude)};
    else if (!is_negative && magnitude <= INT64_MAX)
        *ret_scalar = (struct scalar){.kind = NODE_INT, .integer = (int64_t)magnitude};
    else if (!has_sign)
        *ret_scalar = (struct scalar){.kind = NODE_DOUBLE, .real = (double)magnitude};
    else
        return false;
    return true;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* [-+]? (. digits | digits (. digits?)?) ([eE] [-+]? digits)? */
static bool is_float(const char *text)
{
    if (*text == '-' || *text == '+')
        text++;
    size_t whole = count_digits(text);
    text += whole;
    if (*text == '.') {
        size_t fraction = count_digits(++text);
        if (whole == 0 && fraction == 0)
            return false;
        text += fraction;
    } else if (whole == 0) {
        return false;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '-' || *text == '+')
            text++;
        if (count_digits(text) == 0)
            return false;
        text += count_digits(text);
    }
    return *text == '\0';
}

/* One or two digits, as in "2006-1-2T15:4:5", that are a number from min to max. */
static bool take_part(const char **text, unsigned min, unsigned max, unsigned *ret_part)
{
    size_t digits = count_digits(*text);
    if (digits == 0 || digits > 2)
        return false;
    *ret_part = (unsigned)strtoul(*text, NULL, 10);
    *text += digits;
    return *ret_part >= min && *ret_part <= max;
}

static bool take_byte(const char **text, char byte)
{
    if (**text != byte)
        return false;
    (*text)++;
    return true;
}

/* The forms that Go's YAML takes for a time: a date alone; with a time after a blank, without a
 * zone; with a time after a T, with a zone. */
static bool is_time(const char *text)
{
    unsigned month = 0;
    unsigned day = 0;
    unsigned part = 0;
    if (count_digits(text) != 4 || text[4] != '-')
        return false;
    unsigned year = (unsigned)strtoul(text, NULL, 10);
    text += 5;
    if (!take_part(&text, 1, 12, &month) || !take_byte(&text, '-'))
        return false;
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (!take_part(&text, 1, days[month - 1] + (month == 2 && is_leap ? 1u : 0u), &day))
        return false;
    if (*text == '\0')
        return true;
    bool has_zone = *text == 'T' || *text == 't';
    if (!has_zone && *text != ' ')
        return false;
    text++;
    if (!take_part(&text, 0, 23, &part) || !take_byte(&text, ':') ||
        !take_part(&text, 0, 59, &part) || !take_byte(&text, ':') ||
        !take_part(&text, 0, 59, &part))
        return false;
    if (*text == '.' && count_digits(text + 1) > 0)
        text += 1 + count_digits(text + 1);
    if (!has_zone || strcmp(text, "Z") == 0)
        return has_zone || *text == '\0';
    return (text[0] == '+' || text[0] == '-') && count_digits(text + 1) == 2 && text[3] == ':' &&
           count_digits(text + 4) == 2 && text[6] == '\0';
}

struct scalar text_to_scalar(const char *text)
{
    char number[NUMBER_BYTES_MAX];
    struct scalar scalar = {.kind = NODE_TEXT};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].text, text) == 0)
            return words[i].scalar;
    bool is_candidate = strchr("0123456789+-.", text[0]) != NULL;
    if (!is_candidate)
        return scalar;
    size_t length = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '_')
            continue;
        if (length == sizeof(number) - 1) /* longer than any number */
            return scalar;
        number[length++] = *at;
    }
    number[length] = '\0';
    if (is_time(text))
        return (struct scalar){.kind = NODE_TIME};
    if (text[0] != '.' && text_to_integer(number, &scalar))
        return scalar;
    if (is_float(text[0] == '.' ? text : number)) {
        double real = strtod(number, NULL);
        if (isfinite(real))
            return (struct scalar){.kind = NODE_DOUBLE, .real = real};
    }
    return scalar;
}
