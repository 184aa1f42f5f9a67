/* SPDX-License-Identifier: Apache-2.0 */
/* The query of Pyroscope's POST /ingest, which describes a profile. Its `name` is
 * app{label=value,…} without quotes or escapes: characters that would end a value early are
 * replaced. Pure functions; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct buffer;

enum { PYROSCOPE_PARAMETERS_MAX = 8 };

/* Sent as spyName, not in the name. */
#define PYROSCOPE_SPY_LABEL "pyroscope_spy"

struct pyroscope_parameter {
    const char *key;
    struct slice value;
};

struct pyroscope_query {
    const char *path;    /* of /ingest on the server; it may have a query of its own */
    struct slice labels; /* encoded, as RawProfileSeries has them; those that begin with "__" are
                            left out, but for __session_id__ */
    struct pyroscope_parameter parameters[PYROSCOPE_PARAMETERS_MAX]; /* behind the name */
    size_t count;
};

/* The value of that label; no data: there is none. */
struct slice pyroscope_query_label(struct slice labels, const char *name);

/* Values without data are left out. */
void pyroscope_query_add(struct pyroscope_query *query, const char *key, struct slice value);

/* Path and query, terminated. NULL: no memory. *changed grows by the names and values that had to
 * be changed. */
struct buffer *pyroscope_query_target(const struct pyroscope_query *query, struct budget *budget,
                                      uint64_t *changed);
