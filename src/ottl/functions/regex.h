/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns as arguments: compiled once when they are literals. Others are texts of records: what
 * they take is counted, and they have limits. */
#pragma once

#include "src/ottl/ottl_function.h"
#include "src/ottl/ottl_patterns.h"

struct pattern;

/* The pattern of one call. */
struct ottl_regex {
    const struct pattern *pattern;
    struct ottl_made_pattern made; /* none: the argument is constant */
};

/* For prepare: compiles the argument if it is constant; *ret is NULL otherwise. */
bool ottl_prepare_pattern(const struct ottl_preparation *preparation, unsigned parameter,
                          struct pattern **ret, struct error *error);
/* The argument's value compiled, as a pattern or as a glob. */
bool ottl_make_pattern(struct ottl_call *call, unsigned parameter, bool is_glob,
                       struct ottl_regex *ret);
/* Keeps what _make_pattern made. */
void ottl_keep_pattern(struct ottl_call *call, struct ottl_regex *regex);
bool ottl_count_made_search(struct ottl_call *call, const struct ottl_regex *regex, size_t bytes,
                            size_t groups);

/* For evaluate: `prepared`, or the argument's value compiled. The caller gives it back in any case.
 */
static inline bool ottl_get_pattern(struct ottl_call *call, unsigned parameter,
                                    const struct pattern *prepared, bool is_glob,
                                    struct ottl_regex *ret)
{
    ret->pattern = prepared;
    ret->made.pattern = NULL;
    return prepared != NULL || ottl_make_pattern(call, parameter, is_glob, ret);
}

static inline void ottl_release_pattern(struct ottl_call *call, struct ottl_regex *regex)
{
    if (regex->made.pattern != NULL)
        ottl_keep_pattern(call, regex);
}

/* Before each search in so many bytes, for so many groups beside the whole match. False: all
 * searches for the request take too long, and the error is set. */
static inline bool ottl_count_search(struct ottl_call *call, const struct ottl_regex *regex,
                                     size_t bytes, size_t groups)
{
    return regex->made.pattern == NULL || ottl_count_made_search(call, regex, bytes, groups);
}

/* After a failure: whether that was the reason, which then is the error again. */
bool ottl_has_searched_too_long(struct ottl_call *call, const struct ottl_regex *regex);
