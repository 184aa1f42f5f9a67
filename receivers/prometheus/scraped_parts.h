/* SPDX-License-Identifier: Apache-2.0 */
/* What scraped_metrics.c (collects samples) and scraped_request.c (writes the request) share: what
 * lies in the arena of a struct scraped_metrics. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/otlp/wire.h"
#include "src/prometheus/exposition_reader.h"

struct scraped_metrics;

struct metadata {
    struct slice name;
    enum exposition_metric_type type;
    struct slice help;
    struct slice unit;
    bool is_former; /* of an earlier scrape */
};

struct attribute {
    struct slice key;
    struct slice value;
    uint64_t list; /* id of its list */
    struct attribute *next;
};

struct attribute_list {
    struct attribute *first;
    struct attribute *last;
    uint64_t id; /* of a list that is not empty */
};

struct scope {
    struct scraped_resource *resource;
    struct slice name;
    struct slice version;
    struct slice schema_url;
    uint64_t attributes_hash; /* 0: it has no labels with attributes */
    struct attribute_list attributes;
    struct scraped_family *families;
    struct scraped_family *last_family;
    struct scope *next;
    uint64_t bytes; /* of the encoded ScopeMetrics; 0: it has no points */
};

struct scraped_resource {
    struct slice job;
    struct slice instance;
    struct attribute_list attributes;
    struct scope *scopes;
    struct scope *last_scope;
    struct scraped_resource *next;
    uint64_t bytes; /* of the encoded ResourceMetrics; 0: it has no points */
};

struct scraped_family {
    struct scope *scope;
    struct slice name;
    struct metadata metadata;
    enum metric_kind kind;
    bool is_monotonic;
    bool is_empty; /* a type that OTLP has no form for: its samples become a gauge */
    struct group *groups;
    struct group *last_group;
    struct scraped_family *next;
    uint64_t data_bytes; /* of the encoded Gauge, Sum or the like; 0: it has no points */
    uint64_t bytes;      /* of the encoded Metric */
};

/* A bucket of a histogram (le), or a quantile of a summary. */
struct boundary {
    double boundary;
    double value;
    struct boundary *next;
};

struct exemplar {
    struct slice whole; /* the encoded field, tag and all */
    struct exemplar *next;
};

struct group {
    struct scraped_family *family;
    struct group *next;
    struct slice attributes; /* encoded fields, tags and all */
    int64_t time_ms;
    double value;
    double count;
    double sum;
    double created_s; /* Unix time; 0: unknown */
    struct boundary *boundaries;
    struct boundary *last_boundary;
    size_t boundaries_count;
    struct exemplar *exemplars;
    struct exemplar *last_exemplar;
    uint64_t exemplars_bytes;
    bool has_value;
    bool has_count;
    bool has_sum;
    uint64_t bytes; /* of the encoded point; 0: it is none */
};

/* Zeroed; NULL: no memory, which is noted. */
void *scraped_take(struct scraped_metrics *metrics, size_t size);

static inline uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline bool is_stale(double value)
{
    return double_bits(value) == EXPOSITION_STALE_BITS;
}

static inline uint64_t unix_ns(int64_t time_ms)
{
    bool is_valid = time_ms > 0 && time_ms < INT64_MAX / (int64_t)NS_PER_MS;
    return is_valid ? (uint64_t)time_ms * NS_PER_MS : 0;
}

static inline bool ends_with(struct slice text, const char *suffix)
{
    size_t size = strlen(suffix);
    return text.size >= size && memcmp(text.data + text.size - size, suffix, size) == 0;
}

/* Fields of opentelemetry/proto/common/v1/common.proto. */
enum {
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_VALUE_STRING = 1,
    FIXED64_FIELD_BYTES = 9, /* with a number below 16 */
};

static inline size_t attribute_bytes(struct slice key, struct slice value)
{
    return wire_field_size(KEY_VALUE_KEY, key.size) +
           wire_field_size(KEY_VALUE_VALUE, wire_field_size(ANY_VALUE_STRING, value.size));
}

static inline void write_attribute(struct wire_writer *writer, uint32_t number, struct slice key,
                                   struct slice value)
{
    wire_write_header(writer, number, attribute_bytes(key, value));
    wire_write_bytes(writer, KEY_VALUE_KEY, key);
    wire_write_header(writer, KEY_VALUE_VALUE, wire_field_size(ANY_VALUE_STRING, value.size));
    wire_write_bytes(writer, ANY_VALUE_STRING, value);
}
