/* SPDX-License-Identifier: Apache-2.0 */
/* Jitter, not secrets: a small generator per thread, seeded by the kernel. Tests fix the value. */
#pragma once

/* Uniform in [0, 1). Any thread. */
double random_uniform(void);
/* Tests only: every later call returns value; a negative value ends that. */
void random_fix(double value);
