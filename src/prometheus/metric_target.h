/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a process to Prometheus: job and instance, made of three resource attributes
 * (OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility", "Resource Attributes").
 * Everything borrows from the request. Pure functions; any thread. */
#pragma once

#include <stdbool.h>

#include "src/base/slice.h"

struct arena;

/* KeyValue: 1 key, 2 value. */
struct metric_attribute {
    struct slice key;
    struct slice value; /* encoded */
};

struct metric_attribute metric_attribute_read(struct slice bytes);

/* Encoded values; no data: absent. The first of equal keys counts, as in pdata's maps. */
struct metric_target {
    struct slice service;
    struct slice name_space;
    struct slice instance;
};

/* Whether the attribute of that key is a part of it. */
bool metric_target_has(struct slice key);
/* Takes the attribute if it is the first of its key. */
void metric_target_take(struct metric_target *target, const struct metric_attribute *attribute);
/* service.namespace/service.name, or service.name. False: the arena is full. */
bool metric_target_job(const struct metric_target *target, struct arena *arena,
                       struct slice *ret_job);
