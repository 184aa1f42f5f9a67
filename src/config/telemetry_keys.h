/* SPDX-License-Identifier: Apache-2.0 */
/* service::telemetry as it is written: the struct that its rows fill, and what it comes to. Main
 * thread, while the configuration is loaded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/config/config.h"
#include "src/config/decode.h"
#include "src/config/field.h"

struct telemetry_sampling {
    uint64_t tick_ns;
    uint64_t initial;
    uint64_t thereafter;
};

struct telemetry_logs {
    const struct config_value *level;
    int encoding;
    bool disable_caller;
    bool is_sampled;
    struct telemetry_sampling sampling;
    struct config_texts output_paths;
};

struct telemetry_prometheus {
    const char *host;
    uint64_t port;
    bool without_scope_info;
    bool without_units;
    bool without_type_suffix;
};

struct telemetry_exporter {
    bool has_prometheus;
    struct telemetry_prometheus prometheus;
};

struct telemetry_pull {
    struct telemetry_exporter exporter;
};

struct telemetry_reader {
    bool has_pull;
    struct telemetry_pull pull;
};

struct telemetry_metrics {
    const struct config_value *level;
    const char *address;
    struct config_sections readers; /* of struct telemetry_reader */
};

/* Accepted, without effect. */
struct telemetry_traces {
    char nothing;
};

struct telemetry_keys {
    struct telemetry_logs logs;
    struct telemetry_metrics metrics;
    struct telemetry_traces traces;
    const struct config_value *resource;
};

extern const struct config_field telemetry_keys_fields[];

/* What the rows alone cannot say: levels, readers, the resource. site and node are those of
 * service::telemetry; node may be NULL. */
void telemetry_keys_resolve(const struct site *site, const struct node *node,
                            const struct telemetry_keys *telemetry, struct config_service *service);
