/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of contrib that are left out: refused by name when the configuration is read, whatever
 * their arguments are. */
#include "src/base/error.h"
#include "src/ottl/functions/tables.h"

static bool refuse(const struct ottl_preparation *preparation, void **ret_state,
                   struct error *error)
{
    (void)preparation;
    *ret_state = NULL;
    return error_set(error, "this function is not supported; remove the statement, or do its work "
                            "in a collector that has it") ||
           error_unsupported(error);
}

static bool refuse_grok(const struct ottl_preparation *preparation, void **ret_state,
                        struct error *error)
{
    (void)preparation;
    *ret_state = NULL;
    return error_set(error, "Grok patterns are not supported; write the pattern as a regular "
                            "expression with named groups for ExtractPatterns") ||
           error_unsupported(error);
}

static bool fail(struct ottl_call *call, struct ottl_value *ret)
{
    (void)ret;
    return ottl_fail(call, "%s is not supported", call->function->name);
}

const struct ottl_function ottl_unsupported_functions[] = {
    {.name = "ExtractGrokPatterns", .evaluate = fail, .prepare = refuse_grok},
    {.name = "UserAgent", .evaluate = fail, .prepare = refuse},
    {.name = "ParseXML", .evaluate = fail, .prepare = refuse},
    {.name = "ParseSimplifiedXML", .evaluate = fail, .prepare = refuse},
    {.name = "GetXML", .evaluate = fail, .prepare = refuse},
    {.name = "InsertXML", .evaluate = fail, .prepare = refuse},
    {.name = "RemoveXML", .evaluate = fail, .prepare = refuse},
    {.name = "ConvertAttributesToElementsXML", .evaluate = fail, .prepare = refuse},
    {.name = "ConvertTextToElementsXML", .evaluate = fail, .prepare = refuse},
    {.name = NULL},
};
