/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the values in queries of databases: in attributes with certain keys, in bodies of log
 * records, and in names of spans. Immutable; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"
#include "src/config/field.h"

struct arena;
struct query_sanitizer;

/* In the order in which the Go collector asks them. */
enum query_language {
    QUERY_SQL,
    QUERY_REDIS,
    QUERY_VALKEY,
    QUERY_MEMCACHED,
    QUERY_MONGO,
    QUERY_OPENSEARCH,
    QUERY_ELASTICSEARCH,
    QUERY_LANGUAGES,
};

struct query_settings {
    bool is_enabled[QUERY_LANGUAGES];
    struct config_texts attributes[QUERY_LANGUAGES];
    bool has_span_names;
};

/* NULL: no language is enabled. Copies nothing: the settings' strings outlive it. */
struct query_sanitizer *query_sanitizer_create(const struct query_settings *settings);
/* NULL is a no-op. */
void query_sanitizer_destroy(struct query_sanitizer *sanitizer);
/* Whether any attribute, or any name of a span, is looked at. NULL: none. */
bool query_sanitizer_has_attributes(const struct query_sanitizer *sanitizer);
bool query_sanitizer_has_span_names(const struct query_sanitizer *sanitizer);

/* These return text, a part of it, or bytes of the arena; "****" if that is full.
 * system: of the attributes, as db.system.name has it; empty: not known, then an attribute of a log
 * is taken for each of the languages that have its key, one after the other. */
struct slice query_sanitizer_attribute(const struct query_sanitizer *sanitizer, struct arena *arena,
                                       struct slice text, struct slice key, struct slice system,
                                       bool is_of_log);
/* All languages, one after the other. */
struct slice query_sanitizer_body(const struct query_sanitizer *sanitizer, struct arena *arena,
                                  struct slice text);
struct slice query_sanitizer_span_name(const struct query_sanitizer *sanitizer, struct arena *arena,
                                       struct slice text, struct slice system);
