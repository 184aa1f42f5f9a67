/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in Go's syntax, matched in linear time and bounded memory (RE2). A pattern is
 * immutable once made and may be used on any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct error;
struct pattern;

/* NULL: text is not a valid pattern; error has the reason. */
struct pattern *pattern_create(const char *text, struct error *error);
/* NULL is a no-op. */
void pattern_destroy(struct pattern *pattern);
/* Whether it matches anywhere in text. */
bool pattern_matches(const struct pattern *pattern, struct slice text);
/* Number of groups, named or not, without the whole match. */
size_t pattern_groups(const struct pattern *pattern);
/* NULL when the group has no name. The first group is 1. */
const char *pattern_group_name(const struct pattern *pattern, size_t group);
/* Like pattern_matches; fills ret_groups with count slices of text, the first being group 1. Groups
 * that did not take part are empty. */
bool pattern_find(const struct pattern *pattern, struct slice text, struct slice *ret_groups,
                  size_t count);

/* Replacements, in Go's syntax: $1, ${1} and ${name} stand for groups, $$ for a dollar. */
struct pattern_replacement;
/* NULL: text names a group that the pattern does not have; error has the reason. */
struct pattern_replacement *pattern_replacement_create(const struct pattern *pattern,
                                                       const char *text, struct error *error);
/* NULL is a no-op. */
void pattern_replacement_destroy(struct pattern_replacement *replacement);
/* Writes text with every match of the pattern (the one given to _create) replaced to room, cut at
 * bytes_max. False: no match. */
bool pattern_replace(const struct pattern *pattern, const struct pattern_replacement *replacement,
                     struct slice text, void *room, size_t bytes_max, size_t *ret_size);

#ifdef __cplusplus
}
#endif
