/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of both types compare as doubles; whatever else differs in type is unequal. Runs on the
 * owner's thread. */
#include "src/ottl/ottl_compare.h"

#include "src/ottl/ottl_map.h"

enum { NS_PER_S = 1000000000, EQUAL_DEPTH_MAX = 96 };

/* Not by an order: NaN has none. */
static bool compare_doubles(double left, enum ottl_comparison op, double right)
{
    switch (op) {
    case OTTL_EQ:
        return left == right;
    case OTTL_NE:
        return left != right;
    case OTTL_LT:
        return left < right;
    case OTTL_LE:
        return left <= right;
    case OTTL_GE:
        return left >= right;
    case OTTL_GT:
        return left > right;
    }
    return false;
}

static bool equal(const struct ottl_value *left, const struct ottl_value *right, unsigned depth);

/* Recursion is bounded by EQUAL_DEPTH_MAX. */
static bool equal_maps(struct ottl_map *left, struct ottl_map *right, unsigned depth)
{
    if (left->count != right->count || !ottl_map_index(right))
        return false;
    for (uint32_t i = 0; i < left->count; i++) {
        struct ottl_value a, b;
        struct ottl_entry *other = ottl_map_find(right, left->entries[i].key);
        if (other == NULL || !ottl_map_read(left, &left->entries[i], &a) ||
            !ottl_map_read(right, other, &b) || !equal(&a, &b, depth))
            return false;
    }
    return true;
}

/* Recursion is bounded by EQUAL_DEPTH_MAX. */
static bool equal_lists(const struct ottl_value *left, const struct ottl_value *right,
                        unsigned depth)
{
    /* Go's typed slices compare with nothing. */
    if (left->form > OTTL_FORM_ANY || right->form > OTTL_FORM_ANY ||
        left->list->count != right->list->count)
        return false;
    for (uint32_t i = 0; i < left->list->count; i++) {
        struct ottl_value a, b;
        if (!ottl_list_read(left->list, i, &a) || !ottl_list_read(right->list, i, &b))
            return false;
        /* A map in a list literal stays a pcommon.Map, which no raw map equals. */
        if (a.type == OTTL_MAP && left->form != right->form)
            return false;
        if (a.type == OTTL_LIST && left->form != right->form)
            a.form = b.form;
        if (!equal(&a, &b, depth))
            return false;
    }
    return true;
}

/* As elements of a map or list. Recursion is bounded by EQUAL_DEPTH_MAX. */
static bool equal(const struct ottl_value *left, const struct ottl_value *right, unsigned depth)
{
    if (left->type != right->type || depth == 0)
        return false;
    switch (left->type) {
    case OTTL_NIL:
        return true;
    case OTTL_BOOL:
        return left->boolean == right->boolean;
    case OTTL_INT:
    case OTTL_DURATION:
        return left->integer == right->integer;
    case OTTL_DOUBLE:
        return left->real == right->real;
    case OTTL_TIME:
        return left->integer == right->integer && left->size == right->size;
    case OTTL_MAP:
        return equal_maps(left->map, right->map, depth - 1);
    case OTTL_LIST:
        return equal_lists(left, right, depth - 1);
    case OTTL_MESSAGE:
        return left->form == right->form;
    default:
        return slice_equal(ottl_slice(left), ottl_slice(right));
    }
}

bool ottl_values_are_equal(const struct ottl_value *left, const struct ottl_value *right)
{
    return equal(left, right, EQUAL_DEPTH_MAX);
}

static bool is_nil(const struct ottl_value *value)
{
    return value->type == OTTL_NIL || (value->type == OTTL_BYTES && value->bytes == NULL);
}

bool ottl_compare(const struct ottl_value *left, enum ottl_comparison op,
                  const struct ottl_value *right)
{
    int order;
    if (is_nil(left) || is_nil(right))
        return is_nil(left) && is_nil(right) ? ottl_order_holds(0, op) : op == OTTL_NE;
    if (left->type == OTTL_INT && right->type == OTTL_DOUBLE)
        return compare_doubles((double)left->integer, op, right->real);
    if (left->type == OTTL_DOUBLE && right->type == OTTL_INT)
        return compare_doubles(left->real, op, (double)right->integer);
    if (left->type != right->type)
        return op == OTTL_NE;
    switch (left->type) {
    case OTTL_BOOL:
        return ottl_order_holds((left->boolean > right->boolean) - (left->boolean < right->boolean),
                                op);
    case OTTL_INT:
    case OTTL_DURATION:
        return ottl_ints_hold(left->integer, op, right->integer);
    case OTTL_DOUBLE:
        return compare_doubles(left->real, op, right->real);
    case OTTL_STRING:
    case OTTL_BYTES:
        if (op <= OTTL_NE)
            return slice_equal(ottl_slice(left), ottl_slice(right)) == (op == OTTL_EQ);
        order = slice_compare(ottl_slice(left), ottl_slice(right));
        return ottl_order_holds((order > 0) - (order < 0), op);
    case OTTL_TIME:
        order = (left->integer > right->integer) - (left->integer < right->integer);
        return ottl_order_holds(
            order != 0 ? order : (left->size > right->size) - (left->size < right->size), op);
    default: /* equality only */
        return op <= OTTL_NE && equal(left, right, EQUAL_DEPTH_MAX) == (op == OTTL_EQ);
    }
}

/* Integers wrap, as in Go. */
static const char *calculate_ints(int64_t left, enum ottl_arithmetic op, int64_t right,
                                  int64_t *ret)
{
    uint64_t a = (uint64_t)left;
    uint64_t b = (uint64_t)right;
    switch (op) {
    case OTTL_ADD:
        *ret = (int64_t)(a + b);
        return NULL;
    case OTTL_SUBTRACT:
        *ret = (int64_t)(a - b);
        return NULL;
    case OTTL_MULTIPLY:
        *ret = (int64_t)(a * b);
        return NULL;
    case OTTL_DIVIDE:
        if (right == 0)
            return "attempted to divide by 0";
        *ret = right == -1 ? (int64_t)(0 - a) : left / right;
        return NULL;
    }
    return "invalid operation";
}

static const char *calculate_doubles(double left, enum ottl_arithmetic op, double right,
                                     double *ret)
{
    if (op == OTTL_DIVIDE && right == 0)
        return "attempted to divide by 0";
    *ret = op == OTTL_ADD        ? left + right
           : op == OTTL_SUBTRACT ? left - right
           : op == OTTL_MULTIPLY ? left * right
                                 : left / right;
    return NULL;
}

/* The moment that lies nanoseconds later; the zone stays. */
static struct ottl_value later(const struct ottl_value *time, int64_t nanoseconds)
{
    struct ottl_value ret = *time;
    int64_t seconds = nanoseconds / NS_PER_S;
    int64_t rest = (int64_t)time->size + nanoseconds % NS_PER_S;
    if (rest < 0) {
        rest += NS_PER_S;
        seconds--;
    } else if (rest >= NS_PER_S) {
        rest -= NS_PER_S;
        seconds++;
    }
    ret.integer = (int64_t)((uint64_t)time->integer + (uint64_t)seconds);
    ret.size = (uint32_t)rest;
    return ret;
}

/* What does not fit becomes the smallest or largest duration, as in Go. */
static int64_t between(const struct ottl_value *left, const struct ottl_value *right)
{
    int64_t seconds, ns;
    bool is_before = left->integer < right->integer ||
                     (left->integer == right->integer && left->size < right->size);
    if (__builtin_sub_overflow(left->integer, right->integer, &seconds) ||
        __builtin_mul_overflow(seconds, (int64_t)NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, (int64_t)left->size - (int64_t)right->size, &ns))
        return is_before ? INT64_MIN : INT64_MAX;
    return ns;
}

static const char *calculate_time(const struct ottl_value *left, enum ottl_arithmetic op,
                                  const struct ottl_value *right, struct ottl_value *ret)
{
    if (op == OTTL_ADD) {
        if (right->type != OTTL_DURATION)
            return "time.Time must be added to time.Duration";
        *ret = later(left, right->integer);
        return NULL;
    }
    if (op != OTTL_SUBTRACT)
        return "only addition and subtraction supported for time.Time and time.Duration";
    if (right->type == OTTL_TIME)
        *ret = ottl_duration(between(left, right));
    else if (right->type == OTTL_DURATION)
        *ret = later(left, (int64_t)(0 - (uint64_t)right->integer));
    else
        return "time.Time or time.Duration must be subtracted from time.Time";
    return NULL;
}

static const char *calculate_duration(const struct ottl_value *left, enum ottl_arithmetic op,
                                      const struct ottl_value *right, struct ottl_value *ret)
{
    if (op != OTTL_ADD && op != OTTL_SUBTRACT)
        return "only addition and subtraction supported for time.Time and time.Duration";
    if (right->type == OTTL_TIME && op == OTTL_ADD) {
        *ret = later(right, left->integer);
        return NULL;
    }
    if (right->type != OTTL_DURATION)
        return op == OTTL_ADD ? "time.Duration must be added to time.Duration or time.Time"
                              : "time.Duration must be subtracted from time.Duration";
    ret->type = OTTL_DURATION;
    return calculate_ints(left->integer, op, right->integer, &ret->integer);
}

const char *ottl_calculate(const struct ottl_value *left, enum ottl_arithmetic op,
                           const struct ottl_value *right, struct ottl_value *ret)
{
    struct ottl_value result = {.type = left->type};
    const char *failure;
    if (left->type == OTTL_TIME) {
        failure = calculate_time(left, op, right, &result);
    } else if (left->type == OTTL_DURATION) {
        failure = calculate_duration(left, op, right, &result);
    } else if (left->type != OTTL_INT && left->type != OTTL_DOUBLE) {
        failure = "the left operand must be int64, float64, time.Time or time.Duration";
    } else if (right->type != OTTL_INT && right->type != OTTL_DOUBLE) {
        failure = "the right operand must be int64 or float64";
    } else if (left->type == OTTL_INT && right->type == OTTL_INT) {
        failure = calculate_ints(left->integer, op, right->integer, &result.integer);
    } else {
        double a = left->type == OTTL_INT ? (double)left->integer : left->real;
        double b = right->type == OTTL_INT ? (double)right->integer : right->real;
        result.type = OTTL_DOUBLE;
        failure = calculate_doubles(a, op, b, &result.real);
    }
    if (failure == NULL)
        *ret = result;
    return failure;
}

const char *ottl_negate(const struct ottl_value *value, struct ottl_value *ret)
{
    if (value->type == OTTL_INT)
        *ret = ottl_int((int64_t)(0 - (uint64_t)value->integer));
    else if (value->type == OTTL_DOUBLE)
        *ret = ottl_double(-value->real);
    else
        return "unsupported unary minus operation";
    return NULL;
}
