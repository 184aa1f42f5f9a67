/* SPDX-License-Identifier: Apache-2.0 */
/* A pprof profile as tables. Strings are referred to by index; mappings, locations and functions by
 * their place in their table plus one, 0 meaning none, whatever their ids were. Read-only once
 * made; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct pprof_value_type {
    uint32_t type;
    uint32_t unit;
};

struct pprof_mapping {
    uint64_t id;
    uint64_t memory_start;
    uint64_t memory_limit;
    uint64_t file_offset;
    uint32_t filename;
    uint32_t build_id;
    bool has_functions;
    bool has_filenames;
    bool has_line_numbers;
    bool has_inline_frames;
};

struct pprof_line {
    uint32_t function; /* place + 1; 0: none */
    int64_t line;
    int64_t column;
};

struct pprof_location {
    uint64_t id;
    uint32_t mapping; /* place + 1; 0: none */
    bool is_folded;
    uint64_t address;
    size_t lines_count;
    const struct pprof_line *lines; /* inlined functions first */
};

struct pprof_function {
    uint64_t id;
    uint32_t name;
    uint32_t system_name;
    uint32_t filename;
    int64_t start_line;
};

/* text 0: a number. */
struct pprof_label {
    uint32_t key;
    uint32_t text;
    uint32_t unit;
    int64_t number;
};

/* Labels of one sample; servers accept a hundred. */
enum { PPROF_LABELS_MAX = 128 };

struct pprof_sample {
    const uint32_t *locations; /* place + 1 each, leaf first */
    size_t locations_count;
    const int64_t *values; /* one for each sample type */
    const struct pprof_label *labels;
    size_t labels_count;
};

struct pprof {
    struct slice *strings; /* the first is empty; at least one */
    size_t strings_count;
    struct pprof_value_type *sample_types;
    size_t sample_types_count;
    struct pprof_sample *samples;
    size_t samples_count;
    struct pprof_mapping *mappings;
    size_t mappings_count;
    struct pprof_location *locations;
    size_t locations_count;
    struct pprof_function *functions;
    size_t functions_count;
    uint32_t *comments;
    size_t comments_count;
    bool has_period_type;
    struct pprof_value_type period_type;
    int64_t period;
    int64_t time_ns; /* unix */
    int64_t duration_ns;
    uint32_t drop_frames;
    uint32_t keep_frames;
    uint32_t default_sample_type;
    uint32_t doc_url;
};

/* Field numbers of Profile (perftools.profiles). */
enum pprof_field {
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE,
    PPROF_MAPPING,
    PPROF_LOCATION,
    PPROF_FUNCTION,
    PPROF_STRING,
    PPROF_DROP_FRAMES,
    PPROF_KEEP_FRAMES,
    PPROF_TIME,
    PPROF_DURATION,
    PPROF_PERIOD_TYPE,
    PPROF_PERIOD,
    PPROF_COMMENT,
    PPROF_DEFAULT_SAMPLE_TYPE,
    PPROF_DOC_URL,
    PPROF_FIELDS,
};
