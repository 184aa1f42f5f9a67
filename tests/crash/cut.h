/* SPDX-License-Identifier: Apache-2.0 */
/* What a cut of the power leaves on a recorder's disk. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct recorder;

/* State of the random numbers: the same state makes the same choices. Never 0. */
extern uint64_t cut_random;
/* A number below `below`, which is not 0. */
uint64_t cut_choose(uint64_t below);

/* Applies what was written from entry first to end, as a disk does whose power is cut then: every
 * unit that was written is old, or as one of the writes left it. Unit: RECORDER_SECTOR_BYTES, or a
 * multiple. */
void cut_put(struct recorder *recorder, size_t first, size_t end, uint32_t unit);
/* Applies everything that was written from entry first to end. */
void cut_put_all(struct recorder *recorder, size_t first, size_t end);
/* The end of the last flush between first and end, or first: all up to there is on the disk. */
size_t cut_stable_before(struct recorder *recorder, size_t first, size_t end);
