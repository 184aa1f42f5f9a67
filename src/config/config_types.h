/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded configuration as plain data: what the files, flags and environment say, checked whole,
 * decoded into the components' structs. Immutable once loaded; shared by all lanes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/signal_kind.h"
#include "src/config/feature_gates.h"
#include "src/config/field.h"

struct component_factory;
struct node_entry;

/* One entry below receivers:, processors:, exporters:, connectors: or extensions:, used or not. */
struct config_component {
    const struct component_factory *factory;
    const char *id;                  /* "otlp/profiles": as the user wrote it, trimmed */
    const void *config;              /* factory->config_size bytes */
    bool is_used;                    /* named by a pipeline or by service::extensions */
    const char *alias;               /* the deprecated type name that the user wrote, or NULL */
    const char *unsupported;         /* why it is left out; NULL: it is not */
    const struct node_entry *origin; /* where it was written; lives as long as the configuration */
};

struct config_pipeline {
    const char *id; /* "traces/slow" */
    enum signal_kind signal;
    size_t receivers_count;
    const struct config_component *const *receivers; /* connectors among them */
    size_t processors_count;
    const struct config_component *const *processors;
    size_t exporters_count;
    const struct config_component *const *exporters; /* connectors among them */
    size_t depth;          /* connectors on the longest path to it; 0: only receivers feed it */
    unsigned destinations; /* of an item: exporters, also those behind connectors that pass it on,
                              and connectors that do not; counted once for each path */
};

/* service::telemetry and our own keys below service:. */
struct config_service {
    uint64_t lanes;      /* 0: auto, one per core */
    uint64_t budget_mib; /* 0: from the machine */
    uint64_t drain_timeout_ns;
    bool core_dumps;
    /* telemetry::logs */
    int log_level;    /* enum log_level */
    int log_encoding; /* 0 console, 1 json */
    bool log_disable_caller;
    bool log_is_sampled;
    uint64_t log_sampling_tick_ns;
    uint64_t log_sampling_initial;
    uint64_t log_sampling_thereafter;
    struct config_texts log_output_paths;
    /* telemetry::metrics */
    int metrics_level; /* enum metrics_level */
    bool has_metrics_reader;
    const char *metrics_host;
    uint64_t metrics_port;
    bool metrics_without_units;
    bool metrics_without_type_suffix;
    /* telemetry::resource */
    struct config_pairs resource; /* service.name, service.version, service.instance.id resolved */
};

enum skip_reason {
    SKIP_COMPONENT,    /* the build lacks the component, or one of its keys */
    SKIP_EXTENSION,    /* it refers to an extension that is left out */
    SKIP_PROCESSOR,    /* of a pipeline: a processor is left out */
    SKIP_NO_RECEIVERS, /* of a pipeline: all of its receivers are left out */
    SKIP_NO_EXPORTERS, /* of a pipeline: all of its exporters are left out */
    SKIP_CONNECTOR,    /* the pipelines at a connector's other side are left out */
    SKIP_REASONS
};

/* What is left out of a configuration that says service: {unsupported: skip}. */
struct config_skip {
    const char *pipeline;  /* NULL: a component as a whole, or in service::extensions */
    const char *component; /* its id; NULL: the pipeline as a whole */
    const char *section;   /* of the component: "receivers"; NULL: the pipeline as a whole */
    enum skip_reason reason;
    const char *why; /* a sentence without its full stop */
};

struct config {
    struct config_service service;
    struct feature_gates gates;
    size_t components_count;
    const struct config_component *components; /* all kinds, in file order */
    size_t extensions_count;
    const struct config_component *const *extensions; /* as service::extensions lists them */
    size_t pipelines_count;
    const struct config_pipeline *pipelines;
    size_t depth; /* of the deepest pipeline; 0: there are no connectors */
    size_t skips_count;
    const struct config_skip *skips; /* components, then parts of pipelines, then pipelines */
};

/* "component", as in labels of metrics. */
const char *skip_reason_name(enum skip_reason reason);

struct config_request {
    const char *const *locations; /* --config, in order */
    size_t locations_count;
    const char *const *settings; /* --set, in order, "a.b=c" */
    size_t settings_count;
    const struct component_factory *const *factories; /* NULL-terminated: all that are built in */
    const struct feature_gates *gates;                /* NULL: the defaults */
    bool skips_unsupported; /* --skip-unsupported; service: {unsupported: skip} says so too */
    bool may_be_empty;      /* with skips_unsupported: that no pipeline is left is no problem */
    bool skips_checks;      /* config_print only: also prints invalid configurations */
};

/* All problems of a configuration at once, in file order. */
struct config_problems {
    size_t count;
    char **texts; /* "file:line:column: path: what was found, what was expected (did you mean …)" */
    size_t warnings_count;
    /* Integer durations, unset environment variables, keys without effect; the last notices_count
     * of them (deprecated names) are for the log of a running daemon only. */
    char **warnings;
    size_t notices_count;
    bool has_unsupported; /* some of the problems are parts that this build lacks */
};
