/* SPDX-License-Identifier: Apache-2.0 */
/* The query of an upload to /ingest: its parameters, its name and its times. Strings live in the
 * struct's memory. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/profiles/pyroscope/series.h"

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

struct ingest_name {
    struct slice app;
    struct series labels; /* as they were sent, "__session_id__" among them */
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

/* The parameter's name in a query. */
const char *ingest_parameter_name(enum ingest_parameter parameter);
/* False: the error says what is wrong; nothing needs to be freed. */
bool ingest_query_parse(struct ingest_query *query, struct slice text, uint64_t now_ns,
                        struct error *error);
/* May be called twice. */
void ingest_query_fini(struct ingest_query *query);

/* Parses app{key=value,key=value} by the server's grammar: no quotes, no escapes; blanks around
 * keys and values are ignored; of equal keys the last one counts. Slices point into text. False:
 * the error has the server's words. */
bool ingest_name_parse(struct slice text, struct ingest_name *ret_name, struct error *error);
/* Parses a time: seconds, milliseconds (13 digits), microseconds (16) or nanoseconds (19) since
 * 1970, a day as YYYYMMDD, or now with an offset, "now-1h30min". Blanks, commas and underscores are
 * ignored; anything else is now. False: a time beyond what nanoseconds since 1970 can express. */
bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *ret_ns);
