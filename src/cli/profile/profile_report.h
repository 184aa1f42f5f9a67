/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of OTLP profiles for humans: for each value type the totals, the functions and the call
 * tree; and the labels and links of the samples. Strings are indices into sets: take slices of them
 * only when everything has been added. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cli/profile/call_tree.h"
#include "src/profiles/otlp/profile_set.h"

struct error;

enum {
    REPORT_TYPES_MAX = 64,
    REPORT_LINK_BYTES = 16 + 8, /* trace id, span id */
};

struct report_function {
    int64_t flat;
    int64_t cumulative;
    uint64_t sample; /* the last sample counted for it: recursion counts once */
};

struct report_type {
    uint32_t type; /* in texts, as is unit */
    uint32_t unit;
    uint64_t profiles;
    uint64_t samples;
    uint64_t time_unix_ns; /* the earliest; 0: unknown */
    uint64_t duration_ns;  /* the longest */
    int64_t total;
    struct call_tree tree;
    struct report_function *functions; /* by name; those above the capacity have nothing */
    uint32_t functions_capacity;
};

struct report_label {
    uint32_t key;     /* in texts */
    uint32_t example; /* in label_values */
    uint64_t values;  /* different ones */
    uint64_t samples;
};

struct report {
    struct profile_set names; /* of functions */
    struct profile_set texts; /* types, units, files, keys of labels */
    uint32_t *files;          /* by name, in texts: where the function is */
    uint32_t files_capacity;
    struct report_type types[REPORT_TYPES_MAX];
    size_t types_count;
    struct profile_set label_keys;   /* the key's text index */
    struct profile_set label_values; /* the same, then the value */
    struct report_label *labels;     /* by index in label_keys; the first is unused */
    uint32_t labels_capacity;
    struct profile_set links; /* REPORT_LINK_BYTES each */
    uint64_t *link_samples;   /* by index in links */
    uint32_t links_capacity;
    uint64_t profiles;
    uint64_t samples;
    uint64_t cut_stacks; /* deeper than REPORT_DEPTH_MAX: the frames next to the root are cut */
};

void report_init(struct report *report);
void report_fini(struct report *report);
/* Adds a request in layout 1.10 that is normalized (profile_normalize). False: more types than
 * REPORT_TYPES_MAX, or no memory. */
bool report_add(struct report *report, struct slice request, struct error *error);

struct slice report_name(const struct report *report, uint32_t name);
struct slice report_file(const struct report *report, uint32_t name);
struct slice report_text(const struct report *report, uint32_t text);
struct slice report_label_example(const struct report *report, const struct report_label *label);
/* The type of that name or "name:unit"; name NULL: the last one with a total, as in pprof. NULL:
 * not found. */
const struct report_type *report_find_type(const struct report *report, const char *name);
