/* SPDX-License-Identifier: Apache-2.0 */
/* Names of metrics and labels, from OTLP's to Prometheus's: OpenTelemetry specification,
 * "Prometheus and OpenMetrics Compatibility", with the details of the Go collector 0.155
 * (prometheus/otlptranslator 1.0); and how Prometheus escapes names for clients that do not take
 * UTF-8 (prometheus/common, model). Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"

/* How names are translated. */
struct prometheus_naming {
    const char *name_space; /* in front of metrics' names, as it was configured; "": none */
    bool has_suffixes;      /* unit and "_total" are added */
    bool has_utf8;          /* characters that are not a-z, 0-9, "_" or ":" are kept */
};

/* Room for the name of a metric. */
size_t prometheus_metric_name_max(const struct prometheus_naming *naming,
                                  const struct metric *metric);
/* Writes it. Returns its size; 0: nothing that could be a name is left. */
size_t prometheus_metric_name(const struct prometheus_naming *naming, const struct metric *metric,
                              char *text);

/* Room for the name of a label. */
size_t prometheus_label_name_max(struct slice key);
/* Writes it. Returns its size; 0: the key is empty, or only underscores are left. */
size_t prometheus_label_name(const struct prometheus_naming *naming, struct slice key, char *text);
/* The same as remote write has it (LabelNamer without PreserveMultipleUnderscores, with
 * UnderscoreLabelSanitization): a run of other characters is one "_"; in front of a digit stands
 * "key_", in front of one "_" "key"; reserved names, __a__, stay reserved. */
size_t prometheus_label_name_joined(struct slice key, char *text);

/* Room for a unit in words, and the unit, "bytes_per_second", as metadata has it. Returns its size,
 * which may be 0. */
size_t prometheus_unit_max(struct slice unit);
size_t prometheus_unit(const struct prometheus_naming *naming, struct slice unit, char *text);

/* Whether every client takes the name: [a-zA-Z_:][a-zA-Z0-9_:]*. */
bool prometheus_name_is_plain(struct slice name);

/* What a client takes instead of other names: the parameter "escaping" of Accept. */
enum prometheus_escaping {
    ESCAPING_NONE,        /* allow-utf-8 */
    ESCAPING_UNDERSCORES, /* underscores */
    ESCAPING_DOTS,        /* dots */
    ESCAPING_VALUES,      /* values */
};

/* Room for the escaped form of a name. */
size_t prometheus_escape_max(struct slice name);
/* Writes it; a plain name stays as it is. Returns its size. */
size_t prometheus_escape(enum prometheus_escaping escaping, struct slice text, char *escaped);
