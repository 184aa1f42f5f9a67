/* SPDX-License-Identifier: Apache-2.0 */
/* Counted work: whether a stage takes time in proportion to the bytes that it is given.
 *
 * What is counted: the executed basic blocks of our own code, which the compiler reports by calling
 * __sanitizer_cov_trace_pc (-fsanitize-coverage=trace-pc, in these programs alone), and every
 * eighth byte that memcpy, memcmp and their like are given by it (the linker's --wrap). Unlike a
 * clock this gives the same number in each run, on any machine, however busy; unlike callgrind it
 * needs no valgrind and takes seconds. Code of libraries is not counted: what they are called for
 * is, since each call has blocks around it.
 *
 * Each stage is given each shape at n and at 2n. The work for a tiny one is taken off both; what is
 * left may grow by WORK_GROWTH_MAX at the most. Stages whose output repeats parts of the input, as
 * each piece of a cut request repeats its resource, may do work in proportion to their output.
 *
 * The constant is bounded, too, in units per byte for each stage. A unit is worth about a
 * nanosecond. What the bounds come to for a whole request is what the lane's helper, and the pieces
 * that dense requests are cut into, have to deal with (src/base/limits.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

#define WORK_GROWTH_MAX 2.3

struct work_shape {
    const char *name;
    /* Input that is twice as large for 2n as for n. The caller frees its data with mem_free. */
    struct slice (*make)(size_t n);
};

enum { WORK_N = 1500 };

struct work_stage {
    const char *name;
    /* Does its work between work_begin and work_end. */
    void (*run)(struct slice input);
    size_t n; /* 0: WORK_N. For those whose output grows faster than their input */
    /* Units per byte of input and output at the most, of any shape: what a request can cost beyond
     * what it has to. A little above the worst shape of today. */
    double per_byte_max;
};

void work_begin(void);
void work_end(void);
/* Bytes that the stage at hand has produced. */
void work_produced(uint64_t bytes);

/* Gives every shape to every stage and prints a line for each pair that grows too fast, and with
 * `-v` for all of them; `-v NAME` for the stages of that name alone. Returns how many do. */
int work_check(const struct work_stage *stages, size_t stages_count,
               const struct work_shape *shapes, size_t shapes_count, int argc, char **argv);
