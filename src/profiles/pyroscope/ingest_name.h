/* SPDX-License-Identifier: Apache-2.0 */
/* The name of an upload, app{key=value,key=value}, by the server's grammar: no quotes, no escapes,
 * blanks around keys and values do not count, of equal keys the last one counts. Pure function; any
 * thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/profiles/pyroscope/series.h"

struct error;

struct ingest_name {
    struct slice app;
    struct series labels; /* as they were given, "__session_id__" among them */
};

/* Slices point into text. False: the error has the server's words. */
bool ingest_name_parse(struct slice text, struct ingest_name *ret_name, struct error *error);
