/* SPDX-License-Identifier: Apache-2.0 */
/* The query of Pyroscope's POST /ingest, which says what a profile is. Its `name` is
 * app{label=value,…} and knows neither quotes nor escapes: what would end a value early is
 * replaced. Pure functions; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;

enum { PYROSCOPE_PARAMETERS_MAX = 8 };

/* Said by spyName, not by the name. */
#define PYROSCOPE_SPY_LABEL "pyroscope_spy"

struct pyroscope_parameter {
    const char *key;
    struct slice value;
};

struct pyroscope_query {
    const char *path;    /* of /ingest at the server; it may have a query of its own */
    struct slice labels; /* encoded, as RawProfileSeries has them; those that begin with "__" are
                            left out, but for __session_id__ */
    struct pyroscope_parameter parameters[PYROSCOPE_PARAMETERS_MAX]; /* behind the name */
    size_t count;
};

/* The value of that label; no data: it is not among them. */
struct slice pyroscope_query_label(struct slice labels, const char *name);

/* Values without data are left out. */
void pyroscope_query_add(struct pyroscope_query *query, const char *key, struct slice value);

/* Path and query, terminated; NULL: no memory. *changed grows by the names and values that could
 * not be said as they are. */
struct buffer *pyroscope_query_target(const struct pyroscope_query *query, struct budget *budget,
                                      uint64_t *changed);
