/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what Prometheus scrapes: its text format 0.0.4, OpenMetrics 0.0.1 and 1.0.0, or protobuf
 * (io.prometheus.client.MetricFamily, each behind its size), byte for byte as the Go client does
 * (prometheus/common, expfmt). Plain values; any thread, one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/prometheus/prometheus_names.h"

struct budget;

enum exposition_form {
    EXPOSITION_TEXT,
    EXPOSITION_OPENMETRICS_0,
    EXPOSITION_OPENMETRICS_1,
    EXPOSITION_PROTOBUF,
};

struct exposition_format {
    enum exposition_form form;
    enum prometheus_escaping escaping;
};

/* What the client prefers by its header Accept (RFC 9110 §12.5.1); empty: text. */
struct exposition_format exposition_negotiate(struct slice accept, bool has_openmetrics);

enum { EXPOSITION_TYPE_BYTES_MAX = 160 };
/* The media type. */
void exposition_content_type(const struct exposition_format *format,
                             char text[EXPOSITION_TYPE_BYTES_MAX]);

/* The numbers of io.prometheus.client.MetricType. */
enum exposition_type {
    EXPOSITION_COUNTER = 0,
    EXPOSITION_GAUGE = 1,
    EXPOSITION_SUMMARY = 2,
    EXPOSITION_HISTOGRAM = 4,
};

struct exposition_family {
    struct slice name;
    struct slice help;
    enum exposition_type type;
};

struct exposition_exemplar {
    double value;
    uint64_t time_ns; /* Unix time */
    uint8_t trace_id[16];
    uint8_t span_id[8];
    bool has_trace_id;
    bool has_span_id;
};

/* A bucket of a histogram: values up to its bound; or a quantile of a summary with its value. */
struct exposition_bucket {
    double bound;
    union {
        uint64_t count; /* cumulative */
        double value;
    };
    const struct exposition_exemplar *exemplar; /* NULL: none */
};

/* Spans of buckets that follow each other in a native histogram, and their counts. */
struct exposition_native {
    int32_t schema;
    double zero_threshold;
    uint64_t zero_count;
    const struct exposition_native_bucket {
        int32_t index;
        uint64_t count;
    } * negative, *positive; /* ascending; an index occurs once */
    size_t negative_count;
    size_t positive_count;
};

/* One series. Labels as in the text format, sorted by name: `a="b",c="d"`. */
struct exposition_sample {
    struct slice labels;
    bool has_plain_labels; /* every client takes their names */
    bool has_time;
    uint64_t time_ns;    /* Unix time */
    uint64_t created_ns; /* 0: unknown; only in protobuf */
    double value;        /* counter, gauge; or the sum of a summary or histogram */
    uint64_t count;      /* summary, histogram */
    const struct exposition_bucket *buckets; /* ascending, or quantiles; without +Inf unless it has
                                                an exemplar */
    size_t buckets_count;
    const struct exposition_native *native;      /* NULL: none */
    const struct exposition_exemplar *exemplars; /* counter: the last one is shown */
    size_t exemplars_count;
};

struct exposition {
    struct exposition_format format;
    struct budget *budget; /* NULL: not charged */
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool has_failed;  /* no memory: nothing more is written */
    size_t family_at; /* protobuf: where the current family begins */
    struct exposition_family family;
    char *line_name; /* of the family, as lines begin with it, without a closing quote */
    size_t line_name_bytes;
    bool is_quoted; /* it has quotes, inside the braces */
};

void exposition_init(struct exposition *exposition, const struct exposition_format *format,
                     struct budget *budget);
void exposition_fini(struct exposition *exposition);
/* Makes room for about so many bytes at once, if the budget allows it. */
void exposition_expect(struct exposition *exposition, size_t bytes);
/* Begins a family, whose name and help stay valid until the next one, or the end. */
void exposition_begin(struct exposition *exposition, const struct exposition_family *family);
void exposition_add(struct exposition *exposition, const struct exposition_sample *sample);
/* Ends the last family, and the whole. */
void exposition_end(struct exposition *exposition);

/* Room for a label in the text format, and the label, without a comma. Returns its size. */
size_t exposition_label_max(struct slice name, struct slice value);
size_t exposition_label(struct slice name, struct slice value, char *text);
/* A value as it stands between the quotes, of at most twice its size. Returns its size. */
size_t exposition_escape(struct slice value, char *text);
/* Reads the first label, of a text that exposition_label wrote, and cuts it off with its comma.
 * What is escaped stays escaped. False: there is none. */
bool exposition_label_next(struct slice *labels, struct slice *ret_name, struct slice *ret_value);

enum { EXPOSITION_NUMBER_BYTES_MAX = 42 };
/* Writes a number as OpenMetrics has it where it is not a count: "1.0", "0.25", "1e+06", "+Inf",
 * "NaN". Returns its size. */
size_t exposition_openmetrics_number(double value, char text[EXPOSITION_NUMBER_BYTES_MAX]);
