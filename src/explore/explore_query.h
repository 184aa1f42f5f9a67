/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a URL, as browsers write it (application/x-www-form-urlencoded), and the values that
 * the explore page's questions have: durations, numbers, times, ids. Pure functions over the
 * caller's memory; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/explore/explore_limits.h"

enum { EXPLORE_PAIRS_MAX = 64 };

struct explore_pair {
    struct slice key;
    struct slice value;
};

struct explore_query {
    struct explore_pair pairs[EXPLORE_PAIRS_MAX];
    size_t count;
    size_t size;
    uint8_t text[EXPLORE_QUERY_BYTES_MAX];
};

/* False: more pairs or bytes than fit, or a broken escape; *ret_reason says so. */
bool explore_query_parse(struct explore_query *query, struct slice text, const char **ret_reason);
/* The first value of that key; no data: there is none. An empty value has data. */
struct slice explore_query_get(const struct explore_query *query, const char *key);

/* "250ms", "1.5s", "300us", "2m", "1h", or nanoseconds. */
bool explore_read_duration(struct slice text, uint64_t *ret_ns);
bool explore_read_number(struct slice text, uint64_t *ret_number);
/* Hexadecimal digits in either case, exactly two for each byte. */
bool explore_read_hex(struct slice text, uint8_t *room, size_t size);
