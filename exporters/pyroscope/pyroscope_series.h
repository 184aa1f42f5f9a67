/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the labels of a Pyroscope series of an OTLP resource and scope, and the Push request around
 * a profile. One owner; reused for all series of a request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/slice.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/pprof/entry_table.h"

struct budget;
struct buffer;
struct profile_dictionary;
struct profile_type;
struct pyroscope_labels_config;
struct series_privates;

enum { PYROSCOPE_LABELS_MAX = 100, PYROSCOPE_ID_BYTES = 36 };

struct pyroscope_source {
    const struct pyroscope_labels_config *config;
    const struct profile_dictionary *dictionary;
    const struct profile_type *type;
    struct slice resource;    /* encoded Resource */
    struct slice scope;       /* encoded InstrumentationScope */
    struct slice service;     /* of the samples; no data: the resource's */
    struct slice label_names; /* profile_label_names: attributes that came as labels */
    /* of what came as a series: restores labels that begin with "__"; NULL: it did not */
    const struct series_privates *privates;
    bool has_plain_names; /* as OTLP_NAME_PLAIN, without exception */
};

/* The labels of a resource and a scope. Found once for consecutive series that share them. */
struct pyroscope_origin {
    bool is_known;
    struct slice resource;
    struct slice scope;
    struct slice label_names;
    struct slice were_labels[PROFILE_LABEL_NAMES_MAX]; /* label_names, decoded */
    size_t were_labels_count;
    struct arena resource_arena;
    struct arena scope_arena;
    struct slice names[PYROSCOPE_LABELS_MAX]; /* each once, in order */
    struct slice values[PYROSCOPE_LABELS_MAX];
    size_t count;
    size_t resource_count;      /* of them, those of the resource */
    uint64_t left_out;          /* names beyond those */
    uint64_t resource_left_out; /* the same */
    uint64_t again_bytes;       /* read because only label_names was another one */
    struct slice service;       /* no data: unknown */
    struct slice executable;    /* the same */
};

struct pyroscope_series {
    struct budget *budget;
    struct arena arena;
    struct pyroscope_origin origin;
    struct byte_run labels; /* encoded: the labels of a RawProfileSeries */
    struct slice names[PYROSCOPE_LABELS_MAX];
    size_t count;
    uint64_t left_out; /* labels beyond the limit, since init */
    uint64_t hash;     /* of the labels and the type */
    bool has_failed;   /* no memory */
};

void pyroscope_series_init(struct pyroscope_series *series, struct budget *budget);
void pyroscope_series_fini(struct pyroscope_series *series);
/* The most labels that the samples of a series may have. */
size_t pyroscope_sample_labels_max(const struct pyroscope_labels_config *config);
/* False: no memory. All sources must have the same config, dictionary and has_plain_names, and what
 * they point to must stay valid until _fini. */
bool pyroscope_series_build(struct pyroscope_series *series, const struct pyroscope_source *source);

/* The bytes before and after a profile of that size in a PushRequest with that one series. NULL: no
 * memory. */
struct buffer *pyroscope_push_head(const struct pyroscope_series *series, uint64_t profile_bytes);
struct buffer *pyroscope_push_tail(struct budget *budget);
