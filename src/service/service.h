/* SPDX-License-Identifier: Apache-2.0 */
/* The running configuration: every lane's receivers, pipelines and exporters, built from a loaded
 * configuration, started back to front and stopped front to back. Built, started and destroyed on
 * the main thread while no lane runs; stopping is driven from lane 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct config;
struct error;
struct lane;
struct service;

/* Builds everything, opens nothing. lanes are borrowed and outlive the service. Errors begin as
 * those of the Go collector: "failed to build pipelines: …". */
struct service *service_create(const struct config *config, struct lane *const *lanes,
                               unsigned lanes_count, struct error *error);
/* Whether a service can be built, on a lane that never runs. A rehearsal does not read the files
 * (certificates, passwords) of the target machine. */
bool service_can_build(const struct config *config, struct lane *lane, bool is_rehearsal,
                       struct error *error);
/* The service is stopped or was never started, and no lane runs. NULL is a no-op. */
void service_destroy(struct service *service);
/* Starts extensions, exporters, connectors and processors, then receivers. After a failure
 * service_stop stops what was started. */
bool service_start(struct service *service, struct error *error);
/* On lane 0: stops receivers, drains pipelines and queues, stops exporters and extensions, then
 * calls done(arg) on lane 0. is_forced: the drain timed out, or service_force was called; what
 * is left is counted as dropped, and the service may not be used again, not even by
 * service_destroy. */
void service_stop(struct service *service, void (*done)(bool is_forced, void *arg), void *arg);
/* On lane 0, while stopping: ends the drain now. */
void service_force(struct service *service);
/* How many items were still undelivered when the drain was cut short. */
uint64_t service_abandoned_items(const struct service *service);
