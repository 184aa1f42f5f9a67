/* SPDX-License-Identifier: Apache-2.0 */
/* Tells words from random letters by which letters follow which. Pure; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

/* Of ASCII letters, in any case, and blanks; all other bytes are left out. A text with less than
 * two of them is a word. */
bool letter_pairs_are_word(struct slice text);
