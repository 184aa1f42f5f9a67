/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of metrics that filter has: they look at the metric's data points. Runs on the
 * processor's thread. */
#include "src/otlp/wire.h"
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_context_metrics.h"
#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_record.h"

enum { POINTS = 1 };

/* The first attribute of that key in a point. */
static bool find_attribute(struct slice point, uint32_t number, struct slice key,
                           struct ottl_entry *ret)
{
    struct wire_reader reader = wire_reader_of(point);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != number || field.type != WIRE_BYTES)
            continue;
        ottl_entry_read(ret, field.whole, field.bytes);
        if (slice_equal(ret->key, key))
            return true;
    }
    return false;
}

/* The first point that has the key decides; expected NULL: that it has. Values that are no text
 * count as "". */
static bool look_at_points(struct ottl_call *call, const struct slice *expected,
                           struct ottl_value *ret)
{
    const struct ottl_record *data = call->run->records[OTTL_METRIC_DATA];
    const uint32_t number = ottl_data_point_attributes((enum ottl_metric_data)data->kind);
    struct wire_reader reader = wire_reader_of(data->bytes);
    struct wire_field field;
    struct ottl_entry entry;
    struct ottl_value value;
    struct slice key;
    if (number == 0)
        return ottl_fail(call, "unknown metric type");
    if (!ottl_get_string(call, 0, &key))
        return false;
    *ret = ottl_bool(false);
    while (wire_next_field(&reader, &field)) {
        if (field.number != POINTS || !find_attribute(field.bytes, number, key, &entry))
            continue;
        *ret = ottl_bool(true);
        if (expected == NULL)
            return true;
        if (!ottl_value_decode(call->memory, NULL, ottl_slice(&entry.value), &value))
            return ottl_no_memory(call);
        *ret = ottl_bool(value.type == OTTL_STRING ? slice_equal(ottl_slice(&value), *expected)
                                                   : expected->size == 0);
        return true;
    }
    return true;
}

static bool has_key(struct ottl_call *call, struct ottl_value *ret)
{
    return look_at_points(call, NULL, ret);
}

static bool has_value(struct ottl_call *call, struct ottl_value *ret)
{
    struct slice expected;
    return ottl_get_string(call, 1, &expected) && look_at_points(call, &expected, ret);
}

static const struct ottl_parameter key_parameters[] = {{"Key", OTTL_TEXT_LITERAL, false, false},
                                                       {.name = NULL}};
static const struct ottl_parameter value_parameters[] = {
    {"Key", OTTL_TEXT_LITERAL, false, false},
    {"ExpectedVal", OTTL_TEXT_LITERAL, false, false},
    {.name = NULL}};

const struct ottl_function ottl_metric_functions[] = {
    {.name = "HasAttrKeyOnDatapoint",
     .parameters = key_parameters,
     .evaluate = has_key,
     .users = OTTL_FOR_FILTER,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC)},
    {.name = "HasAttrOnDatapoint",
     .parameters = value_parameters,
     .evaluate = has_value,
     .users = OTTL_FOR_FILTER,
     .contexts = OTTL_CONTEXT_BIT(OTTL_METRIC)},
    {.name = NULL},
};
