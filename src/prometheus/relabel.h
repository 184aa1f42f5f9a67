/* SPDX-License-Identifier: Apache-2.0 */
/* Relabeling of targets and samples (relabel_configs, metric_relabel_configs), as the Go collector
 * 0.155 does (prometheus/prometheus 0.312, model/relabel), but that a regex with two groups of one
 * name is refused. Rules are immutable once made and may be used on any thread; a set of labels has
 * one owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/prometheus/prometheus_label.h"

struct error;

enum {
    RELABEL_RULES_MAX = 1024,         /* of a list */
    RELABEL_SOURCE_LABELS_MAX = 256,  /* of a rule */
    RELABEL_LABELS_MAX = 1024,        /* of a set */
    RELABEL_TEXT_BYTES_MAX = 1 << 20, /* that rules write while a set is worked on */
};

/* One rule as it is configured. The texts are copied. */
struct relabel_config {
    const char *const *source_labels; /* NULL: the key is absent */
    size_t source_labels_count;
    const char *separator;    /* NULL: ";" */
    const char *regex;        /* NULL: "(.*)"; given, it is not the default even if it is equal */
    uint64_t modulus;         /* 0: absent */
    const char *target_label; /* NULL or "": absent */
    const char *replacement;  /* NULL: "$1" */
    const char *action;       /* in any case; NULL: replace */
};

/* Which names labels may have: metric_name_validation_scheme. */
enum relabel_names {
    RELABEL_NAMES_UTF8,   /* any UTF-8 that is not empty */
    RELABEL_NAMES_LEGACY, /* [a-zA-Z_][a-zA-Z0-9_]* */
};

/* Whether rules can be made of the list; otherwise error has the reason, at the index and the key
 * of the rule. */
bool relabel_configs_check(const struct relabel_config *configs, size_t count,
                           enum relabel_names names, struct error *error);

struct relabel_rules;
/* NULL: as relabel_configs_check, or OpenSSL is missing, which the action hashmod needs. */
struct relabel_rules *relabel_rules_create(const struct relabel_config *configs, size_t count,
                                           enum relabel_names names, struct error *error);
/* NULL is a no-op. */
void relabel_rules_destroy(struct relabel_rules *rules);

struct relabel_label {
    struct prometheus_label label; /* the value is not empty */
    uint32_t order;                /* 0: was there at the start; otherwise when it was first set */
};

/* The labels of a target or sample while they are worked on. */
struct relabel_labels {
    /* For readers: sorted by name, each name once. */
    struct relabel_label *labels;
    size_t count;
    bool has_duplicates; /* relabel_labels_add met a name again; the first one was kept */
    bool has_overflowed; /* RELABEL_LABELS_MAX or RELABEL_TEXT_BYTES_MAX: do not use the labels */
    /* The rest is for this module. */
    uint32_t next_order;
    struct relabel_label *snapshot; /* room for as many labels */
    uint8_t *text;                  /* that rules wrote */
    size_t text_size;
};

/* Allocates room for the largest set, a good 1 MiB, most of which stays untouched. */
void relabel_labels_init(struct relabel_labels *labels);
void relabel_labels_fini(struct relabel_labels *labels);
/* Empties the set for the next target or sample. */
void relabel_labels_reset(struct relabel_labels *labels);
/* Adds a label that is there at the start; an empty value is none. Names and values here and below
 * are not copied: they stay valid until the set is reset. */
void relabel_labels_add(struct relabel_labels *labels, struct slice name, struct slice value);
/* The value; of size 0: there is none. */
struct slice relabel_labels_get(const struct relabel_labels *labels, struct slice name);
/* Adds or changes a label; an empty value deletes it. */
void relabel_labels_set(struct relabel_labels *labels, struct slice name, struct slice value);
void relabel_labels_delete(struct relabel_labels *labels, struct slice name);
/* Copies text to the memory of the set, until it is reset. */
struct slice relabel_labels_copy(struct relabel_labels *labels, struct slice text);

/* Applies the rules in their order. False: one of them drops the target or sample; the labels are
 * then those when it did. Callers look at has_overflowed too. Labels may point to the text of the
 * rules, which outlive them. */
bool relabel_rules_apply(const struct relabel_rules *rules, struct relabel_labels *labels);
