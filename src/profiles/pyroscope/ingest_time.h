/* SPDX-License-Identifier: Apache-2.0 */
/* The times of /ingest: seconds, milliseconds (13 digits), microseconds (16) or nanoseconds (19)
 * since 1970, a day as YYYYMMDD, or now with an offset, "now-1h30min". Pure function; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

/* What is none of these is now. False: a time that nanoseconds since 1970 cannot tell. */
bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *ret_ns);
