/* SPDX-License-Identifier: Apache-2.0 */
/* The Retry-After header of 429 and 503 answers. Pure function; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whole seconds ("2", "+2") or an RFC 1123 date, as the Go collector takes them; false for
 * everything else: fractions, negative numbers, other forms of dates, dates that have passed. */
bool retry_after_parse(const char *text, uint64_t wall_ns, uint64_t *ret_after_ns);
