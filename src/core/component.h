/* SPDX-License-Identifier: Apache-2.0 */
/* The component contract: the interface of receivers, processors, exporters, connectors and
 * extensions. One instance per lane (exporter: per lane and signal; processor: per lane and
 * pipeline; connector: per lane and pair of input and output signals); instances share nothing but
 * their configuration and what the share slot makes. All slots run on the instance's lane, share
 * and unshare on the main thread while no lane runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/log.h"
#include "src/base/signal_kind.h"
#include "src/core/ledger.h"

struct authenticator_ops;
struct batch;
struct budget;
struct component;
struct component_factory;
struct config_component;
struct config_field;
struct counter_row;
struct error;
struct feature_gates;
struct lane;
struct ledger;
struct receipt;
struct service_view;
struct stop_latch;

enum component_kind { RECEIVER, PROCESSOR, EXPORTER, CONNECTOR, EXTENSION };

/* The pipelines that take one signal from a receiver or a connector. */
struct outlet;

/* First member of every instance. */
struct component {
    const struct component_factory *factory;
    const char *id;           /* as in YAML: "batch/slow" */
    const void *config;       /* the struct that the option table filled; shared by all lanes */
    struct lane *lane;        /* the only thread that may call us */
    struct budget *budget;    /* bytes of the whole process */
    struct ledger *ledger;    /* of this lane */
    struct component *next;   /* processors: the next stage */
    struct component *before; /* processors: the one before in the pipeline, or NULL */
    struct outlet *outlets[SIGNAL_KINDS]; /* receivers; connectors: of output only; NULL: none */
    enum signal_kind signal;              /* of what consume takes */
    enum signal_kind output;              /* connectors: of what goes to the outlet */
    unsigned exporters;                   /* destinations of an item that consume takes */
    /* The same component's instance on lane 0, maybe itself (of processors: in the same pipeline);
     * from start on. */
    struct component *first;
    struct component *next_lane; /* the same component's instance on the next lane, or NULL */
    const struct service_view *service; /* NULL in some tests */
    void *shared;   /* what share made for all instances of this id; NULL: nothing */
    void *counters; /* counters_size bytes, zeroed, owned by the core */
    /* Exporters, set by create: the URL without userinfo and query, or "grpc://host:port", for the
     * labels server_address, server_port and (http) url_path; or NULL. */
    const char *destination;
    /* Processors: of a pipeline with a journal. Receipts wait for the end of the export, whatever
     * the processor holds meanwhile. Connectors: a pipeline behind it has a journal. */
    bool is_journaled;
    /* Processors of a pipeline with a journal: how many of `exporters` do not store. */
    unsigned others;
    bool is_started;             /* start was called, and maybe failed: stop will follow */
    struct stop_latch *stopping; /* released by component_stopped */
    struct logger logger;
};

/* A sum that a component has beside its counters. */
struct component_counter {
    const char *name;
    const char *help;
};
struct component_label {
    const char *key;
    const char *value;
};
/* labels are sorted by key. */
typedef void (*component_counter_fn)(const struct component_counter *row,
                                     const struct component_label *labels, size_t count,
                                     uint64_t value, void *arg);

struct component_factory {
    const char *type; /* "batch": what the user writes */
    /* NULL-ended; deprecated names that still work, with a warning. NULL: none. */
    const char *const *aliases;
    const char *later_name; /* that of collectors after 0.155; works as well. NULL: none */
    enum component_kind kind;
    const char *stability; /* "stable", "beta", "alpha", "development" */
    unsigned signals;      /* enum signal_mask; connectors use connects instead */
    /* Connectors: for each input signal, the output signals (enum signal_mask). */
    unsigned connects[SIGNAL_KINDS];
    /* Connectors: consume passes each batch to all pipelines downstream (outlet_pass). To the
     * ledger the items stay the same, owed to the exporters downstream. Otherwise items end at the
     * connector, delivered when it accepts them, and its output is received anew (outlet_offer). */
    bool passes_on;
    /* With passes_on: counts a batch that is passed to some of the pipelines downstream, past
     * consume. */
    void (*count_passed)(struct component *self, const struct batch *batch);
    /* With passes_on: consume chooses which pipelines get an item, so nothing goes past it. A
     * pipeline in front needs no journal because of those behind it: they have their own. */
    bool chooses;
    size_t instance_size; /* of the struct that embeds struct component */
    size_t config_size;
    const struct config_field *fields; /* NULL: no keys at all */
    size_t counters_size;
    const struct counter_row *counters; /* NULL: none */
    /* Calls add for counters whose labels come from the configuration. On any thread, once all
     * components are made. NULL: none. */
    void (*each_counter)(const struct component *self, component_counter_fn add, void *arg);
    /* Rules across the fields; runs even when the component is unused. Part of configuration
     * checking. */
    bool (*check)(const void *config, struct error *error);
    /* Advice of `validate` and the start on a valid configuration, in a pipeline of that signal.
     * NULL, or false: none. */
    bool (*advise)(const void *config, enum signal_kind signal, struct error *advice);
    /* Processors, connectors, exporters: makes what all instances of one id share, on every lane,
     * in every pipeline and for every signal; called once, before the first create, with the first
     * component. NULL is failure. Nothing else is used by several lanes at once. */
    void *(*share)(const struct component *first, unsigned lanes, struct error *error);
    /* Frees it, after the last destroy. */
    void (*unshare)(void *shared);
    /* The instance is zeroed and its component filled; allocates and prepares. On failure destroy
     * is called. */
    bool (*create)(struct component *self, struct error *error);
    /* Processors: looks for others in its pipeline, all of which are made (component_beside). Also
     * when the configuration is only checked; main thread. NULL: needs none. */
    bool (*meet)(struct component *self, struct error *error);
    /* Opens sockets and timers. After a failure stop follows and closes what was opened. */
    bool (*start)(struct component *self, struct error *error);
    /* Borrows the batch; call batch_ref to keep it. Must resolve the receipt, which may be NULL,
     * exactly once: now, later, or by passing it on. Exporters make one attempt and resolve with
     * its result. */
    void (*consume)(struct component *self, struct batch *batch, struct receipt *receipt);
    /* Processors that keep senders waiting: the service begins to stop. Receivers stop first, which
     * waits for all responses, so from now on nothing waits here. Before stop. NULL: none. */
    void (*release_senders)(struct component *self);
    /* Begins to stop: takes no new work, finishes what it holds. Calls component_stopped(self) at
     * the end, now or later. */
    void (*stop)(struct component *self);
    /* Frees what create made; the instance may be half made and never started. The core frees the
     * instance. */
    void (*destroy)(struct component *self);
    const struct authenticator_ops *authenticator; /* extensions; NULL: not an authenticator */
};

/* Reports that the component has stopped. */
void component_stopped(struct component *self);
/* Destinations of the batch: fewer than self->exporters when the journal gives it to some. */
unsigned component_exporters(const struct component *self, const struct batch *batch);
/* Processors: the first of that type in the pipeline of self; NULL: it has none. */
struct component *component_beside(struct component *self, const char *type);
/* Passes a batch to the next stage. */
void component_consume(struct component *next, struct batch *batch, struct receipt *receipt);

/* Receivers: offers a request to every pipeline of its signal; the receipt gets one joined outcome.
 * Refused when the budget is used up. */
void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt);
/* The same for a receiver that keeps a refused batch and offers it again, to one pipeline at a
 * time. After a temporary refusal the items count as in flight until they are offered again, or
 * given up, which counts the refusal. */
size_t outlet_pipelines(const struct outlet *outlet);
void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again);
void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason);

/* Connectors that pass items on: passes the batch, of their own signal, to every pipeline
 * downstream. The receipt gets one joined outcome: REFUSED only when all of them refused and
 * nothing is counted; what some refused while others took it is counted as lost. The budget refuses
 * nothing here: the request was admitted before. */
void outlet_pass(struct outlet *outlet, struct batch *batch, struct receipt *receipt);
/* The same to one of the pipelines (outlet_pipelines), by its place. */
void outlet_pass_to(struct outlet *outlet, size_t place, struct batch *batch,
                    struct receipt *receipt);
/* Whether that one needs a journal, and its destinations. */
bool outlet_stores_at(const struct outlet *outlet, size_t place);
/* As in YAML: "traces/a"; NULL in some tests. */
const char *outlet_pipeline_at(const struct outlet *outlet, size_t place);
unsigned outlet_exporters_at(const struct outlet *outlet, size_t place);

/* Pages about the running service, as HTML. */
enum status_page {
    STATUS_SERVICE,
    STATUS_PIPELINES,
    STATUS_EXTENSIONS,
    STATUS_FEATURES,
    STATUS_PAGES,
};

/* A component in the picture of the pipelines: totals since the start, over all lanes. */
struct picture_node {
    const char *node; /* "receiver/otlp"; processors, one per pipeline: "processor/batch@traces" */
    const char *kind;
    const char *type;
    const char *id;       /* as in YAML */
    uint32_t line;        /* of the configuration; 0: unknown */
    uint64_t items;       /* taken; exporters: sent */
    uint64_t bytes;       /* exporters with a queue: offered */
    uint64_t refused;     /* exporters: failed for good, or for lack of room */
    uint64_t queue;       /* requests that wait */
    uint64_t queue_limit; /* 0: it has no queue */
    uint64_t retries;
};
struct picture_edge {
    const char *from;
    const char *to;
    const char *pipeline;
    const char *signal;
};
/* What the join and the journals have done and hold. */
struct picture_sums {
    bool has_join; /* a trace_profile_join is in a pipeline; of all of them: */
    uint64_t hits;
    uint64_t misses;
    uint64_t held_requests;
    uint64_t held_bytes;
    bool has_journal;         /* a pipeline has one; of all of them: */
    uint64_t waiting_records; /* that some exporter has not finished */
    uint64_t waiting_bytes;
    uint64_t oldest_wall_ns; /* 0: none waits */
    bool is_full;
};
/* A counter of one node: "otelcol_receiver_accepted_spans", {transport="grpc"} as pairs. */
struct picture_counter {
    const char *name;
    const char *labels[2]; /* NULL: none */
    const char *values[2];
    uint64_t value;
};
typedef void (*picture_counter_fn)(const struct picture_counter *counter, void *arg);
typedef void (*picture_node_fn)(const struct picture_node *node, void *arg);
typedef void (*picture_edge_fn)(const struct picture_edge *edge, void *arg);

/* What components may ask the service. */
struct service_view {
    /* Built only as a check (validate), maybe on another machine: certificates and passwords are
     * not read. */
    bool is_rehearsal;
    /* Returns the extension of that id if service::extensions lists it, else NULL. */
    const struct config_component *(*extension)(const struct service_view *view, const char *id);
    /* Whether the configuration has a pipeline of that id that --skip-unsupported leaves out. */
    bool (*leaves_out)(const struct service_view *view, const char *pipeline);
    void (*print_page)(const struct service_view *view, enum status_page page, FILE *out);
    /* The running pipelines: any thread while the service runs; strings are the callee's. */
    void (*each_node)(const struct service_view *view, picture_node_fn fn, void *arg);
    void (*each_edge)(const struct service_view *view, picture_edge_fn fn, void *arg);
    struct picture_sums (*sums)(const struct service_view *view);
    /* The counters of one node, and its section of the configuration as YAML with secrets redacted.
     * False: there is no such node. */
    bool (*node_detail)(const struct service_view *view, const char *node, picture_counter_fn fn,
                        void *arg, FILE *yaml);
    /* service.instance.id of the telemetry's resource; "": the configuration removes it. */
    const char *instance_id;
    const struct feature_gates *gates; /* NULL, in some tests: the defaults */
    bool (*is_ready)(const struct service_view *view);
    uint64_t (*ready_since_wall_ns)(const struct service_view *view);
};

static inline bool component_is_rehearsed(const struct component *self)
{
    return self->service != NULL && self->service->is_rehearsal;
}
