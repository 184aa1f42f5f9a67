/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a configuration until a signal ends it: lanes, signals, reload. Main thread. */
#pragma once

#include <stdbool.h>

struct config;
struct config_request;
struct error;

/* Returned instead of an exit code: the caller re-executes the program. */
enum { SUPERVISOR_BEGIN_ANEW = -1 };

/* Returns the exit code: 0 after a signal, 1 when the configuration is invalid or cannot be
 * started; SUPERVISOR_BEGIN_ANEW when a reload could not stop the old service in time. */
int supervisor_run(const struct config_request *request);
/* Loads and builds everything and discards it. Returns 0 silently, or 1 with the errors on
 * stderr. */
int supervisor_validate(const struct config_request *request);
/* Builds what was loaded and discards it, as supervisor_validate does. False: it cannot start. */
bool supervisor_can_build(const struct config *config, struct error *error);
