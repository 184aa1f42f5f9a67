/* SPDX-License-Identifier: Apache-2.0 */
/* The editor of the connector routing: its statements are "route() where" and a condition. It
 * changes nothing. */
#include "src/ottl/functions/tables.h"

static bool route(struct ottl_call *call, struct ottl_value *ret)
{
    (void)call;
    (void)ret;
    return true;
}

const struct ottl_function ottl_route_functions[] = {
    {.name = "route", .evaluate = route, .users = OTTL_FOR_ROUTING},
    {.name = NULL},
};
