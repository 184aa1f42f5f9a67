/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a configuration until a signal ends it: lanes, signals, reload. Main thread. */
#pragma once

struct config_request;

/* The process' exit code: 0 after a signal, 1 when the configuration is wrong or cannot be started.
 */
int supervisor_run(const struct config_request *request);
/* Loads, builds everything and throws it away: 0 and silence, or 1 and the errors on stderr. */
int supervisor_validate(const struct config_request *request);
