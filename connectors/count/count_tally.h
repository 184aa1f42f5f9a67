/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what is in one request, and writes the counts as metrics: for each Resource, those of its
 * metrics that counted something, with the times of its first and last record. Delta sums of the
 * request alone; nothing is remembered. On the lane or on its helper. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connectors/count/count_rules.h"
#include "src/base/content_table.h"
#include "src/base/scratch.h"
#include "src/otlp/metrics/metric_writer.h"
#include "src/otlp/nested_output.h"
#include "src/ottl/ottl_runner.h"

struct batch;
struct budget;

enum {
    COUNT_RATIO = 16,              /* attributes of the counts, to the bytes of the request … */
    COUNT_FREE_BYTES = 1024 * 1024 /* … beyond this; what is more goes to one series */
};

/* One series of a Resource. Behind it: the indices of its attributes' values. */
struct count_series {
    uint64_t count;
    uint32_t next; /* of the same rule; 0: none */
    bool has_overflown;
};

/* What is known of an attribute of the dictionary that profiles share. */
struct count_attribute {
    int32_t slot;   /* of its key, plus 1; -1: the key has none; 0: nobody has looked */
    uint32_t value; /* index; 0: nobody has asked for it */
};

struct count_times {
    uint64_t first_ns; /* 0: no record has a time */
    uint64_t last_ns;
};

struct count_tally {
    const struct count_rules *rules;
    struct ottl_runner runner;
    struct budget *budget; /* what the request is charged to; NULL: not charged */
    struct metric_writer writer;
    /* Of the Resource at hand: */
    struct scratch series;      /* of series_bytes each; index 0 is free */
    struct nested_output names; /* what series are found by */
    struct content_table names_table;
    struct scratch named; /* uint32_t: the series of a name's index */
    uint32_t series_count;
    size_t series_bytes;
    uint32_t *heads; /* of each rule's series; 0: none */
    uint32_t *tails;
    uint32_t *overflows;
    struct count_times times[COUNT_KINDS_OF_SIGNAL];
    /* Values of outer records, by the keys' places, for their generations. */
    struct {
        uint64_t generation;
        uint32_t value; /* index; 0: absent */
    } * outer[COUNT_SOURCES];
    uint32_t *indices; /* room for one record's */
    /* The last attribute of each key that a profile names, by the keys' slots, for its generation.
     */
    struct {
        uint64_t generation;
        uint32_t index; /* in the dictionary */
    } * last;
    uint64_t last_generation; /* the profile whose attributes are there */
    /* Of the request: */
    struct nested_output values; /* encoded AnyValues, each once */
    struct content_table values_table;
    struct scratch values_ends; /* uint32_t: behind the value of an index */
    struct scratch attributes;  /* struct count_attribute: of the dictionary */
    uint64_t bytes_left;
    uint64_t overflown; /* records */
    struct batch **batches;
    size_t batches_count;
    bool is_late;    /* nobody would send it again: batch_may_exceed */
    bool is_refused; /* memory */
};

void count_tally_init(struct count_tally *tally, const struct count_rules *rules,
                      struct budget *budget);
void count_tally_fini(struct count_tally *tally);
/* Counts a request. PASSED: the caller owns tally->batches, an array from mem_alloc, and what is in
 * it. The error is valid until the next one. */
struct ottl_result count_tally_take(struct count_tally *tally, struct batch *batch);
