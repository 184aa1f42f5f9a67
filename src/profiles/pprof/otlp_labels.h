/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the attributes and the link of an OTLP sample to pprof labels. Rules say which
 * attributes and under which names. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/content_table.h"
#include "src/base/scratch.h"
#include "src/profiles/pprof/pprof.h"

struct budget;
struct pprof_writer;
struct profile_dictionary;
struct profile_sample;

enum { OTLP_LABEL_NAMES_MAX = 100, OTLP_LABEL_NAME_BYTES_MAX = 1024 };

struct otlp_label_rules {
    bool has_trace_id; /* the link's trace id as a label, beside its span id */
    bool lifts_ids;    /* attributes with the ids of the span, in any spelling, act as its link */
    bool has_numbers;  /* integers as numbers with a unit; else as text */
    bool keeps_dots;   /* in names; else they become underscores */
    bool has_plain_names; /* as OTLP_NAME_PLAIN */
    bool takes_least; /* of a list only the least string, as the server does with a repeated key */
    bool keeps_service;       /* service.name as a label like any other */
    size_t names_max;         /* different ones, at most OTLP_LABEL_NAMES_MAX; ids not counted */
    size_t value_bytes_max;   /* longer ones are cut */
    const char *const *drops; /* keys of attributes that do not become labels */
    size_t drops_count;
};

struct otlp_labels {
    const struct otlp_label_rules *rules;
    const struct profile_dictionary *dictionary;
    struct budget *budget;
    struct scratch attributes; /* by index */
    struct scratch labels;     /* of one sample: struct pprof_label */
    struct arena arena;        /* names; cleared with the labels */
    struct arena value_arena;
    struct slice names[OTLP_LABEL_NAMES_MAX];
    size_t names_count;
    struct content_table services; /* texts in the request, since init */
    uint32_t rules_number;         /* of the current rules */
    uint32_t generation;
    uint64_t dropped; /* attributes beyond names_max, since init */
    uint64_t work;    /* for attributes that were read, since init */
    bool has_failed;  /* no memory */
};

/* rules outlives the labels. */
void otlp_labels_init(struct otlp_labels *labels, const struct otlp_label_rules *rules,
                      const struct profile_dictionary *dictionary, struct budget *budget);
void otlp_labels_fini(struct otlp_labels *labels);
/* Switches to other rules, which outlive the labels. */
void otlp_labels_set_rules(struct otlp_labels *labels, const struct otlp_label_rules *rules);
/* A new profile: no strings are written yet. */
void otlp_labels_begin(struct otlp_labels *labels);
/* Writes the strings of the sample's labels. The labels are valid until the next call. */
size_t otlp_labels_write(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct pprof_writer *writer, const struct pprof_label **ret_labels);
/* An upper bound of the bytes that the labels and their strings take. */
uint64_t otlp_labels_cost(struct otlp_labels *labels, const struct profile_sample *sample);
/* The number of the sample's own service.name, the same for the same name. 0: it has none. */
uint32_t otlp_labels_service(struct otlp_labels *labels, const struct profile_sample *sample,
                             struct slice *ret_name);

enum otlp_name_form {
    OTLP_NAME_AS_IT_IS,
    OTLP_NAME_UNDERSCORES, /* instead of dots */
    OTLP_NAME_PLAIN, /* letters, digits and underscores, a digit not first: all that old servers
                        accept */
};
/* Makes a label name of an attribute key. False: it is empty, too long, not UTF-8, or begins with
 * "__", which is reserved for the server. */
bool otlp_label_name(struct arena *arena, struct slice key, enum otlp_name_form form,
                     struct slice *ret_name);
