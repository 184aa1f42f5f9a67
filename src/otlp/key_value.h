/* SPDX-License-Identifier: Apache-2.0 */
/* An encoded KeyValue with an inline key, which otlp_check has passed. Plain value; any thread. */
#pragma once

#include <assert.h>

#include "src/otlp/wire.h"

enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };

struct key_value {
    struct slice key;
    struct slice value; /* encoded AnyValue; no data: absent */
};

/* The last of each field wins. */
static inline struct key_value key_value_of(struct slice encoded)
{
    struct wire_reader reader = wire_reader_of(encoded);
    struct wire_field field;
    struct key_value found = {.key = {0}};
    while (wire_next_field(&reader, &field)) {
        if (field.number == KEY_VALUE_KEY)
            found.key = field.bytes;
        else if (field.number == KEY_VALUE_VALUE)
            found.value = field.bytes;
    }
    assert(reader.failure == NULL);
    return found;
}
