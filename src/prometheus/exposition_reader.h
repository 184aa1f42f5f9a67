/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a scraped target exposes, from memory, entry by entry: the Prometheus text format
 * (0.0.4, 1.0.0) and OpenMetrics text (0.0.1, 1.0.0), as the Go collector 0.155 does
 * (prometheus/prometheus 0.312, model/textparse): the same bodies are accepted, with the same
 * entries. Linear time; allocates only when an entry has more escaped text than any before: no more
 * than the bytes of the largest series or help text, which are charged, and 54 KiB for labels.
 * Callers that may not hold their lane stop between entries. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/prometheus/prometheus_label.h"

struct budget;

enum {
    EXPOSITION_READER_LABELS_MAX = 512, /* of a sample; of an exemplar */
    EXPOSITION_READER_FAILURE_BYTES_MAX = 256,
};

enum exposition_protocol {
    EXPOSITION_PROTOCOL_NONE, /* the media type is not one of a scrape's */
    EXPOSITION_PROTOCOL_TEXT,
    EXPOSITION_PROTOCOL_OPENMETRICS,
    EXPOSITION_PROTOCOL_PROTOBUF, /* not read here */
};

/* By the response's Content-Type, "" or of size 0 when it has none: text/plain,
 * application/openmetrics-text, application/vnd.google.protobuf, whatever their valid parameters.
 * A missing, broken or other one: the fallback, which fallback_scrape_protocol configures (the
 * collector's default is the text format). */
enum exposition_protocol exposition_protocol_of(struct slice content_type,
                                                enum exposition_protocol fallback);

/* What a line "# TYPE" says. */
enum exposition_metric_type {
    EXPOSITION_METRIC_UNKNOWN, /* "untyped" in the text format, "unknown" in OpenMetrics */
    EXPOSITION_METRIC_COUNTER,
    EXPOSITION_METRIC_GAUGE,
    EXPOSITION_METRIC_HISTOGRAM,
    EXPOSITION_METRIC_SUMMARY,
    EXPOSITION_METRIC_GAUGE_HISTOGRAM, /* this and the following: OpenMetrics */
    EXPOSITION_METRIC_INFO,
    EXPOSITION_METRIC_STATE_SET,
};

enum exposition_entry_kind {
    EXPOSITION_ENTRY_TYPE,
    EXPOSITION_ENTRY_HELP,
    EXPOSITION_ENTRY_UNIT, /* OpenMetrics */
    EXPOSITION_ENTRY_SAMPLE,
};

struct exposition_read_exemplar {
    const struct prometheus_label *labels; /* with their escapes, as in Go */
    size_t labels_count;
    double value;
    bool has_timestamp;
    int64_t timestamp_ms; /* Unix time */
};

/* Text is valid until the next call for an entry, and as long as the body. Which members are set
 * depends on the kind. */
struct exposition_entry {
    enum exposition_entry_kind kind;
    size_t line; /* the first is 1 */
    /* TYPE, HELP, UNIT: of the family, in quotes as written, with its escapes. SAMPLE: of the
     * metric, unescaped; it may be empty or not UTF-8 if it was quoted, and begins with the blanks
     * before it, as in Go. Whether a name is valid is for the caller to say, after relabeling. */
    struct slice name;
    enum exposition_metric_type type; /* TYPE */
    struct slice text;                /* HELP: unescaped, UTF-8; UNIT */
    /* SAMPLE */
    struct slice series; /* name and labels as written: equal bytes are equal series */
    /* In order of appearance; names may be repeated, values are UTF-8 and may be empty. The values
     * of "le" in histograms and "quantile" in summaries (by the last TYPE) are written as
     * OpenMetrics does: "1.0" for "1". */
    const struct prometheus_label *labels;
    size_t labels_count;
    double value; /* any NaN is EXPOSITION_NAN_BITS */
    bool has_timestamp;
    bool has_exemplar;    /* OpenMetrics */
    int64_t timestamp_ms; /* Unix time */
    struct exposition_read_exemplar exemplar;
};

/* Not a number, and the mark of a series that ended (prometheus/model/value). */
#define EXPOSITION_NAN_BITS   UINT64_C(0x7ff8000000000001)
#define EXPOSITION_STALE_BITS UINT64_C(0x7ff0000000000002)

struct exposition_reader {
    /* For the owner, after exposition_reader_next returned false. */
    bool has_failed;
    size_t failure_line;                               /* the first is 1 */
    char failure[EXPOSITION_READER_FAILURE_BYTES_MAX]; /* what was found and expected; printable */
    /* The rest is for this module. */
    struct slice body;
    enum exposition_protocol protocol;
    enum exposition_metric_type type; /* of the last line "# TYPE" */
    size_t at;
    size_t line;
    bool is_done;
    struct prometheus_label *labels; /* EXPOSITION_READER_LABELS_MAX for the sample, then for the
                                        exemplar; NULL: not needed yet */
    struct budget *budget;           /* charged with the scratch; NULL: none */
    uint8_t *scratch;                /* unescaped text of the current entry */
    size_t scratch_size;
    size_t scratch_capacity;
};

/* Begins with a body, which stays valid and unchanged until _fini or the next _init_again. The
 * protocol is TEXT or OPENMETRICS. budget may be NULL. Allocates nothing yet. */
void exposition_reader_init(struct exposition_reader *reader, struct slice body,
                            enum exposition_protocol protocol, struct budget *budget);
/* The same for the next body; keeps the memory of the former ones. */
void exposition_reader_init_again(struct exposition_reader *reader, struct slice body,
                                  enum exposition_protocol protocol);
/* Frees what it allocated. */
void exposition_reader_fini(struct exposition_reader *reader);
/* The next entry; comments and empty lines are skipped. False: the end of the body, or has_failed
 * is set: then the whole body is to be refused. */
bool exposition_reader_next(struct exposition_reader *reader, struct exposition_entry *ret_entry);
/* Reads a number as the values of le and quantile have it (Go's strconv.ParseFloat). False: it is
 * none. */
bool exposition_read_number(struct slice text, double *ret_number);
