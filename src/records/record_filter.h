/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the spans, log records and metrics that `include` matches and `exclude` does not, as the
 * older keys of the Go collector's filter say (contrib 0.155, processor/filterprocessor). What is
 * kept does not change. */
#pragma once

#include "src/otlp/attributes/attribute_list.h"
#include "src/records/record_edit.h"
#include "src/records/record_match.h"

struct error;

/* Properties of log records and metrics, under the names that they have here. Those of spans are
 * struct record_match_config. */
struct log_filter_severity_config {
    const char *min;
    bool match_undefined;
};

struct log_filter_config {
    const char *match_type;
    struct config_sections resource_attributes; /* struct record_match_attribute_config */
    struct config_sections record_attributes;   /* the same */
    struct config_texts severity_texts;
    bool has_severity_number;
    struct log_filter_severity_config severity_number;
    struct config_texts bodies;
};

struct metric_filter_config {
    const char *match_type;
    bool has_cache;
    struct record_match_cache_config cache;
    struct config_texts metric_names;
    struct config_texts expressions;
    struct config_sections resource_attributes;
};

extern const struct config_field log_filter_fields[];
extern const struct config_field metric_filter_fields[];

/* Compile the properties on the main thread, at start. False: they are not allowed. *ret_matcher is
 * NULL when they choose nothing; the caller destroys it. */
bool span_filter_compile(const struct record_match_config *config,
                         struct record_matcher **ret_matcher, struct error *error);
bool log_filter_compile(const struct log_filter_config *config, struct record_matcher **ret_matcher,
                        struct error *error);
bool metric_filter_compile(const struct metric_filter_config *config,
                           struct record_matcher **ret_matcher, struct error *error);

/* One per thread. */
struct record_filter {
    const struct record_matcher *include; /* borrowed; NULL: all; not both */
    const struct record_matcher *exclude; /* borrowed; NULL: none */
    enum signal_kind signal;
    bool prunes; /* messages without records go: always, unless resources of metrics alone match */
    struct attribute_list list; /* of the resource or record at hand */
    bool takes_resource;        /* the resource and the scope at hand */
    bool takes_scope;
    bool excludes_resource;
    bool excludes_scope;
};

void record_filter_init(struct record_filter *filter, enum signal_kind signal,
                        const struct record_matcher *include, const struct record_matcher *exclude,
                        struct budget *budget);
void record_filter_fini(struct record_filter *filter);
/* As record_edit_run. */
struct batch *record_filter_run(struct record_filter *filter, struct record_edit *edit,
                                struct batch *batch);
