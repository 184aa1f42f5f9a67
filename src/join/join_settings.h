/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the join in the form in which it is used. Constant; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"
#include "src/join/join_limits.h"
#include "src/join/keep_rules.h"
#include "src/join/url_template.h"

enum join_source {
    JOIN_SPAN_NAME,
    JOIN_STATUS_CLASS,
    JOIN_DURATION_BUCKET,
    JOIN_OF_SPAN,     /* an attribute of the span */
    JOIN_OF_RESOURCE, /* an attribute of its resource */
};

/* An attribute that samples get. */
struct join_attribute {
    enum join_source source;
    struct slice name; /* its key, also that of the span's or resource's attribute */
};

enum join_mark { JOIN_MARK_OFF, JOIN_MARK_LOCAL_ROOTS, JOIN_MARK_ALL, JOIN_MARK_OBSERVED };

struct join_settings {
    struct join_attribute attributes[JOIN_ATTRIBUTES_MAX];
    size_t attributes_count;
    uint64_t buckets_ns[JOIN_BUCKETS_MAX];      /* upper bounds, ascending */
    const char *bucket_texts[JOIN_BUCKETS_MAX]; /* as written in the configuration */
    size_t buckets_count;
    uint64_t values_max; /* distinct values of each attribute */
    uint64_t index_entries;
    uint64_t index_bytes;
    uint64_t hold_ns;
    uint64_t hold_bytes;
    enum join_mark mark;
    struct url_template profile_url; /* on marked spans */
    struct url_template trace_url;   /* on profiles */
    struct keep_rules keep;
    bool takes_root; /* samples get the id of the local root */
    bool repairs_identity;
    bool finds_single_traces; /* profiles of a process with one trace get its id */
    bool counts_root;         /* samples are copied for their local root */
    bool counts_ancestors;    /* samples are copied for their ancestors */
    bool uses_window;         /* samples that name no span get one by time */
};
