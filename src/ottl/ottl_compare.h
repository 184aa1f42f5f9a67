/* SPDX-License-Identifier: Apache-2.0 */
/* What OTTL's operators do with two values of any types (contrib, pkg/ottl, LANGUAGE.md,
 * "Comparison Rules" and "Math Expressions"). One thread. */
#pragma once

#include "src/ottl/ottl_value.h"

enum ottl_comparison { OTTL_EQ, OTTL_NE, OTTL_LT, OTTL_LE, OTTL_GE, OTTL_GT };
/* Compares any two values; those that do not compare are unequal, and neither less nor greater. The
 * contents of maps and lists are read as needed; what does not fit in memory compares as unequal.
 */
/* As elements of maps and lists: Go's pcommon.Value.Equal. */
bool ottl_values_are_equal(const struct ottl_value *left, const struct ottl_value *right);
bool ottl_compare(const struct ottl_value *left, enum ottl_comparison op,
                  const struct ottl_value *right);

/* Whether the operator holds for an order, which is -1, 0 or 1. */
static inline bool ottl_order_holds(int order, enum ottl_comparison op)
{
    enum { LESS = 1, EQUAL = 2, GREATER = 4 };
    static const uint8_t orders[] = {
        [OTTL_EQ] = EQUAL,        [OTTL_NE] = LESS | GREATER,  [OTTL_LT] = LESS,
        [OTTL_LE] = LESS | EQUAL, [OTTL_GE] = EQUAL | GREATER, [OTTL_GT] = GREATER};
    return (orders[op] >> (order + 1) & 1) != 0;
}

static inline bool ottl_ints_hold(int64_t left, enum ottl_comparison op, int64_t right)
{
    return ottl_order_holds((left > right) - (left < right), op);
}

enum ottl_arithmetic { OTTL_ADD, OTTL_SUBTRACT, OTTL_MULTIPLY, OTTL_DIVIDE };
/* NULL, or the reason why these values have no result: static text in Go's words. */
const char *ottl_calculate(const struct ottl_value *left, enum ottl_arithmetic op,
                           const struct ottl_value *right, struct ottl_value *ret);
const char *ottl_negate(const struct ottl_value *value, struct ottl_value *ret);
