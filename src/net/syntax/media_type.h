/* SPDX-License-Identifier: Apache-2.0 */
/* Content-Type values (RFC 9110 §8.3). Pure function, any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

/* Whether value is of this type (in lower case), whatever its case and parameters. As in Go's
 * mime.ParseMediaType, broken or contradicting parameters make it invalid. */
bool media_type_is(struct slice value, const char *type);
