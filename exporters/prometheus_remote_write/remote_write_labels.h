/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a series as remote write has them, by the rules of the Go collector's translator
 * 0.155 (pkg/translator/prometheusremotewrite): a label of the point beats the configured ones, job
 * and instance of the resource beat both, and those of the scope beat all. Attributes that become
 * the same label are joined: "2;1;3", in the order of their keys. Everything borrows from the
 * request and from the arena. Plain values; any thread, one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/scratch.h"
#include "src/base/slice.h"
#include "src/otlp/metrics/metric_reader.h"
#include "src/prometheus/metric_target.h"
#include "src/prometheus/prometheus_label.h"

struct budget;

enum {
    REMOTE_WRITE_LABELS_MAX = 1024, /* of a series; and attributes that it is made of */
    REMOTE_WRITE_ADDED_MAX = 2,     /* __name__, le or quantile */
};

/* A resource of the request. Resource: 1 attributes. */
struct remote_write_resource {
    struct slice message;
    struct metric_target target;
    size_t count;  /* of its attributes */
    size_t others; /* those that job and instance are not made of */
};

struct remote_write_resource remote_write_resource_of(struct slice message);

struct remote_write_label_settings {
    const struct prometheus_label *external; /* their names are translated already; borrowed */
    size_t external_count;
    bool has_scope;    /* scopes become labels */
    bool has_resource; /* resource attributes become labels of every series … */
    bool has_service;  /* … with those that job and instance are made of */
    bool has_utf8;     /* names stay as they are */
    bool is_v2;        /* in target_info too, runs of underscores become one */
};

/* One that may become a label. */
struct remote_write_candidate {
    struct slice key; /* of the attribute; or of none */
    struct slice name;
    struct slice value;
    unsigned rank; /* of equal names the highest wins */
    unsigned order;
    bool is_of_resource;
};

struct remote_write_labels {
    const struct remote_write_label_settings *settings;
    struct budget *budget;
    struct arena arena; /* of the series at hand */
    struct arena scope_arena;
    struct scratch encoded; /* of the series at hand */
    const char *failure;    /* why there can be no such series; NULL: there can */
    bool is_memory;         /* because memory is short */
    bool is_too_large;      /* and always will be: their texts have a limit. Stays */
    bool are_too_many;      /* because there are more than REMOTE_WRITE_LABELS_MAX */
    bool has_target;        /* there is a label job or instance */
    uint64_t work;          /* bytes that were handled so far; not all of them are written */
    size_t count;
    size_t candidates_count;
    size_t scope_count;
    bool has_scope_failed;                                  /* of its series, too, then */
    bool is_scope_memory;                                   /* because memory was short */
    struct prometheus_label scope[REMOTE_WRITE_LABELS_MAX]; /* those of the scope */
    struct prometheus_label list[REMOTE_WRITE_LABELS_MAX];  /* sorted by name */
    /* With what is added to it. */
    struct prometheus_label whole[REMOTE_WRITE_LABELS_MAX + REMOTE_WRITE_ADDED_MAX];
    size_t whole_count;
    struct remote_write_candidate candidates[REMOTE_WRITE_LABELS_MAX];
    /* Attributes of the resource that each series gets. */
    struct metric_attribute resource[REMOTE_WRITE_LABELS_MAX];
    size_t resource_count;
};

/* settings outlive it; budget may be NULL. It is large. */
void remote_write_labels_init(struct remote_write_labels *labels,
                              const struct remote_write_label_settings *settings,
                              struct budget *budget);
void remote_write_labels_fini(struct remote_write_labels *labels);
/* Begins the series of a resource; before those of a scope of it. */
void remote_write_labels_begin_resource(struct remote_write_labels *labels,
                                        const struct remote_write_resource *resource);
/* Begins the series of an encoded InstrumentationScope: 1 name, 2 version, 3 attributes. */
void remote_write_labels_begin_scope(struct remote_write_labels *labels, struct slice scope);
/* Fills the list, and failure. */
void remote_write_labels_of_point(struct remote_write_labels *labels,
                                  const struct remote_write_resource *resource,
                                  const struct metric_point *point);
/* The same for target_info of the resource. */
void remote_write_labels_of_target(struct remote_write_labels *labels,
                                   const struct remote_write_resource *resource);
/* Makes the whole list: with __name__ and, unless it is NULL, one more label, which replace others
 * of their names. What it borrows has to last as long as it is used. */
void remote_write_labels_complete(struct remote_write_labels *labels, struct slice name,
                                  const struct prometheus_label *more);
/* The whole list as field 1 of TimeSeries (prometheus/prompb, types.proto). Valid until the next
 * call. False: no memory. */
bool remote_write_labels_encode(struct remote_write_labels *labels, struct slice *ret_encoded);
