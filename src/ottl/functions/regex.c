/* SPDX-License-Identifier: Apache-2.0 */
/* Runs when the configuration is read, and on the processor's thread. */
#include "src/ottl/functions/regex.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"

/* NULL: not a pattern. */
static struct pattern *compile(struct slice text, struct error *error)
{
    char *copy = mem_alloc(text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    struct pattern *pattern = NULL;
    if (memchr(copy, '\0', text.size) != NULL)
        error_set(error, "a pattern with a zero byte");
    else
        pattern = pattern_create(copy, error);
    mem_free(copy);
    return pattern;
}

bool ottl_prepare_pattern(const struct ottl_preparation *preparation, unsigned parameter,
                          struct pattern **ret, struct error *error)
{
    struct ottl_value value;
    *ret = NULL;
    if (!ottl_is_constant(preparation, parameter, &value) || value.type != OTTL_STRING)
        return true;
    *ret = compile(ottl_slice(&value), error);
    return *ret != NULL || error_prefix(error, "the pattern is not valid");
}

bool ottl_get_pattern(struct ottl_call *call, unsigned parameter, struct pattern *prepared,
                      const struct pattern **ret, struct pattern **ret_owned)
{
    struct slice text;
    struct error error;
    *ret_owned = NULL;
    *ret = prepared;
    if (prepared != NULL)
        return true;
    if (!ottl_get_string(call, parameter, &text))
        return false;
    *ret = *ret_owned = compile(text, &error);
    return *ret != NULL || ottl_fail(call, "%s", error.text);
}
