/* SPDX-License-Identifier: Apache-2.0 */
/* The running pipelines as a picture: components as nodes with their totals, and what passes
 * between them as edges. */
#pragma once

#include "src/core/component.h"

struct service;

/* Any thread while the service exists; figures of lanes are snapshots. */
void picture_each_node(const struct service *service, picture_node_fn fn, void *arg);
void picture_each_edge(const struct service *service, picture_edge_fn fn, void *arg);
struct picture_sums picture_sums(const struct service *service);
/* As service_view's node_detail. */
bool picture_node_detail(const struct service *service, const char *node, picture_counter_fn fn,
                         void *arg, FILE *yaml);
