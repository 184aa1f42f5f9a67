/* SPDX-License-Identifier: Apache-2.0 */
/* The pyroscope exporter's walk through a profiles request: one profile after the other, each in
 * parts that the server accepts, converted to pprof. The order, and so the name of each part, is
 * the same at every attempt. One owner, on the exporter's lane or on the lane's helper. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_remove.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_to_pprof.h"
#include "src/profiles/pprof/profile_type.h"
#include "src/profiles/pyroscope/series_otlp.h"

struct budget;
struct number_set;
struct pyroscope_config;

enum pyroscope_found {
    PYROSCOPE_PART, /* samples, collected in conversion */
    PYROSCOPE_FILE, /* a file that is passed on unchanged (opaque_profile.h) */
    PYROSCOPE_END,
    PYROSCOPE_NO_MEMORY,
};

struct pyroscope_walk {
    const struct pyroscope_config *config;
    struct arena arena; /* of the dictionary */
    struct profile_dictionary dictionary;
    struct otlp_to_pprof conversion;
    profile_choice wants; /* other profiles are skipped; NULL: none are */
    const struct otlp_to_pprof_rules *rules;
    struct otlp_to_pprof_rules native_rules; /* for what came as a series: keeps its labels */
    /* what was found */
    struct profile_resource resource;
    struct profile_scope scope;
    struct profile profile;
    struct profile_type type;
    struct series_privates privates; /* of the profile */
    struct slice metric;      /* __name__, when the profile came as a series; no data: it did not */
    struct slice service;     /* of the samples; no data: the resource's */
    struct slice label_names; /* profile_label_names */
    uint64_t name;            /* of the part or file, never 0 */
    uint64_t items;           /* in it */
    /* where it is */
    struct wire_reader resources;
    struct wire_reader scopes;
    struct wire_reader profiles;
    bool has_cpu_time;    /* some profile of the scope */
    bool has_profile;     /* its parts are being found */
    size_t service_no;    /* of the profile */
    uint64_t profile_no;  /* from 1 */
    uint64_t part_no;     /* of the profile, from 0 */
    uint64_t pieces_left; /* of a part that is cut smaller */
    uint64_t piece_no;
    uint64_t piece_samples; /* that are left for them */
    /* items of profiles outside the time that the server accepts, which are skipped */
    uint64_t too_old;
    uint64_t too_new;
    int64_t odd_age_ns; /* of the last of them */
};

/* request, config and rules must stay valid until _close. False: no memory. */
bool pyroscope_walk_open(struct pyroscope_walk *walk, const struct pyroscope_config *config,
                         const struct otlp_to_pprof_rules *rules, struct slice request,
                         struct budget *budget);
void pyroscope_walk_close(struct pyroscope_walk *walk);

/* Parts whose names are in `cut` are split into smaller pieces, which have names of their own. */
enum pyroscope_found pyroscope_walk_next(struct pyroscope_walk *walk, const struct number_set *cut);
/* Whether that is the name of a piece. */
bool pyroscope_walk_is_piece(uint64_t name);
