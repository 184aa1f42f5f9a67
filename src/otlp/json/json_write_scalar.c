/* SPDX-License-Identifier: Apache-2.0 */
/* The values of single fields as OTLP/JSON. Runs inside json_write. */
#include "src/otlp/json/json_writer.h"

#include <assert.h>

static void write_quoted_number(struct json_writer *writer, const struct otlp_field *field,
                                uint64_t bits)
{
    bool is_signed = field->kind == OTLP_INT64 || field->kind == OTLP_SFIXED64 ||
                     field->kind == OTLP_PACKED_INT64;
    json_out_byte(&writer->out, '"');
    if (is_signed)
        json_out_signed(&writer->out, (int64_t)bits);
    else
        json_out_unsigned(&writer->out, bits);
    json_out_byte(&writer->out, '"');
    assert(field->message == NULL);
}

void json_write_number(struct json_writer *writer, const struct otlp_field *field, uint64_t bits)
{
    double real;
    switch (field->kind) {
    case OTLP_BOOL:
        json_out_raw(&writer->out, bits != 0 ? "true" : "false", bits != 0 ? 4 : 5);
        return;
    case OTLP_DOUBLE:
    case OTLP_PACKED_DOUBLE:
        memcpy(&real, &bits, sizeof(real));
        json_out_double(&writer->out, real);
        return;
    case OTLP_UINT32:
    case OTLP_FIXED32:
        json_out_unsigned(&writer->out, (uint32_t)bits);
        return;
    case OTLP_SINT32:
        json_out_signed(&writer->out, (int32_t)((uint32_t)bits >> 1 ^ (0 - ((uint32_t)bits & 1))));
        return;
    case OTLP_ENUM:
    case OTLP_INT32:
    case OTLP_PACKED_INT32:
        json_out_signed(&writer->out, (int32_t)bits);
        return;
    default:
        write_quoted_number(writer, field, bits);
    }
}

void json_write_bytes(struct json_writer *writer, const struct otlp_field *field,
                      struct slice bytes)
{
    assert(field->wire == WIRE_BYTES);
    switch (field->kind) {
    case OTLP_STRING:
    case OTLP_STRINGS:
        json_out_string(&writer->out, bytes);
        return;
    case OTLP_BYTES:
        json_out_base64(&writer->out, bytes);
        return;
    default:
        assert(field->kind >= OTLP_TRACE_ID && field->kind <= OTLP_PROFILE_ID);
        json_out_hex(&writer->out, bytes);
    }
}
