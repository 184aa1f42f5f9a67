/* SPDX-License-Identifier: Apache-2.0 */
/* Which layout of OTLP profiles a request has. Package and path stayed the same while fields were
 * renumbered, so that it must be told from the bytes: wire types first, then which combinations a
 * writer of each version makes, at last which reading makes more sense. Nothing is allocated, and
 * nothing is assumed of the bytes. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

enum profile_layout {
    LAYOUT_1_10, /* and 1.11 */
    LAYOUT_1_9,
    LAYOUT_1_8,
    LAYOUT_1_7,
    LAYOUT_1_6, /* or older: tables in places that cannot be told apart */
    LAYOUT_UNKNOWN,
    PROFILE_LAYOUTS,
};

enum profile_layout profile_layout_of(struct slice request);
/* "1.10": for metrics and messages. */
const char *profile_layout_name(enum profile_layout layout);
