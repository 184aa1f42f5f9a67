/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the layout of a profiles request. Package and path stayed the same while fields were
 * renumbered, so the bytes must tell: first wire types, then combinations that only some versions
 * write, and last which reading makes more sense. Allocates nothing; accepts any bytes. Pure
 * function; any thread. */
#pragma once

#include "src/base/slice.h"

enum profile_layout {
    LAYOUT_1_10, /* and 1.11 */
    LAYOUT_1_9,
    LAYOUT_1_8,
    LAYOUT_1_7,
    LAYOUT_1_6, /* or older: no dictionary */
    LAYOUT_UNKNOWN,
    PROFILE_LAYOUTS,
};

enum profile_layout profile_layout_of(struct slice request);
/* "1.10" and so on, for metrics and messages. */
const char *profile_layout_name(enum profile_layout layout);
