/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a pprof profile of stacks such as "main;work;leaf", with a value each. Charged to a budget.
 * One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/scratch.h"
#include "src/base/slice.h"
#include "src/profiles/pprof/pprof_writer.h"

struct budget;
struct buffer;

struct stack_profile {
    struct budget *budget;
    struct pprof_writer writer;
    struct scratch ids;    /* by index of the string: uint32_t, of location and function */
    struct scratch frames; /* uint32_t: of one stack, leaf first */
    uint32_t locations;
    uint64_t stacks;
    uint64_t bytes;      /* of all stacks, with all their names */
    uint64_t bytes_max;  /* the same, at most */
    uint64_t scale;      /* of values */
    const char *failure; /* sticky: NULL, or which limit is broken */
    bool is_not_utf8;    /* that is the failure */
    bool has_no_memory;
};

/* What the profile measures. period 0: none. */
struct stack_profile_head {
    const char *type;
    const char *unit;
    const char *period_type;
    const char *period_unit;
    uint64_t period;
    uint64_t time_ns;
    uint64_t scale; /* values are multiplied by it */
};

void stack_profile_init(struct stack_profile *profile, const struct stack_profile_head *head,
                        struct budget *budget);
void stack_profile_fini(struct stack_profile *profile);
/* False: failure, or has_no_memory. Values of 0 are left out. */
bool stack_profile_add(struct stack_profile *profile, struct slice stack, uint64_t value);
/* Its bytes, which the caller owns; NULL: no memory. */
struct buffer *stack_profile_take(struct stack_profile *profile);
