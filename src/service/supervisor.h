/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a configuration until a signal ends it: lanes, signals, reload. Main thread. */
#pragma once

struct config_request;

/* Instead of an exit code: the caller replaces this process by a fresh one of the same program. */
enum { SUPERVISOR_BEGIN_ANEW = -1 };

/* The process' exit code: 0 after a signal, 1 when the configuration is wrong or cannot be started.
 * SUPERVISOR_BEGIN_ANEW when a reload could not take the old service down within its time. */
int supervisor_run(const struct config_request *request);
/* Loads, builds everything and throws it away: 0 and silence, or 1 and the errors on stderr. */
int supervisor_validate(const struct config_request *request);
