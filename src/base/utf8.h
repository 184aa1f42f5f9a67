/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are UTF-8. Pure functions, any thread. */
#pragma once

#include <stddef.h>

#include "src/base/slice.h"

/* Bytes of the character at the begin of text, which is not empty; 0: none that is valid
 * (RFC 3629). */
size_t utf8_size(struct slice text);
