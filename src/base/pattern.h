/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions in Go's syntax, matched in linear time and bounded memory (RE2). A pattern is
 * immutable once made and may be used on any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

#ifdef __cplusplus
extern "C" {
#endif

struct error;
struct pattern;

/* NULL: text is not a valid pattern; error has the reason. */
struct pattern *pattern_create(const char *text, struct error *error);
/* The same for a text that comes with data: its program is far smaller at most. *ret_cost: what
 * that took beside pattern_cost, in about nanoseconds. */
struct pattern *pattern_create_small(const char *text, uint64_t *ret_cost, struct error *error);
/* About how many nanoseconds pattern_create_small may take for text before it has the program. */
uint64_t pattern_cost(struct slice text);
/* NULL is a no-op. */
void pattern_destroy(struct pattern *pattern);
/* Whether it matches anywhere in text. */
bool pattern_matches(const struct pattern *pattern, struct slice text);
/* Instructions of its program, each of which may have to look at each byte of a text. */
size_t pattern_steps(const struct pattern *pattern);
/* Number of groups, named or not, without the whole match. */
size_t pattern_groups(const struct pattern *pattern);
/* NULL when the group has no name. The first group is 1. */
const char *pattern_group_name(const struct pattern *pattern, size_t group);
/* Like pattern_matches; fills ret_groups with count slices of text, the first being group 1. Groups
 * that did not take part are empty. */
bool pattern_find(const struct pattern *pattern, struct slice text, struct slice *ret_groups,
                  size_t count);

/* Finds the first match at or after from. Fills ret_groups with count slices of text, the first
 * being the whole match (group 0); groups that did not take part are empty. count is at most
 * pattern_groups + 1. */
bool pattern_find_from(const struct pattern *pattern, struct slice text, size_t from,
                       struct slice *ret_groups, size_t count);

/* Templates, as Go's Regexp.Expand takes them: $1, ${1}, $name and ${name} stand for groups (0 is
 * the whole match), $$ for a dollar; groups that the pattern does not have are empty, and a dollar
 * without a name is a dollar. */
struct pattern_template;
/* Any text will do. */
struct pattern_template *pattern_template_create(const struct pattern *pattern, const char *text);
/* NULL is a no-op. */
void pattern_template_destroy(struct pattern_template *form);
/* Number of groups that expanding needs, from group 0 on; 0: the template is constant. */
size_t pattern_template_groups(const struct pattern_template *form);
/* Writes the template, with groups as pattern_find_from filled them (at least
 * pattern_template_groups), to room. Returns its size; above bytes_max room is not to be used. */
size_t pattern_template_expand(const struct pattern_template *form, const struct slice *groups,
                               void *room, size_t bytes_max);

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
