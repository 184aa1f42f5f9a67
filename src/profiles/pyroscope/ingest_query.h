/* SPDX-License-Identifier: Apache-2.0 */
/* What the query of an upload says of it. Texts live in the struct's memory. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/pyroscope/ingest_name.h"

struct error;

enum ingest_parameter {
    INGEST_NAME,
    INGEST_FROM,
    INGEST_UNTIL,
    INGEST_SAMPLE_RATE,
    INGEST_SPY_NAME,
    INGEST_UNITS,
    INGEST_AGGREGATION,
    INGEST_FORMAT,
    INGEST_PARAMETERS,
};

struct ingest_query {
    char *memory;
    struct slice values[INGEST_PARAMETERS]; /* decoded; no data: absent */
    struct ingest_name name;
    uint64_t from_ns;
    uint64_t until_ns;
    uint64_t sample_rate; /* per second */
    struct slice spy_name;
};

/* As it is spelt in a query. */
const char *ingest_parameter_name(enum ingest_parameter parameter);
/* False: the error says what is wrong; nothing is held then. */
bool ingest_query_parse(struct ingest_query *query, struct slice text, uint64_t now_ns,
                        struct error *error);
/* NULL-tolerant, and may be called twice. */
void ingest_query_fini(struct ingest_query *query);
