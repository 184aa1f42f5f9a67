/* SPDX-License-Identifier: Apache-2.0 */
/* The policy ottl_condition: OTTL conditions on spans and their events. One per lane, which alone
 * tests them. What records need is charged to the budget, beyond its limit if need be, since no
 * decision can be refused (src/ottl/ottl_runner.h has the bound), and freed when a request, or the
 * part of it that a turn reads, has been tested. */
#pragma once

#include "src/ottl/ottl_runner.h"

struct budget;
struct error;
struct tail_ottl_config;

struct tail_conditions {
    struct ottl_plan *plan;
    struct ottl_runner runner;
};

/* NULL: the configuration is wrong; the error has the steps below ottl_condition. budget may be
 * NULL. */
struct tail_conditions *tail_conditions_create(const struct tail_ottl_config *config,
                                               struct budget *budget, struct error *error);
/* NULL is a no-op. */
void tail_conditions_destroy(struct tail_conditions *conditions);
