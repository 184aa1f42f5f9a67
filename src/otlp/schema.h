/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP's messages as tables: one row per field with its number, names and kind, and the table of a
 * nested message. The wire walker and the JSON transcoder run on them. Constants; any thread. The
 * names and numbers are those of proto/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/otlp/wire.h"

/* In the order of their wire types; WIRE_OF relies on it. */
enum otlp_kind {
    OTLP_NONE, /* a number that the message does not use */
    OTLP_BOOL,
    OTLP_ENUM,
    OTLP_INT32,
    OTLP_INT64,
    OTLP_UINT32,
    OTLP_UINT64,
    OTLP_SINT32,
    OTLP_FIXED64,
    OTLP_SFIXED64,
    OTLP_DOUBLE,
    OTLP_FIXED32,
    OTLP_STRING,
    OTLP_STRINGS, /* repeated */
    OTLP_BYTES,
    OTLP_WEB_BYTES,      /* bytes; in JSON null, or base64 in either alphabet, padded or not */
    OTLP_TRACE_ID,       /* bytes: 16 or none */
    OTLP_SPAN_ID,        /* bytes: 8 or none */
    OTLP_LOOSE_TRACE_ID, /* ids of profiles: bytes whose size is checked where they are used */
    OTLP_LOOSE_SPAN_ID,
    OTLP_PROFILE_ID,
    OTLP_PACKED_FIXED64, /* repeated; also one by one, as proto3 requires */
    OTLP_PACKED_DOUBLE,
    OTLP_PACKED_INT32, /* from here to UINT64: varints */
    OTLP_PACKED_INT64,
    OTLP_PACKED_UINT64,
    OTLP_MESSAGE,
    OTLP_MESSAGES,  /* repeated */
    OTLP_KEY_VALUE, /* repeated KeyValue: an attribute */
    OTLP_HOLDER,    /* a message that contains items: splitting descends into it */
    OTLP_HOLDERS,   /* the same, repeated */
    OTLP_RESOURCES, /* repeated: the Resource… messages of a request */
    OTLP_RECORDS,   /* repeated, each an item: span, data point, log record, sample */
};

/* One more than the largest field number with a one-byte tag. */
enum { OTLP_SHORT_FIELDS = 16 };

/* The names of an enumeration's values, from 0 on. */
struct otlp_names {
    const char *const *texts;
    uint32_t count;
};

struct otlp_field {
    const char *name;      /* as in the .proto file */
    const char *json_name; /* the same in lowerCamelCase */
    const struct otlp_message *message;
    const struct otlp_names *names;
    uint16_t number;
    uint8_t kind; /* enum otlp_kind */
    uint8_t wire; /* enum wire_type */
    uint8_t name_size;
    uint8_t json_name_size;
};

struct otlp_message {
    const char *name;
    uint8_t plan[128];                           /* by one-byte tag: enum otlp_kind */
    struct otlp_field fields[OTLP_SHORT_FIELDS]; /* by number */
    const struct otlp_field *more;               /* the one field with a larger number, or NULL */
    /* Sets of fields, a bit for each number: the members of the oneof (no message has two), scalars
     * with explicit presence, and singular messages outside the oneof. */
    uint16_t one_of;
    uint16_t optional;
    uint16_t embedded;
};

extern const struct otlp_message otlp_any_value;
extern const struct otlp_message otlp_key_value;
extern const struct otlp_message otlp_resource;

/* Export…ServiceRequest of that signal; for profiles in layout 1.10. */
const struct otlp_message *otlp_request(enum signal_kind signal);

/* Export…ServiceResponse of that signal. */
const struct otlp_message *otlp_response(enum signal_kind signal);
/* google.rpc.Status without its details. */
extern const struct otlp_message otlp_rpc_status;

static inline bool otlp_kind_is_packed(enum otlp_kind kind)
{
    return kind >= OTLP_PACKED_FIXED64 && kind <= OTLP_PACKED_UINT64;
}

static inline bool otlp_kind_is_repeated(enum otlp_kind kind)
{
    return kind == OTLP_STRINGS || otlp_kind_is_packed(kind) ||
           (kind >= OTLP_MESSAGES && kind != OTLP_HOLDER);
}

/* Returns NULL when the message has no such field. */
const struct otlp_field *otlp_field_find(const struct otlp_message *message, uint32_t number);
