/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of target groups, as files for file_sd_configs and servers for http_sd_configs have
 * them: [{"targets": ["host:port"], "labels": {"name": "value"}}]
 * (https://prometheus.io/docs/prometheus/latest/http_sd/). What Prometheus refuses is refused; so
 * are anchors in YAML. Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "receivers/scrape/scrape_target.h"
#include "src/base/arena.h"
#include "src/base/limits.h"
#include "src/base/slice.h"
#include "src/prometheus/prometheus_label.h"

struct budget;
struct error;

enum {
    TARGET_GROUPS_BYTES_MAX = 16 << 20, /* of a file or response */
    TARGET_GROUPS_MAX = 65536,          /* of one */
    TARGET_GROUPS_TARGETS_MAX = 65536,  /* of one */
    TARGET_GROUP_LABELS_MAX = 256,
    TARGET_GROUPS_MEMORY_MAX = 128 << 20, /* for what is read of one */
};
/* Labels of the targets in one: each target is made with all of its group's. */
#define TARGET_GROUPS_LABEL_BYTES_MAX (512 * MIB)

struct target_groups {
    struct arena arena;
    struct target_group *groups;
    size_t count;
    size_t targets_count; /* in all groups */
    uint64_t label_bytes; /* of all targets */
};

/* source is added to the labels of each group. The texts are copied, charged to the budget (NULL:
 * not charged). False: error has the reason; free or not, groups are empty. */
bool target_groups_read_json(struct target_groups *groups, struct slice text,
                             const struct prometheus_label *source, struct budget *budget,
                             struct error *error);
bool target_groups_read_yaml(struct target_groups *groups, struct slice text,
                             const struct prometheus_label *source, struct budget *budget,
                             struct error *error);
/* A no-op for an all-zero struct. */
void target_groups_free(struct target_groups *groups);
