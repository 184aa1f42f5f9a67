/* SPDX-License-Identifier: Apache-2.0 */
/* Walks by the tables of fields, at most as deep as otlp_check allows. Any thread. */
#include "src/otlp/unknown.h"

#include <assert.h>

#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"
#include "src/otlp/wire.h"

static bool has_unknown(const struct otlp_message *message, struct slice content, unsigned depth)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    assert(depth <= WIRE_DEPTH_MAX);
    while (wire_next_field(&reader, &field)) {
        const struct otlp_field *known = otlp_field_find(message, field.number);
        if (known == NULL)
            return true;
        if (known->message != NULL && has_unknown(known->message, field.bytes, depth + 1))
            return true;
    }
    assert(reader.failure == NULL);
    return false;
}

bool otlp_has_unknown(enum signal_kind signal, struct slice request)
{
    assert(signal < SIGNAL_KINDS);
    return has_unknown(otlp_request(signal), request, 1);
}
