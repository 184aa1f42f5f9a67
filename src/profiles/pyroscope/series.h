/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a series, as Pyroscope's clients send them, by Push or /ingest. Slices point into
 * the request. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct error;

/* More than any server accepts; the default is 30 labels. */
enum {
    SERIES_LABELS_MAX = 128,
    SERIES_PRIVATE_LABELS_MAX = 32, /* those that begin with "__" */
    SERIES_NAME_BYTES_MAX = 1024,
    SERIES_VALUE_BYTES_MAX = 65535,
};

struct series_label {
    struct slice name;
    struct slice value;
};

struct series {
    struct series_label labels[SERIES_LABELS_MAX];
    size_t count;
};

/* False: there are too many. */
bool series_add(struct series *series, struct slice name, struct slice value);
/* The value of the first of that name, or NULL. */
const struct slice *series_find(const struct series *series, const char *name);
/* Names that begin with "__" are for the server, not attributes of the application. */
bool series_is_private(struct slice name);
/* The server's rules: a __name__, valid names and values, each name once. */
bool series_check(const struct series *series, struct error *error);
