/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the service, for its own files: what each lane holds and how to find it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/timer.h"
#include "src/config/config_types.h"
#include "src/core/component.h"
#include "src/core/ledger.h"
#include "src/pipeline/exporter_queue.h"

struct journal;
struct lane;
struct pipeline;
struct telemetry;

/* One lane's copy of everything. Tables are indexed like the configuration's: components by their
 * index in config->components, pipelines by theirs in config->pipelines. NULL where the lane has
 * none. */
struct service_lane {
    struct lane *lane;
    struct ledger ledger;
    struct component **receivers;   /* by component */
    struct component **exporters;   /* by component and signal */
    struct component **connectors;  /* by component and pair of signals */
    struct exporter_queue **queues; /* by component and signal */
    struct pipeline **pipelines;    /* by pipeline */
    struct component ***processors; /* by pipeline, then in order */
};

/* Found at the start in the directory of a storage: requests wait there, and no pipeline has
 * it as its journal. */
struct unused_journal {
    char *directory;
    const struct config_component *storage;
    uint64_t records;
    uint64_t bytes; /* of its files */
};

enum service_state { SERVICE_BUILT, SERVICE_READY, SERVICE_STOPPING };

struct stop_run;

struct service {
    struct service_view view; /* first: extensions get a pointer to it */
    const struct config *config;
    unsigned lanes_count;
    struct service_lane *lanes;
    struct budget budget;
    struct exporter_queue_shared *shared;     /* by component and signal */
    struct journal **journals;                /* by pipeline; NULL: it has none */
    const struct config_component **storages; /* by pipeline: journal_storage.h */
    struct unused_journal *unused;            /* journals of no pipeline */
    size_t unused_count;
    struct budget *disks;          /* by component: of file_storage, bytes of files */
    void **commons;                /* by component: what its instances share */
    struct component **extensions; /* as config->extensions, on lane 0 */
    struct telemetry *telemetry;   /* NULL: no metrics reader */
    struct stop_run *stop_run;     /* while stopping */
    _Atomic enum service_state state;
    uint64_t started_ns;
    uint64_t ready_wall_ns;
    uint64_t abandoned_items;
};

static inline size_t exporter_slot(size_t component, enum signal_kind signal)
{
    return component * SIGNAL_KINDS + (size_t)signal;
}

enum { SIGNAL_PAIRS = SIGNAL_KINDS * SIGNAL_KINDS };

/* taken: the signal of the pipelines that export to the connector; given: that of the others. */
static inline size_t connector_slot(size_t component, enum signal_kind taken,
                                    enum signal_kind given)
{
    return component * SIGNAL_PAIRS + (size_t)taken * SIGNAL_KINDS + (size_t)given;
}

static inline size_t component_slot(const struct service *service,
                                    const struct config_component *component)
{
    return (size_t)(component - service->config->components);
}
