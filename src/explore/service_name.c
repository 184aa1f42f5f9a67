/* SPDX-License-Identifier: Apache-2.0 */
#include "src/explore/service_name.h"

#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum { RESOURCE_ATTRIBUTES = 1, KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };

struct slice service_name_of(struct slice resource)
{
    struct wire_reader attributes = wire_reader_of(resource);
    struct wire_field attribute;
    while (wire_next_field(&attributes, &attribute)) {
        if (attribute.number != RESOURCE_ATTRIBUTES || attribute.type != WIRE_BYTES)
            continue;
        struct wire_reader pair = wire_reader_of(attribute.bytes);
        struct wire_field field;
        struct slice key = {.data = NULL};
        struct slice value = {.data = NULL};
        while (wire_next_field(&pair, &field)) {
            if (field.number == KEY_VALUE_KEY)
                key = field.bytes;
            else if (field.number == KEY_VALUE_VALUE)
                value = field.bytes;
        }
        if (!slice_equal_text(key, "service.name"))
            continue;
        struct value read = value_read(value);
        return read.type == VALUE_STRING ? read.bytes : slice_of(NULL, 0);
    }
    return slice_of(NULL, 0);
}
