/* SPDX-License-Identifier: Apache-2.0 */
/* Retrieves configuration text: from files, environment variables, and inline. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/error.h"
#include "src/base/slice.h"

struct loader;

struct retrieved {
    struct slice bytes; /* followed by a NUL */
    char *owned;        /* what bytes points into, or NULL */
    const char *unset;  /* the environment variable that is not set and has no default, or NULL */
};

/* Adds "file:" to "otel.yaml" and "C:x", and "env:" to the content of ${} if it names no scheme.
 * Allocated in the loader's arena. */
char *location_of_argument(struct loader *loader, const char *argument);
char *location_of_reference(struct loader *loader, struct slice reference);
/* Retrieves "scheme:rest". Release with retrieved_release. */
bool location_retrieve(struct loader *loader, const char *uri, struct retrieved *ret_retrieved,
                       struct error *error);
void retrieved_release(struct retrieved *retrieved);
