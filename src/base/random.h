/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for jitter, not for secrets: a small generator per thread, seeded by the kernel.
 * Tests fix the value. */
#pragma once

/* Uniform in [0, 1). Any thread. */
double random_uniform(void);
/* Tests only: later calls return value; a negative value restores the generator. */
void random_fix(double value);
