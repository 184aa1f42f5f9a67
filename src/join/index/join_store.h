/* SPDX-License-Identifier: Apache-2.0 */
/* What all instances of one join share: its settings and what is known of spans, services,
 * processes and values. Made before lanes run; its parts bear several threads as each says. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "src/join/index/id_set.h"
#include "src/join/index/pending_services.h"
#include "src/join/index/process_table.h"
#include "src/join/index/recent_services.h"
#include "src/join/index/service_set.h"
#include "src/join/index/single_trace.h"
#include "src/join/index/span_index.h"
#include "src/join/index/span_window.h"
#include "src/join/join_settings.h"
#include "src/join/keep_rules.h"
#include "src/join/value_cap.h"
#include "src/profiles/otlp/profile_bytes.h"

struct join_store {
    struct join_settings settings;
    struct span_index index;
    struct span_window window; /* with uses_window */
    struct process_table processes;
    struct service_set services;
    struct recent_services recent_services;
    struct id_set observed; /* spans that profiles mentioned: with JOIN_MARK_OBSERVED */
    struct id_set missed;   /* those that were not there: their spans, if any come, are late */
    struct value_cap caps[JOIN_ATTRIBUTES_MAX];
    _Atomic uint64_t held_bytes;              /* of profiles, on all lanes */
    struct single_traces single_traces;       /* with finds_single_traces */
    struct pending_services pending_services; /* the same */
    struct keep_switch keep;
    bool has_spans;             /* some pipeline of traces has an instance */
    bool has_control;           /* an instance on lane 0, whose own this is, listens */
    char *id;                   /* of the component; NULL: it is not kept */
    struct profile_bytes shape; /* what all of this was made for */
};

/* Memory for spans, which is taken at once. */
uint64_t join_store_bytes(const struct join_settings *settings, unsigned lanes);
/* NULL: no memory. The settings' texts are borrowed. */
struct join_store *join_store_create(const struct join_settings *settings, unsigned lanes);
/* NULL is tolerated. */
void join_store_destroy(struct join_store *store);
/* The same for a component of that id, but what is known stays known over a reload that changes
 * neither what of spans is remembered nor how many. */
struct join_store *join_store_open(const char *id, const struct join_settings *settings,
                                   unsigned lanes);
void join_store_close(struct join_store *store);
