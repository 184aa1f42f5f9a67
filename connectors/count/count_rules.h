/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the connector count (contrib, connector/countconnector), read and compiled for one
 * signal. Made when the configuration is read, then constant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/config/field.h"
#include "src/ottl/ottl_plan.h"

struct error;

/* What is counted. */
enum count_kind {
    COUNT_SPANS,
    COUNT_SPAN_EVENTS,
    COUNT_METRICS,
    COUNT_DATA_POINTS,
    COUNT_LOGS,
    COUNT_PROFILES,
    COUNT_KINDS,
};
enum { COUNT_KINDS_OF_SIGNAL = 2 };

struct count_key_config {
    const char *name;
    const struct config_value *standard; /* NULL or null: none */
};

struct count_metric_config {
    const char *name; /* first: the key of the map */
    const char *description;
    struct config_texts conditions;
    struct config_sections attributes; /* struct count_key_config */
};

struct count_config {
    struct config_sections metrics[COUNT_KINDS]; /* struct count_metric_config */
};
extern const struct config_field count_fields[];

/* An attribute of a metric: of the record, else of its scope, else of its Resource. */
enum count_source { COUNT_OF_RECORD, COUNT_OF_SCOPE, COUNT_OF_RESOURCE, COUNT_SOURCES };

struct count_key {
    struct slice name;
    bool has_standard;
    struct slice standard; /* an encoded AnyValue; owned */
    uint32_t slots[COUNT_SOURCES];
    uint32_t place; /* among all keys of the signal */
};

struct count_rule {
    struct slice name;
    struct slice description;
    enum ottl_context context;
    const struct ottl_sequence *conditions; /* NULL: none */
    bool is_never; /* an attribute is named twice: as in Go, nothing is counted */
    struct count_key *keys;
    size_t keys_count;
};

struct count_rules {
    struct ottl_plan *plan;
    struct count_rule *rules; /* of the first context, then of the second */
    size_t count;
    enum ottl_context contexts[COUNT_KINDS_OF_SIGNAL];
    size_t contexts_count;
    size_t first[COUNT_KINDS_OF_SIGNAL + 1]; /* of each context's rules; the last: count */
    size_t keys_count;                       /* of all rules */
};

/* Borrows the configuration. On failure, too, _fini is due. */
bool count_rules_init(struct count_rules *rules, const struct count_config *config,
                      enum signal_kind signal, struct error *error);
void count_rules_fini(struct count_rules *rules);
