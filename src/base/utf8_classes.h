/* SPDX-License-Identifier: Apache-2.0 */
/* Letters and white space of all scripts, as Go's unicode.IsLetter and IsSpace. Pure functions, any
 * thread. */
#pragma once

#include <stddef.h>

#include "src/base/slice.h"

/* Bytes of the letter beyond ASCII at the start of text, which is not empty; 0: there is none. */
size_t utf8_wide_letter_size(struct slice text);
/* Go's strings.TrimSpace. */
struct slice utf8_trim_space(struct slice text);
