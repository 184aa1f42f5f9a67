/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a series, and its labels: attributes of the point, scope, job and instance,
 * configured labels. Everything borrows from the request and from the arena of struct
 * metric_labels. On any lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/prometheus/metric_target.h"
#include "src/prometheus/prometheus_names.h"

struct budget;
struct config_pairs;

/* Which labels a series has. */
struct metric_label_settings {
    struct prometheus_naming naming;
    const struct config_pairs *const_labels; /* borrowed */
    bool has_scope;                          /* scopes become labels */
    bool has_resource;                       /* resource attributes become labels … */
    bool has_service;                        /* … with those that job and instance are made of */
};

struct metric_hash {
    uint64_t low;
    uint64_t high;
};

struct metric_hash metric_hash_of(uint64_t seed, struct slice bytes);
/* Of the attributes in that field, in any order. */
struct metric_hash metric_hash_of_attributes(uint64_t seed, struct slice message, uint32_t number);

/* A resource of the request. Resource: 1 attributes. */
struct resource_view {
    struct slice attributes; /* the encoded Resource */
    size_t count;            /* of its attributes */
    struct metric_hash hash;
    struct metric_target target;
    struct metric_hash target_hash; /* of job and instance */
};

struct resource_view resource_view_of(uint64_t seed, struct slice resource);

/* A scope of the request. InstrumentationScope: 1 name, 2 version, 3 attributes. */
struct scope_view {
    struct slice name;
    struct slice version;
    struct slice schema_url;
    struct slice attributes; /* the encoded InstrumentationScope */
    struct metric_hash hash;
};

struct scope_view scope_view_of(uint64_t seed, struct slice scope, struct slice schema_url);

struct metric_label {
    struct slice name;
    struct slice value;
};

enum { METRIC_LABELS_MAX = 1024, METRIC_SERVICE_KEYS = 3 }; /* of a series */

/* Labels that many series have, made once. */
struct metric_labels_part {
    bool is_made;
    struct arena arena;
    struct metric_label list[METRIC_LABELS_MAX]; /* sorted by name */
    size_t count;
    size_t bytes;        /* room for them in a shape */
    const char *failure; /* as below */
    bool is_memory;
    struct metric_hash hash;
};

struct metric_labels {
    const struct metric_label_settings *settings;
    struct budget *budget;
    uint64_t seed;
    struct arena arena;
    struct metric_label list[METRIC_LABELS_MAX];
    size_t count;
    const char *failure;                /* why there can be no such series; NULL: there can */
    bool is_memory;                     /* because memory is short */
    struct metric_labels_part resource; /* with those that are configured */
    struct metric_labels_part scope;
    /* Both: all labels but those of the point. */
    bool has_shared;
    struct metric_label shared[METRIC_LABELS_MAX];
    size_t shared_count;
    size_t shared_bytes; /* room for them in a shape */
    const char *shared_failure;
    bool shared_is_memory;
    struct metric_hash shared_hash;
    struct metric_hash names_hash; /* of these labels, and of the names of those in the list */
    /* Keys of the resource's attributes that take the place of the point's, sorted. */
    struct slice keys[METRIC_LABELS_MAX + METRIC_SERVICE_KEYS];
    size_t keys_count;
    const uint8_t *keys_of; /* the encoded Resource that they are of; NULL: of none */
};

/* Before the first series of a request, and after the last one. settings outlive it; budget may be
 * NULL. */
void metric_labels_begin(struct metric_labels *labels, const struct metric_label_settings *settings,
                         uint64_t seed, struct budget *budget);
void metric_labels_end(struct metric_labels *labels);
/* Another scope follows, or another resource with its scopes. */
void metric_labels_forget_scope(struct metric_labels *labels);
void metric_labels_forget_resource(struct metric_labels *labels);

/* Before and after each list of labels. */
void metric_labels_init(struct metric_labels *labels);
void metric_labels_fini(struct metric_labels *labels);
/* Fills the list with the point's own labels, sorted by name, and those that are shared, names_hash
 * and failure. Takes time for the point's bytes, once for those of its scope, and once for those of
 * its resource. */
void metric_labels_of_series(struct metric_labels *labels, const struct resource_view *resource,
                             const struct scope_view *scope, const struct metric_point *point);
/* Fills the list with all labels of the resource's target_info. */
void metric_labels_of_target(struct metric_labels *labels, const struct resource_view *view);
/* Room for the list in the text format, and its text. Returns its size. */
size_t metric_labels_bytes_max(const struct metric_labels *labels);
size_t metric_labels_write(const struct metric_labels *labels, char *text, bool *ret_is_plain);
