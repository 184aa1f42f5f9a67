/* SPDX-License-Identifier: Apache-2.0 */
/* Where configuration text comes from: files, environment variables, and text given as it is. Main
 * thread. */
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

/* "otel.yaml" and "C:x" get "file:", anything else stays; what stands inside ${} gets "env:" when
 * it names no scheme. In the loader's arena. */
char *location_of_argument(struct loader *loader, const char *argument);
char *location_of_reference(struct loader *loader, struct slice reference);
/* The text behind "scheme:rest". Released with retrieved_release. */
bool location_retrieve(struct loader *loader, const char *uri, struct retrieved *ret_retrieved,
                       struct error *error);
void retrieved_release(struct retrieved *retrieved);
