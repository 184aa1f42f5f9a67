/* SPDX-License-Identifier: Apache-2.0 */
/* The policy ottl_condition: OTTL conditions on spans and their events. One per lane, which alone
 * tests them. */
#pragma once

#include "src/ottl/ottl_runner.h"

struct error;
struct tail_ottl_config;

struct tail_conditions {
    struct ottl_plan *plan;
    struct ottl_runner runner;
};

/* NULL: the configuration is wrong; the error has the steps below ottl_condition. */
struct tail_conditions *tail_conditions_create(const struct tail_ottl_config *config,
                                               struct error *error);
/* NULL is a no-op. */
void tail_conditions_destroy(struct tail_conditions *conditions);
