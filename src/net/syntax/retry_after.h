/* SPDX-License-Identifier: Apache-2.0 */
/* The Retry-After header of 429 and 503 answers (RFC 9110 §10.2.3). Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* text is the value without blanks around it; wall_ns is now, of which a date is counted off; the
 * result is at most a year. Whole seconds ("2", "+2") or an RFC 1123 date, as the Go collector
 * takes them; false for everything else: fractions, negative numbers, other forms of dates, dates
 * that have passed. */
bool retry_after_parse(const char *text, uint64_t wall_ns, uint64_t *ret_after_ns);
