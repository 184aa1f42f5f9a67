/* SPDX-License-Identifier: Apache-2.0 */
/* The Retry-After header of 429 and 503 responses (RFC 9110 §10.2.3). Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* text is the trimmed value; wall_ns the current time, from which a date is counted; the result is
 * at most a year. Like the Go collector accepts whole seconds ("2", "+2") and RFC 1123 dates; false
 * for everything else: fractions, negative numbers, other dates, dates in the past. */
bool retry_after_parse(const char *text, uint64_t wall_ns, uint64_t *ret_after_ns);
