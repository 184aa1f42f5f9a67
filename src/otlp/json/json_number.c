/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers. What has few digits and a small exponent is exact in plain arithmetic (Clinger,
 * "How to Read Floating Point Numbers Accurately", 1990); the rest is the C library's. Any thread.
 */
#include "src/otlp/json/json_number.h"

#include <assert.h>

#include "src/otlp/json/value_text.h"

enum { EXACT_DIGITS_MAX = 19, EXACT_POWER_MAX = 22, EXPONENT_MAX = 10000 };

bool json_integer(struct slice text, struct json_range range, uint64_t *ret_bits)
{
    assert(range.min <= 0);
    assert(range.max > 9);
    const uint8_t *at = text.data;
    const uint8_t *end = at + text.size;
    bool is_negative = false;
    uint64_t number = 0;
    if (range.min < 0 && text.size > 0 && (*at == '-' || *at == '+'))
        is_negative = *at++ == '-';
    if (at == end)
        return false;
    uint64_t limit = is_negative ? 0 - (uint64_t)range.min : range.max;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit > 9 || number > (limit - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_bits = is_negative ? 0 - number : number;
    return true;
}

struct decimal {
    uint64_t digits;
    unsigned count; /* of digits, without leading zeros */
    int exponent;
};

/* The digits as one integer, and how far the point is away. */
static const uint8_t *read_digits(const uint8_t *at, const uint8_t *end, struct decimal *decimal)
{
    bool is_behind_point = false;
    assert(at <= end);
    for (; at < end && (*at | 0x20) != 'e'; at++) {
        if (*at == '.') {
            is_behind_point = true;
            continue;
        }
        assert(*at >= '0' && *at <= '9');
        decimal->count += decimal->count > 0 || *at != '0';
        if (decimal->count <= EXACT_DIGITS_MAX)
            decimal->digits = decimal->digits * 10 + (*at - '0');
        decimal->exponent -= is_behind_point;
    }
    return at;
}

static int read_exponent(const uint8_t *at, const uint8_t *end)
{
    assert(at < end);
    bool is_negative = *at == '-';
    int exponent = 0;
    at += *at == '-' || *at == '+';
    for (; at < end && exponent < EXPONENT_MAX; at++)
        exponent = exponent * 10 + (*at - '0');
    return is_negative ? -exponent : exponent;
}

bool json_double(struct slice text, double *ret_real)
{
    static const double powers[EXACT_POWER_MAX + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    struct decimal decimal = {0};
    assert(text.size > 0);
    bool is_negative = text.data[0] == '-';
    const uint8_t *end = text.data + text.size;
    const uint8_t *at = read_digits(text.data + is_negative, end, &decimal);
    if (at < end)
        decimal.exponent += read_exponent(at + 1, end);
    bool is_exact = decimal.count <= EXACT_DIGITS_MAX && decimal.digits <= UINT64_C(1) << 53 &&
                    decimal.exponent >= -EXACT_POWER_MAX && decimal.exponent <= EXACT_POWER_MAX;
    if (!is_exact)
        return text_to_double(text, ret_real);
    double real = (double)decimal.digits;
    real =
        decimal.exponent < 0 ? real / powers[-decimal.exponent] : real * powers[decimal.exponent];
    *ret_real = is_negative ? -real : real;
    return true;
}
