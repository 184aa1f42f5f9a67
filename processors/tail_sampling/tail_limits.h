/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by rate: token buckets as golang.org/x/time/rate has them, and counts per second. Any
 * lane, under a lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tail_limits;

/* With so many slots, each a bucket, a count or a second. */
struct tail_limits *tail_limits_create(size_t slots);
/* NULL is a no-op. */
void tail_limits_destroy(struct tail_limits *limits);
/* Makes the slot a bucket, full at first. */
void tail_limits_set(struct tail_limits *limits, size_t slot, int64_t per_second, int64_t burst);
/* Takes so many tokens out of a bucket. False: it does not have them, and nothing is taken. */
bool tail_limits_allow(struct tail_limits *limits, size_t slot, uint64_t now_ns, uint64_t tokens);
/* When the second in a slot is another one, clears the counts in those from first_count on. */
void tail_limits_enter_second(struct tail_limits *limits, size_t slot, size_t first_count,
                              size_t counts, uint64_t second);
/* Adds to a count. False: that would be more than most, and nothing is added. */
bool tail_limits_count(struct tail_limits *limits, size_t slot, uint64_t amount, int64_t most);
