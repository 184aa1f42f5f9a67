/* SPDX-License-Identifier: Apache-2.0 */
/* "type[/name]": what names components and pipelines. Pure functions. */
#pragma once

#include <stdbool.h>

#include "src/base/error.h"

enum { IDENTIFIER_TYPE_BYTES_MAX = 63, IDENTIFIER_NAME_BYTES_MAX = 1024 };

struct identifier {
    char type[IDENTIFIER_TYPE_BYTES_MAX + 1];
    /* Both, trimmed: "otlp/profiles". */
    char id[IDENTIFIER_TYPE_BYTES_MAX + 1 + IDENTIFIER_NAME_BYTES_MAX + 1];
};

bool text_to_identifier(const char *text, struct identifier *ret_identifier, struct error *error);
