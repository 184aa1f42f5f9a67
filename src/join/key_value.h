/* SPDX-License-Identifier: Apache-2.0 */
/* An encoded KeyValue with an inline key. Plain value; any thread. */
#pragma once

#include <assert.h>

#include "src/otlp/wire.h"

struct key_value {
    struct slice key;
    struct slice value; /* encoded AnyValue; no data: absent */
};

/* The last of each field wins. */
static inline struct key_value key_value_of(struct slice encoded)
{
    enum { KEY_FIELD = 1, VALUE_FIELD = 2 };
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct key_value found = {.key = {0}};
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY_FIELD)
            found.key = field.bytes;
        else if (field.number == VALUE_FIELD)
            found.value = field.bytes;
    }
    assert(reader.failure == NULL);
    return found;
}
