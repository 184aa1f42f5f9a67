/* SPDX-License-Identifier: Apache-2.0 */
/* The component contract: what a receiver, processor, exporter, connector or extension is to the
 * core. One instance per lane (an exporter: per lane and signal; a processor: per lane and
 * pipeline; a connector: per lane and pair of signals, the one it takes and the one it gives);
 * instances share nothing but their configuration and what the share slot makes. All slots run on
 * the instance's lane, share and unshare on the main thread while no lane runs. */
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
struct lane;
struct ledger;
struct receipt;
struct service_view;
struct stop_latch;

enum component_kind { RECEIVER, PROCESSOR, EXPORTER, CONNECTOR, EXTENSION };

/* The pipelines that take one signal from a receiver or a connector; NULL in a receiver: none
 * does. */
struct outlet;

/* First member of every instance. */
struct component {
    const struct component_factory *factory;
    const char *id;         /* as in YAML: "batch/slow" */
    const void *config;     /* the struct that the option table filled; shared by all lanes */
    struct lane *lane;      /* the only thread that may call us */
    struct budget *budget;  /* bytes of the whole process */
    struct ledger *ledger;  /* of this lane */
    struct component *next; /* processors: the next stage */
    struct outlet *outlets[SIGNAL_KINDS]; /* receivers; connectors: of the output alone */
    enum signal_kind signal;              /* of what consume takes */
    enum signal_kind output;              /* connectors: of what goes to the outlet */
    unsigned exporters;          /* how many destinations an item that consume takes is owed to */
    struct component *first;     /* the same component's instance on lane 0, maybe itself */
    struct component *next_lane; /* the same component's instance on the next lane, or NULL */
    const struct service_view *service; /* what it may ask; NULL in some tests */
    void *shared;   /* what share made for all instances of this id; NULL: nothing */
    void *counters; /* counters_size bytes, zeroed, owned by the core */
    /* Exporters, set by create: the URL without userinfo and query, or "grpc://host:port", for the
     * labels server_address, server_port and (http) url_path; or NULL. */
    const char *destination;
    bool is_started;             /* start was called, and maybe failed: stop is to come */
    struct stop_latch *stopping; /* who waits for component_stopped */
    struct logger logger;
};

struct component_factory {
    const char *type; /* "batch": what the user writes */
    const char *const
        *aliases; /* NULL-ended; deprecated names that still work, with a warning. NULL: none */
    enum component_kind kind;
    const char *stability; /* "stable", "beta", "alpha", "development" */
    unsigned signals;      /* enum signal_mask; connectors have the next instead */
    /* Connectors: by each signal that they take, which signals they give (enum signal_mask). */
    unsigned connects[SIGNAL_KINDS];
    /* Connectors: consume hands each batch to all pipelines behind it (outlet_pass). To the ledger
     * the items stay the same, owed to the exporters behind. Otherwise the connector is where items
     * end, delivered when it accepts them, and what it makes is received anew (outlet_offer). */
    bool passes_on;
    size_t instance_size; /* of the struct that embeds struct component */
    size_t config_size;
    const struct config_field *fields; /* NULL: no keys at all */
    size_t counters_size;
    const struct counter_row *counters; /* NULL: counts nothing */
    /* Rules across the fields; runs even when the component is unused. Part of configuration
     * checking. */
    bool (*check)(const void *config, struct error *error);
    /* What `validate` and the start tell the user about a configuration that is fine, in a pipeline
     * of that signal, as text of advice. NULL, or false: nothing. */
    bool (*advise)(const void *config, enum signal_kind signal, struct error *advice);
    /* Processors: makes what all instances of one id share, on every lane and in every pipeline;
     * called once, before the first create, with the component that comes first. NULL is failure.
     * It is the one thing that several lanes touch at once. */
    void *(*share)(const struct component *first, unsigned lanes, struct error *error);
    /* Gives that back, after the last destroy. */
    void (*unshare)(void *shared);
    /* The instance is zeroed and its component filled; allocates and prepares. On failure destroy
     * is called. */
    bool (*create)(struct component *self, struct error *error);
    /* Opens sockets and timers. When it fails half way, it leaves what it has opened to stop, which
     * follows. */
    bool (*start)(struct component *self, struct error *error);
    /* Takes a batch that it only borrows (who keeps it takes a reference) and sees to it that the
     * receipt, which may be NULL, resolves exactly once: at once, later, or by passing it on.
     * Exporters make one attempt and resolve with its result. */
    void (*consume)(struct component *self, struct batch *batch, struct receipt *receipt);
    /* Begins to stop: no new work, what is gathered goes on. Ends, now or later, in
     * component_stopped(self). */
    void (*stop)(struct component *self);
    /* Gives back what create made; the instance may be half made and never started. The core frees
     * the instance. */
    void (*destroy)(struct component *self);
    const struct authenticator_ops *authenticator; /* extensions; NULL: it authenticates nobody */
};

/* A component's answer to stop. */
void component_stopped(struct component *self);
/* Hands a batch to the next stage. */
void component_consume(struct component *next, struct batch *batch, struct receipt *receipt);

/* Receivers: hands a request to every pipeline of its signal; the receipt gets one joined answer. A
 * budget that is used up refuses. */
void outlet_offer(struct outlet *outlet, struct batch *batch, struct receipt *receipt);
/* The same for a receiver that keeps what finds no room and offers it again: to one of its
 * pipelines at a time. After a refusal that is not for good the items count as in flight, until
 * they are offered again, or given up, which books the refusal. */
size_t outlet_pipelines(const struct outlet *outlet);
void outlet_offer_deferred(struct outlet *outlet, size_t place, struct batch *batch,
                           struct receipt *receipt, bool is_again);
void outlet_give_up(struct outlet *outlet, size_t place, const struct batch *batch,
                    enum loss_reason reason);

/* Connectors that pass items on: hands the batch, of their own signal, to every pipeline behind
 * them. The receipt gets one joined answer: REFUSED only when all of them refused it and nothing is
 * booked; what some refused while others took it is booked as lost. The budget refuses nothing
 * here: the request was let in before. */
void outlet_pass(struct outlet *outlet, struct batch *batch, struct receipt *receipt);

/* Pages about the running service, as HTML. */
enum status_page {
    STATUS_SERVICE,
    STATUS_PIPELINES,
    STATUS_EXTENSIONS,
    STATUS_FEATURES,
    STATUS_PAGES,
};

/* What the service says of itself. */
struct service_view {
    /* Built only to see whether it can be (validate), maybe not on the machine where it is to run:
     * certificates and passwords are not read. */
    bool is_rehearsal;
    /* The extension of that id, if service::extensions lists it; else NULL. */
    const struct config_component *(*extension)(const struct service_view *view, const char *id);
    void (*print_page)(const struct service_view *view, enum status_page page, FILE *out);
    bool (*is_ready)(const struct service_view *view);
    uint64_t (*ready_since_wall_ns)(const struct service_view *view);
};

static inline bool component_is_rehearsed(const struct component *self)
{
    return self->service != NULL && self->service->is_rehearsal;
}
