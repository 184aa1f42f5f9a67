/* SPDX-License-Identifier: Apache-2.0 */
/* What OTLP says of a sample besides its stack, as pprof labels: its attributes and its link. Which
 * attributes, under which names, is a matter of rules. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/profiles/pprof/pprof.h"
#include "src/profiles/pprof/scratch.h"

struct budget;
struct pprof_writer;
struct profile_dictionary;
struct profile_sample;

enum { OTLP_LABEL_NAMES_MAX = 100, OTLP_LABEL_NAME_BYTES_MAX = 1024 };

struct otlp_label_rules {
    bool has_trace_id;        /* the link's trace id as a label, beside its span id */
    bool lifts_ids;           /* attributes that name the span, however spelt, are as its link */
    bool has_numbers;         /* integers as numbers with a unit; else as text */
    bool keeps_dots;          /* in names; else they become underscores */
    bool has_plain_names;     /* as OTLP_NAME_PLAIN */
    bool takes_least;         /* of a list that one text, as the server does with a repeated key */
    bool keeps_service;       /* service.name as a label like any other */
    size_t names_max;         /* different ones, at most OTLP_LABEL_NAMES_MAX; ids not counted */
    size_t value_bytes_max;   /* longer ones are cut */
    const char *const *drops; /* keys of attributes that become no label */
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
    uint32_t rules_number; /* of those at hand */
    uint32_t generation;
    uint64_t dropped; /* attributes beyond names_max, since init */
    bool has_failed;  /* no memory */
};

/* rules outlives the labels. */
void otlp_labels_init(struct otlp_labels *labels, const struct otlp_label_rules *rules,
                      const struct profile_dictionary *dictionary, struct budget *budget);
void otlp_labels_fini(struct otlp_labels *labels);
/* Other rules, which outlive the labels; what was found by the old ones is forgotten. */
void otlp_labels_set_rules(struct otlp_labels *labels, const struct otlp_label_rules *rules);
/* Texts that were written go with the profile that they were written to. */
void otlp_labels_begin(struct otlp_labels *labels);
/* The sample's labels, their texts written; valid until the next call. */
size_t otlp_labels_write(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct pprof_writer *writer, const struct pprof_label **ret_labels);
/* How many bytes their texts and they themselves take at most. */
uint64_t otlp_labels_cost(struct otlp_labels *labels, const struct profile_sample *sample);
/* The sample's own service.name; false: it has none. */
bool otlp_labels_service(struct otlp_labels *labels, const struct profile_sample *sample,
                         struct slice *ret_name);

enum otlp_name_form {
    OTLP_NAME_AS_IT_IS,
    OTLP_NAME_UNDERSCORES, /* instead of dots */
    OTLP_NAME_PLAIN, /* letters, digits and underscores, no digit in front: all that old servers
                        take */
};
/* A label name out of an attribute key. False for what must not be one: empty, too long, no UTF-8,
 * or with "__" in front, which is the server's. */
bool otlp_label_name(struct arena *arena, struct slice key, enum otlp_name_form form,
                     struct slice *ret_name);
