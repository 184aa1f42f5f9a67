/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for jitter, not for secrets: a small generator per thread, seeded by the kernel.
 * Tests fix the value. */
#pragma once

#include <stdint.h>

/* Uniform in [0, 1). Any thread. */
double random_uniform(void);
/* Tests only: later calls return value; a negative value restores the generator. */
void random_fix(double value);
/* A number of the kernel's, the same for all of the process: for hashes of what others choose,
 * which nobody shall make collide. random_fix does not change it. Any thread. */
uint64_t random_seed(void);
