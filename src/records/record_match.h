/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of `include` and `exclude`, which choose spans, log records and metrics: the keys,
 * the meanings and the error messages of the Go collector. Compiled ones are immutable; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/config/field.h"

struct arena;
struct attribute_list;
struct error;
struct metric_expression_point;

struct record_match_cache_config {
    bool enabled;
    int64_t entries;
};

struct record_match_severity_config {
    int64_t min;
    bool match_undefined;
};

struct record_match_attribute_config {
    const char *key;
    const struct config_value *value;
};

struct record_match_config {
    const char *match_type;
    bool has_metric_resources; /* of metrics, resources match as well; names may be missing */
    bool has_cache;            /* checked only: nothing is cached */
    struct record_match_cache_config cache;
    struct config_texts services;
    struct config_texts span_names;
    struct config_texts span_kinds;
    struct config_texts log_bodies;
    struct config_texts log_severity_texts;
    bool has_severity_number;
    struct record_match_severity_config severity_number;
    struct config_texts metric_names;
    struct config_texts expressions;   /* of metrics, with match_type expr; not a key */
    struct config_sections attributes; /* struct record_match_attribute_config */
    struct config_sections resources;  /* the same */
    struct config_sections libraries;  /* struct record_match_library_config */
};

extern const struct config_field record_match_fields[];
/* Of struct record_match_attribute_config and struct record_match_cache_config. */
extern const struct config_field record_match_attribute_fields[];
extern const struct config_field record_match_cache_fields[];

struct record_matcher;

/* NULL when the properties are not allowed for that signal. */
struct record_matcher *record_matcher_create(const struct record_match_config *config,
                                             enum signal_kind signal, struct error *error);
/* NULL is a no-op. */
void record_matcher_destroy(struct record_matcher *matcher);

/* A record matches when all of these are true; each depends on what it is given alone. The arena is
 * for values as strings; without room in it nothing matches. */
bool record_matcher_takes_resource(const struct record_matcher *matcher, struct arena *arena,
                                   const struct attribute_list *attributes);
/* content of a Scope… message. */
bool record_matcher_takes_scope(const struct record_matcher *matcher, struct slice content);
/* content of a Span, LogRecord or Metric; attributes: its own, if the matcher needs them. */
bool record_matcher_takes_record(const struct record_matcher *matcher, struct arena *arena,
                                 struct slice content, const struct attribute_list *attributes);
/* For matchers of metrics with expressions, which choose by data points and not by takes_record: a
 * metric matches when one of its points does. labels: the point's attributes, if they are needed.
 */
bool record_matcher_has_expressions(const struct record_matcher *matcher);
bool record_matcher_needs_labels(const struct record_matcher *matcher);
/* How often they may read the metric's name for a point. */
unsigned record_matcher_names(const struct record_matcher *matcher);
bool record_matcher_takes_point(const struct record_matcher *matcher,
                                const struct metric_expression_point *point);
/* Properties that choose nothing, neither as include nor as exclude: of metrics, without names. */
bool record_matcher_is_void(const struct record_matcher *matcher);
/* Whether it looks at attributes of resources, or of records, at all. */
bool record_matcher_needs_resource(const struct record_matcher *matcher);
bool record_matcher_needs_attributes(const struct record_matcher *matcher);
