/* SPDX-License-Identifier: Apache-2.0 */
/* "type[/name]": what names components and pipelines. Pure functions but for the loader's memory.
 * Main thread. */
#pragma once

#include <stdbool.h>

#include "src/error.h"

struct loader;

struct identifier {
    const char *type;
    const char *name; /* "": none */
    const char *id;   /* both, trimmed: "otlp/profiles" */
};

bool text_to_identifier(struct loader *loader, const char *text, struct identifier *ret_identifier,
                        struct error *error);
