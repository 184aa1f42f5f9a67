/* SPDX-License-Identifier: Apache-2.0 */
/* Most attributes are unwanted, and ruled out by the length of their keys. Pure functions. */
#include "connectors/shared/wanted_attributes.h"

#include <assert.h>

#include "src/otlp/wire.h"

enum {
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    TAG_KEY = ATTRIBUTE_KEY << 3 | WIRE_BYTES,
    TAG_VALUE = ATTRIBUTE_VALUE << 3 | WIRE_BYTES,
};

bool wanted_names_add(struct wanted_names *names, struct slice name, uint8_t *ret_place)
{
    unsigned i = 0;
    while (i < names->count && !slice_equal(names->names[i], name))
        i++;
    if (i == WANTED_NAMES_MAX)
        return false;
    if (i == names->count)
        names->names[names->count++] = name;
    names->lengths |= (uint64_t)1 << name.size % 64;
    *ret_place = (uint8_t)i;
    return true;
}

/* Whether it has the usual layout, key and value in fields of less than 128 bytes and nothing else,
 * and no wanted name has its key's length. */
static inline bool is_unwanted(const struct wanted_names *names, struct slice attribute)
{
    enum { HEADERS_BYTES = 4 };
    const uint8_t *at = attribute.data;
    if (attribute.size < HEADERS_BYTES || at[0] != TAG_KEY)
        return false;
    size_t left = attribute.size - HEADERS_BYTES;
    size_t key = at[1];
    if (key >= 0x80 || key > left || (names->lengths >> key % 64 & 1) != 0)
        return false;
    return at[2 + key] == TAG_VALUE && at[3 + key] < 0x80 && at[3 + key] == left - key;
}

void wanted_values_read(const struct wanted_names *names, struct slice attribute,
                        struct wanted_values *values)
{
    struct wire_reader reader = wire_reader_of(attribute);
    struct wire_field field;
    struct slice key = {0};
    struct slice value = {0};
    if (is_unwanted(names, attribute))
        return;
    while (wire_next_field(&reader, &field)) {
        if (field.number == ATTRIBUTE_KEY)
            key = field.bytes;
        else if (field.number == ATTRIBUTE_VALUE)
            value = field.bytes;
    }
    assert(reader.failure == NULL);
    for (unsigned i = 0; i < names->count; i++) {
        uint64_t bit = (uint64_t)1 << i;
        if ((values->has & bit) != 0 || !slice_equal(names->names[i], key))
            continue;
        values->encoded[i] = value;
        values->has |= bit;
    }
}
