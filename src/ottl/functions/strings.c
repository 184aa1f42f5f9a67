/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of strings. Runs on the processor's thread. */
#include "src/base/pattern.h"
#include "src/ottl/functions/regex.h"
#include "src/ottl/functions/tables.h"

static bool prepare_is_match(const struct ottl_preparation *preparation, void **ret_state,
                             struct error *error)
{
    struct pattern *pattern;
    bool is_fine = ottl_prepare_pattern(preparation, 1, &pattern, error);
    *ret_state = pattern;
    return is_fine;
}

static void release_pattern(void *state)
{
    pattern_destroy(state);
}

/* nil matches nothing. */
static bool is_match(struct ottl_call *call, struct ottl_value *ret)
{
    const struct pattern *pattern;
    struct pattern *owned;
    struct slice text;
    bool has;
    if (!ottl_get_pattern(call, 1, call->state, &pattern, &owned))
        return false;
    bool is_fine = ottl_get_string_like(call, 0, &text, &has);
    if (is_fine)
        *ret = ottl_bool(has && pattern_matches(pattern, text));
    pattern_destroy(owned);
    return is_fine;
}

static const struct ottl_parameter is_match_parameters[] = {
    {"Target", OTTL_STRING_LIKE, false, false},
    {"Pattern", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

static bool concat(struct ottl_call *call, struct ottl_value *ret)
{
    const unsigned count = ottl_items(call, 0);
    struct slice delimiter;
    size_t bytes = 0;
    if (!ottl_get_string(call, 1, &delimiter))
        return false;
    struct slice *texts = ottl_alloc(call, count * sizeof(*texts));
    if (texts == NULL)
        return false;
    for (unsigned i = 0; i < count; i++) {
        bool has;
        if (!ottl_get_item_string_like(call, 0, i, &texts[i], &has))
            return false;
        if (!has)
            texts[i] = slice_of_text("<nil>");
        bytes += texts[i].size + (i > 0 ? delimiter.size : 0);
    }
    uint8_t *at = ottl_alloc(call, bytes);
    if (at == NULL)
        return false;
    *ret = ottl_string(slice_of(at, bytes));
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && delimiter.size > 0) {
            memcpy(at, delimiter.data, delimiter.size);
            at += delimiter.size;
        }
        if (texts[i].size > 0)
            memcpy(at, texts[i].data, texts[i].size);
        at += texts[i].size;
    }
    return true;
}

static const struct ottl_parameter concat_parameters[] = {
    {"Vals", OTTL_STRING_LIKE, false, true},
    {"Delimiter", OTTL_STRINGS_ONLY, false, false},
    {.name = NULL}};

const struct ottl_function ottl_string_functions[] = {
    {.name = "IsMatch",
     .parameters = is_match_parameters,
     .evaluate = is_match,
     .prepare = prepare_is_match,
     .release = release_pattern},
    {.name = "Concat", .parameters = concat_parameters, .evaluate = concat},
    {.name = NULL},
};
