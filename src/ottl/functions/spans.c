/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of spans, which look at the record itself. Runs on the processor's thread. */
#include "src/ottl/functions/tables.h"
#include "src/ottl/ottl_access.h"

enum { PARENT_SPAN_ID = 4 };

static bool is_root_span(struct ottl_call *call, struct ottl_value *ret)
{
    static const struct ottl_path_row row = {.field = PARENT_SPAN_ID};
    static const struct ottl_path path = {.row = &row, .context = OTTL_SPAN, .slot = -1};
    static const uint8_t zero[OTTL_SPAN_ID_BYTES];
    struct ottl_value id;
    if (!ottl_get_span_id(call->run, &path, &id))
        return false;
    *ret = ottl_bool(slice_equal(ottl_slice(&id), slice_of(zero, sizeof(zero))));
    return true;
}

const struct ottl_function ottl_span_functions[] = {
    {.name = "IsRootSpan",
     .evaluate = is_root_span,
     .contexts = OTTL_CONTEXT_BIT(OTTL_SPAN),
     .fields = 1u << PARENT_SPAN_ID},
    {.name = NULL},
};
