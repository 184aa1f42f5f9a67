/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar that requests are made from: OTLP's own tables (src/otlp/schema.h), those of older
 * layouts of profiles, pprof and Pyroscope's push, and for each field what its value means: an
 * index into which table, an id, a time. Built once; one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/otlp/schema.h"

/* Tables that other fields point into. */
enum form_table {
    TABLE_NONE,
    TABLE_STRINGS,
    TABLE_ATTRIBUTES,
    TABLE_MAPPINGS,
    TABLE_LOCATIONS,
    TABLE_FUNCTIONS,
    TABLE_LINKS,
    TABLE_STACKS,
    TABLES,
};

enum form_role {
    ROLE_PLAIN,
    ROLE_INDEX,  /* into table `to`, from 0 */
    ROLE_ID,     /* names an entry of table `to` by its id; 0: none */
    ROLE_OWN_ID, /* the id of this entry */
    ROLE_TIME,   /* nanoseconds since 1970 */
    ROLE_MICROS, /* the same in microseconds */
    ROLE_SECONDS,
    ROLE_TRACE_ID,
    ROLE_SPAN_ID,
    ROLE_KEY,    /* text: key of an attribute or a label */
    ROLE_ENTRY,  /* an entry of table `to` */
    ROLE_TYPES,  /* as many of them as a sample has values */
    ROLE_VALUES, /* of one sample */
    ROLE_FIRST,  /* layout 1.7: first of a range of the profile's locations */
    ROLE_LENGTH, /* and its size */
    ROLE_RANGE,  /* the locations that such ranges are of */
    ROLE_ZIPPED, /* bytes: a pprof, perhaps in gzip */
};

struct form;

struct form_field {
    const struct otlp_field *field;
    const struct form *message; /* NULL: a scalar */
    enum form_role role;
    enum form_table to;
};

struct form {
    const struct otlp_message *message;
    unsigned count;
    struct form_field fields[OTLP_SHORT_FIELDS + 1];
};

enum form_request {
    FORM_TRACES,
    FORM_METRICS,
    FORM_LOGS,
    FORM_PROFILES, /* layout 1.10 */
    FORM_PROFILES_1_9,
    FORM_PROFILES_1_8,
    FORM_PROFILES_1_7,
    FORM_PPROF,
    FORM_PUSH,   /* push.v1.PushRequest */
    FORM_ZIPKIN, /* zipkin.proto3.ListOfSpans */
    FORM_JAEGER, /* jaeger.api_v2.PostSpansRequest */
    FORM_REQUESTS,
};

/* Static lifetime. */
const struct form *form_of(enum form_request request);
/* Of AnyValue, for what nests. */
const struct form *form_any_value(void);
