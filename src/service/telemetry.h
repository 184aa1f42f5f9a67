/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own metrics page: http://localhost:8888/metrics. On lane 0; reads the counters of
 * all lanes. */
#pragma once

#include <stdio.h>

#include "src/base/counter.h"

struct error;
struct service;
struct telemetry;

/* Listens as configured. NULL: error has the reason. */
struct telemetry *telemetry_create(struct service *service, struct error *error);
/* Closes its connections, then calls done(arg) once, from a later turn of the loop. */
void telemetry_stop(struct telemetry *telemetry, void (*done)(void *arg), void *arg);
/* NULL is a no-op. */
void telemetry_destroy(struct telemetry *telemetry);
/* The page itself. Any thread while the service exists. */
void telemetry_print(struct service *service, enum metrics_level level, FILE *out);
