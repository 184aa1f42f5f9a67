/* SPDX-License-Identifier: Apache-2.0 */
/* Runs when the configuration is read, and on the processor's thread. */
#include "src/ottl/functions/regex.h"

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/ottl/functions/glob.h"
#include "src/ottl/ottl_node.h"

/* Of patterns that are no literals. */
enum { PATTERN_BYTES_MAX = 1024 };

/* NULL: not a pattern. The caller frees it with mem_free. */
static char *expression_of(struct slice text, struct error *error)
{
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL) {
        error_set(error, "a pattern with a zero byte");
        return NULL;
    }
    char *copy = mem_alloc(text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}

bool ottl_prepare_pattern(const struct ottl_preparation *preparation, unsigned parameter,
                          struct pattern **ret, struct error *error)
{
    struct ottl_value value;
    *ret = NULL;
    if (!ottl_is_constant(preparation, parameter, &value) || value.type != OTTL_STRING)
        return true;
    char *expression = expression_of(ottl_slice(&value), error);
    if (expression != NULL)
        *ret = pattern_create(expression, error);
    mem_free(expression);
    return *ret != NULL || error_prefix(error, "the pattern is not valid");
}

static bool fail_pattern(struct ottl_call *call, struct slice text, bool is_glob,
                         const struct error *error)
{
    return is_glob ? ottl_fail(call, "the pattern \"%.*s\" is not valid: %s", (int)text.size,
                               (const char *)text.data, error->text)
                   : ottl_fail(call, "%s", error->text);
}

/* Counts what that takes: first what the text lets one expect, then what the program took. */
static bool compile(struct ottl_call *call, struct slice text, bool is_glob,
                    struct ottl_made_pattern *ret)
{
    struct error error;
    uint64_t cost = 0;
    char *expression = is_glob ? glob_expression(text, &error) : expression_of(text, &error);
    if (expression == NULL)
        return fail_pattern(call, text, is_glob, &error);
    if (!ottl_spend(call, pattern_cost(slice_of_text(expression)))) {
        mem_free(expression);
        return false;
    }
    struct pattern *pattern = pattern_create_small(expression, &cost, &error);
    mem_free(expression);
    if (!ottl_spend(call, cost)) {
        pattern_destroy(pattern);
        return false;
    }
    if (pattern == NULL)
        return fail_pattern(call, text, is_glob, &error);
    *ret = (struct ottl_made_pattern){.pattern = pattern,
                                      .text = mem_alloc(text.size + 1),
                                      .size = text.size,
                                      .is_glob = is_glob};
    if (text.size > 0)
        memcpy(ret->text, text.data, text.size);
    return true;
}

bool ottl_make_pattern(struct ottl_call *call, unsigned parameter, bool is_glob,
                       struct ottl_regex *ret)
{
    struct slice text;
    if (!ottl_get_string(call, parameter, &text))
        return false;
    if (text.size > PATTERN_BYTES_MAX)
        return ottl_fail(call, "a pattern of more than %d bytes", PATTERN_BYTES_MAX);
    if (!ottl_patterns_take(&call->run->patterns, text, is_glob, &ret->made) &&
        !compile(call, text, is_glob, &ret->made))
        return false;
    ret->pattern = ret->made.pattern;
    return true;
}

void ottl_keep_pattern(struct ottl_call *call, struct ottl_regex *regex)
{
    ottl_patterns_put(&call->run->patterns, regex->made);
}

bool ottl_count_made_search(struct ottl_call *call, const struct ottl_regex *regex, size_t bytes,
                            size_t groups)
{
    enum { GROUPS_PER_STEP = 16 }; /* a step of them copies their places */
    return ottl_spend(call, (uint64_t)bytes * pattern_steps(regex->pattern) *
                                (1 + groups / GROUPS_PER_STEP));
}

/* Once nothing is left, to spend nothing fails, too. */
bool ottl_has_searched_too_long(struct ottl_call *call, const struct ottl_regex *regex)
{
    return regex->made.pattern != NULL && !ottl_spend(call, 0);
}
