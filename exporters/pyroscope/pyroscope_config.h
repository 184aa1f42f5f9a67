/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the pyroscope exporter: its struct, option table and rules. Constants and pure
 * functions; the main thread runs them while it loads the configuration. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporters/shared/exporter_auth.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/config/shared/tls_config.h"

enum pyroscope_mode { PYROSCOPE_PUSH, PYROSCOPE_INGEST, PYROSCOPE_OTLP };
enum pyroscope_compression { PYROSCOPE_GZIP, PYROSCOPE_PLAIN };
enum pyroscope_switch { PYROSCOPE_ON, PYROSCOPE_OFF };
enum pyroscope_version { PYROSCOPE_2_1, PYROSCOPE_2_0, PYROSCOPE_1 };

struct pyroscope_auth_config {
    const char *username;
    const char *password;
};

struct pyroscope_labels_config {
    struct config_texts allow;        /* resource and scope attributes that become labels */
    struct config_texts drop;         /* sample attributes that do not */
    const struct config_value *names; /* attribute → label; NULL: none */
    const struct config_value *add;   /* label → value; NULL: none */
    bool dots_to_underscores;
    uint64_t max_names;
    uint64_t max_value_bytes;
};

struct pyroscope_limits_config {
    uint64_t max_samples;
    uint64_t max_bytes;
    uint64_t max_stack_depth;
    uint64_t max_age_ns;    /* 0: any */
    uint64_t max_future_ns; /* 0: any */
};

struct pyroscope_config {
    struct exporter_queue_config exporter_queue;
    const char *endpoint;
    int mode;               /* enum pyroscope_mode */
    int compression;        /* enum pyroscope_compression */
    int trace_id;           /* enum pyroscope_switch */
    int min_server_version; /* enum pyroscope_version */
    const char *tenant;
    bool forward_tenant;
    struct config_pairs headers;
    bool has_basic_auth;
    struct pyroscope_auth_config basic_auth;
    const char *bearer_token;
    struct exporter_auth_config auth;
    uint64_t timeout_ns;
    uint64_t concurrency;
    struct tls_client_config tls;
    const char *proxy_url;
    struct pyroscope_labels_config labels;
    struct pyroscope_limits_config limits;
};

extern const struct config_field pyroscope_fields[];
/* The sections of labels and limits. */
extern const struct config_field pyroscope_labels_fields[];
extern const struct config_field pyroscope_limits_fields[];

/* The rule of the section of labels. */
bool pyroscope_labels_check(const void *section, struct error *error);

/* Rules across the fields; section is a struct pyroscope_config. */
bool pyroscope_config_check(const void *section, struct error *error);

/* The string of key in a map of strings; NULL: it has no such key. */
const char *pyroscope_config_find(const struct config_value *map, const char *key, size_t size);
