/* SPDX-License-Identifier: Apache-2.0 */
/* Content-Type values (RFC 9110 §8.3). Pure function, any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

/* True when value names that type (lower case), whatever its case and parameters. Parameters that
 * are broken or occur twice make it no type at all, as Go's mime.ParseMediaType has it. */
bool media_type_is(struct slice value, const char *type);
